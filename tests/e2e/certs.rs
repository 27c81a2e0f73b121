//! What `slicegate certs` makes, with Go's TLS as the judge: kubectl takes the pair, and the API server calls a webhook that
//! serves it by the authority that was printed for it.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::cluster::{Cluster, Options, validating_webhook, wait, webhook_url};

const SOON: Duration = Duration::from_secs(30);

/// A server that ends with this.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn certs(folder: &Path, flags: &[&str]) -> Result<String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slicegate"));
    let output = command.arg("certs").arg("--out").arg(folder).args(flags).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

fn serve(folder: &Path) -> Result<(Server, u16)> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slicegate"));
    command.args(["serve", "--offline", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
    command.arg("--tls-cert").arg(folder.join("tls.pem")).arg("--tls-key").arg(folder.join("tls-key.pem"));
    let mut server = Server(command.stdout(Stdio::piped()).spawn()?);
    let mut lines = BufReader::new(server.0.stdout.take().context("no output")?).lines();
    let port = lines.find_map(|line| {
        let line: Value = serde_json::from_str(&line.ok()?).ok()?;
        line["listen"].as_str()?.rsplit_once(':')?.1.parse().ok()
    });
    // What it logs from here on is read by nobody, and must not stop it.
    std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
    Ok((server, port.context("it did not say where it listens")?))
}

/// Whether the API server takes the answer of the webhook behind this port, in place of a failed call.
fn asked(cluster: &Cluster, port: u16, authority: &str) -> Result<()> {
    let rules =
        json!({"rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]});
    cluster.apply(&validating_webhook("certs", &webhook_url(port, "validate"), authority, &rules))?;
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe"},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu.shared": "2"}}}]}});
    wait(SOON, "the API server to take the webhook's answer", || {
        let reply = cluster.api("POST", "/api/v1/namespaces/default/pods?dryRun=All", Some(&pod)).ok()?;
        (reply.status == 403 && reply.message().contains("[share-limit]")).then_some(())
    })
}

#[test]
fn the_api_server_takes_every_kind_of_key() -> Result<()> {
    let cluster = Cluster::start(Options { apiserver_only: true, ..Options::default() })?;
    for key in ["ecdsa-p256", "ecdsa-p384", "ed25519"] {
        let folder = cluster.folder().join(key);
        let told = certs(&folder, &["--name", "127.0.0.1", "--key-type", key])?;
        let path = |name: &str| folder.join(name).display().to_string();
        let (certificate, secret) = (format!("--cert={}", path("tls.pem")), format!("--key={}", path("tls-key.pem")));
        assert!(told.contains(&format!("{certificate} {secret}")), "{told}");
        let make = ["create", "secret", "tls", "slicegate-tls", &certificate, &secret, "--dry-run=server"];
        cluster.kubectl(&make)?.success()?;
        let authority = std::fs::read_to_string(path("ca.pem"))?;
        let (server, port) = serve(&folder)?;
        asked(&cluster, port, &authority).with_context(|| key.to_owned())?;
        drop(server);
        // A renewed pair is taken by the same caBundle.
        certs(&folder, &["--renew", "--key-type", key])?;
        let (_server, port) = serve(&folder)?;
        asked(&cluster, port, &authority).with_context(|| format!("{key}, renewed"))?;
    }
    Ok(())
}
