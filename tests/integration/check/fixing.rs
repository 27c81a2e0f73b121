//! `--fix`: what it changes, and what it leaves.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use pretty_assertions::assert_eq;

use super::{folder, pod, run, run_with};

fn read(root: &Path, name: &str) -> String {
    fs::read_to_string(root.join(name)).unwrap()
}

#[test]
fn a_repair_is_shown_and_nothing_written() {
    let before = pod("name: a   # the name", 2);
    let root = folder(&[("in/a.yaml", &before)]);
    let ended = run(root.path(), &["--fix", "in"]);
    assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.told);
    let diff = "--- a/in/a.yaml
+++ b/in/a.yaml
@@ -9,4 +9,4 @@
     image: registry.example.test/work:1
     resources:
       limits:
-        nvidia.com/gpu.shared: \"2\"
+        nvidia.com/gpu.shared: \"1\"
allowed Pod default/a (in/a.yaml:4)
";
    assert!(ended.out.starts_with(diff), "{}", ended.out);
    assert_eq!(read(root.path(), "in/a.yaml"), before);
    let piped = run_with(root.path(), &["--fix", "-"], before.as_bytes());
    assert!(piped.out.contains("-        nvidia.com/gpu.shared: \"2\"\n"), "{}", piped.out);
    let colored = run(root.path(), &["--fix", "--color", "always", "in"]);
    assert!(colored.out.contains("\u{1b}[32m+        nvidia.com/gpu.shared: \"1\"\u{1b}[0m\n"), "{}", colored.out);
}

/// What is written in each way that people write, and what of it a repair changes.
#[test]
fn only_the_field_changes_however_it_is_written() {
    let several = format!("# first\n{}---\n# second\n{}", pod("name: a", 1), pod("name: b", 2));
    let list = "apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Pod
  metadata: {name: a, labels: {slicegate.io/checkpoint: 'true'}}
  spec:
    containers:
    - {name: main, image: i, resources: {limits: {nvidia.com/gpu.shared: '2'}}}   # kept
- {apiVersion: v1, kind: Node, metadata: {name: n}}
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: d}
  spec:
    template:
      metadata: {labels: {slicegate.io/checkpoint: \"true\"}}
      spec:
        containers:
        - name: main
          resources:
            limits: {nvidia.com/gpu.shared: 3}   # three
            requests: {nvidia.com/gpu.shared: 3}
";
    let anchors = pod("name: a", 2).replace("resources:", "resources: &two")
        + "  initContainers:\n  - name: next\n    image: i\n    resources: *two\n";
    let json = "{\n\t\"apiVersion\": \"v1\", \"kind\": \"Pod\",\n\t\"metadata\": {\"name\": \"j\", \"labels\": {\"slicegate.io/checkpoint\": \"true\"}},\n\t\"spec\": {\"containers\": [{\"name\": \"m\", \"image\": \"i\", \"resources\": {\"limits\": {\"nvidia.com/gpu.shared\": \"2\"}}}]}\n}\n";
    let files = [
        ("several.yaml", several.clone(), several.replace("\"2\"", "\"1\"")),
        ("list.yaml", list.to_owned(), list.replace("'2'", "'1'").replace("shared: 3}", "shared: 1}")),
        ("windows.yaml", pod("name: a  # w", 2).replace('\n', "\r\n"), pod("name: a  # w", 1).replace('\n', "\r\n")),
        ("anchors.yaml", anchors.clone(), anchors.replace("\"2\"", "\"1\"")),
        ("flow.json", json.to_owned(), json.replace("\"2\"", "\"1\"")),
        ("bom.yaml", format!("\u{feff}{}", pod("name: a", 2)), format!("\u{feff}{}", pod("name: a", 1))),
        ("good.yaml", pod("name: a", 1), pod("name: a", 1)),
    ];
    let root = folder(&files.each_ref().map(|(name, text, _)| (*name, text.as_str())));
    let path = root.path().join("several.yaml");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let ended = run(root.path(), &["--fix", "--write", "-q", "."]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), ""), "{}", ended.told);
    for (name, _, wanted) in &files {
        assert_eq!(&read(root.path(), name), wanted, "{name}");
    }
    assert_eq!(ended.told.matches("repaired ").count(), 6, "{}", ended.told);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    let again = run(root.path(), &["--fix", "--write", "-q", "."]);
    assert_eq!((again.code, again.out.as_str(), again.told.as_str()), (Some(0), "", ""));
}

#[test]
fn what_is_missing_is_added_as_the_file_is_written() {
    let set = "apiVersion: apps/v1
kind: DaemonSet
metadata: {name: d}
spec:
  template:
    metadata: {labels: {slicegate.io/checkpoint: \"true\"}}
    spec:
      # what it runs
      containers:
      - name: main
        resources: {limits: {nvidia.com/gpu.shared: 1}}
";
    let wanted = set.replace(
        "      # what it runs\n",
        "      nodeSelector:\n        gpu-mode: shared\n      tolerations:\n      - effect: NoSchedule\n        key: nvidia.com/gpu.shared\n        operator: Exists\n      # what it runs\n",
    );
    for ending in ["\n", "\r\n"] {
        let root = folder(&[("d.yaml", &set.replace('\n', ending))]);
        let ended = run(root.path(), &["--fix", "--write", "d.yaml"]);
        assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.told);
        assert_eq!(read(root.path(), "d.yaml"), wanted.replace('\n', ending));
        let again = run(root.path(), &["--fix", "--write", "--fail-on", "warn", "d.yaml"]);
        assert_eq!((again.code, again.told.as_str()), (Some(0), ""), "{}", again.out);
    }
}

#[test]
fn what_cannot_be_mended_alone_is_left_and_told() {
    // What the anchor says is meant for others too, of whom nothing is known.
    let elsewhere = pod("name: a", 2)
        .replace("metadata:\n", "limits: &two\n  nvidia.com/gpu.shared: \"2\"\nothers: *two\nmetadata:\n")
        .replace("      limits:\n        nvidia.com/gpu.shared: \"2\"\n", "      limits: *two\n");
    let root = folder(&[("elsewhere.yaml", &elsewhere)]);
    let ended = run(root.path(), &["--fix", "--write", "elsewhere.yaml"]);
    assert_eq!(ended.code, Some(1), "{}", ended.out);
    assert!(ended.out.starts_with("denied Pod default/a") && ended.told.is_empty(), "{}{}", ended.out, ended.told);
    assert_eq!(read(root.path(), "elsewhere.yaml"), elsewhere);
    // A broken file is no reason to leave the others.
    let root = folder(&[("a.yaml", &pod("name: a", 2)), ("b.yaml", "a: [\n")]);
    let ended = run(root.path(), &["--fix", "--write", "."]);
    assert_eq!(ended.code, Some(2), "{}", ended.out);
    assert_eq!(ended.told, "repaired ./a.yaml\n");
}
