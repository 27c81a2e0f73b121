//! `slicegate test` as its users run it.

use std::fs;
use std::path::Path;
use std::process::Command;

use pretty_assertions::assert_eq;
use serde_json::Value;
use tempfile::TempDir;

const QUOTA: &str = "package quota

deny contains msg if {
	input.request.object.count > data.parameters.most
	msg := \"too many\"
}

deny contains \"negative\" if {
	input.request.object.count < 0
}
";

const QUOTA_TEST: &str = "package quota_test

import data.quota

reviewed(count) := {\"request\": {\"object\": {\"count\": count}}}

test_over if count(quota.deny) == 1 with input as reviewed(9)

test_under if {
	print(\"looking at\", 3)
	count(quota.deny) == 0 with input as reviewed(3)
}

todo_test_exact if false
";

/// How the program ended, and what it wrote.
struct Ended {
    code: Option<i32>,
    out: String,
    told: String,
}

/// Runs it in a folder. The budget is what an unoptimised build on a busy machine needs.
fn run(folder: &Path, flags: &[&str]) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slicegate"));
    command.arg("test").args(flags).env("SLICEGATE_TEST_BUDGET", "2s").current_dir(folder);
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ended { code: output.status.code(), out: text(output.stdout), told: text(output.stderr) }
}

fn write(folder: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), files);
    folder
}

fn quota() -> TempDir {
    folder(&[
        ("policies/quota/quota.rego", QUOTA),
        ("policies/quota/quota_test.rego", QUOTA_TEST),
        ("policies/quota/parameters.yaml", "most: 3\n"),
        ("policies/kustomization.yaml", "resources: [quota]\n"),
    ])
}

#[test]
fn what_passes_is_counted_and_shown_as_asked() {
    let root = quota();
    let plain = run(root.path(), &["policies"]);
    assert_eq!(plain.told, "");
    assert_eq!(plain.out, "policies/quota: 2 passed, 1 skipped\n2 passed, 1 skipped\n");
    assert_eq!(plain.code, Some(0));
    let verbose = run(root.path(), &["-v", "policies/quota"]);
    let words = "policies/quota/quota_test.rego:9: passed data.quota_test.test_under (";
    assert!(verbose.out.contains(words) && verbose.out.contains("looking at 3"), "{}", verbose.out);
    assert!(verbose.out.contains("policies/quota/quota_test.rego:14: skipped data.quota_test.todo_test_exact\n"));
    let quiet = run(root.path(), &["-q", "policies"]);
    assert_eq!((quiet.code, quiet.out.as_str(), quiet.told.as_str()), (Some(0), "", ""));
    let some = run(root.path(), &["--run", "test_ov", "policies"]);
    assert!(some.out.ends_with("\n1 passed\n"), "{}", some.out);
    let both = ["policies/quota/quota.rego", "policies/quota/quota_test.rego"];
    let modules = run(root.path(), &[&both[..], &["--run", "under"]].concat());
    assert_eq!(
        (
            modules.code,
            modules.out.ends_with(
                "
1 passed
"
            )
        ),
        (Some(0), true),
        "{}",
        modules.out
    );
}

