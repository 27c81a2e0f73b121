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
use crate::server::routes::SMALL;
use crate::workers;
use crate::workers::child::Settings;

mod bounds;
mod certs;
mod check;
mod completions;
mod explain;
mod schema;
mod test;
mod version;

use bounds::{Bounds, Rego};
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

    /// Authorities, as PEM; who has no client certificate by one of them is refused [default: whoever asks is answered]
    ///
    /// An API server sends a certificate only where its AdmissionConfiguration names a kubeconfig with one for its webhooks;
    /// README says how. Probes are on the admin port and need none.
    #[arg(long, env = "SLICEGATE_CLIENT_CA", value_name = "FILE", conflicts_with = "dev")]
    pub client_ca: Option<PathBuf>,

    /// A name that a client certificate may bear, as its common name or a subject alternative name; give it again for each
    /// further one [default: any]
    #[arg(long, env = "SLICEGATE_CLIENT_NAME", value_name = "NAME", value_delimiter = ',', value_parser = clap::builder::NonEmptyStringValueParser::new(), requires = "client_ca")]
    pub client_name: Vec<String>,

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

/// The longest that an API server waits for an answer.
const LONGEST: Duration = Duration::from_secs(30);

impl Serve {
    /// What two options say that cannot both hold, or what one says that would never hold: a limit that is there and does
    /// nothing is worse than none.
    pub fn contradiction(&self) -> Option<String> {
        let (bounds, budget) = (&self.bounds, self.rego.rego_budget);
        if bounds.max_body > bounds.max_body_memory && bounds.max_body > SMALL {
            let (body, memory) = (bounds.max_body, bounds.max_body_memory);
            return Some(format!(
                "--max-body ({body} bytes) is more than --max-body-memory ({memory} bytes): the largest bodies would be turned \
                 away for ever"
            ));
        }
        if budget > LONGEST {
            return Some(
                "--rego-budget is more than 30s, the longest that an API server waits: it would never end anything"
                    .to_owned(),
            );
        }
        None
    }

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
            &["--tls-cert", "a", "--tls-key", "b", "--client-name", "kube-apiserver"],
            &["--tls-cert", "a", "--tls-key", "b", "--client-ca", "c", "--client-name", ""],
            &["--dev", "--client-ca", "c"],
            &["--idle-timeout", "0s"],
            &["--header-timeout", "10"],
        ] {
            assert_eq!(serve(flags).unwrap_err().exit_code(), 2, "{flags:?}");
        }
        assert!(serve(&["--offline", "--tls-cert", "a", "--tls-key", "b", "--facts", "f"]).is_ok());
        assert!(serve(&["--dev", "--facts", "f"]).is_ok());
    }

    #[test]
    fn a_limit_that_could_not_hold_is_told() {
        let base = ["--tls-cert", "a", "--tls-key", "b"];
        let with = |flags: &[&'static str]| serve(&[&base[..], flags].concat()).map(|serve| serve.contradiction());
        assert_eq!(with(&[]).unwrap(), None);
        for flags in [["--max-body-memory", "1MiB"], ["--rego-budget", "31s"]] {
            assert!(with(&flags).unwrap().unwrap().contains(flags[0]), "{flags:?}");
        }
        for flag in [
            "--handshake-timeout",
            "--body-timeout",
            "--max-connections",
            "--max-in-flight",
            "--max-streams",
            "--rego-budget",
        ] {
            let zero = if flag.starts_with("--max") { "0" } else { "0s" };
            assert_eq!(with(&[flag, zero]).unwrap_err().exit_code(), 2, "{flag}");
        }
    }
}
