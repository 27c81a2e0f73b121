//! Shows that the test control plane itself works, so that a failure of an
//! end-to-end test is slicegate's and not its surroundings'.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

use crate::cluster::{self, Cluster, Options, Pair, Reply, wait};

const SOON: Duration = Duration::from_secs(30);

#[test]
fn binds_a_pod_and_leaves_no_process() -> Result<()> {
    let began = Instant::now();
    let cluster = Cluster::start(Options { audit: true, ..Options::default() })?;
    eprintln!("cluster up after {:?}", began.elapsed());

    let version = cluster.kubectl(&["version", "-o", "json"])?.json()?;
    assert_eq!(version["serverVersion"]["gitVersion"], "v1.36.3");
    assert_eq!(version["clientVersion"]["gitVersion"], "v1.36.3");

    cluster.create_namespace("team", &json!({"gpu": "yes"}))?;
    cluster.create_node(
        "shared-1",
        &json!({"gpu-mode": "shared"}),
        &json!({"nvidia.com/gpu.shared": "8"}),
        &json!([{"key": "nvidia.com/gpu.shared", "effect": "NoSchedule"}]),
    )?;
    cluster.apply(&deployment())?;
    let began = Instant::now();
    let node = wait(SOON, "the Deployment's Pod to be bound", || bound_to(&cluster))?;
    eprintln!("bound after {:?}", began.elapsed());
    assert_eq!(node, "shared-1");

    // The user that a webhook will see behind a ReplicaSet's Pod.
    let makers: Vec<Value> = cluster.audit_log()?.into_iter().filter(creates_pod).collect();
    let maker = makers.first().context("no Pod creation is in the audit log")?;
    assert_eq!(maker["user"]["username"], "system:serviceaccount:kube-system:replicaset-controller");

    let folder = cluster.folder().display().to_string();
    assert!(processes_with(&folder)? >= 4, "the four programs are not found in /proc");
    drop(cluster);
    assert_eq!(processes_with(&folder)?, 0);
    assert!(!std::path::Path::new(&folder).exists());
    Ok(())
}

#[test]
fn admission_identities_and_restart() -> Result<()> {
    let began = Instant::now();
    let cluster = Cluster::start(Options { apiserver_only: true, ..Options::default() })?;
    eprintln!("API server alone up after {:?}", began.elapsed());

    let refused = cluster.kubectl_as("ann", &["devs"], &["get", "pods"], "")?.failure()?;
    assert!(refused.contains("User \"ann\" cannot list resource \"pods\""), "{refused}");
    let reply = cluster.api_as("ann", &["devs"], "GET", "/api/v1/namespaces/default/pods", None)?;
    assert_eq!(reply.status, 403);

    let file = cluster.kubeconfig_for("system:serviceaccount:default:gate", None)?;
    let file = file.to_str().context("a path is not UTF-8")?;
    let who = cluster.kubectl(&["--kubeconfig", file, "auth", "whoami", "-o", "json"])?.json()?;
    assert_eq!(who["status"]["userInfo"]["username"], "system:serviceaccount:default:gate");

    let began = Instant::now();
    cluster.stop_apiserver();
    assert!(cluster.api("GET", "/readyz", None).is_err());
    cluster.start_apiserver()?;
    eprintln!("API server restarted after {:?}", began.elapsed());

    let (protocol, refused) = called_webhook(&cluster)?;
    assert_eq!(protocol, "HTTP/1.1");
    assert_eq!(refused.status, 403, "{refused:?}");
    assert!(refused.message().ends_with("denied the request: [probe] no"), "{refused:?}");
    Ok(())
}

#[test]
fn webhooks_over_http2_on_request() -> Result<()> {
    let options = Options { http2: true, apiserver_only: true, ..Options::default() };
    let (protocol, refused) = called_webhook(&Cluster::start(options)?)?;
    assert_eq!(protocol, "HTTP/2.0");
    // This test's webhook does not speak it, and a call that fails refuses.
    assert_eq!(refused.status, 500, "{refused:?}");
    Ok(())
}