#[test]
fn what_fails_is_told_with_its_line_and_what_it_printed() {
    let root = quota();
    let failing = "package more_test

test_no if {
	print(\"\\u001b[31mred\")
	count(data.quota.deny) == 7 with input as {\"request\": {\"object\": {\"count\": 9}}}
}

test_zero if 1 / input.request.zero == 1 with input as {\"request\": {\"zero\": 0}}
";
    write(root.path(), &[("policies/quota/more_test.rego", failing)]);
    let ended = run(root.path(), &["policies"]);
    assert_eq!(ended.code, Some(1), "{}", ended.told);
    let start = "policies/quota/more_test.rego:3: FAILED data.more_test.test_no (";
    assert!(ended.out.starts_with(start), "{}", ended.out);
    for words in [
        "): it is undefined: one of its conditions does not hold\n  3 | test_no if {\n    | ^\n    more_test.rego:4: \\u{1b}[31mred\n",
        "policies/quota/more_test.rego:8: ERROR data.more_test.test_zero (",
        "  8 | test_zero if 1 / input.request.zero",
        "\n2 passed, 1 failed, 1 with an error, 1 skipped\n",
    ] {
        assert!(ended.out.contains(words), "{words}\n{}", ended.out);
    }
    let quiet = run(root.path(), &["-q", "policies"]);
    assert!(quiet.out.contains("FAILED") && !quiet.out.contains("passed"), "{}", quiet.out);
}

#[test]
fn json_says_everything() {
    let root = quota();
    write(root.path(), &[("policies/broken/b.rego", "package b\n\nx := :=\n")]);
    let ended = run(root.path(), &["--format", "json", "--coverage", "policies"]);
    assert_eq!(ended.code, Some(2));
    let whole: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!((&whole["passed"], &whole["failed"], &whole["skipped"]), (&2.into(), &0.into(), &1.into()));
    assert_eq!(whole["coverage"], serde_json::json!({"percent": 80.0, "covered": 4, "lines": 5}));
    let (broken, quota) = (&whole["sets"][0], &whole["sets"][1]);
    assert_eq!((&broken["name"], &broken["loaded"]), (&"broken".into(), &false.into()));
    assert_eq!(broken["errors"][0]["file"], "policies/broken/b.rego");
    assert_eq!(broken["errors"][0]["line"], 3, "{broken}");
    let under = &quota["tests"][1];
    assert_eq!(
        (&under["name"], &under["outcome"], &under["line"]),
        (&"test_under".into(), &"passed".into(), &9.into())
    );
    assert_eq!(
        (&under["package"], &under["prints"][0]),
        (&"quota_test".into(), &"quota_test.rego:10: looking at 3".into())
    );
    assert_eq!(quota["coverage"]["files"][0]["notCovered"], serde_json::json!([8]));
}

#[test]
fn junit_can_be_read_back() {
    let root = quota();
    let failing = "package more_test\n\ntest_no if 1 == 2\n";
    write(
        root.path(),
        &[("policies/quota/more_test.rego", failing), ("policies/broken/b.rego", "package b\n\nx := :=\n")],
    );
    let ended = run(root.path(), &["--format", "junit", "policies"]);
    assert_eq!(ended.code, Some(2));
    let report = quick_junit::Report::deserialize_from_str(&ended.out).unwrap();
    assert_eq!((report.tests, report.failures, report.errors), (5, 1, 1));
    let suites: Vec<&str> = report.test_suites.iter().map(|suite| suite.name.as_str()).collect();
    assert_eq!(suites, ["policies/broken", "policies/quota"]);
    let failed = &report.test_suites[1].test_cases[0];
    assert_eq!((failed.name.as_str(), failed.classname.as_ref().unwrap().as_str()), ("test_no", "data.more_test"));
    let quick_junit::TestCaseStatus::NonSuccess { message, .. } = &failed.status else { panic!("{failed:?}") };
    assert!(message.as_ref().unwrap().as_str().contains("undefined"), "{message:?}");
}

#[test]
fn coverage_is_shown_and_can_be_demanded() {
    let root = quota();
    let enough = run(root.path(), &["--coverage-min", "80", "policies"]);
    assert_eq!(enough.code, Some(0), "{}{}", enough.out, enough.told);
    let words = "coverage: 80.0% (4 of 5 lines)\n  policies/quota/quota.rego: 80.0%, not covered: 8\n";
    assert!(enough.out.ends_with(words), "{}", enough.out);
    let less = run(root.path(), &["--coverage-min", "80.1", "policies"]);
    assert_eq!(less.code, Some(1));
    assert_eq!(less.told, "slicegate: 80.0% of lines are covered, and --coverage-min asks for 80.1%\n");
}

#[test]
fn old_syntax_and_libraries_work() {
    let root = folder(&[
        (
            "old/old.rego",
            "package old\n\nviolation[{\"msg\": msg}] {\n\tmsg := data.lib.text.cut(input.review.name)\n}\n",
        ),
        (
            "old/old_test.rego",
            "package old_test\n\ntest_old {\n\tdata.old.violation[{\"msg\": \"ab\"}] with input as {\"review\": {\"name\": \"abc\"}}\n}\n",
        ),
        ("old/policy.yaml", "slicegate.io/syntax: v0\n"),
        (
            "library.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: text\n  labels: {slicegate.io/policy: library}\ndata:\n  text.rego: |\n    package lib.text\n    cut(text) := substring(text, 0, 2)\n",
        ),
    ]);
    let ended = run(root.path(), &["."]);
    assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.told);
    assert!(ended.out.ends_with("\n1 passed\n"), "{}", ended.out);
    fs::remove_file(root.path().join("old/policy.yaml")).unwrap();
    let ended = run(root.path(), &["."]);
    assert_eq!(ended.code, Some(2));
    for words in ["./old/old.rego:3:", ": error: ", "slicegate.io/syntax: v0", "  3 | violation[{\"msg\": msg}] {\n"] {
        assert!(ended.told.contains(words), "{words}\n{}", ended.told);
    }
}

#[test]
fn a_test_cannot_take_more_than_its_budget_nor_the_program_with_it() {
    let ranges = "some a in numbers.range(1, 9999); some b in numbers.range(1, 9999); a + b == 0";
    let root = folder(&[
        ("p/p.rego", "package p\n\ndeny contains \"x\" if input.request.x\n"),
        (
            "p/p_test.rego",
            &format!("package p_test\n\ntest_long if count([1 | {ranges}]) == 0\n\ntest_short if true\n"),
        ),
        ("deep/d.rego", "package d\n\nf(x) := f(x + 1)\n\ndeny contains \"x\" if f(1) == 2\n"),
    ]);
    let ended = run(root.path(), &["p", "--budget", "50ms"]);
    assert_eq!(ended.code, Some(1), "{}{}", ended.out, ended.told);
    assert!(ended.out.contains("it used up its budget of 50ms of processor time"), "{}", ended.out);
    assert!(ended.out.ends_with("\n1 passed, 1 with an error\n"), "{}", ended.out);
    let ended = run(root.path(), &["deep", "p", "--run", "short"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.told.starts_with("deep/d.rego:3:1: error: "), "{}", ended.told);
    assert!(ended.out.contains("deep: cannot be loaded\np: 1 passed\n"), "{}", ended.out);
}

#[test]
fn what_cannot_be_run_says_why() {
    let root = folder(&[
        ("none/p.rego", "package p\n\ndeny contains \"x\" if input.request.x\n"),
        ("empty/notes.yaml", "a: b\n"),
        ("bad/p.rego", "package p\n\ndeny contains \"x\" if input.request.x\n"),
        ("bad/policy.yaml", "slicegate.io/action: refuse\n"),
    ]);
    for (flags, words) in [
        (&["none"][..], "there is no test; write one into a file that ends in _test.rego"),
        (&["none", "--run", "x"], "no test has a name that matches \"x\""),
        (&["empty"], "empty: no policy set in it"),
        (&["missing"], "missing: cannot be read"),
        (&["bad"], "bad/policy.yaml (slicegate.io/action): error: \"refuse\" is none of off, dryrun, warn, deny"),
        (&["none", "--run", "("], "unclosed group"),
        (&["none", "--coverage-min", "101"], "write a number from 0 to 100"),
        (&["none", "-v", "-q"], "cannot be used with"),
        (&["none", "--format", "xml"], "possible values"),
    ] {
        let ended = run(root.path(), flags);
        assert_eq!(ended.code, Some(2), "{flags:?}: {}", ended.told);
        assert!(ended.told.contains(words), "{flags:?}: {}", ended.told);
    }
}

#[test]
fn help_has_examples_and_exit_codes() {
    let help = run(Path::new("."), &["--help"]).out;
    for words in ["Examples:", "Exit codes:", "--coverage-min <PERCENT>", "SLICEGATE_TEST_BUDGET", "[default: 20ms]"] {
        assert!(help.contains(words), "{words}\n{help}");
    }
}
