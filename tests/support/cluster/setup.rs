//! Everything that the programs of one cluster are given: ports, files and
//! flags. It starts them but does not wait for them.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::json;

use super::Options;
use super::pki::{Authority, Pair, new_key};
use super::process::{Process, command};

/// What each program of a cluster needs to know of the others.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) ports: Ports,
    pub(crate) authority: Authority,
    pub(crate) options: Options,
    root: PathBuf,
    programs: PathBuf,
}

/// Loopback ports that were free a moment ago.
#[derive(Debug)]
pub(crate) struct Ports {
    pub(crate) etcd_client: u16,
    pub(crate) etcd_peer: u16,
    pub(crate) apiserver: u16,
}

/// Who a kubeconfig's bearer is, by the name of its file. The two components
/// have the users that Kubernetes' own roles are bound to.
const IDENTITIES: [(&str, &str, Option<&str>); 3] = [
    ("admin", "admin", Some("system:masters")),
    ("kube-controller-manager", "system:kube-controller-manager", None),
    ("kube-scheduler", "system:kube-scheduler", None),
];

/// Keeps each request's metadata, which includes what webhooks annotate.
const AUDIT_POLICY: &str = r#"{"apiVersion": "audit.k8s.io/v1", "kind": "Policy",
"omitStages": ["RequestReceived"], "rules": [{"level": "Metadata"}]}"#;

// === impl Ports ===

impl Ports {
    pub(crate) fn choose() -> Result<Self> {
        // All are held at once, so that they differ.
        let listeners = [bind()?, bind()?, bind()?];
        let [etcd_client, etcd_peer, apiserver] = listeners.each_ref().map(port);
        Ok(Self { etcd_client: etcd_client?, etcd_peer: etcd_peer?, apiserver: apiserver? })
    }

    pub(crate) fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.apiserver)
    }
}

fn bind() -> Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no loopback port is free")
}

fn port(listener: &TcpListener) -> Result<u16> {
    Ok(listener.local_addr().context("a listener has no port")?.port())
}

// === impl Setup ===

impl Setup {
    /// Chooses ports and writes all files into `root`.
    pub(crate) fn new(root: &Path, programs: &Path, options: Options) -> Result<Self> {
        let setup = Self {
            ports: Ports::choose()?,
            authority: Authority::new()?,
            options,
            root: root.to_owned(),
            programs: programs.to_owned(),
        };
        setup.write("ca.crt", &setup.authority.pem())?;
        setup.write_pair("apiserver", &setup.authority.serving(&["127.0.0.1", "localhost"])?)?;
        let tokens = new_key()?;
        setup.write("service-account.key", &tokens.serialize_pem())?;
        setup.write("service-account.pub", &tokens.public_key_pem())?;
        setup.write("audit-policy.json", AUDIT_POLICY)?;
        for (file_name, user, group) in IDENTITIES {
            setup.write_kubeconfig(file_name, user, group)?;
        }
        Ok(setup)
    }

