use std::collections::BTreeMap;
use std::time::Instant;

use pretty_assertions::assert_eq;

use super::*;
use crate::rego::set::{Key, Set};

const QUOTA: &str = "package quota

import rego.v1

deny contains msg if {
	input.count > data.parameters.most
	msg := sprintf(\"%d is too much\", [input.count])
}

deny contains \"negative\" if {
	input.count < 0
}
";

fn set(name: &str, label: &str, annotations: &[(&str, &str)], files: &[(&str, &str)]) -> Set {
    let pairs = |pairs: &[(&str, &str)]| pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
    let key = Key { namespace: "n".into(), name: name.into() };
    Set::of_files(key, label, &pairs(annotations), pairs(files))
}

fn unit(files: &[(&str, &str)]) -> Unit {
    Unit::new(set("quota", "true", &[], files), &BTreeMap::new())
}

fn with(unit: &Unit, options: &Options, limit: Duration) -> Result<Tests, Vec<Problem>> {
    let start = Instant::now();
    run(unit, options, Budget::new(limit, &|| start.elapsed()))
}

fn tests(unit: &Unit) -> Tests {
    with(unit, &Options { coverage: true, filter: None }, Duration::from_secs(20)).unwrap()
}

fn told(tests: &Tests) -> Vec<String> {
    let line = |result: &TestResult| {
        let outcome = match &result.outcome {
            TestOutcome::Passed => "passed".to_owned(),
            TestOutcome::Skipped => "skipped".to_owned(),
            TestOutcome::Failed(problem) => format!("failed {problem}"),
            TestOutcome::Error(problem) => format!("error {problem}"),
        };
        format!("{}:{} {}: {outcome}", result.file, result.line, result.full_name())
    };
    tests.results.iter().map(line).collect()
}

