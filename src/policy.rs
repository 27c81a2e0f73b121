//! The verdict: [`decide`] is the only way to one.
//!
//! Invariant: the outcome depends on the arguments alone. No clock, no network, no order of maps.

use std::cmp::Reverse;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::facts::Facts;
use crate::json::Json;
use crate::policy::decision::{Action, Decision, Finding};
use crate::policy::judge::{Judged, Scene};
use crate::rego::input::Context;
use crate::review::{Operation, Request};
use crate::workload::kinds::MOST_TEMPLATES;

pub mod decision;
pub mod explain;
pub mod judge;
pub mod patches;
pub mod toleration;
pub mod verdict;

mod bookkeeping;
mod existing;
mod mutation;
mod notes;
mod rules;

pub use mutation::INJECTED;
pub use verdict::Verdict;

/// What is in force: a configuration and its digest. One request sees one.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// The configuration.
    pub config: Config,
    /// SHA-256 of the configuration's text, in hex; `default` for the embedded one.
    pub digest: String,
}

/// Which of the two calls is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Phase {
    /// `/mutate`: completes, never denies.
    Mutate,
    /// `/validate`: judges the final object.
    Validate,
}

/// Judges a request, or says what to add to its object, from what was found by policy sets besides.
///
/// A template is judged as its Pods would come out of mutation. For the built-in rules that is the template as it stands:
/// mutation adds only what contradicts nothing, and nothing to a Pod that is refused.
pub fn decide(
    phase: Phase,
    request: &Request<'_>,
    policy: &Policy,
    facts: &Facts,
    sets: &[Verdict],
    now: Timestamp,
) -> Decision {
    Examined::new(phase, request, policy, facts).decide(sets, now)
}

/// A request that is looked into and not decided yet: what tells which policy sets it concerns and what they see.
#[derive(Debug)]
pub struct Examined<'s> {
    phase: Phase,
    scene: Scene<'s>,
    /// Whether rules have anything to say at all.
    judged: bool,
    templates: Vec<Judged<'s>>,
}

impl<'s> Examined<'s> {
    /// Looks into a request.
    pub fn new(phase: Phase, request: &'s Request<'s>, policy: &'s Policy, facts: &'s Facts) -> Self {
        let scene = Scene::new(&policy.config, facts, request);
        let judged = is_judged(phase, request);
        let templates = if judged { scene.judge() } else { Vec::new() };
        Self { phase, scene, judged, templates }
    }

    /// The request.
    pub fn request(&self) -> &'s Request<'s> {
        self.scene.request
    }

    /// Whether a workload of it demands a GPU resource, is placed on a pool, or declares a class.
    pub fn involves_gpu(&self) -> bool {
        self.templates.iter().any(|judged| judged.is_involved() || judged.class.is_declared())
    }

    /// Whether policy sets have anything to look at. Updates that change nothing but bookkeeping are in nobody's way, and
    /// neither is what the subresources do that controllers and kubelets need.
    pub fn concerns_policies(&self) -> bool {
        let request = self.scene.request;
        match request.operation {
            Operation::Update => self.judged && bookkeeping::changes_more(&request.old_object, &request.object),
            Operation::Create => self.judged,
            Operation::Delete => self.phase == Phase::Validate && request.sub_resource.is_empty(),
            Operation::Connect => self.phase == Phase::Validate,
        }
    }

    /// Whether the verdict of the built-in rules may depend on the labels of the request's Namespace. They are the class of
    /// what asks for GPUs or is placed on a pool and does not declare all of it by itself; nothing else reads them.
    pub fn reads_namespace(&self) -> bool {
        self.templates.iter().any(|judged| judged.is_involved() && judged.class.is_open())
    }

    /// What policy sets see beside the review.
    pub fn context(&self) -> Context {
        Context::of(&self.scene, &self.templates)
    }

    /// Decides.
    pub fn decide(&self, sets: &[Verdict], now: Timestamp) -> Decision {
        let scene = &self.scene;
        let mut decision = Decision { subject: subject(scene.request), ..Decision::default() };
        let built_in = self.templates.iter().flat_map(|judged| existing::findings(scene, judged, now));
        let mut findings: Vec<Finding> = built_in.collect();
        for verdict in sets {
            verdict.settle(scene, self.phase, now, &mut findings, &mut decision);
        }
        // Sorting is stable: within an action the findings keep the order of the templates and of the rules.
        findings.sort_by_key(|finding| Reverse(finding.action));
        decision.findings = findings;
        decision.refusal = decision.refusal.or_else(|| too_many(scene, &self.templates));
        match self.phase {
            Phase::Validate => {
                let notes = self.templates.iter().flat_map(|judged| notes::notes(scene, judged));
                decision.notes.extend(notes);
            }
            Phase::Mutate => {
                if decision.allowed() {
                    decision.changes = changes(scene, &self.templates);
                }
                decision.findings.clear();
            }
        }
        decision
    }
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

/// An object with more templates than are judged is refused, unless it was there before.
fn too_many(scene: &Scene<'_>, templates: &[Judged<'_>]) -> Option<String> {
    let refused = templates.len() > MOST_TEMPLATES
        && scene.old.len() <= MOST_TEMPLATES
        && scene.config.enforcement == Action::Deny;
    refused.then(|| {
        format!(
            "the object carries more than {MOST_TEMPLATES} templates of Pods, which is more than are judged; split it"
        )
    })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::review;

    fn refusal(operation: &str, templates: usize, old: usize, enforcement: Action) -> Option<String> {
        let object = |count| format!(r#"{{"spec":{{"templates":[{}]}}}}"#, vec![r#"{"script":1}"#; count].join(","));
        let body = format!(
            r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"u","kind":{{"group":"argoproj.io","kind":"Workflow"}},"operation":"{operation}","object":{},"oldObject":{}}}}}"#,
            object(templates),
            object(old)
        );
        let policy = Policy { config: Config { enforcement, ..Config::default() }, digest: String::new() };
        let request = review::decode(body.as_bytes()).unwrap();
        decide(Phase::Validate, &request, &policy, &Facts::default(), &[], Timestamp::UNIX_EPOCH).refusal
    }

    #[test]
    fn more_templates_than_are_judged_are_refused_once() {
        let many = MOST_TEMPLATES + 1;
        assert_eq!(refusal("CREATE", MOST_TEMPLATES, 0, Action::Deny), None);
        assert!(refusal("CREATE", many, 0, Action::Deny).unwrap().contains("4096 templates"));
        assert!(refusal("UPDATE", many, 1, Action::Deny).is_some());
        assert_eq!(refusal("UPDATE", many, many, Action::Deny), None);
        assert_eq!(refusal("CREATE", many, 0, Action::Warn), None);
    }
}
