//! `slicegate check` as its users run it.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use pretty_assertions::assert_eq;
use serde_json::Value;
use tempfile::TempDir;

mod agreement;
mod fixing;
mod formats;
mod judged_by;

/// A Pod of the shared pool with this many shares.
fn pod(name: &str, shares: u32) -> String {
    format!(
        "apiVersion: v1
kind: Pod
metadata:
  {name}
  labels: {{slicegate.io/checkpoint: \"true\"}}
spec:
  containers:
  - name: main
    image: registry.example.test/work:1
    resources:
      limits:
        nvidia.com/gpu.shared: \"{shares}\"
"
    )
}

/// How the program ended, and what it wrote.
struct Ended {
    code: Option<i32>,
    out: String,
    told: String,
}

impl Ended {
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}{}", self.out, self.told))
    }

    /// The verdicts in the order of the objects, each with what it is about.
    fn verdicts(&self) -> Vec<String> {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let line = |object: &Value| {
            let words = ["verdict", "kind", "namespace", "name"].map(|key| text(&object[key]));
            words.join(" ")
        };
        self.json()["objects"].as_array().unwrap().iter().map(line).collect()
    }
}

fn run(folder: &Path, flags: &[&str]) -> Ended {
    run_with(folder, flags, b"")
}

/// Runs it in a folder with this standard input. The budget is what an unoptimised build on a busy machine needs.
fn run_with(folder: &Path, flags: &[&str], input: &[u8]) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slicegate"));
    command.arg("check").args(flags).env("SLICEGATE_REGO_BUDGET", "2s").current_dir(folder);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // Who is refused for its flags reads nothing.
    let _ = child.stdin.take().unwrap().write_all(input);
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ended { code: output.status.code(), out: text(output.stdout), told: text(output.stderr) }
}

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

#[test]
fn the_exit_code_says_what_would_happen() {
    let warned = "apiVersion: v1\nkind: Pod\nmetadata: {name: warned}\nspec:\n  containers:\n  - {name: main, image: i, env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}]}\n";
    let root = folder(&[
        ("good.yaml", &pod("name: good", 1)),
        ("bad.yaml", &pod("name: bad", 2)),
        ("warned.yaml", warned),
        ("broken.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: x\n"),
    ]);
    for (flags, code, words) in [
        (&["good.yaml"][..], 0, "1 object: 0 denied, 0 warned, 1 allowed\n"),
        (&["warned.yaml"], 0, "1 object: 0 denied, 1 warned, 0 allowed\n"),
        (&["--fail-on", "warn", "warned.yaml"], 1, "warning[no-gpu-bypass]"),
        (&["--fail-on", "warn", "good.yaml"], 0, "1 allowed"),
        (&["bad.yaml", "good.yaml"], 1, "2 objects: 1 denied, 0 warned, 1 allowed\n"),
        (&["bad.yaml", "broken.yaml"], 2, "1 object: 1 denied, 0 warned, 0 allowed; 1 text cannot be read\n"),
    ] {
        let ended = run(root.path(), flags);
        assert_eq!(ended.code, Some(code), "{flags:?}: {}{}", ended.out, ended.told);
        assert!(ended.out.contains(words), "{flags:?}: {}", ended.out);
        assert_eq!(ended.told, "", "{flags:?}");
    }
    let quiet = run(root.path(), &["-q", "good.yaml"]);
    assert_eq!((quiet.code, quiet.out.as_str()), (Some(0), ""));
}

#[test]
fn a_refusal_shows_the_line_and_what_to_do() {
    let root = folder(&[("bad.yaml", &pod("name: bad", 2))]);
    let ended = run(root.path(), &["bad.yaml"]);
    let shown = "denied Pod default/bad (bad.yaml:4)
error[share-limit]: container \"main\" asks for 2 of nvidia.com/gpu.shared, and pool shared allows 1 per container
  --> bad.yaml:12:32
   |
12 |         nvidia.com/gpu.shared: \"2\"
   |                                ^^^
   |
   = help: set it to 1 (two shares do not buy twice the compute), or ask for an exclusive GPU
1 object: 1 denied, 0 warned, 0 allowed
";
    assert_eq!(ended.out, shown);
    let colored = run(root.path(), &["--color", "always", "bad.yaml"]);
    assert!(colored.out.starts_with("\u{1b}[1;31mdenied\u{1b}[0m Pod"), "{}", colored.out);
    let plain = run(root.path(), &["--color", "never", "bad.yaml"]);
    assert_eq!(plain.out, shown);
}