#[test]
fn a_failed_start_shows_the_log() {
    let args = vec!["--no-such-flag".to_owned()];
    let options = Options { apiserver_args: args, ..Options::default() };
    let error = Cluster::start(options).expect_err("it should not start").to_string();
    assert!(error.starts_with("kube-apiserver ended before it was ready"), "{error}");
    assert!(error.contains("unknown flag: --no-such-flag"), "{error}");
}

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "team"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {
                "tolerations": [{"key": "nvidia.com/gpu.shared", "operator": "Exists"}],
                "containers": [{"name": "web", "image": "web", "resources": {
                    "limits": {"nvidia.com/gpu.shared": "1"}}}],
            }},
        },
    })
}

fn bound_to(cluster: &Cluster) -> Option<String> {
    let pods = cluster.api("GET", "/api/v1/namespaces/team/pods", None).ok()?;
    let node = pods.body.pointer("/items/0/spec/nodeName")?;
    node.as_str().map(str::to_owned)
}

fn creates_pod(event: &Value) -> bool {
    event["verb"] == "create"
        && event["requestURI"]
            .as_str()
            .is_some_and(|uri| uri.starts_with("/api/v1/namespaces/team/pods?") || uri.ends_with("/team/pods"))
}

/// How many processes have `text` in their command line.
fn processes_with(text: &str) -> Result<usize> {
    let mut count = 0;
    for entry in std::fs::read_dir("/proc")? {
        let command = std::fs::read(entry?.path().join("cmdline")).unwrap_or_default();
        count += usize::from(String::from_utf8_lossy(&command).contains(text));
    }
    Ok(count)
}

/// Registers a webhook that refuses one request, and gives the protocol that it
/// was called by and what the API server made of it.
fn called_webhook(cluster: &Cluster) -> Result<(String, Reply)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = cluster::webhook_url(listener.local_addr()?.port(), "/validate");
    let pair = cluster.serving_certificate(&["127.0.0.1"])?;
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        // Fails when the test has ended, and then no one asks any more.
        let _ = sender.send(refuse_one(&listener, pair));
    });
    let rules = json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
        "resources": ["configmaps"], "scope": "Namespaced"}]);
    let fields = json!({"rules": rules, "timeoutSeconds": 10});
    cluster.apply(&cluster::validating_webhook("probe", &url, &cluster.ca_pem(), &fields))?;
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "x-"}});
    let path = "/api/v1/namespaces/default/configmaps?dryRun=All";
    // A new configuration takes a moment until it is used.
    let refused = wait(SOON, "the webhook to be called", || {
        let reply = cluster.api("POST", path, Some(&object)).ok()?;
        (reply.status != 201).then_some(reply)
    })?;
    Ok((receiver.recv_timeout(SOON)??, refused))
}

fn refuse_one(listener: &TcpListener, pair: Pair) -> Result<String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![pair.certificate_der], PrivatePkcs8KeyDer::from(pair.key_der).into())?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let (tcp, _) = listener.accept()?;
    let mut stream = BufReader::new(StreamOwned::new(ServerConnection::new(Arc::new(config))?, tcp));
    let mut line = String::new();
    stream.read_line(&mut line)?;
    let protocol = line.trim_end().rsplit(' ').next().map(str::to_owned).context("an empty request line")?;
    if line.starts_with("PRI") {
        return Ok(protocol);
    }
    let mut length = 0;
    let mut header = String::new();
    while stream.read_line(&mut header)? > 2 {
        if let Some(value) = header.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse()?;
        }
        header.clear();
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    let review: Value = serde_json::from_slice(&body)?;
    let answer = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {
        "uid": review["request"]["uid"], "allowed": false, "status": {"code": 403, "message": "[probe] no"}}});
    let text = answer.to_string();
    write!(
        stream.get_mut(),
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{text}",
        text.len()
    )?;
    stream.get_mut().flush()?;
    Ok(protocol)
}
