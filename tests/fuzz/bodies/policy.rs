//! Any texts as a policy set.

use std::collections::BTreeMap;

use slicegate::rego::problem::Problem;
use slicegate::rego::program::Program;
use slicegate::rego::set::{Key, Set};
use slicegate::rego::unit::Unit;

use super::parts;

/// The files of a set, in the order of the parts; the annotation `match` comes after them.
const FILES: [&str; 4] = ["policy.rego", "policy_test.rego", "limits.json", "parameters.yaml"];

/// The parts: a byte that chooses the language, before the first module; further files; what the set matches. The set is
/// loaded, or refused with problems that have a place; both the same each time.
pub fn body(data: &[u8]) {
    let Some((choice, data)) = data.split_first() else { return };
    let texts: Vec<String> = parts(data).map(|part| String::from_utf8_lossy(part).into_owned()).collect();
    let files = FILES.iter().zip(&texts).filter(|(_, text)| !text.is_empty());
    let files: BTreeMap<String, String> = files.map(|(name, text)| ((*name).to_owned(), text.clone())).collect();
    let mut annotations = BTreeMap::new();
    if choice.is_multiple_of(2) {
        annotations.insert("slicegate.io/syntax".to_owned(), "v0".to_owned());
    }
    if let Some(text) = texts.get(FILES.len()) {
        annotations.insert("slicegate.io/match".to_owned(), text.clone());
    }
    let key = Key { namespace: "n".to_owned(), name: "set".to_owned() };
    let set = Set::of_files(key, "true", &annotations, files.clone());
    let unit = Unit::new(set, &BTreeMap::new());
    let (program, report) = Program::compile(&unit);
    assert_eq!(program.is_some(), report.errors.is_empty(), "{report:?}");
    for problem in report.errors.iter().chain(&report.warnings) {
        placed(problem, &files);
    }
    assert_eq!(Program::compile(&unit).1, report, "the same each time");
}

/// A problem says something, of a file or an annotation of the set, at a place that is there.
fn placed(problem: &Problem, files: &BTreeMap<String, String>) {
    assert!(!problem.message.is_empty(), "{problem:?}");
    let Some(text) = files.get(&problem.file) else {
        let known = problem.file.is_empty()
            || problem.file.starts_with("slicegate.io/")
            || problem.file.strip_prefix("data.").is_some_and(|name| ["limits", "parameters"].contains(&name));
        assert!(known, "{problem:?}");
        return;
    };
    // YAML ends a line at either; and a problem may be behind the last one, where the text ends too early.
    let lines = text.split(['\n', '\r']).count() + 1;
    assert!(usize::try_from(problem.line).is_ok_and(|line| line <= lines), "{problem:?} in {lines} lines");
    assert!(problem.line > 0 || problem.column == 0, "{problem:?}");
}
