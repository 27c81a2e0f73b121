//! The servers under test: real ones, in this process, over TLS. Cases with the same configuration share one.
//!
//! Invariant: a case sees the configuration and the facts that it names, whatever ran before it.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use rustls_pki_types::ServerName;
use serde_json::Value;
use slicegate::config;
use slicegate::facts::{Event, Facts, Labels};
use slicegate::policy::Policy;

use crate::case::Case;
use crate::support::server::{Options, TestServer};
use crate::wire::Target;

/// The configuration of cases that bring none: the default one, with the toleration that their files assume.
const CONFIG: &str = r#"
apiVersion: slicegate.io/v1alpha1
kind: Config
pools:
- name: shared
  sharing: TimeSlicing
  state: Open
  resources: [nvidia.com/gpu.shared, "nvidia.com/mig-*.shared"]
  nodes:
    selector: {gpu-mode: shared}
    tolerations:
    - {key: nvidia.com/gpu.shared, operator: Equal, value: "true", effect: NoSchedule}
  limits: {perContainer: 1, perPod: 1}
  inject: {tolerations: true, nodeSelector: true, into: Pods}
  admit: {latencyCritical: false, requireCheckpoint: true}
"#;

/// Configuration text and facts, as one key.
type Key = (Option<String>, String);

static SERVERS: LazyLock<Mutex<BTreeMap<Key, TestServer>>> = LazyLock::new(Mutex::default);

/// The server for a case.
pub(crate) fn of(case: &Case) -> Result<Target, String> {
    start(&(Some(text(case)), Value::from(case.facts.clone()).to_string()))
}

/// The text of a case's configuration.
fn text(case: &Case) -> String {
    let text = case.configuration().unwrap_or(CONFIG);
    let effect = case.settings.as_ref().and_then(|settings| settings.taint_effect.as_deref()).unwrap_or("NoSchedule");
    text.replace("effect: NoSchedule", &format!("effect: {effect}"))
}

/// What a server starts with that only this case sees.
pub(crate) fn options(case: &Case) -> Result<Options, String> {
    let config = config::parse(&text(case)).map_err(|mistakes| format!("the configuration: {mistakes}"))?;
    let policy = Some(Policy { config, digest: "golden".into() });
    Ok(Options { policy, facts: facts(&case.facts)?, ..Options::default() })
}

/// The server of the default configuration, without any facts.
pub(crate) fn of_defaults() -> Result<Target, String> {
    start(&(None, "[]".into()))
}

fn start(key: &Key) -> Result<Target, String> {
    let mut servers = SERVERS.lock().unwrap_or_else(PoisonError::into_inner);
    if !servers.contains_key(key) {
        let config = match &key.0 {
            Some(text) => config::parse(text).map_err(|mistakes| format!("the configuration: {mistakes}"))?,
            None => config::Config::default(),
        };
        let manifests: Vec<Value> = serde_json::from_str(&key.1).map_err(|error| error.to_string())?;
        let facts = facts(&manifests)?;
        servers.insert(
            key.clone(),
            TestServer::start(Options {
                policy: Some(Policy { config, digest: "golden".into() }),
                facts,
                ..Options::default()
            }),
        );
    }
    servers.get(key).map(target).ok_or_else(|| "the server is gone".into())
}

/// How to speak to a server.
pub(crate) fn target(server: &TestServer) -> Target {
    let name = ServerName::try_from("localhost").expect("a valid name");
    Target { address: server.address, tls: Arc::new(server.certificates.client(&[])), name, loaded: None }
}

/// Facts from manifests.
fn facts(manifests: &[Value]) -> Result<Facts, String> {
    let mut facts = Facts::default();
    for manifest in manifests {
        let name =
            manifest.pointer("/metadata/name").and_then(Value::as_str).ok_or("a fact without a name")?.to_owned();
        let labels =
            manifest.pointer("/metadata/labels").cloned().unwrap_or_else(|| Value::Object(serde_json::Map::new()));
        let labels: Labels = serde_json::from_value(labels).map_err(|error| error.to_string())?;
        let event = match manifest.pointer("/kind").and_then(Value::as_str) {
            Some("Namespace") => Event::Namespace(name, labels),
            Some("Node") => Event::Node(name, labels),
            Some("PriorityClass") => {
                Event::PriorityClass(name, manifest.pointer("/globalDefault").and_then(Value::as_bool) == Some(true))
            }
            other => return Err(format!("{other:?} is no kind of fact")),
        };
        facts = facts.after(event).ok_or("a fact stands there twice")?;
    }
    Ok(facts)
}

/// A request that every server of this harness that requires no more than the default pool allows.
pub(crate) fn healthy_review() -> Value {
    serde_json::json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "5a0b4f52-7d0c-4f4e-9d0e-0a6c8f1f0b11",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "name": "healthy", "namespace": "team-green", "operation": "CREATE",
            "userInfo": {"username": "kim@example.test", "groups": ["system:authenticated"]},
            "object": {
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": "healthy", "namespace": "team-green"},
                "spec": {"containers": [{"name": "main", "image": "registry.example.test/work:1"}]}
            },
            "oldObject": null, "dryRun": false
        }
    })
}
