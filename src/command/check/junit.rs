//! The outcome as JUnit's XML: a suite for each file, a case for each object.

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use super::Source;
use super::outcome::{Judged, Outcome};
use crate::policy::decision::Action;
use crate::review::response::line;

/// The document.
pub(super) fn report(sources: &[Source], outcome: &Outcome) -> anyhow::Result<String> {
    let mut report = Report::new("slicegate check");
    for (number, source) in sources.iter().enumerate() {
        let mut suite = TestSuite::new(source.name.as_str());
        for (_, mistake) in outcome.mistakes.iter().filter(|(source, _)| *source == number) {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
            status.set_message(format!("{}:{mistake}", source.name));
            suite.add_test_case(TestCase::new(format!("line {}", mistake.line), status));
        }
        suite.add_test_cases(
            outcome.judged.iter().filter(|judged| judged.source == number).map(|judged| case(source, judged)),
        );
        report.add_test_suite(suite);
    }
    Ok(report.to_string()?)
}

fn case(source: &Source, judged: &Judged) -> TestCase {
    let refused = judged.refusal.iter().cloned();
    let lines = |action: Action| {
        judged.findings.iter().filter(move |(finding, _)| finding.action == action).map(|(finding, _)| line(finding))
    };
    let denied: Vec<String> = refused.chain(lines(Action::Deny)).collect();
    let warned: Vec<String> =
        lines(Action::Warn).chain(judged.notes.iter().map(|(note, _)| note.text.clone())).collect();
    let status = if denied.is_empty() {
        TestCaseStatus::success()
    } else {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
        status.set_message(denied.first().cloned().unwrap_or_default());
        status.set_description(denied.join("\n"));
        status
    };
    let mut case = TestCase::new(judged.subject(), status);
    case.set_classname(judged.api_version.as_str());
    case.extra.insert("file".into(), source.name.as_str().into());
    case.extra.insert("line".into(), judged.located.line.to_string().into());
    if !warned.is_empty() {
        case.set_system_out(warned.join("\n"));
    }
    case
}
