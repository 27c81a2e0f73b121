//! The outcome of tests as JUnit's XML: a suite for each set.

use std::time::Duration;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use super::Examined;
use super::shown::{excerpt, file, place};
use crate::rego::problem::Problem;
use crate::rego::testing::{TestOutcome, TestResult};

/// The document.
pub(super) fn results(examined: &[Examined]) -> anyhow::Result<String> {
    let mut report = Report::new("slicegate test");
    report.add_test_suites(examined.iter().map(suite));
    Ok(report.to_string()?)
}

fn suite(set: &Examined) -> TestSuite {
    let mut suite = TestSuite::new(set.found.shown(""));
    // A set that cannot be loaded has one test, and it is in error: it must not look like one without tests.
    for problem in &set.report.errors {
        let mut case = TestCase::new("loads", bad(NonSuccessKind::Error, set, problem));
        case.set_classname(set.unit.set.key.to_string());
        suite.add_test_case(case);
    }
    let results = set.tests.iter().flat_map(|tests| &tests.results);
    suite.add_test_cases(results.map(|result| case(set, result)));
    suite
}

fn case(set: &Examined, result: &TestResult) -> TestCase {
    let status = match &result.outcome {
        TestOutcome::Passed => TestCaseStatus::success(),
        TestOutcome::Skipped => TestCaseStatus::skipped(),
        TestOutcome::Failed(problem) => bad(NonSuccessKind::Failure, set, problem),
        TestOutcome::Error(problem) => bad(NonSuccessKind::Error, set, problem),
    };
    let mut case = TestCase::new(result.name.as_str(), status);
    case.set_classname(format!("data.{}", result.package));
    case.set_time(Duration::from_micros(result.micros));
    case.extra.insert("file".into(), file(set, &result.file).into());
    case.extra.insert("line".into(), result.line.to_string().into());
    if !result.prints.is_empty() {
        case.set_system_out(result.prints.join("\n"));
    }
    case
}

fn bad(kind: NonSuccessKind, set: &Examined, problem: &Problem) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(kind);
    status.set_message(problem.message.as_str());
    status.set_description(format!("{}: {}\n{}", place(set, problem), problem.message, excerpt(set, problem)));
    status
}