#[test]
fn whatever_holds_objects_is_read() {
    let list = "apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: PodList, items: [{metadata: {name: one}}, {metadata: {name: two}}]}
- {apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Node, metadata: {name: node}}]}
";
    let several = format!("# a comment alone\n---\n{}---\n{}", pod("generateName: fine-", 1), pod("name: b", 2));
    let root = folder(&[
        ("in/a-list.yaml", list),
        ("in/deep/b.yml", &several),
        ("in/deep/c.json", r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"j","namespace":"blue"}}"#),
        ("in/.hidden/x.yaml", "no: manifest\n"),
        ("in/.x.yaml", "no: manifest\n"),
        ("in/notes.txt", "no manifest\n"),
    ]);
    let ended = run(root.path(), &["--format", "json", "--namespace", "green", "in"]);
    assert_eq!(
        ended.verdicts(),
        [
            "allowed Pod green one",
            "allowed Pod green two",
            "allowed Node  node",
            "allowed Pod green fine-*",
            "denied Pod green b",
            "allowed Pod blue j",
        ]
    );
    let json = ended.json();
    assert_eq!(json["objects"][1]["path"], "items[0].items[1]");
    assert_eq!((&json["objects"][4]["document"], &json["objects"][4]["line"]), (&2.into(), &19.into()));
    let piped = run_with(root.path(), &["--format", "json"], several.as_bytes());
    assert_eq!(piped.verdicts(), ["allowed Pod default fine-*", "denied Pod default b"]);
    assert_eq!(piped.json()["objects"][0]["file"], "-");
    let both = run_with(root.path(), &["--format", "json", "-", "in/deep/c.json"], pod("name: p", 1).as_bytes());
    assert_eq!(both.verdicts(), ["allowed Pod default p", "allowed Pod blue j"]);
}

#[test]
fn a_recorded_review_is_judged_as_its_object() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/admission-reviews");
    let review = "pod-create-generate-name-two-shares.validate.json";
    let ended = run(&fixtures, &["--format", "json", review]);
    assert_eq!(ended.code, Some(1), "{}{}", ended.out, ended.told);
    let object = &ended.json()["objects"][0];
    assert_eq!((&object["kind"], &object["path"]), (&"Pod".into(), &"request.object".into()));
    assert_eq!((&object["namespace"], &object["name"]), (&"team-vision".into(), &"notebook-zpnrj".into()));
    assert_eq!(object["findings"][0]["line"], 115);
    // What is asked for but a creation is answered too.
    let ended = run(&fixtures, &["--format", "json", "deployment-delete.validate.json"]);
    assert_eq!(ended.code, Some(0), "{}", ended.out);
    assert_eq!(ended.json()["objects"][0]["kind"], "Deployment");
}

#[test]
fn what_cannot_be_read_says_where_and_what_to_do() {
    for (text, told) in [
        (
            "apiVersion: v1\nkind: Pod\n\tmetadata: {}\n",
            "a tab in the indentation; YAML indents with spaces only\n --> -:3:1",
        ),
        ("apiVersion: v1\nkind: Pod\nkind: Pod\n", "the key \"kind\" stands twice"),
        ("--- {a: b}\n", "put it on the next line\n --> -:1:4"),
        ("a: b\n", "apiVersion is missing or not a text"),
        ("- a\n", "no Kubernetes object; it is a mapping that begins with apiVersion and kind"),
        ("{\"apiVersion\": \"v1\"\n\"kind\": \"Pod\"}", "neither JSON nor YAML: expected `,` or `}`\n --> -:2:1"),
        ("{\"apiVersion\": \"v1\"}\n{\"kind\": }", "neither JSON nor YAML: expected value\n --> -:2:10"),
        ("apiVersion: v1\nkind: PodList\nitems: 3\n", "items is not a list"),
        ("apiVersion: v1\nkind: Pod\nx: *y\n", "put the text in quotes\n --> -:3:4"),
    ] {
        let ended = run_with(Path::new("."), &["-"], text.as_bytes());
        assert_eq!(ended.code, Some(2), "{text}: {}", ended.out);
        assert!(ended.out.contains(told), "{text}: {}", ended.out);
    }
}

#[test]
fn nothing_to_judge_is_no_success() {
    let root = folder(&[("empty/notes.txt", ""), ("none.yaml", "# only\n---\n"), ("a/b.yaml", ""), ("a/c.yaml", "")]);
    fs::write(root.path().join("utf16.yaml"), b"a: b\n\xff\xfe").unwrap();
    for (flags, words) in [
        (&["empty"][..], "empty: no file below this folder ends in .yaml, .yml or .json"),
        (&["missing.yaml"], "missing.yaml: cannot be read"),
        (&["none.yaml"], "none.yaml: no object in it"),
        (&["a"], "there is no object in these 2 files"),
        (&["-"], "standard input holds no object; did the command fail that writes to the pipe?"),
        (&["utf16.yaml"], "utf16.yaml: line 2 is not UTF-8, as manifests are; save it as UTF-8"),
        (&["--format", "xml", "none.yaml"], "possible values: text, json, sarif, junit, github"),
        (&["--write", "none.yaml"], "--fix"),
        (&["--namespace", "Blue", "none.yaml"], "lower-case letters"),
    ] {
        let ended = run(root.path(), flags);
        assert_eq!(ended.code, Some(2), "{flags:?}: {}{}", ended.out, ended.told);
        assert!(ended.told.contains(words), "{flags:?}: {}", ended.told);
        assert_eq!(ended.out, "", "{flags:?}");
    }
}

#[test]
fn help_has_examples_and_exit_codes() {
    let help = run(Path::new("."), &["--help"]).out;
    for words in ["Examples:", "slicegate check deploy/", "Exit codes:", "SLICEGATE_CHECK_FORMAT", "[default: text]"] {
        assert!(help.contains(words), "{words}\n{help}");
    }
}
