//! Static checks of policies: what the engine would not say, or would say only when it is too late.
//!
//! What it does: `brackets` reads texts before they are parsed; `check` reads the modules that the engine parsed and names
//! what would end the process, silence a rule, or make two replicas disagree. Invariant: pure, and the same problems in the
//! same order for the same modules.

use std::collections::{BTreeMap, BTreeSet};

use regorus::Value;
use regorus::unstable::{Module, Ref};

use super::problem::Problem;

pub mod brackets;
mod builtins;
mod calls;
mod constants;
mod cycles;
mod documents;
mod heads;
mod inputs;
mod model;
mod names;
mod position;
pub mod rules;
pub mod screen;
mod walk;

use model::Model;

/// Problems of one kind that are handed on; a set with more has one mistake many times.
const MAX_PROBLEMS: usize = 100;

/// What is checked: parsed modules of one set together with the libraries that it imports.
pub struct Unit<'a> {
    /// The set's own modules and, after them, its libraries' and its tests', as the engine parsed them.
    pub modules: &'a [Ref<Module>],
    /// Files that are libraries of other ConfigMaps: not blamed for lacking known rules.
    pub libraries: &'a BTreeSet<String>,
    /// Files that are tests (`*_test.rego`).
    pub tests: &'a BTreeSet<String>,
    /// Whether the set itself is a library.
    pub is_library: bool,
    /// Whether rules with a suffix (`deny_x`) count in every package (`input: object`), not only in package `main`.
    pub suffixes_everywhere: bool,
    /// The data documents by name: `data.<name>`.
    pub data: &'a BTreeMap<String, Value>,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Report {
    /// What refuses the set.
    pub errors: Vec<Problem>,
    /// What its author should know.
    pub warnings: Vec<Problem>,
}

/// Checks one set.
pub fn check(unit: &Unit<'_>) -> Report {
    let model = Model::of(unit);
    let mut report = Report::default();
    calls::check(&model, &mut report);
    constants::check(&model, &mut report);
    cycles::check(&model, &mut report);
    names::check(&model, &mut report);
    documents::check(unit, &model, &mut report);
    heads::check(unit, &model, &mut report);
    inputs::check(unit, &model, &mut report);
    tidy(&mut report.errors);
    tidy(&mut report.warnings);
    report
}

fn tidy(problems: &mut Vec<Problem>) {
    problems.sort();
    problems.dedup();
    problems.truncate(MAX_PROBLEMS);
}

#[cfg(test)]
mod tests;
