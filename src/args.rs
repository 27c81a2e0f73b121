//! The command line as typed: every flag, its variable, its default.
//!
//! Invariant: no flag and no variable is read anywhere else.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand};
use tracing_subscriber::filter::Targets;

use crate::duration;
use crate::logging::Format;
use crate::names;
use crate::server::Limits;
use crate::workers;
use crate::workers::child::Settings;

mod certs;
mod check;
mod completions;
mod explain;
mod schema;
mod test;
mod version;

pub use certs::Certs;
pub use check::{Check, CheckFormat, Color, FailOn, JudgedBy};
pub use completions::Completions;
pub use explain::{Explain, ExplainFormat};
pub use schema::Schema;
pub use test::{Test, TestFormat};
pub use version::{Version, VersionOutput};

/// Admission control of shared GPU pools on Kubernetes.
///
/// An option that can also be given as an environment variable names it. The exit code is 0 after success, 1 after a failure and
/// 2 where the command line is wrong.
#[derive(Debug, Parser)]
#[command(name = "slicegate", version)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Answer the API server's admission reviews.
    Serve(Box<Serve>),
    /// Judge manifests as the cluster would.
    Check(Box<Check>),
    /// Tell step by step how a verdict comes about.
    Explain(Box<Explain>),
    /// Run the tests of policy sets.
    Test(Test),
    /// Make or renew the certificates that the server needs.
    Certs(Certs),
    /// Print the JSON Schema of the configuration.
    Schema(Schema),
    /// Print the completions of a shell.
    Completions(Completions),
    /// Print the versions of the program and of what it is made of.
    Version(Version),
    /// Evaluate policies for the server that starts this.
    #[command(hide = true)]
    RegoWorker(RegoWorker),
}

/// Answer the API server's admission reviews.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  slicegate serve --dev
      try it without a cluster; prints requests to send
  slicegate serve --offline --tls-cert tls.pem --tls-key tls-key.pem --config config.yaml --facts facts/
      judge by files alone
  slicegate serve --tls-cert tls.pem --tls-key tls-key.pem
      in a cluster")]
pub struct Serve {
    /// Where reviews are answered, over TLS [default: 0.0.0.0:8443, or 127.0.0.1:8443 with --dev]
    #[arg(long, env = "SLICEGATE_LISTEN", value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,

    /// Where /livez, /readyz, /metrics and /version are answered, over plain HTTP [default: 0.0.0.0:8080, or 127.0.0.1:8080
    /// with --dev]
    #[arg(long, env = "SLICEGATE_ADMIN", value_name = "ADDRESS")]
    pub admin: Option<SocketAddr>,

    /// The certificate chain to serve, as PEM, the server's own certificate first
    #[arg(
        long,
        env = "SLICEGATE_TLS_CERT",
        value_name = "FILE",
        requires = "tls_key",
        required_unless_present("dev"),
        conflicts_with = "dev"
    )]
    pub tls_cert: Option<PathBuf>,

    /// The certificate's private key, as PEM
    #[arg(long, env = "SLICEGATE_TLS_KEY", value_name = "FILE", requires = "tls_cert", required_unless_present("dev"))]
    pub tls_key: Option<PathBuf>,

    /// The configuration, as YAML, in place of the cluster's ConfigMap slicegate-config [default: one shared pool]
    #[arg(long, env = "SLICEGATE_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Manifests of Namespaces, Nodes and PriorityClasses, a file or a folder, in place of a cluster: with --offline or --dev
    #[arg(long, env = "SLICEGATE_FACTS", value_name = "PATH", requires = "alone")]
    pub facts: Option<PathBuf>,

    /// Rego policies: manifests of labelled ConfigMaps, or folders of .rego files, beside those of the cluster
    #[arg(long, env = "SLICEGATE_POLICIES", value_name = "PATH")]
    pub policies: Option<PathBuf>,

    /// The kubeconfig of the cluster, where the process does not run in it
    #[arg(long, env = "SLICEGATE_KUBECONFIG", value_name = "FILE", conflicts_with_all = ["offline", "dev"])]
    pub kubeconfig: Option<PathBuf>,

    /// slicegate's own namespace, where its configuration is [default: that of its service account, else slicegate-system]
    #[arg(long, env = "SLICEGATE_NAMESPACE", value_name = "NAME")]
    pub namespace: Option<String>,

    /// A namespace whose labelled ConfigMaps are policies too, beside slicegate's own; give it again for each further one
    #[arg(
        long,
        env = "SLICEGATE_POLICY_NAMESPACE",
        value_name = "NAME",
        value_delimiter = ',',
        value_parser = namespace,
        conflicts_with_all = ["offline", "dev"]
    )]
    pub policy_namespace: Vec<String>,

    /// Use files alone and no cluster
    #[arg(long, env = "SLICEGATE_OFFLINE", group = "alone")]
    pub offline: bool,

    /// Try it: offline, on loopback, with certificates made in certs/ where there are none
    #[arg(long, env = "SLICEGATE_DEV", group = "alone", conflicts_with = "offline")]
    pub dev: bool,

    /// How long to go on accepting after SIGTERM, until clients have noticed [default: 5s, or 0s with --dev and --offline]
    #[arg(long, env = "SLICEGATE_DRAIN_DELAY", value_name = "DURATION", value_parser = duration::parse)]
    pub drain_delay: Option<Duration>,

    /// How long what is in flight may take to finish after that
    #[arg(long, env = "SLICEGATE_DRAIN_TIMEOUT", value_name = "DURATION", value_parser = duration::parse, default_value = "30s")]
    pub drain_timeout: Duration,

    /// How log lines look [default: json, or text with --dev]
    #[arg(long, env = "SLICEGATE_LOG_FORMAT", value_name = "FORMAT")]
    pub log_format: Option<Format>,

    /// What is logged: a level, or levels of parts of the program, such as info,kube=debug
    #[arg(long, env = "SLICEGATE_LOG_LEVEL", value_name = "LEVEL", value_parser = level, default_value = "info")]
    pub log_level: Targets,

    #[command(flatten)]
    rego: Rego,

    #[command(flatten)]
    bounds: Bounds,
}

