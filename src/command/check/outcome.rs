//! What came of judging, for every form in which it is shown.

use crate::manifest::{Located, Mistake};
use crate::policy::decision::{Action, Change, Finding, Note};

/// What came of all texts.
#[derive(Debug, Default)]
pub(in crate::command) struct Outcome {
    /// The objects, in the order of the texts.
    pub(in crate::command) judged: Vec<Judged>,
    /// What could not be judged, with the number of its source.
    pub(in crate::command) mistakes: Vec<(usize, Mistake)>,
}

/// One object, and what the webhooks would answer to its creation.
#[derive(Debug)]
pub(in crate::command) struct Judged {
    /// The number of its source.
    pub(in crate::command) source: usize,
    /// The document's number in it, and its bytes.
    pub(in crate::command) document: Place,
    /// Where it stands in the document.
    pub(in crate::command) path: String,
    /// Its apiVersion.
    pub(in crate::command) api_version: String,
    /// Its kind.
    pub(in crate::command) kind: String,
    /// The namespace that it would be in.
    pub(in crate::command) namespace: String,
    /// Its name, or the beginning of it and a star.
    pub(in crate::command) name: String,
    /// Where it stands in the text.
    pub(in crate::command) located: Located,
    /// What was found, the worst first, each with its place.
    pub(in crate::command) findings: Vec<(Finding, Located)>,
    /// What its author should know besides.
    pub(in crate::command) notes: Vec<(Note, Located)>,
    /// What would be added to it.
    pub(in crate::command) changes: Vec<Change>,
    /// Why it is refused whatever was found.
    pub(in crate::command) refusal: Option<String>,
}

/// A document in its source.
#[derive(Debug, Clone, Copy)]
pub(in crate::command) struct Place {
    pub(in crate::command) number: usize,
    pub(in crate::command) start: usize,
    pub(in crate::command) end: usize,
}

impl Judged {
    /// The worst that was found.
    pub(in crate::command) fn worst(&self) -> Action {
        if self.refusal.is_some() {
            return Action::Deny;
        }
        let noted = if self.notes.is_empty() { Action::Off } else { Action::Warn };
        self.findings.iter().map(|(finding, _)| finding.action).fold(noted, Action::max)
    }

    /// What the webhooks would do, in a word.
    pub(in crate::command) fn verdict(&self) -> &'static str {
        match self.worst() {
            Action::Deny => "denied",
            Action::Warn => "warned",
            Action::Off | Action::DryRun => "allowed",
        }
    }

    /// The object in words.
    pub(in crate::command) fn subject(&self) -> String {
        let namespace = if self.namespace.is_empty() { String::new() } else { format!("{}/", self.namespace) };
        format!("{} {namespace}{}", self.kind, self.name)
    }
}

impl Outcome {
    /// How many objects have this verdict.
    pub(super) fn count(&self, verdict: &str) -> usize {
        self.judged.iter().filter(|judged| judged.verdict() == verdict).count()
    }
}
