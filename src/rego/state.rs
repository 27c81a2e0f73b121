//! What is in force of each set, and what there is to say about it.
//!
//! Invariant: it is told from what is in force, never from what was asked for.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::policy::decision::Action;
use crate::rego::problem::Problem;
use crate::rego::set::{Key, Syntax};
use crate::rego::unit::Unit;

/// Where a set stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum State {
    /// It is in force as it is written.
    Loaded,
    /// It is bad as it is written; its last good form is in force.
    LastGood,
    /// It is bad, and there is no last good form of it.
    Rejected,
    /// It is in force as it is written, and the webhook configurations send nothing that it matches.
    NotRouted,
}

impl State {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Loaded, Self::LastGood, Self::Rejected, Self::NotRouted];

    /// The word in `/policies`, status and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Loaded => "Loaded",
            Self::LastGood => "LastGood",
            Self::Rejected => "Rejected",
            Self::NotRouted => "NotRouted",
        }
    }
}

/// One set as the product reports it: the element of `GET /policies`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SetReport {
    /// Where it comes from.
    #[serde(flatten)]
    pub key: Key,
    /// The digest of what is in force; of what is offered where nothing is.
    pub digest: String,
    /// Where it stands.
    pub state: State,
    /// How far its findings go.
    pub action: Action,
    /// The language of its modules.
    pub engine: &'static str,
    /// How many modules are in force, libraries not counted.
    pub modules: usize,
    /// What keeps it from being loaded as it is written.
    pub errors: Vec<Problem>,
    /// What its author should know.
    pub warnings: Vec<Problem>,
    /// What is in force.
    #[serde(skip)]
    pub in_force: Option<Arc<Unit>>,
    /// The digest of what is offered.
    #[serde(skip)]
    pub offered: String,
}

/// The word for the language.
pub fn engine(syntax: Syntax) -> &'static str {
    match syntax {
        Syntax::V1 => "rego.v1",
        Syntax::V0 => "rego.v0",
    }
}