    /// Writes a kubeconfig with a new certificate for a user.
    pub(crate) fn write_kubeconfig(&self, file_name: &str, user: &str, group: Option<&str>) -> Result<PathBuf> {
        self.write_pair(file_name, &self.authority.identity(user, group)?)?;
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [{"name": "test", "cluster": {
                "server": self.ports.url(),
                "certificate-authority": self.path("ca.crt"),
            }}],
            "users": [{"name": "test", "user": {
                "client-certificate": self.path(&format!("{file_name}.crt")),
                "client-key": self.path(&format!("{file_name}.key")),
            }}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        });
        // JSON is YAML, and no value in it needs a second thought about quoting.
        self.write(&format!("{file_name}.kubeconfig"), &config.to_string())?;
        Ok(self.kubeconfig(file_name))
    }

    pub(crate) fn kubeconfig(&self, file_name: &str) -> PathBuf {
        self.root.join(format!("{file_name}.kubeconfig"))
    }

    pub(crate) fn log(&self, program: &str) -> PathBuf {
        self.root.join(format!("{program}.log"))
    }

    pub(crate) fn audit_log(&self) -> PathBuf {
        self.root.join("audit.log")
    }

    /// A command of the cluster's own, with the folder as its home.
    pub(crate) fn command(&self, program: &str) -> Command {
        command(&self.programs.join(program), &self.root)
    }

    pub(crate) fn etcd(&self) -> Result<Process> {
        let client = format!("http://127.0.0.1:{}", self.ports.etcd_client);
        let peer = format!("http://127.0.0.1:{}", self.ports.etcd_peer);
        let mut command = self.command("etcd");
        command
            .arg(format!("--data-dir={}", self.path("etcd")))
            .arg(format!("--listen-client-urls={client}"))
            .arg(format!("--advertise-client-urls={client}"))
            .arg(format!("--listen-peer-urls={peer}"))
            .arg(format!("--initial-advertise-peer-urls={peer}"))
            .arg(format!("--initial-cluster=default={peer}"))
            // The data is worth nothing after a crash of the machine.
            .arg("--unsafe-no-fsync");
        Process::start(command, &self.log("etcd"))
    }

    pub(crate) fn apiserver(&self) -> Result<Process> {
        let mut command = self.command("kube-apiserver");
        command
            .arg(format!("--etcd-servers=http://127.0.0.1:{}", self.ports.etcd_client))
            .arg("--bind-address=127.0.0.1")
            .arg(format!("--secure-port={}", self.ports.apiserver))
            // Without an address it looks for one on the machine's interfaces,
            // and does not start where there is only the loopback one. This one
            // is reserved for documentation; with no reconciler no one uses it.
            .arg("--advertise-address=192.0.2.1")
            .arg("--endpoint-reconciler-type=none")
            .arg(format!("--client-ca-file={}", self.path("ca.crt")))
            .arg(format!("--tls-cert-file={}", self.path("apiserver.crt")))
            .arg(format!("--tls-private-key-file={}", self.path("apiserver.key")))
            .arg(format!("--service-account-key-file={}", self.path("service-account.pub")))
            .arg(format!("--service-account-signing-key-file={}", self.path("service-account.key")))
            .arg("--service-account-issuer=https://kubernetes.default.svc")
            .arg("--authorization-mode=RBAC")
            .arg("--service-cluster-ip-range=10.0.0.0/24")
            // It would refuse a Pod whose service account is not there yet, and
            // add a volume to each Pod that no test wants to see.
            .arg("--disable-admission-plugins=ServiceAccount")
            .arg("--allow-privileged=true");
        if self.options.audit {
            command
                .arg(format!("--audit-policy-file={}", self.path("audit-policy.json")))
                .arg(format!("--audit-log-path={}", self.audit_log().display()))
                .arg("--audit-log-mode=blocking");
        }
        if !self.options.http2 {
            command.env("DISABLE_HTTP2", "1");
        }
        command.args(&self.options.apiserver_args);
        Process::start(command, &self.log("kube-apiserver"))
    }

    pub(crate) fn controllers(&self) -> Result<Process> {
        let mut command = self.component("kube-controller-manager");
        command
            // Each controller then calls as its own service account, as in
            // real clusters, where webhooks tell them apart by it.
            .arg("--use-service-account-credentials=true")
            .arg(format!("--service-account-private-key-file={}", self.path("service-account.key")))
            .arg(format!("--root-ca-file={}", self.path("ca.crt")))
            // No kubelet reports in, so after a minute this one would call every
            // Node lost, taint it and evict its Pods.
            .arg("--controllers=*,-node-lifecycle-controller");
        Process::start(command, &self.log("kube-controller-manager"))
    }

    pub(crate) fn scheduler(&self) -> Result<Process> {
        Process::start(self.component("kube-scheduler"), &self.log("kube-scheduler"))
    }

    /// What the two clients of the API server have in common.
    fn component(&self, program: &str) -> Command {
        let kubeconfig = self.kubeconfig(program);
        let mut command = self.command(program);
        command
            .arg(format!("--kubeconfig={}", kubeconfig.display()))
            .arg(format!("--authentication-kubeconfig={}", kubeconfig.display()))
            .arg(format!("--authorization-kubeconfig={}", kubeconfig.display()))
            // There is only one of each, and an election costs seconds.
            .arg("--leader-elect=false")
            // The usual limit of some ten calls a second protects a shared API
            // server; here it would only double the time of a start.
            .arg("--kube-api-qps=1000")
            .arg("--kube-api-burst=1000")
            // They serve nothing, so they need no port, and two clusters at
            // once do not meet on the usual one.
            .arg("--secure-port=0");
        command
    }

    fn path(&self, file_name: &str) -> String {
        self.root.join(file_name).display().to_string()
    }

    fn write_pair(&self, name: &str, pair: &Pair) -> Result<()> {
        self.write(&format!("{name}.crt"), &pair.certificate)?;
        self.write(&format!("{name}.key"), &pair.key)
    }

    fn write(&self, file_name: &str, text: &str) -> Result<()> {
        let path = self.root.join(file_name);
        std::fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))
    }
}