/// What bounds the evaluation of policies.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Policies")]
#[allow(clippy::struct_field_names, reason = "the names of the fields are those of the flags")]
struct Rego {
    /// How many processes evaluate policies, beside one that stands ready [default: one for each core]
    #[arg(long, env = "SLICEGATE_REGO_WORKERS", value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=256))]
    rego_workers: Option<u16>,

    /// The processor time that one policy set may take for one request
    #[arg(long, env = "SLICEGATE_REGO_BUDGET", value_name = "DURATION", value_parser = positive, default_value = "20ms")]
    rego_budget: Duration,

    /// The memory that one policy set may take for one request, beyond what all loaded sets take
    #[arg(long, env = "SLICEGATE_REGO_MEMORY", value_name = "SIZE", value_parser = size, default_value = "64MiB")]
    rego_memory: usize,
}

/// What a worker process is told by the server that starts it.
#[derive(Debug, clap::Args)]
pub struct RegoWorker {
    /// Microseconds of processor time for one evaluation
    budget: u64,
    /// Microseconds of processor time for compiling one set
    compile_budget: u64,
    /// Bytes of memory for either
    memory: u64,
}

impl RegoWorker {
    /// In the words of the worker.
    pub fn settings(&self) -> Settings {
        let micros = Duration::from_micros;
        Settings { budget: micros(self.budget), compile_budget: micros(self.compile_budget), memory: self.memory }
    }
}

/// What bounds the server.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Limits")]
struct Bounds {
    /// The longest that a TLS handshake may take
    #[arg(long, env = "SLICEGATE_HANDSHAKE_TIMEOUT", value_name = "DURATION", value_parser = duration::parse, default_value = "5s")]
    handshake_timeout: Duration,

    /// The longest that the head of a request may take, from its first byte to its last
    #[arg(long, env = "SLICEGATE_HEADER_TIMEOUT", value_name = "DURATION", value_parser = positive, default_value = "10s")]
    header_timeout: Duration,

    /// The longest that the body of a request may take; answered with 408
    #[arg(long, env = "SLICEGATE_BODY_TIMEOUT", value_name = "DURATION", value_parser = duration::parse, default_value = "10s")]
    body_timeout: Duration,

    /// How long a connection may rest between requests
    #[arg(long, env = "SLICEGATE_IDLE_TIMEOUT", value_name = "DURATION", value_parser = positive, default_value = "3m")]
    idle_timeout: Duration,

    /// The age at which a connection is ended between requests, so that load moves to new replicas
    #[arg(long, env = "SLICEGATE_CONNECTION_AGE", value_name = "DURATION", value_parser = positive, default_value = "10m")]
    connection_age: Duration,

    /// The largest body, such as 8MiB or 900KiB; beyond it 413
    #[arg(long, env = "SLICEGATE_MAX_BODY", value_name = "SIZE", value_parser = size, default_value = "8MiB")]
    max_body: usize,

    /// The most memory for bodies of more than 64KiB that are read at a time; beyond it 429
    #[arg(long, env = "SLICEGATE_MAX_BODY_MEMORY", value_name = "SIZE", value_parser = size, default_value = "64MiB")]
    max_body_memory: usize,

    /// The most connections at a time; beyond it they are closed at once
    #[arg(long, env = "SLICEGATE_MAX_CONNECTIONS", value_name = "COUNT", default_value_t = 2_000)]
    max_connections: usize,

    /// The most requests at a time; beyond it 429
    #[arg(long, env = "SLICEGATE_MAX_IN_FLIGHT", value_name = "COUNT", default_value_t = 1_000)]
    max_in_flight: usize,

    /// The most requests at a time on one HTTP/2 connection
    #[arg(long, env = "SLICEGATE_MAX_STREAMS", value_name = "COUNT", default_value_t = 250)]
    max_streams: u32,
}

impl Serve {
    /// Where reviews are answered.
    pub fn listen(&self) -> SocketAddr {
        self.listen.unwrap_or_else(|| self.address(8443))
    }

