//! What is wrong with a policy, and where.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A mistake of a policy's author, or something that they should know.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Problem {
    /// The key in the ConfigMap or the name of the file; empty where it is about the set as a whole.
    pub file: String,
    /// The line, from 1; 0 where it is about the file as a whole.
    pub line: u32,
    /// The column in characters, from 1; 0 where it is about the line as a whole.
    pub column: u32,
    /// What is wrong and what to do: lower case, no full stop.
    pub message: String,
}

impl Problem {
    /// A problem of a whole file.
    pub fn of_file(file: &str, message: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line: 0, column: 0, message: message.into() }
    }

    /// A problem of the set as a whole.
    pub fn of_set(message: impl Into<String>) -> Self {
        Self::of_file("", message)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.file.as_str(), self.line) {
            ("", _) => {}
            (file, 0) => write!(out, "{file}: ")?,
            (file, line) => write!(out, "{file}:{line}:{}: ", self.column)?,
        }
        out.write_str(&self.message)
    }
}
