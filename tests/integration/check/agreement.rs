//! `check` and the server say the same of whatever is generated: the same words, the same patch.
//!
//! The server is asked as an API server asks it: the mutating call, the patch applied, the validating call.

use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use base64::Engine as _;
use pretty_assertions::assert_eq;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use slicegate::facts::object::Fact;
use slicegate::files::{self, policies};
use slicegate::policies::Registry;
use slicegate::workers;
use slicegate::workers::child::Settings;

use super::{Ended, folder, run_with};
use crate::support::generate;
use crate::support::server::{Options, TestServer};

/// How many objects are compared.
const OBJECTS: usize = 400;
/// How many are compared with policy sets, each of which takes an evaluation of its own.
const WITH_SETS: usize = 60;

const FACTS: &str = "apiVersion: v1
kind: Namespace
metadata: {name: blue, labels: {slicegate.io/checkpoint: stateless}}
---
apiVersion: v1
kind: Namespace
metadata: {name: green}
---
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {gpu-mode: shared}}
---
apiVersion: v1
kind: Node
metadata: {name: n2, labels: {gpu-mode: exclusive}}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: ordinary}
value: 7
globalDefault: true
";

/// Pods, and what carries their templates, of one Namespace or the other.
fn object() -> impl Strategy<Value = Value> {
    let kind =
        prop::sample::select(vec!["Pod", "Pod", "Pod", "Deployment", "Job", "DaemonSet", "CronJob", "PyTorchJob"]);
    let namespace = prop::sample::select(vec!["", "blue", "green", "unheard-of"]);
    (generate::pod(), kind, namespace, any::<bool>()).prop_map(|(pod, kind, namespace, suspend)| {
        let template = json!({"metadata": {"labels": pod["metadata"]["labels"]}, "spec": pod["spec"]});
        let plain = json!({"replicas": 2, "suspend": suspend, "template": template});
        let (api_version, spec) = match kind {
            "Pod" => ("v1", pod["spec"].clone()),
            "Job" => ("batch/v1", plain),
            "CronJob" => ("batch/v1", json!({"schedule": "0 3 * * *", "jobTemplate": {"spec": plain}})),
            "PyTorchJob" => ("kubeflow.org/v1", json!({"pytorchReplicaSpecs": {"Worker": plain}})),
            _ => ("apps/v1", plain),
        };
        let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": pod["metadata"], "spec": spec});
        if !namespace.is_empty() {
            object["metadata"]["namespace"] = namespace.into();
        }
        object
    })
}

fn objects(count: usize) -> Vec<Value> {
    let (mut runner, strategy) = (TestRunner::deterministic(), object());
    let one = |place: usize, mut object: Value| {
        object["metadata"]["name"] = format!("generated-{place}").into();
        object
    };
    (0..count).map(|place| one(place, strategy.new_tree(&mut runner).unwrap().current())).collect()
}

/// The object as the API server has it before it asks: in a Namespace, and a Pod with requests from its limits and the
/// cluster's default class.
fn defaulted(object: &Value) -> Value {
    let mut object = object.clone();
    if object["metadata"]["namespace"].is_null() {
        object["metadata"]["namespace"] = "blue".into();
    }
    if object["kind"] != "Pod" {
        return object;
    }
    object["spec"]["priorityClassName"] = "ordinary".into();
    for list in ["containers", "initContainers"] {
        for container in object["spec"][list].as_array_mut().into_iter().flatten() {
            let limits = container["resources"]["limits"].as_object().cloned().unwrap_or_default();
            for (name, limit) in limits {
                let request = &mut container["resources"]["requests"][&name];
                if request.is_null() {
                    *request = limit;
                }
            }
        }
    }
    object
}

fn review(object: &Value) -> Value {
    let api_version = object["apiVersion"].as_str().unwrap();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": {"group": group, "version": version, "kind": object["kind"]},
        "name": object["metadata"]["name"], "namespace": object["metadata"]["namespace"], "operation": "CREATE",
        "userInfo": {"username": "kim", "groups": ["devs"]}, "object": object, "oldObject": null, "dryRun": true,
    }})
}

