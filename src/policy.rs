//! The verdict: [`decide`] is the only way to one.
//!
//! Invariant: the outcome depends on the arguments alone. No clock, no network, no order of maps.

use jiff::Timestamp;

use crate::config::Config;
use crate::facts::Facts;
use crate::review::Request;

pub mod decision;

use decision::Decision;

/// What is in force: a configuration and its digest. One request sees one.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// The configuration.
    pub config: Config,
    /// SHA-256 of the configuration's text, in hex; `default` for the embedded one.
    pub digest: String,
}

/// Which of the two calls is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// `/mutate`: completes, never denies.
    Mutate,
    /// `/validate`: judges the final object.
    Validate,
}

/// Judges a request, or says what to add to its object.
pub fn decide(_phase: Phase, request: &Request<'_>, _policy: &Policy, _facts: &Facts, _now: Timestamp) -> Decision {
    Decision { subject: request.shown_name(), ..Decision::default() }
}
