//! The outcome of tests for programs.
//!
//! Invariant: files are named as the paths on the command line lead to them.

use serde_json::{Value, json};

use super::Examined;
use super::shown::file;
use super::summary::{Lines, Summary};
use crate::rego::problem::Problem;
use crate::rego::testing::{Coverage, TestOutcome, TestResult};

/// One JSON object with everything that was found out.
pub(super) fn results(examined: &[Examined], summary: &Summary) -> anyhow::Result<String> {
    let sets = examined.iter().map(set).collect::<anyhow::Result<Vec<_>>>()?;
    let mut whole = json!({
        "passed": summary.passed,
        "failed": summary.failed,
        "errors": summary.errors,
        "skipped": summary.skipped,
        "sets": sets,
    });
    if let (Some(lines), Some(members)) = (summary.coverage, whole.as_object_mut()) {
        members.insert("coverage".to_owned(), counts(lines));
    }
    Ok(format!("{whole:#}\n"))
}

fn set(set: &Examined) -> anyhow::Result<Value> {
    let problems = |problems: &[Problem]| problems.iter().map(|problem| named(set, problem)).collect::<Vec<_>>();
    let mut whole = json!({
        "namespace": set.unit.set.key.namespace,
        "name": set.unit.set.key.name,
        "path": set.found.path,
        "digest": set.unit.digest,
        "loaded": set.tests.is_some(),
        "errors": problems(&set.report.errors),
        "warnings": problems(&set.report.warnings),
    });
    if let (Some(tests), Some(members)) = (&set.tests, whole.as_object_mut()) {
        let results = tests.results.iter().map(|result| test(set, result)).collect::<anyhow::Result<Vec<_>>>()?;
        members.insert("tests".to_owned(), results.into());
        if let Some(found) = &tests.coverage {
            members.insert("coverage".to_owned(), coverage(set, found));
        }
    }
    Ok(whole)
}

fn test(set: &Examined, result: &TestResult) -> anyhow::Result<Value> {
    let mut result = result.clone();
    result.file = file(set, &result.file);
    if let TestOutcome::Failed(problem) | TestOutcome::Error(problem) = &mut result.outcome {
        *problem = named(set, problem);
    }
    Ok(serde_json::to_value(result)?)
}

fn coverage(set: &Examined, coverage: &Coverage) -> Value {
    let mut whole = counts(Lines::of(coverage));
    let files = coverage.files.iter().map(|(name, found)| {
        let mut one = counts(Lines { covered: found.covered.len(), all: found.lines() });
        if let Some(members) = one.as_object_mut() {
            members.insert("file".to_owned(), file(set, name).into());
            members.insert("notCovered".to_owned(), json!(found.not_covered));
        }
        one
    });
    let files: Vec<Value> = files.collect();
    if let Some(members) = whole.as_object_mut() {
        members.insert("files".to_owned(), files.into());
    }
    whole
}

fn counts(lines: Lines) -> Value {
    json!({"percent": lines.rounded(), "covered": lines.covered, "lines": lines.all})
}

fn named(set: &Examined, problem: &Problem) -> Problem {
    Problem { file: file(set, &problem.file), ..problem.clone() }
}
