//! Where mistakes are gathered while a text is read.
//!
//! Invariant: what comes out is in the order of the text, without repetitions, bounded in number and length, and holds nothing
//! that acts on a terminal.

use std::cell::RefCell;

use granit_parser::Span;

use super::{Mistake, Mistakes};
use crate::review::text;

/// The most mistakes that are kept; further ones are counted.
const MOST: usize = 500;

/// A place in the text, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// The line.
    pub(super) line: usize,
    /// The column, in characters.
    pub(super) column: usize,
}

/// The mistakes so far.
#[derive(Debug, Default)]
pub(super) struct Log {
    kept: RefCell<Vec<Mistake>>,
    left_out: RefCell<usize>,
}

impl Place {
    /// The beginning of the text.
    pub(super) const START: Self = Self { line: 1, column: 1 };

    /// Where a span begins.
    pub(super) fn of(span: &Span) -> Self {
        Self { line: span.start.line(), column: span.start.col().saturating_add(1) }
    }
}

impl Log {
    /// Notes a mistake.
    pub(super) fn add(&self, place: Place, message: String) {
        self.note(Mistake { line: place.line, column: place.column, message, unknown_field: false });
    }

    /// Notes a field that nothing reads.
    pub(super) fn add_unknown_field(&self, place: Place, message: impl FnOnce() -> String) {
        // Looking for the nearest known field takes its time, and is for readers only.
        let message = if self.count() < MOST { message() } else { String::new() };
        self.note(Mistake { line: place.line, column: place.column, message, unknown_field: true });
    }

    /// How many mistakes were noted.
    pub(super) fn count(&self) -> usize {
        self.kept.borrow().len().saturating_add(*self.left_out.borrow())
    }

    /// All mistakes, if there are any.
    pub(super) fn into_mistakes(self) -> Option<Mistakes> {
        let mut kept = self.kept.into_inner();
        kept.sort_by_key(|mistake| (mistake.line, mistake.column));
        kept.dedup();
        let last = kept.last()?.clone();
        let left_out = self.left_out.into_inner();
        if left_out > 0 {
            let message = format!("{left_out} further mistakes are not shown");
            kept.push(Mistake { message, unknown_field: false, ..last });
        }
        Some(Mistakes(kept))
    }

    fn note(&self, mut mistake: Mistake) {
        let mut kept = self.kept.borrow_mut();
        if kept.len() < MOST {
            // A message may repeat what its reader wrote.
            mistake.message = text::item(&mistake.message);
            kept.push(mistake);
        } else {
            let mut left_out = self.left_out.borrow_mut();
            *left_out = left_out.saturating_add(1);
        }
    }
}
