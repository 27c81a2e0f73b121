//! The verdict: [`decide`] is the only way to one.
//!
//! Invariant: the outcome depends on the arguments alone. No clock, no network, no order of maps.

use std::cmp::Reverse;

use jiff::Timestamp;

use crate::config::Config;
use crate::facts::Facts;
use crate::json::Json;
use crate::policy::decision::{Decision, Finding};
use crate::policy::judge::{Judged, Scene};
use crate::review::{Operation, Request};

pub mod decision;
pub mod judge;
pub mod toleration;

mod existing;
mod mutation;
mod notes;
mod rules;

pub use mutation::INJECTED;

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
///
/// A template is judged as its Pods would come out of mutation. For the built-in rules that is the template as it stands:
/// mutation adds only what contradicts nothing, and nothing to a Pod that is refused.
pub fn decide(phase: Phase, request: &Request<'_>, policy: &Policy, facts: &Facts, now: Timestamp) -> Decision {
    let mut decision = Decision { subject: subject(request), ..Decision::default() };
    if !is_judged(phase, request) {
        return decision;
    }
    let scene = Scene::new(&policy.config, facts, request);
    let templates = scene.judge();
    let mut findings: Vec<Finding> =
        templates.iter().flat_map(|judged| existing::findings(&scene, judged, now)).collect();
    // Sorting is stable: within an action the findings keep the order of the templates and of the rules.
    findings.sort_by_key(|finding| Reverse(finding.action));
    decision.findings = findings;
    match phase {
        Phase::Validate => decision.notes = templates.iter().flat_map(|judged| notes::notes(&scene, judged)).collect(),
        Phase::Mutate => {
            if decision.allowed() {
                decision.changes = changes(&scene, &templates);
            }
            decision.findings.clear();
        }
    }
    decision
}

/// Whether the verdict may depend on the labels of the request's Namespace. They are the class of what asks for GPUs or is
/// placed on a pool, and nothing else reads them.
pub fn reads_namespace(phase: Phase, request: &Request<'_>, policy: &Policy, facts: &Facts) -> bool {
    is_judged(phase, request) && Scene::new(&policy.config, facts, request).judge().iter().any(Judged::is_involved)
}

/// Whether a rule could have anything to say: objects that are made or changed, and the two subresources that change a
/// Pod's containers. Deleting, binding, evicting and scaling are in nobody's way. Only what is new is completed.
fn is_judged(phase: Phase, request: &Request<'_>) -> bool {
    let operation = match request.operation {
        Operation::Create => true,
        Operation::Update => phase == Phase::Validate,
        Operation::Delete | Operation::Connect => false,
    };
    operation && matches!(request.sub_resource.as_ref(), "" | "ephemeralcontainers" | "resize")
}

fn changes(scene: &Scene<'_>, templates: &[Judged<'_>]) -> Vec<decision::Change> {
    templates.iter().flat_map(|judged| mutation::changes(scene, judged)).collect()
}

/// The object in words, and the owner whose template it was made from.
fn subject(request: &Request<'_>) -> String {
    let namespace = if request.namespace.is_empty() { String::new() } else { format!("{}/", request.namespace) };
    let subject = format!("{} {namespace}{}", request.kind.kind, request.shown_name());
    let owners = request.object.get("metadata").map_or(&[][..], |metadata| metadata.list("ownerReferences"));
    let controller = owners.iter().find(|owner| owner.get("controller") == Some(&Json::Bool(true)));
    match controller.and_then(|owner| Some((owner.text("kind")?, owner.text("name")?))) {
        Some((kind, name)) => format!("{subject}, made from the template of {kind} {name}, where it is to be mended"),
        None => subject,
    }
}