    /// Where the admin port is.
    pub fn admin(&self) -> SocketAddr {
        self.admin.unwrap_or_else(|| self.address(8080))
    }

    /// How long to go on accepting after SIGTERM. Without a cluster there are no endpoints that would have to notice.
    pub fn drain_delay(&self) -> Duration {
        let default = if self.dev || self.offline { Duration::ZERO } else { Duration::from_secs(5) };
        self.drain_delay.unwrap_or(default)
    }

    /// How log lines look.
    pub fn log_format(&self) -> Format {
        self.log_format.unwrap_or(if self.dev { Format::Text } else { Format::Json })
    }

    /// How policies are evaluated.
    pub fn workers(&self) -> workers::Options {
        let default = workers::Options::default();
        let memory = u64::try_from(self.rego.rego_memory).unwrap_or(u64::MAX);
        let settings = Settings { budget: self.rego.rego_budget, memory, ..default.settings };
        let workers = self.rego.rego_workers.map_or(default.workers, usize::from);
        workers::Options { workers, settings, ..default }
    }

    /// What bounds the server.
    pub fn limits(&self) -> Limits {
        let bounds = &self.bounds;
        Limits {
            handshake_timeout: bounds.handshake_timeout,
            header_timeout: bounds.header_timeout,
            body_timeout: bounds.body_timeout,
            idle_timeout: bounds.idle_timeout,
            connection_age: bounds.connection_age,
            max_body: bounds.max_body,
            max_body_memory: bounds.max_body_memory,
            max_connections: bounds.max_connections,
            max_in_flight: bounds.max_in_flight,
            max_streams: bounds.max_streams,
        }
    }

    fn address(&self, port: u16) -> SocketAddr {
        (if self.dev { Ipv4Addr::LOCALHOST } else { Ipv4Addr::UNSPECIFIED }, port).into()
    }
}

fn level(text: &str) -> Result<Targets, String> {
    text.parse().map_err(|_| "write a level such as info, or levels of parts such as info,kube=debug".to_owned())
}

fn namespace(text: &str) -> Result<String, String> {
    names::dns_label(text).map(|()| text.to_owned())
}

fn positive(text: &str) -> Result<Duration, String> {
    duration::parse(text)
        .and_then(|value| if value.is_zero() { Err("must be more than 0s".to_owned()) } else { Ok(value) })
}

fn size(text: &str) -> Result<usize, String> {
    let units = [("MiB", 1_usize << 20), ("KiB", 1 << 10), ("", 1)];
    let found = units.iter().find_map(|(unit, size)| text.strip_suffix(unit).map(|number| (number, *size)));
    let size = found.and_then(|(number, size)| number.trim_end().parse::<usize>().ok()?.checked_mul(size));
    size.ok_or_else(|| format!("{text:?} is no size; write it like 8MiB, 900KiB or 4096"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    fn serve(flags: &[&str]) -> Result<Serve, clap::Error> {
        match Args::try_parse_from(["slicegate", "serve"].iter().chain(flags))?.verb {
            Verb::Serve(serve) => Ok(*serve),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_flags_do_not_contradict_each_other() {
        Args::command().debug_assert();
    }

    #[test]
    fn the_defaults_are_the_servers_own() {
        let serve = serve(&["--tls-cert", "a", "--tls-key", "b"]).unwrap();
        assert_eq!(serve.limits(), Limits::default());
        assert_eq!(
            (serve.listen().to_string(), serve.admin().to_string()),
            ("0.0.0.0:8443".into(), "0.0.0.0:8080".into())
        );
        assert_eq!((serve.log_format(), serve.drain_delay().as_secs()), (Format::Json, 5));
    }

    #[test]
    fn dev_stays_on_loopback() {
        let dev = serve(&["--dev", "--admin", "127.0.0.1:0"]).unwrap();
        assert_eq!(
            (dev.listen().to_string(), dev.admin().to_string()),
            ("127.0.0.1:8443".into(), "127.0.0.1:0".into())
        );
        assert_eq!((dev.log_format(), dev.drain_delay().as_secs()), (Format::Text, 0));
    }

    #[test]
    fn what_cannot_go_together_is_refused() {
        for flags in [
            &["--dev", "--offline"][..],
            &[],
            &["--offline"],
            &["--tls-cert", "a"],
            &["--dev", "--kubeconfig", "k"],
            &["--dev", "--tls-cert", "a", "--tls-key", "b"],
            &["--tls-cert", "a", "--tls-key", "b", "--facts", "f"],
            &["--max-body", "8MB"],
            &["--idle-timeout", "0s"],
            &["--header-timeout", "10"],
        ] {
            assert_eq!(serve(flags).unwrap_err().exit_code(), 2, "{flags:?}");
        }
        assert!(serve(&["--offline", "--tls-cert", "a", "--tls-key", "b", "--facts", "f"]).is_ok());
        assert!(serve(&["--dev", "--facts", "f"]).is_ok());
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!((size("8MiB"), size("900KiB"), size("4096")), (Ok(8 << 20), Ok(900 << 10), Ok(4096)));
        assert!(size("8MB").is_err() && size("-1").is_err() && size("").is_err());
    }
}
