//! The program under test, as the real binary with the rights that its manifests give it, and the shipped webhook
//! configurations pointed at it.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::process::{Process, command, read_log, wait};
use super::{Cluster, webhook_url};

/// The service account that the shipped manifests make.
const USER: &str = "system:serviceaccount:slicegate-system:slicegate";

/// How long the program may take until it is ready; far above the fraction of a second that it needs.
const START: Duration = Duration::from_mins(1);

/// A running slicegate. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Slicegate {
    process: Process,
    port: u16,
    admin: u16,
    log: std::path::PathBuf,
}

impl Slicegate {
    /// Applies the shipped manifests, starts the program with the rights of its service account and no more, and returns
    /// when it is ready.
    pub(crate) fn start(cluster: &Cluster) -> Result<Self> {
        Self::start_with(cluster, &[])
    }

    /// The same, with further options.
    pub(crate) fn start_with(cluster: &Cluster, options: &[&str]) -> Result<Self> {
        cluster.apply_path(&shipped("slicegate.yaml"))?;
        let slicegate = Self::launch_with(cluster, options)?;
        wait(START, "slicegate to be ready", || {
            slicegate.admin("/readyz").is_ok_and(|(status, _)| status == 200).then_some(())
        })?;
        Ok(slicegate)
    }

    /// Starts the program with the rights that are there, and returns when it answers.
    pub(crate) fn launch(cluster: &Cluster) -> Result<Self> {
        Self::launch_with(cluster, &[])
    }

    fn launch_with(cluster: &Cluster, options: &[&str]) -> Result<Self> {
        let pair = cluster.serving_certificate(&["127.0.0.1", "localhost"])?;
        let folder = tempfile::Builder::new().prefix("slicegate-").tempdir_in(cluster.folder())?.keep();
        let (certificate, key, log) = (folder.join("tls.pem"), folder.join("tls-key.pem"), folder.join("log"));
        std::fs::write(&certificate, pair.certificate)?;
        std::fs::write(&key, pair.key)?;
        let mut program = command(Path::new(env!("CARGO_BIN_EXE_slicegate")), &folder);
        program.args(["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
        program.arg("--tls-cert").arg(&certificate).arg("--tls-key").arg(&key);
        program.arg("--kubeconfig").arg(cluster.kubeconfig_for(USER, None)?).args(options);
        let mut process = Process::start(program, &log)?;
        let (mut port, mut admin) = (0, 0);
        process.wait_ready(START, || {
            let Some((listen, people)) = addresses(&log) else { return false };
            (port, admin) = (listen, people);
            get(admin, "/livez").is_ok_and(|(status, _)| status == 200)
        })?;
        Ok(Self { process, port, admin, log })
    }

    /// Registers the shipped webhook configurations with this program's address, changed by `change`, and returns when the
    /// API server asks it.
    pub(crate) fn register(&self, cluster: &Cluster, change: impl Fn(&mut Value)) -> Result<()> {
        Self::register_at(self.port, cluster, change)
    }

    /// The same, with the address of something in front of it.
    pub(crate) fn register_at(port: u16, cluster: &Cluster, change: impl Fn(&mut Value)) -> Result<()> {
        let text = std::fs::read_to_string(shipped("webhooks.yaml"))?;
        for mut configuration in serde_saphyr::from_multiple::<Value>(&text)? {
            point(port, &mut configuration, cluster)?;
            change(&mut configuration["webhooks"][0]);
            cluster.apply(&configuration)?;
        }
        // The API server takes a moment to act on a new configuration.
        wait(START, "the API server to ask the webhook", || {
            let probe = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe"},
                "spec": {"containers": [{"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu.shared": "2"}}}]}});
            let reply = cluster.api("POST", "/api/v1/namespaces/default/pods?dryRun=All", Some(&probe)).ok()?;
            (reply.status == 403 && reply.message().contains("[share-limit]")).then_some(())
        })
    }

    /// Registers the shipped guard with this program's address, and returns when the API server asks it.
    pub(crate) fn register_guard(&self, cluster: &Cluster) -> Result<()> {
        let text = std::fs::read_to_string(shipped("guard.yaml"))?;
        let mut configuration: Value = serde_saphyr::from_str(&text)?;
        point(self.port, &mut configuration, cluster)?;
        cluster.apply(&configuration)?;
        wait(START, "the API server to ask the guard", || {
            let probe = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"config.yaml": "kind: Nothing\n"},
                "metadata": {"name": "slicegate-config", "namespace": "slicegate-system"}});
            let path = "/api/v1/namespaces/slicegate-system/configmaps?dryRun=All";
            let reply = cluster.api("POST", path, Some(&probe)).ok()?;
            (reply.status == 403).then_some(())
        })
    }

    /// The port of probes and metrics.
    pub(crate) fn admin_port(&self) -> u16 {
        self.admin
    }

    /// Asks it to end as Kubernetes does, and returns its exit code when it has.
    pub(crate) fn terminate(&mut self) -> Result<Option<i32>> {
        self.process.signal("TERM")?;
        Ok(self.process.wait_end(START)?.code())
    }

    /// Kills it, and returns when it is gone.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.process.signal("KILL")?;
        self.process.wait_end(START).map(drop)
    }

    /// The port where reviews are answered.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The text of an admin page, and its status.
    pub(crate) fn admin(&self, path: &str) -> Result<(u16, String)> {
        get(self.admin, path)
    }

    /// The log lines of reviews so far.
    pub(crate) fn reviews(&self) -> Vec<Value> {
        let lines = read_log(&self.log);
        let lines = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.filter(|line| line["message"] == "review").collect()
    }

    /// All that the program wrote.
    pub(crate) fn log(&self) -> String {
        read_log(&self.log)
    }
}

/// Points a shipped webhook configuration to a loopback port.
fn point(port: u16, configuration: &mut Value, cluster: &Cluster) -> Result<()> {
    let webhook = &mut configuration["webhooks"][0];
    let path = webhook["clientConfig"]["service"]["path"].as_str().context("no path")?.to_owned();
    let bundle = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, cluster.ca_pem());
    webhook["clientConfig"] = json!({"url": webhook_url(port, &path), "caBundle": bundle});
    Ok(())
}

/// A file of deploy/.
pub(crate) fn shipped(file: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy").join(file)
}

/// The ports of the line that says where the program listens.
fn addresses(log: &Path) -> Option<(u16, u16)> {
    let log = read_log(log);
    let line = log.lines().find(|line| line.contains("\"serving\""))?;
    let line: Value = serde_json::from_str(line).ok()?;
    let port = |key: &str| line[key].as_str()?.rsplit_once(':')?.1.parse().ok();
    Some((port("listen")?, port("admin")?))
}

/// A plain HTTP request to a loopback port.
pub(crate) fn get(port: u16, path: &str) -> Result<(u16, String)> {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let (head, body) = text.split_once("\r\n\r\n").context("no HTTP answer")?;
    let status = head.split(' ').nth(1).context("no status")?.parse()?;
    Ok((status, body.to_owned()))
}
