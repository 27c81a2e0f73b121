//! Tells, without the engine, that a set has nothing to say about a request.
//!
//! What it does: walks the bodies of simple rules over the request as it was read, and stops at the first thing that it is not
//! sure of. What it does not: find anything; a rule that may have something to say is the engine's. Invariant: where it says
//! that a set is silent, the engine would have come to nothing, without an error and within its budget.

use serde::{Deserialize, Serialize};

use crate::json::Json;
use crate::policy::Phase;
use crate::review::Request;

mod walk;

use walk::Walk;

/// Numbers of fewer digits than this, without an exponent, are what every reader can read.
const MAX_DIGITS: usize = 300;

/// The rules of a set as far as they can be told without the engine.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Screen {
    /// The bodies of all rules that are asked in the validating call; nothing where some of them cannot be told.
    pub validate: Option<Vec<Body>>,
    /// The same of the mutating call.
    pub mutate: Option<Vec<Body>>,
    /// The rules and functions that they ask whether something is so. Each has something to ask only of those before it.
    pub helpers: Vec<Vec<Body>>,
}

/// The statements of a body in the order in which the engine takes them.
pub type Body = Vec<Step>;

/// One statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// Goes on with each element of a collection.
    Each {
        /// The collection.
        of: Term,
        /// The variable that holds the key or the index.
        key: Option<usize>,
        /// The variable that holds the element.
        element: usize,
        /// Whether what is no collection is an error; otherwise it has no elements.
        strict: bool,
    },
    /// Sets a variable, if there is a value.
    Let(usize, Term),
    /// Goes on if this is so.
    Holds(Term),
    /// Goes on if this is not so.
    Fails(Term),
    /// Does something that only the engine knows.
    Unknown,
}

/// A value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Term {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Number(i64),
    /// A text.
    Text(String),
    /// An array or a set of the four above.
    List(Vec<Term>),
    /// What is never there.
    Undefined,
    /// What stands at a path.
    At(Root, Vec<String>),
    /// A comparison.
    Compare(Comparison, Box<Term>, Box<Term>),
    /// Whether the second one holds the first one.
    In(Box<Term>, Box<Term>),
    /// A builtin.
    Call(Builtin, Vec<Term>),
    /// `true`, where one of a helper's bodies is so for these arguments.
    Ask(usize, Vec<Term>),
}

/// Where a path begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Root {
    /// A variable.
    Local(usize),
    /// `input.request.object`
    Object,
    /// `input.request.oldObject`
    OldObject,
    /// `input` of a set that asks for the bare object.
    Input,
    /// `input.request.operation`
    Operation,
    /// `input.request.kind.kind`
    Kind,
    /// `input.request.namespace`
    Namespace,
    /// `input.request.name`
    Name,
    /// `input.request.userInfo.username`
    User,
}

/// How two values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names are the engine's, and say all")]
pub enum Comparison {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

/// Builtins that are simple enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names are Rego's, and say all")]
pub enum Builtin {
    StartsWith,
    EndsWith,
    Contains,
    Count,
    Get,
    IsArray,
    IsBoolean,
    IsNull,
    IsNumber,
    IsObject,
    IsString,
    ToNumber,
}

impl Screen {
    /// Whether the set has nothing to say about this request; where it does not know, it says no.
    pub fn is_silent(&self, phase: Phase, request: &Request<'_>) -> bool {
        let bodies = match phase {
            Phase::Validate => &self.validate,
            Phase::Mutate => &self.mutate,
        };
        let Some(bodies) = bodies else { return false };
        let mut walk = Walk::new(request, &self.helpers);
        bodies.iter().all(|body| walk.run(body).is_ok_and(|comes_to_something| !comes_to_something))
    }
}

/// Whether nothing in the request is more than the engine's values can hold.
pub fn is_plain(request: &Request<'_>) -> bool {
    plain(&request.object) && plain(&request.old_object)
}

fn plain(json: &Json<'_>) -> bool {
    match json {
        Json::Number(literal) => literal.len() <= MAX_DIGITS && !literal.contains(['e', 'E']),
        Json::Array(elements) => elements.iter().all(plain),
        Json::Object(members) => members.iter().all(|(_, member)| plain(member)),
        Json::Null | Json::Bool(_) | Json::String(_) => true,
    }
}

#[cfg(test)]
mod tests;
