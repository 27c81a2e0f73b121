//! Text of Kubernetes manifests to the objects that kubectl would send, and from a field back to its place in the text.
//!
//! What it does: parts a text into documents as kubectl does, reads YAML by the rules of kubectl's reader (YAML 1.1 words,
//! merge keys), takes lists apart, and finds the line of a field. Invariant: an object comes out as the JSON text that the
//! API server would be sent, or there is a mistake with its line and column; nothing is left out silently.

use std::ops::Range;

use thiserror::Error;

mod documents;
mod edit;
mod json;
mod objects;
mod place;
mod scalar;
pub mod syntax;
mod tree;

pub use documents::{Document, Form, documents};
pub use edit::{Edit, edit_all};
pub use objects::{Object, objects};
pub use place::{Located, Places};

/// What keeps a text from being read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}, column {column}: {message}")]
pub struct Mistake {
    /// The line in the whole text, from 1.
    pub line: usize,
    /// The column, in characters, from 1.
    pub column: usize,
    /// What is wrong: lower case, no full stop.
    pub message: String,
}

/// Bytes of a text.
pub type Span = Range<usize>;

#[cfg(test)]
mod tests;
