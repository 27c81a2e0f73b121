//! `slicegate explain`, through the binary.

use std::process::{Command, Output};

use pretty_assertions::assert_eq;
use serde_json::Value;
use tempfile::TempDir;

const JOB: &str = "\
apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: blue}
spec:
  template:
    metadata:
      labels: {slicegate.io/checkpoint: \"true\"}
    spec:
      initContainers:
      - {name: warm, image: x, restartPolicy: Always, resources: {limits: {nvidia.com/gpu.shared: 1}}}
      containers:
      - {name: main, image: x, resources: {limits: {nvidia.com/gpu.shared: 1000m}}}
";

const POLICY: &str = "\
package gpu.names

deny contains msg if {
	some workload in input.slicegate.workloads
	startswith(input.request.name, \"tr\")
	msg := \"names that begin with tr are reserved\"
}

deny contains msg if {
	input.request.name == \"other\"
	msg := \"never\"
}
";

fn explain(files: &[(&str, &str)], flags: &[&str]) -> (Output, String) {
    let folder = TempDir::new().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let output = Command::new(env!("CARGO_BIN_EXE_slicegate"))
        .arg("explain")
        .args(flags)
        .env("SLICEGATE_REGO_BUDGET", "2s")
        .current_dir(folder.path())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    (output, text)
}

/// Whether the words stand on one line, in this order.
fn has_line(text: &str, words: &[&str]) -> bool {
    let holds = |line: &str| {
        words.iter().try_fold(line, |rest, word| rest.split_once(word).map(|(_, behind)| behind)).is_some()
    };
    text.lines().any(holds)
}

#[test]
fn every_step_of_a_verdict_is_told() {
    let files = [("job.yaml", JOB), ("names/names.rego", POLICY)];
    let (output, text) = explain(&files, &["--policies", "names", "job.yaml"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    for words in [
        &["Job blue/train", "job.yaml:3", "denied"][..],
        &["template", "spec.template"],
        &["asks", "container \"warm\"", "(sidecar)", "1 of nvidia.com/gpu.shared"],
        &["asks", "container \"main\"", "written \"1000m\"", "spec.template.spec.containers[0]"],
        &["demand", "holds 2", "containers 1 with sidecars 1"],
        &["latency", "not declared", "tolerant"],
        &["checkpoint", "true", "spec.template.metadata.labels[slicegate.io/checkpoint]"],
        &["pool", "in shared"],
        &["rule", "deny", "share-limit", "as a whole holds 2"],
        &["rule", "passes", "checkpoint-required", "shared demands checkpoints"],
        &["rule", "passes", "pool-open", "Open"],
        &["policy", "names", "asked (deny)"],
        &["found", "deny names/deny", "begin with tr"],
        // The condition of the second body is reached, its message is not.
        &["reached", "names.rego", "lines 3-6, 10"],
    ] {
        assert!(has_line(&text, words), "{words:?} in\n{text}");
    }
}

#[test]
fn machines_get_the_same_steps() {
    let files = [("job.yaml", JOB), ("names/names.rego", POLICY)];
    let (_, text) = explain(&files, &["--policies", "names", "--format", "json", "job.yaml"]);
    let found: Value = serde_json::from_str(&text).unwrap();
    let at = |pointer: &str| found.pointer(pointer).cloned().unwrap_or_default();
    assert_eq!(at("/0/verdict"), "denied");
    assert_eq!(at("/0/templates/0/demand/0/total"), "2");
    assert_eq!(at("/0/templates/0/checkpoint/word"), "true");
    assert_eq!(at("/0/policies/0/asked"), true);
    assert!(at("/0/policies/0/reached/names.rego").as_str().unwrap().contains("3-6, 10"));
}

#[test]
fn what_pods_of_a_template_would_get_is_told() {
    let text = JOB.replace("restartPolicy: Always, resources: {limits: {nvidia.com/gpu.shared: 1}}", "args: []");
    let (_, text) = explain(&[("job.yaml", &text)], &["job.yaml"]);
    assert!(has_line(&text, &["Job blue/train", "allowed"]), "{text}");
    assert!(text.contains("added to Pods of spec.template"), "{text}");
    assert!(has_line(&text, &["+ /spec/nodeSelector", "gpu-mode", "shared"]), "{text}");
}

#[test]
fn a_set_that_is_not_asked_says_why() {
    let marked = "slicegate.io/match: |\n  namespaces: [red]\n";
    let files = [("job.yaml", JOB), ("names/names.rego", POLICY), ("names/policy.yaml", marked)];
    let (_, text) = explain(&files, &["--policies", "names", "job.yaml"]);
    assert!(has_line(&text, &["policy", "names", "not asked", "other namespaces"]), "{text}");
}

#[test]
fn a_review_is_named_by_its_object() {
    let review = "{\"apiVersion\": \"admission.k8s.io/v1\", \"kind\": \"AdmissionReview\", \"request\": {\"uid\": \"u\", \
        \"operation\": \"CREATE\", \"kind\": {\"group\": \"\", \"version\": \"v1\", \"kind\": \"Pod\"}, \"name\": \"web\", \
        \"namespace\": \"blue\", \"object\": {\"metadata\": {\"name\": \"web\"}, \"spec\": {\"containers\": []}}}}";
    let (output, text) = explain(&[("review.json", review)], &["review.json"]);
    assert!(text.starts_with("Pod blue/web (review.json:1): allowed"), "{text}{output:?}");
}

#[test]
fn nothing_to_explain_is_no_success() {
    let (output, text) = explain(&[("none.yaml", "# nothing\n")], &["none.yaml"]);
    assert_eq!((output.status.code(), text.as_str()), (Some(2), ""), "{output:?}");
    assert!(String::from_utf8(output.stderr).unwrap().contains("none.yaml: no object in it"));
}

#[test]
fn what_cannot_be_read_is_told_and_the_rest_explained() {
    let broken = format!("{JOB}---\napiVersion: v1\nkind: [\n");
    let (output, text) = explain(&[("job.yaml", &broken)], &["job.yaml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text.contains("Job blue/train"), "{text}");
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.starts_with("slicegate: job.yaml: line 15, column 7"), "{told}");
}
