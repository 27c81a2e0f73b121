//! What is told of a policy set on its ConfigMap: the annotation and the Event.
//!
//! What it does: makes the texts, and says whether there is news in one. It writes nothing. Invariant: a status depends on what
//! is in force and on nothing else, no clock among it, so that every replica would write the same; it is never larger than an
//! annotation may well be.

use serde::Serialize;
use serde_json::Value;

use crate::rego::problem::Problem;
use crate::rego::state::{SetReport, State};
use crate::review::text::item;

/// The annotation.
pub(super) const STATUS: &str = "slicegate.io/status";

/// The most bytes of a status.
const LARGEST: usize = 8 << 10;
/// The most bytes of the note of an Event, which is less than the API server takes.
const LARGEST_NOTE: usize = 1000;
/// Room for the counts of what was left out.
const RESERVE: usize = 64;

/// What happened to a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Note {
    /// One word in upper camel case.
    pub(super) reason: &'static str,
    /// Whether someone should look.
    pub(super) warning: bool,
    /// The sentence.
    pub(super) text: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Status<'r> {
    state: State,
    digest: &'r str,
    observed_digest: &'r str,
    errors: Vec<Problem>,
    warnings: Vec<Problem>,
    #[serde(skip_serializing_if = "is_zero")]
    more_errors: usize,
    #[serde(skip_serializing_if = "is_zero")]
    more_warnings: usize,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// The status of a set, as the annotation's text.
pub(super) fn status(report: &SetReport) -> String {
    let mut status = Status {
        state: report.state,
        digest: &report.digest,
        observed_digest: &report.offered,
        errors: Vec::new(),
        warnings: Vec::new(),
        more_errors: 0,
        more_warnings: 0,
    };
    let mut room = LARGEST.saturating_sub(RESERVE).saturating_sub(text(&status).len());
    (status.errors, status.more_errors) = fitting(&report.errors, &mut room);
    (status.warnings, status.more_warnings) = fitting(&report.warnings, &mut room);
    text(&status)
}

fn text(status: &impl Serialize) -> String {
    // Texts and numbers can always be written.
    serde_json::to_string(status).unwrap_or_default()
}

/// The first of these for which there is room, and how many there are beyond them.
fn fitting(problems: &[Problem], room: &mut usize) -> (Vec<Problem>, usize) {
    let mut kept = Vec::new();
    for problem in problems {
        let problem = Problem { file: item(&problem.file), message: item(&problem.message), ..problem.clone() };
        let Some(left) = room.checked_sub(text(&problem).len().saturating_add(1)) else { break };
        *room = left;
        kept.push(problem);
    }
    let more = problems.len().saturating_sub(kept.len());
    (kept, more)
}

/// Whether a status tells something else than the one before: another state, or other content. A warning more is none.
pub(super) fn is_news(before: Option<&str>, after: &str) -> bool {
    let parsed = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
    let (before, after) = (parsed(before.unwrap_or_default()), parsed(after));
    ["state", "digest", "observedDigest", "errors"].iter().any(|field| before.get(field) != after.get(field))
}

/// What happened to a set that is reported like this.
pub(super) fn note(report: &SetReport) -> Note {
    let (error, warning) = (first(&report.errors), first(&report.warnings));
    let digest: String = report.digest.chars().take(12).collect();
    let modules = if report.modules == 1 { "1 module".to_owned() } else { format!("{} modules", report.modules) };
    let (reason, warns, text) = match report.state {
        State::Loaded if report.modules == 0 => ("PolicyEmpty", true, format!("nothing is in force: {warning}")),
        State::Loaded if report.warnings.is_empty() => {
            ("PolicyLoaded", false, format!("in force: {modules}, digest {digest}"))
        }
        State::Loaded => ("PolicyLoaded", false, format!("in force: {modules}, digest {digest}; {warning}")),
        State::NotRouted => (
            "PolicyNotRouted",
            true,
            format!("in force, digest {digest}, but nothing that it matches is sent: {warning}"),
        ),
        State::LastGood => {
            ("PolicyLastGood", true, format!("its last good form stays in force, digest {digest}: {error}"))
        }
        State::Rejected => ("PolicyRejected", true, format!("not in force: {error}")),
    };
    Note { reason, warning: warns, text: cut(text) }
}

/// What happened to a set that is there no more, for this reason.
pub(super) fn unloaded(why: &str) -> Note {
    Note { reason: "PolicyUnloaded", warning: true, text: format!("no longer in force: {why}") }
}

/// What happened where a last good form is too large to be kept.
pub(super) fn not_kept(size: usize) -> Note {
    let text = format!(
        "its last good form has {size} bytes compressed and is not kept, since no Secret can hold it: after a restart a bad \
         edit would leave nothing in force; make it smaller, or split it"
    );
    Note { reason: "PolicyNotKept", warning: true, text }
}

