//! The outcome in each of its forms, for one input that has everything in it.

use std::path::Path;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Ended, folder, pod, run};

const CONFIG: &str = "apiVersion: slicegate.io/v1alpha1
kind: Config
exemptions:
- {rules: [share-limit], workloads: [\"Pod/spared\"], reason: \"50% off, see: board\\nnext line\"}
";

const TWICE: &str =
    r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"twice"},"spec":{"containers":[{"name":"a","name":"b"}]}}"#;

/// A DaemonSet that lacks what cannot be injected: a note.
const NOTED: &str = "apiVersion: apps/v1
kind: DaemonSet
metadata: {name: noted}
spec:
  selector: {matchLabels: {app: a}}
  template:
    metadata: {labels: {app: a, slicegate.io/checkpoint: \"true\"}}
    spec:
      containers:
      - {name: main, image: i, resources: {limits: {nvidia.com/gpu.shared: 1}}}
";

fn everything() -> TempDir {
    let several = format!("{}---\n{}---\n{NOTED}", pod("name: greedy", 2), pod("name: spared", 2));
    folder(&[
        ("config.yaml", CONFIG),
        ("in/a,50%:b.yaml", &several),
        ("in/broken.yaml", "apiVersion: v1\nkind: [\n"),
        ("in/twice.json", TWICE),
    ])
}

fn shown(root: &Path, format: &str) -> Ended {
    let ended = run(root, &["--config", "config.yaml", "--format", format, "in"]);
    assert_eq!((ended.code, ended.told.as_str()), (Some(2), ""), "{}", ended.out);
    ended
}

#[test]
fn json_says_everything() {
    let root = everything();
    let ended = shown(root.path(), "json");
    assert_eq!(
        ended.verdicts(),
        [
            "denied Pod default greedy",
            "allowed Pod default spared",
            "warned DaemonSet default noted",
            "denied Pod default twice"
        ]
    );
    let json = ended.json();
    assert_eq!(json["summary"], json!({"objects": 4, "denied": 2, "warned": 1, "allowed": 1, "errors": 1}));
    let finding = &json["objects"][0]["findings"][0];
    assert_eq!(
        *finding,
        json!({"rule": "share-limit", "action": "deny", "line": 12, "column": 32, "found": "2", "wanted": "1",
            "field": "spec.containers[0].resources.limits[nvidia.com/gpu.shared]",
            "message": "container \"main\" asks for 2 of nvidia.com/gpu.shared, and pool shared allows 1 per container",
            "fix": "set it to 1 (two shares do not buy twice the compute), or ask for an exclusive GPU",
            "repair": [{"op": "add", "path": "/spec/containers/0/resources/limits/nvidia.com~1gpu.shared", "value": "1"}]})
    );
    assert_eq!(json["objects"][1]["findings"][0]["exemption"], "50% off, see: board\nnext line");
    assert_eq!(json["objects"][1]["findings"][0]["action"], "dryrun");
    assert_eq!(json["objects"][1]["patch"][0]["path"], "/spec/tolerations");
    let note = &json["objects"][2]["notes"][0];
    assert!(note["message"].as_str().unwrap().contains("toleration") && note["line"].as_u64() > Some(20), "{note}");
    assert!(json["objects"][3]["refusal"].as_str().unwrap().contains("the key \"name\" stands twice"), "{json}");
    assert_eq!((&json["errors"][0]["file"], &json["errors"][0]["line"]), (&"in/broken.yaml".into(), &2.into()));
}

#[test]
fn sarif_has_what_code_scanning_demands() {
    let root = everything();
    let sarif = shown(root.path(), "sarif").json();
    assert_eq!(sarif["version"], "2.1.0");
    assert!(sarif["$schema"].as_str().unwrap().ends_with("sarif-2.1.0.json"));
    let runs = sarif["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 1);
    let (run, driver) = (&runs[0], &runs[0]["tool"]["driver"]);
    assert_eq!(driver["name"], "slicegate");
    let rules: Vec<&str> =
        driver["rules"].as_array().unwrap().iter().map(|rule| rule["id"].as_str().unwrap()).collect();
    let invocation = &run["invocations"][0];
    assert_eq!(invocation["executionSuccessful"], false);
    assert!(invocation["toolExecutionNotifications"][0]["message"]["text"].is_string());
    let results = run["results"].as_array().unwrap();
    let levels: Vec<&str> = results.iter().map(|result| result["level"].as_str().unwrap()).collect();
    assert_eq!(levels, ["error", "note", "warning", "error"]);
    for result in results {
        assert!(rules.contains(&result["ruleId"].as_str().unwrap()), "{result}");
        assert!(!result["message"]["text"].as_str().unwrap().is_empty());
        let place = &result["locations"][0]["physicalLocation"];
        let uri = place["artifactLocation"]["uri"].as_str().unwrap();
        assert!(["in/a,50%25:b.yaml", "in/twice.json"].contains(&uri), "{uri}");
        let number = |key: &str| place["region"][key].as_u64();
        assert!(number("startLine") > Some(0) && number("startColumn") > Some(0), "{place}");
        assert!(number("endColumn").is_none_or(|end| Some(end) > number("startColumn")), "{place}");
    }
    assert_eq!(results[1]["suppressions"][0]["kind"], "external");
    assert!(results.iter().enumerate().all(|(place, result)| place == 1 || result["suppressions"] == Value::Null));
}

#[test]
fn junit_can_be_read_back() {
    let root = everything();
    let report = quick_junit::Report::deserialize_from_str(&shown(root.path(), "junit").out).unwrap();
    assert_eq!((report.tests, report.failures, report.errors), (5, 2, 1));
    let suites: Vec<&str> = report.test_suites.iter().map(|suite| suite.name.as_str()).collect();
    assert_eq!(suites, ["in/a,50%:b.yaml", "in/broken.yaml", "in/twice.json"]);
    let case = &report.test_suites[0].test_cases[0];
    assert_eq!(case.name.as_str(), "Pod default/greedy");
    let quick_junit::TestCaseStatus::NonSuccess { message, .. } = &case.status else { panic!("{case:?}") };
    assert!(message.as_ref().unwrap().as_str().starts_with("[share-limit] spec.containers[0]"), "{message:?}");
    let noted = &report.test_suites[0].test_cases[2];
    assert!(matches!(noted.status, quick_junit::TestCaseStatus::Success { .. }) && noted.system_out.is_some());
}

#[test]
fn github_reads_every_annotation_whole() {
    let root = everything();
    let out = shown(root.path(), "github").out;
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines.len(), 5, "{out}");
    let file = "file=in/a%2C50%25%3Ab.yaml,";
    for (line, begins, holds) in [
        (lines[0], "::error file=in/broken.yaml,line=2,col=7,title=slicegate::", "bracket"),
        (lines[1], &format!("::error {file}line=12,col=32,title=share-limit::Pod default/greedy: "), "%0Aset it to 1"),
        (lines[2], &format!("::notice {file}line=25,col=32,"), "%0Aexempted: 50%25 off, see: board%0Anext line"),
        (lines[3], &format!("::warning {file}"), "title=DaemonSet default/noted::"),
        (lines[4], "::error file=in/twice.json,line=1,", "the key \"name\" stands twice"),
    ] {
        assert!(line.starts_with(begins) && line.contains(holds), "{line}");
    }
}
