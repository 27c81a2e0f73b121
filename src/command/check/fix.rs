//! Repairs, where there is exactly one right one.
//!
//! Invariant: a repair changes nothing but the field that it is about; what cannot be mended in the text stays as it is, and
//! is found again when the result is judged.

use super::Source;
use super::outcome::{Judged, Outcome, Place};
use super::subject::REVIEWED;
use crate::manifest;
use crate::policy::decision::{Action, Change};

/// The texts with everything repaired that can be.
pub(super) fn repair(sources: &[Source], outcome: &Outcome) -> Vec<Source> {
    let mut repaired = sources.to_vec();
    // From the end to the beginning, so that the places of what comes before stay right; the objects of one document stand
    // beside each other.
    let documents = outcome.judged.chunk_by(is_same_document);
    for objects in documents.collect::<Vec<_>>().into_iter().rev() {
        let Some(Judged { source, document: Place { start, end, .. }, .. }) = objects.first() else { continue };
        let Some(text) = repaired.get_mut(*source).map(|source| &mut source.text) else { continue };
        let Some(document) = text.get(*start..*end) else { continue };
        let edited = objects.iter().fold(document.to_owned(), |text, judged| apply(&text, judged, &repairs(judged)));
        text.replace_range(*start..*end, &edited);
    }
    repaired
}

fn is_same_document(one: &Judged, next: &Judged) -> bool {
    (one.source, one.document.start) == (next.source, next.document.start)
}

/// A document with changes to one of its objects, as far as they can be made in its text.
pub(super) fn apply(document: &str, judged: &Judged, changes: &[Change]) -> String {
    let edits = changes.iter().map(|change| (tokens(&judged.path, &change.pointer), change.value.clone()));
    manifest::edit_all(document, &edits.collect::<Vec<_>>())
}

/// The repairs of an object's findings and notes, each place once.
fn repairs(judged: &Judged) -> Vec<Change> {
    if judged.path.ends_with(REVIEWED) {
        // A record of what was sent.
        return Vec::new();
    }
    let findings = judged.findings.iter().filter(|(finding, _)| finding.action >= Action::Warn);
    let findings = findings.flat_map(|(finding, _)| &finding.repair);
    let mut changes: Vec<Change> = Vec::new();
    for change in findings.chain(judged.notes.iter().flat_map(|(note, _)| &note.repair)) {
        if changes.iter().all(|known| known.pointer != change.pointer || change.pointer.ends_with("/-")) {
            changes.push(change.clone());
        }
    }
    changes
}

/// The tokens of a pointer below the object's place in its document.
fn tokens(path: &str, pointer: &str) -> Vec<String> {
    let lists = path.split('.').filter(|part| !part.is_empty()).flat_map(|part| {
        let (key, index) = part.split_once('[').unwrap_or((part, ""));
        [key.to_owned(), index.trim_end_matches(']').to_owned()]
    });
    let own = pointer.split('/').skip(1).map(|token| token.replace("~1", "/").replace("~0", "~"));
    lists.chain(own).filter(|token| !token.is_empty()).collect()
}
