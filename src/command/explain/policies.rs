//! Which policy sets were asked about an object, and which of their lines were reached.
//!
//! Invariant: lines are found out by the process that evaluates sets, under their budget; where that fails, the verdict
//! stands all the same and no lines are shown.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use regex::Regex;
use regorus::Value;
use serde::Serialize;

use super::super::check::rules::Ruled;
use crate::policies::Active;
use crate::policy::Examined;
use crate::policy::decision::{Action, Decision};
use crate::rego::input::{Context, Input};
use crate::rego::set::Syntax;
use crate::rego::testing::{Coverage, Options};
use crate::rego::unit::Unit;
use crate::rego::value::Keys;
use crate::review::Request;
use crate::workers::protocol::Check;

/// The package of the test by which lines are found out.
const PACKAGE: &str = "slicegate_explain_test";

/// A policy set and one object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Policy {
    pub(super) set: String,
    pub(super) action: &'static str,
    /// Whether it was asked.
    pub(super) asked: bool,
    /// Why it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) why: Option<&'static str>,
    /// What it found, each with how far it goes.
    pub(super) findings: Vec<String>,
    /// The lines of its modules that were reached, such as `3, 5-7`.
    pub(super) reached: BTreeMap<String, String>,
}

/// What each set in force had to do with a request.
pub(super) fn asked(
    in_force: &Ruled,
    request: &Request<'_>,
    body: &[u8],
    examined: &Examined<'_>,
    decision: &Decision,
) -> Vec<Policy> {
    let (rules, facts) = (in_force.app.rules(), in_force.app.facts());
    let policies = rules.sets.active.iter().map(|set| {
        let labels = facts.namespace(&request.namespace);
        let why = mismatch(set, request, examined).or_else(|| {
            let fits = set.matches_namespace(&request.namespace, labels);
            (!fits).then_some("has a namespaceSelector that does not fit")
        });
        let prefix = format!("{}/", set.name);
        let own = decision.findings.iter().filter(|finding| finding.rule.as_str().starts_with(&prefix));
        let findings = own.map(|finding| {
            let field = if finding.field.is_empty() { String::new() } else { format!("{}: ", finding.field) };
            format!("{} {}: {field}{}", finding.action, finding.rule, finding.message)
        });
        let reached = if why.is_none() { reached(in_force, set, body, &examined.context()) } else { BTreeMap::new() };
        Policy {
            set: set.name.to_string(),
            action: set.settings.action.as_str(),
            asked: why.is_none(),
            why,
            findings: findings.collect(),
            reached,
        }
    });
    policies.collect()
}

fn mismatch(set: &Active, request: &Request<'_>, examined: &Examined<'_>) -> Option<&'static str> {
    if set.settings.action == Action::Off {
        return Some("is off");
    }
    if !(set.speaks.validates || set.speaks.mutates) {
        return Some("has no rule that is asked");
    }
    if !examined.concerns_policies() {
        return Some("is not asked about such a request");
    }
    set.settings.matches.mismatch(request, examined.involves_gpu())
}

/// The lines that the set's packages reach with this input.
fn reached(in_force: &Ruled, set: &Arc<Active>, body: &[u8], context: &Context) -> BTreeMap<String, String> {
    let Some(unit) = set.installed.as_ref().and_then(|installed| traced(installed.unit(), body, context)) else {
        return BTreeMap::new();
    };
    let tests = Options { coverage: true, filter: Some(PACKAGE.to_owned()) };
    let check = Check { tests: Some(tests), ..Check::of(unit) };
    let checked = in_force.runtime.block_on(in_force.app.workers.check(&check));
    let Some(Coverage { files }) = checked.tests.and_then(|tests| tests.coverage) else { return BTreeMap::new() };
    let lines = files.into_iter().map(|(file, lines)| (file, ranges(&lines.covered)));
    lines.filter(|(_, lines)| !lines.is_empty()).collect()
}

/// The set with a test that evaluates its packages on the input.
fn traced(unit: &Unit, body: &[u8], context: &Context) -> Option<Unit> {
    let mut set = unit.set.clone();
    let parameters = set.data.get("parameters").map_or_else(|| "{}".to_owned(), ToString::to_string);
    let parameters = Value::from_json_str(&parameters).ok()?;
    let input = Input::new(body, context, &mut Keys::default()).ok()?.of(set.settings.input, &parameters);
    let input = input.to_json_str().ok()?;
    let package = Regex::new(r"(?m)^\s*package\s+([A-Za-z_][A-Za-z0-9_.]*)").ok()?;
    let packages: BTreeSet<&str> =
        set.modules.values().filter_map(|text| Some(package.captures(text)?.get(1)?.as_str())).collect();
    let begins = if set.settings.syntax == Syntax::V0 { "{" } else { "if {" };
    let tests: Vec<String> = packages
        .iter()
        .enumerate()
        .map(|(number, package)| {
            format!("test_{number} {begins}\n\tcount([x | x := data.{package} with input as {input}]) >= 0\n}}\n")
        })
        .collect();
    set.tests.clear();
    set.tests.insert(format!("{PACKAGE}.rego"), format!("package {PACKAGE}\n\n{}", tests.join("\n")));
    let libraries = unit.libraries.clone();
    Some(Unit { set, libraries, digest: unit.digest.clone() })
}

/// Numbers as ranges.
fn ranges(lines: &BTreeSet<u32>) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for line in lines {
        match ranges.last_mut() {
            Some((_, end)) if end.checked_add(1) == Some(*line) => *end = *line,
            _ => ranges.push((*line, *line)),
        }
    }
    let shown =
        ranges.into_iter().map(|(start, end)| if start == end { start.to_string() } else { format!("{start}-{end}") });
    shown.collect::<Vec<_>>().join(", ")
}