/// The first of them, and how many there are beyond it.
fn first(problems: &[Problem]) -> String {
    let first = problems.first().map(|problem| item(&problem.to_string())).unwrap_or_default();
    match problems.len() {
        0 | 1 => first,
        many => format!("{first} (and {} more)", many.saturating_sub(1)),
    }
}

fn cut(text: String) -> String {
    if text.len() <= LARGEST_NOTE {
        return text;
    }
    let end = text.floor_char_boundary(LARGEST_NOTE.saturating_sub(3));
    format!("{}…", text.get(..end).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;
    use crate::policy::decision::Action;
    use crate::rego::set::Key;

    fn problem(message: &str) -> Problem {
        Problem { file: "a.rego".to_owned(), line: 3, column: 5, message: message.to_owned() }
    }

    fn report(state: State, errors: Vec<Problem>, warnings: Vec<Problem>) -> SetReport {
        SetReport {
            key: Key { namespace: "n".to_owned(), name: "a".to_owned() },
            digest: "d".repeat(64),
            state,
            action: Action::Deny,
            engine: "rego.v1",
            modules: 2,
            errors,
            warnings,
            in_force: None,
            offered: "o".repeat(64),
        }
    }

    #[test]
    fn a_status_says_what_is_in_force_and_what_is_wrong() {
        let text = status(&report(State::LastGood, vec![problem("no such function\n")], vec![Problem::of_set("w")]));
        let want = json!({"state": "LastGood", "digest": "d".repeat(64), "observedDigest": "o".repeat(64),
            "errors": [{"file": "a.rego", "line": 3, "column": 5, "message": "no such function\\u{a}"}],
            "warnings": [{"file": "", "line": 0, "column": 0, "message": "w"}]});
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), want);
    }

    #[test]
    fn a_status_fits_and_counts_what_it_leaves_out() {
        for message in ["x", "\"", "é", "\u{1b}"] {
            let errors = vec![problem(&message.repeat(700)); 300];
            let text = status(&report(State::Rejected, errors, vec![problem("w"); 40]));
            assert!(text.len() <= LARGEST && text.len() > LARGEST / 2, "{}", text.len());
            let status: Value = serde_json::from_str(&text).unwrap();
            let kept = status["errors"].as_array().unwrap().len();
            assert_eq!(status["moreErrors"], 300 - kept);
            let note = note(&report(State::Rejected, vec![problem(&message.repeat(5_000)); 3], vec![]));
            assert!(note.text.len() <= LARGEST_NOTE, "{}", note.text.len());
        }
    }

    #[test]
    fn news_are_what_changes_what_is_in_force_or_why_not() {
        let loaded = status(&report(State::Loaded, vec![], vec![]));
        assert!(!is_news(Some(&loaded), &loaded));
        assert!(!is_news(Some(&loaded), &status(&report(State::Loaded, vec![], vec![problem("w")]))));
        assert!(is_news(Some(&loaded), &status(&report(State::LastGood, vec![problem("e")], vec![]))));
        assert!(is_news(None, &loaded) && is_news(Some("by hand"), &loaded));
    }

    #[test]
    fn notes_name_the_first_problem() {
        let errors = vec![problem("wrong"), problem("too")];
        let told = |state, errors: &[Problem], warnings| note(&report(state, errors.to_vec(), warnings));
        let rejected = told(State::Rejected, &errors, vec![]);
        assert_eq!((rejected.reason, rejected.warning), ("PolicyRejected", true));
        assert_eq!(rejected.text, "not in force: a.rego:3:5: wrong (and 1 more)");
        let kept = told(State::LastGood, &errors, vec![]);
        let want = "its last good form stays in force, digest dddddddddddd: a.rego:3:5: wrong (and 1 more)";
        assert_eq!((kept.reason, kept.warning, kept.text.as_str()), ("PolicyLastGood", true, want));
        let loaded = told(State::Loaded, &[], vec![]);
        let want = "in force: 2 modules, digest dddddddddddd";
        assert_eq!((loaded.reason, loaded.warning, loaded.text.as_str()), ("PolicyLoaded", false, want));
        let mut empty = report(State::Loaded, vec![], vec![Problem::of_set("it holds no module")]);
        empty.modules = 0;
        let want =
            Note { reason: "PolicyEmpty", warning: true, text: "nothing is in force: it holds no module".to_owned() };
        assert_eq!(note(&empty), want);
        assert_eq!(told(State::NotRouted, &[], vec![problem("w")]).reason, "PolicyNotRouted");
    }
}
