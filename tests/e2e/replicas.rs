//! Two replicas behind a balancer under load from a real API server, which shows them its client certificate: one is drained,
//! one is killed.

use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::Scope;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::json;

use crate::balancer::Balancer;
use crate::certificates::Authority;
use crate::cluster::{Cluster, Options, Slicegate, wait};
use crate::workloads::pod;

const SOON: Duration = Duration::from_mins(1);
const PODS: &str = "/api/v1/namespaces/default/pods?dryRun=All";
/// How many send requests at a time.
const SENDERS: usize = 4;
/// How many answers are waited for in each state of things.
const ENOUGH: usize = 60;

/// Writes what makes an API server show a certificate to webhooks, and says with which flag.
fn client_certificate(folder: &Path, authority: &Authority) -> Result<String> {
    let path = |name: &str| folder.join(name).display().to_string();
    let identity = authority.client("kube-apiserver-webhooks", &[]);
    std::fs::write(path("ca.pem"), &authority.pem)?;
    std::fs::write(path("client.pem"), identity.certificate)?;
    std::fs::write(path("client-key.pem"), identity.key)?;
    let user = json!({"client-certificate": path("client.pem"), "client-key": path("client-key.pem")});
    let kubeconfig = json!({"apiVersion": "v1", "kind": "Config", "users": [{"name": "*", "user": user}]});
    std::fs::write(path("kubeconfig.yaml"), kubeconfig.to_string())?;
    let plugin = |name: &str| {
        json!({"name": name, "configuration": {
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "WebhookAdmissionConfiguration",
            "kubeConfigFile": path("kubeconfig.yaml"),
        }})
    };
    let configuration = json!({
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AdmissionConfiguration",
        "plugins": [plugin("MutatingAdmissionWebhook"), plugin("ValidatingAdmissionWebhook")],
    });
    std::fs::write(path("admission.yaml"), configuration.to_string())?;
    Ok(format!("--admission-control-config-file={}", path("admission.yaml")))
}

/// Requests that are sent one after the other by each of some senders.
#[derive(Default)]
struct Load {
    over: AtomicBool,
    answered: AtomicUsize,
    /// When each request that failed was sent, and what came back.
    failed: Mutex<Vec<(Instant, String)>>,
}

impl Load {
    fn run<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>, cluster: &'scope Cluster) {
        for sender in 0..SENDERS {
            scope.spawn(move || {
                while !self.over.load(Ordering::Relaxed) {
                    let sent = Instant::now();
                    let reply = cluster.api("POST", PODS, Some(&pod(&format!("trainer-{sender}"), "1")));
                    match reply {
                        Ok(reply) if reply.status == 201 => {}
                        other => self.failed.lock().unwrap().push((sent, format!("{other:?}"))),
                    }
                    self.answered.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    }

    /// Waits until some more requests are answered.
    fn more(&self) -> Result<()> {
        let before = self.answered.load(Ordering::Relaxed);
        wait(SOON, "requests to be answered", || {
            (self.answered.load(Ordering::Relaxed) >= before + ENOUGH).then_some(())
        })
    }

    fn failed(&self) -> Vec<(Instant, String)> {
        self.failed.lock().unwrap().clone()
    }
}

/// Ends the load however the test ends.
struct End<'l>(&'l Load);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::Relaxed);
    }
}

/// Waits until a replica has answered reviews from now on.
fn is_asked(replica: &Slicegate) -> Result<()> {
    let before = replica.reviews().len();
    wait(SOON, "the replica to be asked", || (replica.reviews().len() > before).then_some(()))
}

#[test]
fn a_drain_fails_no_request_and_a_kill_only_those_in_flight() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let authority = Authority::new();
    let flag = client_certificate(folder.path(), &authority)?;
    let options = Options { apiserver_only: true, apiserver_args: vec![flag], ..Options::default() };
    let cluster = Cluster::start(options)?;
    let ca = folder.path().join("ca.pem").display().to_string();
    let start = || Slicegate::start_with(&cluster, &["--client-ca", &ca, "--client-name", "kube-apiserver-webhooks"]);
    let balancer = Balancer::start()?;
    let (mut first, mut second) = (start()?, start()?);
    balancer.add(&first);
    balancer.add(&second);
    Slicegate::register_at(balancer.port(), &cluster, |_| {})?;
    asks_for_a_certificate(&first)?;

    let load = Load::default();
    std::thread::scope(|scope| {
        let _end = End(&load);
        load.run(scope, &cluster);
        load.more()?;
        is_asked(&first)?;
        is_asked(&second)?;
        ensure!(first.terminate()? == Some(0), "it ended otherwise: {}", first.log());
        load.more()?;
        ensure!(load.failed().is_empty(), "the drain failed requests: {:?}", load.failed());

        let third = start()?;
        balancer.add(&third);
        is_asked(&second)?;
        second.kill()?;
        let killed = Instant::now();
        load.more()?;
        is_asked(&third)?;
        let failed = load.failed();
        ensure!(failed.len() <= SENDERS, "more than were in flight: {failed:?}");
        ensure!(failed.iter().all(|(sent, _)| *sent < killed), "a later request failed: {failed:?}");
        Ok(())
    })
}

/// Who shows no certificate gets no answer.
fn asks_for_a_certificate(replica: &Slicegate) -> Result<()> {
    let url = format!("https://127.0.0.1:{}/validate", replica.port());
    let output = Command::new("curl").args(["-sS", "-k", "-m", "30", &url]).output()?;
    ensure!(!output.status.success(), "it was answered: {}", String::from_utf8_lossy(&output.stdout));
    let refused = r#"slicegate_connections_ended_total{port="webhook",reason="client-certificate-missing"} 1"#;
    wait(SOON, "the refusal to be counted", || {
        replica.admin("/metrics").is_ok_and(|(_, text)| text.contains(refused)).then_some(())
    })
}