#[test]
fn each_way_to_end_is_told_with_its_place() {
    let text = "package quota_test

import data.quota

test_ok if count(quota.deny) == 1 with input as {\"count\": 9}

test_undefined if {
	count(quota.deny) == 1 with input as {\"count\": 2}
}

test_false := false

test_number := [7, 8]

test_error if 1 / input.zero == 1 with input as {\"zero\": 0}

todo_test_later if false

test_function(x) if x

test_cases[name] if {
	some name in [\"a\", \"b\"]
}

test_set contains 1

helper if true
";
    let unit = unit(&[("quota.rego", QUOTA), ("quota_test.rego", text), ("parameters.yaml", "most: 3")]);
    let tests = tests(&unit);
    let told = told(&tests);
    assert_eq!(
        told[..4],
        [
            "quota_test.rego:5 data.quota_test.test_ok: passed".to_owned(),
            "quota_test.rego:7 data.quota_test.test_undefined: failed quota_test.rego:7:1: it is undefined: one of its conditions does not hold".to_owned(),
            "quota_test.rego:11 data.quota_test.test_false: failed quota_test.rego:11:1: its value is false".to_owned(),
            "quota_test.rego:13 data.quota_test.test_number: failed quota_test.rego:13:1: its value is [7,8], and a test has to be true".to_owned(),
        ]
    );
    assert!(told[4].contains("test_error: error quota_test.rego:15:") && told[4].contains("zero"), "{}", told[4]);
    assert_eq!(told[5], "quota_test.rego:17 data.quota_test.todo_test_later: skipped");
    assert!(told[6].contains("error") && told[6].contains("arguments"), "{}", told[6]);
    assert!(told[7].contains("error") && told[7].contains("table of cases"), "{}", told[7]);
    assert!(told[8].contains("error") && told[8].contains("is a set"), "{}", told[8]);
    assert_eq!(told.len(), 9);
    let travelled: Tests = serde_json::from_str(&serde_json::to_string(&tests).unwrap()).unwrap();
    assert_eq!(travelled, tests);
}

#[test]
fn each_body_of_a_name_is_a_test() {
    let text = "package p
test_x if true
test_x if { false }
test_x if 1 / input.zero == 1 with input as {\"zero\": 0}
q.test_y if true
q.test_y if false
";
    let unit = unit(&[("p.rego", text)]);
    let told = told(&tests(&unit));
    assert_eq!(told[0], "p.rego:2 data.p.test_x: passed");
    assert!(told[1].starts_with("p.rego:3 data.p.test_x#01: failed p.rego:3:1: it is undefined"), "{}", told[1]);
    assert!(told[2].starts_with("p.rego:4 data.p.test_x#02: error p.rego:4:"), "{}", told[2]);
    assert_eq!(told[3], "p.rego:5 data.p.q.test_y: passed");
    assert!(told[4].starts_with("p.rego:6 data.p.q.test_y#01: failed"), "{}", told[4]);
}

#[test]
fn only_what_was_asked_for_is_run() {
    let unit = unit(&[("p.rego", "package p\ntest_a if true\ntest_ab if true\ntest_b if true")]);
    let run =
        |filter: &str| with(&unit, &Options { coverage: false, filter: Some(filter.into()) }, Duration::from_secs(20));
    let tests = run("data.p.test_a").unwrap();
    assert_eq!(tests.results.iter().map(|test| test.name.as_str()).collect::<Vec<_>>(), ["test_a", "test_ab"]);
    assert_eq!(tests.coverage, None);
    assert!(run("(").unwrap_err()[0].message.contains("no regular expression"));
}

#[test]
fn prints_are_kept_and_belong_to_their_test() {
    let text = "package p
test_a if print(\"one\", 1)
test_b if {
	print(\"before\")
	1 / input.zero == 1 with input as {\"zero\": 0}
}
test_c if true
test_d if {
	every i in numbers.range(1, 300) { print(i) }
}
";
    let tests = tests(&unit(&[("p.rego", text)]));
    let prints: Vec<&[String]> = tests.results.iter().map(|test| test.prints.as_slice()).collect();
    assert_eq!(prints[0], ["p.rego:2: one 1"]);
    assert_eq!(prints[1], ["p.rego:4: before"]);
    assert!(prints[2].is_empty());
    assert_eq!((prints[3].len(), prints[3][100].as_str()), (101, "and 200 more that are not shown"));
}

#[test]
fn a_budget_is_that_of_each_test() {
    let text = "package p
test_long if {
	count([1 | some a in numbers.range(1, 1000); some b in numbers.range(1, 1000); some c in numbers.range(1, 1000); a + b == c]) > 0
}
test_short if true
long(n) := count([1 | some a in numbers.range(1, n); some b in numbers.range(1, n); some c in numbers.range(1, n); a + b == c])
test_in_a_function if long(1000) > 0
";
    let tests = with(&unit(&[("p.rego", text)]), &Options::default(), Duration::from_millis(100)).unwrap();
    let told = told(&tests);
    assert!(told[0].contains("error p.rego:2:1: it used up its budget of 100ms"), "{}", told[0]);
    assert_eq!(told[1], "p.rego:5 data.p.test_short: passed");
    assert!(told[2].contains("error p.rego:7:1: it used up its budget of 100ms"), "{}", told[2]);
}

#[test]
fn coverage_is_that_of_the_modules_of_the_set() {
    let test = "package quota_test
test_quota if count(data.quota.deny) == 1 with input as {\"count\": 9}
test_fails if 1 / count([]) == 1
";
    let other = "package other\n\nallow if {\n\tinput.x == 1\n}\n";
    let files =
        [("quota.rego", QUOTA), ("quota_test.rego", test), ("other.rego", other), ("parameters.yaml", "most: 3")];
    let coverage = tests(&unit(&files)).coverage.unwrap();
    let lines = |file: &str| {
        let file = &coverage.files[file];
        (file.covered.iter().copied().collect::<Vec<_>>(), file.not_covered.iter().copied().collect::<Vec<_>>())
    };
    assert_eq!(coverage.files.len(), 2);
    assert_eq!(lines("quota.rego"), (vec![5, 6, 7, 11], vec![10]));
    assert_eq!(lines("other.rego"), (vec![], vec![4]));
    assert_eq!(coverage.counts(), (4, 6));
}

#[test]
fn sets_of_the_old_syntax_and_libraries_have_tests_too() {
    let old = "package p\nviolation[{\"msg\": msg}] { input.x; msg := data.lib.text.cut(\"abc\") }\n";
    let test = "package p_test\ntest_old { data.p.violation[{\"msg\": \"ab\"}] with input as {\"x\": true} }\n";
    let library = set(
        "text",
        "library",
        &[],
        &[
            ("text.rego", "package lib.text\ncut(text) := substring(text, 0, 2)\n"),
            ("text_test.rego", "package lib.text_test\ntest_cut if data.lib.text.cut(\"xyz\") == \"xy\"\n"),
        ],
    );
    let libraries = BTreeMap::from([(library.key.clone(), library.clone())]);
    let marked = [("slicegate.io/syntax", "v0")];
    let policy = set("p", "true", &marked, &[("p.rego", old), ("p_test.rego", test)]);
    let policy = tests(&Unit::new(policy, &libraries));
    assert_eq!(told(&policy), ["p_test.rego:2 data.p_test.test_old: passed"]);
    assert_eq!(policy.coverage.unwrap().files.keys().collect::<Vec<_>>(), ["p.rego"]);
    let library = tests(&Unit::new(library, &libraries));
    assert_eq!(told(&library), ["text_test.rego:2 data.lib.text_test.test_cut: passed"]);
    assert_eq!(library.coverage.unwrap().counts(), (1, 1));
}

#[test]
fn what_cannot_be_parsed_is_told() {
    let problems = with(&unit(&[("p.rego", "package p\nx :=\n")]), &Options::default(), Duration::from_secs(20));
    assert_eq!(problems.unwrap_err()[0].file, "p.rego");
}
