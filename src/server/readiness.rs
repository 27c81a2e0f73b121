//! Readiness: conditions with names, all of which must hold.
//!
//! What it does: whoever has something to wait for registers a [`Condition`] and fulfils it. What it does not: decide what
//! the conditions are. Invariant: without the last condition fulfilled, and from the first step of the shutdown on, the
//! process is not ready.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

/// All conditions, in the order in which they were registered.
#[derive(Debug, Clone, Default)]
pub struct Readiness(Arc<Mutex<Vec<Entry>>>);

/// One condition, held by whoever fulfils it. Dropping it leaves the condition as it is.
#[derive(Debug, Clone)]
pub struct Condition {
    all: Readiness,
    name: &'static str,
}

#[derive(Debug)]
struct Entry {
    name: &'static str,
    /// Why the condition does not hold; nothing where it does.
    reason: Option<String>,
    /// What there is to know while it holds.
    note: Option<String>,
}

impl Readiness {
    /// Registers a condition that does not hold yet, and says why. A name that is known is taken over.
    #[must_use]
    pub fn condition(&self, name: &'static str, reason: impl Into<String>) -> Condition {
        self.set(name, Some(reason.into()));
        Condition { all: self.clone(), name }
    }

    /// Says what there is to know of a condition while it holds. One that nobody waits for holds.
    pub fn note(&self, name: &'static str, note: &str) {
        // A line stays a line whatever a file's name or an error's text holds.
        let note = note.replace(char::is_control, " ");
        let mut entries = self.entries();
        match entries.iter_mut().find(|entry| entry.name == name) {
            Some(entry) => entry.note = Some(note),
            None => entries.push(Entry { name, reason: None, note: Some(note) }),
        }
    }

    /// Whether all conditions hold.
    pub fn holds(&self) -> bool {
        self.entries().iter().all(|entry| entry.reason.is_none())
    }

    /// One line for each condition, as the API server's own `/readyz?verbose` writes them.
    pub fn describe(&self) -> String {
        let mut text = String::new();
        for Entry { name, reason, note } in self.entries().iter() {
            // Writing to a String cannot fail.
            let _ = match (reason, note) {
                (None, None) => writeln!(text, "[+]{name} ok"),
                (None, Some(note)) => writeln!(text, "[+]{name} ok: {note}"),
                (Some(reason), _) => writeln!(text, "[-]{name} {reason}"),
            };
        }
        text
    }

    fn entries(&self) -> std::sync::MutexGuard<'_, Vec<Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, name: &'static str, reason: Option<String>) {
        let mut entries = self.entries();
        match entries.iter_mut().find(|entry| entry.name == name) {
            Some(entry) => entry.reason = reason,
            None => entries.push(Entry { name, reason, note: None }),
        }
    }
}

impl Condition {
    /// The condition holds.
    pub fn fulfil(&self) {
        self.all.set(self.name, None);
    }

    /// Says why the condition does not hold, where it does not.
    pub fn explain(&self, reason: impl Into<String>) {
        let mut entries = self.all.entries();
        let waiting = entries.iter_mut().find(|entry| entry.name == self.name && entry.reason.is_some());
        if let Some(entry) = waiting {
            entry.reason = Some(reason.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_conditions_must_hold() {
        let readiness = Readiness::default();
        let tls = readiness.condition("tls", "no certificate yet");
        let nodes = readiness.condition("nodes", "not listed yet");
        tls.fulfil();
        assert!(!readiness.holds());
        assert_eq!(readiness.describe(), "[+]tls ok\n[-]nodes not listed yet\n");
        nodes.explain("still not listed");
        assert_eq!(readiness.describe(), "[+]tls ok\n[-]nodes still not listed\n");
        nodes.fulfil();
        nodes.explain("too late");
        assert!(readiness.holds());
        readiness.note("tls", "it ends\nsoon");
        assert_eq!(readiness.describe(), "[+]tls ok: it ends soon\n[+]nodes ok\n");
    }
}