/// What either side says of an object.
#[derive(Debug, PartialEq)]
struct Said {
    allowed: bool,
    /// Each rule with its action.
    rules: String,
    /// Rule, field and words of each refusal.
    causes: Vec<[String; 3]>,
    warned: bool,
    patch: Vec<Value>,
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn by_server(server: &TestServer, object: &Value) -> Said {
    let ask = |path: &str, object: &Value| {
        let reply = server.post(&format!("{path}?timeout=30s"), &[], review(object).to_string());
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()["response"].clone()
    };
    let mut object = defaulted(object);
    let mutated = ask("/mutate", &object);
    let mut patch = Vec::new();
    if let Some(encoded) = mutated["patch"].as_str() {
        let bytes = base64::engine::general_purpose::STANDARD.decode(encoded).unwrap();
        patch = serde_json::from_slice(&bytes).unwrap();
        json_patch::patch(&mut object, &serde_json::from_slice::<json_patch::Patch>(&bytes).unwrap()).unwrap();
    }
    let validated = ask("/validate", &object);
    let causes = validated["status"]["details"]["causes"].as_array().cloned().unwrap_or_default();
    let causes = causes.iter().filter(|cause| cause["reason"] != "slicegate.io/repair");
    let has_warnings = |response: &Value| response["warnings"].as_array().is_some_and(|list| !list.is_empty());
    Said {
        allowed: validated["allowed"].as_bool().unwrap(),
        rules: text(&validated["auditAnnotations"]["rules"]),
        causes: causes.map(|cause| ["reason", "field", "message"].map(|key| text(&cause[key]))).collect(),
        warned: has_warnings(&mutated) || has_warnings(&validated),
        patch,
    }
}

fn by_check(object: &Value) -> Said {
    let findings = object["findings"].as_array().unwrap();
    let mut rules: Vec<String> = Vec::new();
    for finding in findings {
        let rule = format!("{}={}", text(&finding["rule"]), text(&finding["action"]));
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    let denied = findings.iter().filter(|finding| finding["action"] == "deny");
    let cause = |finding: &Value| {
        let fix = text(&finding["fix"]);
        let fix = if fix.is_empty() { fix } else { format!("; {fix}") };
        [text(&finding["rule"]), text(&finding["field"]), format!("{}{fix}", text(&finding["message"]))]
    };
    let notes = object["notes"].as_array().unwrap();
    Said {
        allowed: object["verdict"] != "denied",
        rules: rules.join(","),
        causes: denied.map(cause).collect(),
        warned: !notes.is_empty() || findings.iter().any(|finding| finding["action"] == "warn"),
        patch: object["patch"].as_array().unwrap().clone(),
    }
}

/// Compares what is said of each object; says how many are completed.
fn compare(server: &TestServer, objects: &[Value], checked: &Ended) -> usize {
    let json = checked.json();
    assert_eq!(json["errors"], json!([]), "{}", checked.told);
    let judged = json["objects"].as_array().unwrap();
    assert_eq!(judged.len(), objects.len());
    let (mut denied, mut patched) = (0, 0);
    for (object, judged) in objects.iter().zip(judged) {
        let said = by_check(judged);
        (denied, patched) = (denied + usize::from(!said.allowed), patched + usize::from(!said.patch.is_empty()));
        assert_eq!(said, by_server(server, object), "{object}");
    }
    // What is generated is worth comparing.
    assert!(denied > objects.len() / 10, "{denied} of {} denied", objects.len());
    patched
}

fn stream(objects: &[Value]) -> Vec<u8> {
    objects.iter().flat_map(|object| [object.to_string(), "\n".to_owned()]).collect::<String>().into_bytes()
}

const FLAGS: [&str; 9] =
    ["--format", "json", "--namespace", "blue", "--as", "kim", "--as-group", "devs", "--facts=facts.yaml"];

fn serving(root: &Path, workers: Option<workers::Options>) -> TestServer {
    let server = TestServer::start(Options { workers, ..Options::default() });
    let facts = files::read_facts(&root.join("facts.yaml")).unwrap().facts;
    facts.into_iter().map(Fact::present).for_each(|event| server.app.observe(event));
    server
}

#[test]
fn check_and_the_server_agree() {
    let root = folder(&[("facts.yaml", FACTS)]);
    let objects = objects(OBJECTS);
    let checked = run_with(root.path(), &FLAGS, &stream(&objects));
    assert!(compare(&serving(root.path(), None), &objects, &checked) > 0, "none is completed");
}

#[test]
fn check_and_the_server_agree_with_policy_sets() {
    let root = folder(&[("facts.yaml", FACTS)]);
    let starters = Path::new(env!("CARGO_MANIFEST_DIR")).join("policies");
    let objects = objects(WITH_SETS);
    let flags = [&FLAGS[..], &["--policies", starters.to_str().unwrap()]].concat();
    let checked = run_with(root.path(), &flags, &stream(&objects));
    let settings = Settings { budget: Duration::from_secs(2), ..workers::Options::default().settings };
    let program = env!("CARGO_BIN_EXE_slicegate").into();
    let server = serving(root.path(), Some(workers::Options { program, workers: 1, settings }));
    load(&server, &starters);
    compare(&server, &objects, &checked);
    assert!(checked.out.contains("owner-labels/deny"), "{}", checked.out);
}

/// Puts the sets of a folder in force.
fn load(server: &TestServer, folder: &Path) {
    let app = Arc::clone(&server.app);
    let publish = Box::new(move |sets| app.replace_sets(sets));
    let (registry, offers) = Registry::new(server.app.workers.clone(), "slicegate-system".to_owned(), publish);
    server.runtime().spawn(registry.run());
    let sets = policies::read(folder).unwrap();
    offers.offer("files".to_owned(), sets.into_iter().map(|set| (set.key.clone(), Arc::new(set))).collect());
    let (done, settled) = mpsc::channel();
    offers.settled(Box::new(move || done.send(()).unwrap()));
    settled.recv().unwrap();
    assert!(!server.app.rules().sets.reports.is_empty());
}
