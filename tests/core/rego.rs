//! slicegate's engine held against the real OPA, on every pair of tests/fixtures/rego/differential; and the starters in it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use regorus::Value;
use slicegate::json;
use slicegate::rego::engine::{Budget, Interpreter};
use slicegate::rego::program::Program;
use slicegate::rego::set::{Key, Set, Syntax};
use slicegate::rego::testing::{self, Options};
use slicegate::rego::unit::Unit;
use slicegate::rego::value::{Keys, value};

use crate::pairs::{self, Outcome, Pair};

/// Far more than any pair takes.
const BUDGET: Budget<'_> = Budget { limit: Duration::from_mins(1), started: Duration::ZERO, clock: &|| Duration::ZERO };

#[test]
fn the_engine_agrees_with_opa_where_no_difference_is_noted() {
    let (mut compared, mut wrong) = (0, String::new());
    for file in pairs::files().unwrap() {
        for pair in pairs::pairs(&file).unwrap_or_else(|error| panic!("{}: {error:?}", file.display())) {
            let want = pair.outcome.as_ref().unwrap_or_else(|| panic!("{}: nothing is recorded", pair.name));
            // What OPA refuses when it loads it is for the checks of a set to refuse: some of it ends this process.
            if matches!(want, Outcome::Error(code) if code.starts_with("rego_")) {
                continue;
            }
            compared += 1;
            let said = catch_unwind(AssertUnwindSafe(|| ask(&pair))).unwrap_or_else(|_| Err("it panics".to_owned()));
            if agrees(want, &said) == pair.differs.is_some() {
                let file = file.file_name().unwrap().display();
                writeln!(wrong, "{file}: {}: OPA {want:?}, here {said:?}, noted {:?}", pair.name, pair.differs)
                    .unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(compared > 600, "{compared}");
}

#[test]
fn sets_that_opa_does_not_load_are_refused_where_no_difference_is_noted() {
    let (mut refused, mut wrong) = (0, String::new());
    for file in pairs::files().unwrap() {
        for pair in pairs::pairs(&file).unwrap() {
            if matches!(&pair.outcome, Some(Outcome::Error(code)) if code.starts_with("rego_")) {
                refused += 1;
                let syntax = if pair.v0 { "v0" } else { "v1" };
                let (_, report) = Program::compile(&unit(&[("slicegate.io/syntax", syntax)], pair.modules.clone()));
                if report.errors.is_empty() == pair.differs.is_none() {
                    writeln!(wrong, "{}: {:?}, here {report:?}", pair.name, pair.outcome).unwrap();
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(refused > 20, "{refused}");
}

#[test]
fn starters_load_and_pass_their_tests() {
    for folder in pairs::starters().unwrap() {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let entries = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap());
        let files: BTreeMap<String, String> = entries
            .map(|entry| (entry.file_name().to_string_lossy().into_owned(), fs::read_to_string(entry.path()).unwrap()))
            .collect();
        let unit = unit(&[], files);
        let (program, report) = Program::compile(&unit);
        assert!(report.errors.is_empty() && report.warnings.is_empty(), "{name}: {report:?}");
        assert_eq!(program.unwrap().entries().len(), 1, "{name}");
        let tests = testing::run(&unit, &Options { coverage: true, filter: None }, BUDGET).unwrap();
        for test in &tests.results {
            assert!(!test.outcome.is_bad(), "{}: {:?}", test.full_name(), test.outcome);
        }
        assert!(tests.results.len() >= 10, "{name}");
    }
}

fn unit(annotations: &[(&str, &str)], files: BTreeMap<String, String>) -> Unit {
    let key = Key { namespace: "slicegate-system".to_owned(), name: "starter".to_owned() };
    let annotations = annotations.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Unit::new(Set::of_files(key, "true", &annotations, files), &BTreeMap::new())
}

fn ask(pair: &Pair) -> Result<Value, String> {
    let syntax = if pair.v0 { Syntax::V0 } else { Syntax::V1 };
    let modules = pair.modules.iter().map(|(file, text)| (file.as_str(), syntax, text.as_str()));
    let data = read(&pair.data.to_string());
    let mut interpreter = Interpreter::new(modules, data, true).map_err(|problems| format!("{problems:?}"))?;
    interpreter.set_input(pair.input.as_deref().map_or(Value::Undefined, read));
    interpreter.query(&pair.query, BUDGET).map_err(|failure| failure.explain())
}

fn read(text: &str) -> Value {
    value(&json::parse(text.as_bytes()).unwrap(), &mut Keys::default()).unwrap()
}

fn agrees(want: &Outcome, said: &Result<Value, String>) -> bool {
    match (want, said) {
        (Outcome::Error(_), Err(_)) | (Outcome::Undefined, Ok(Value::Undefined)) => true,
        (Outcome::Value(_), Ok(Value::Undefined)) => false,
        (Outcome::Value(text), Ok(said)) => same(&read(text), said),
        _ => false,
    }
}

/// Whether a value is what JSON says of it. JSON has no sets, so a list may stand for one, in any order; and its keys are
/// texts.
fn same(want: &Value, said: &Value) -> bool {
    match (want, said) {
        (Value::Array(want), Value::Array(said)) => {
            want.len() == said.len() && want.iter().zip(said.iter()).all(|(want, said)| same(want, said))
        }
        (Value::Array(want), Value::Set(said)) => {
            want.len() == said.len() && want.iter().all(|want| said.iter().any(|said| same(want, said)))
        }
        (Value::Object(want), Value::Object(said)) => {
            let found = |key: &Value| said.iter().find(|(said, _)| key_text(said) == key_text(key));
            want.len() == said.len()
                && want.iter().all(|(key, want)| found(key).is_some_and(|(_, said)| same(want, said)))
        }
        _ => want == said,
    }
}

fn key_text(key: &Value) -> String {
    match key {
        Value::String(text) => text.to_string(),
        other => other.to_json_str().unwrap(),
    }
}
