//! What a draft of a finding leads to: the action of its rule, exemptions, and the treatment of what was there before.
//!
//! Invariant: nothing here makes a finding worse than the configuration says; each step may only spare.

use std::collections::HashSet;

use jiff::Timestamp;

use crate::config::{Exemption, Existing};
use crate::policy::decision::{Action, Finding, Rule, RuleId, Spared};
use crate::policy::judge::{Judged, Scene};
use crate::policy::rules::{self, Draft};
use crate::review::Operation;
use crate::workload::growth;

/// The annotation of a mirror Pod, which the kubelet makes for a static one.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// The group of kubelets. Anyone can write the annotation, nobody else this group.
const NODES: &str = "system:nodes";

/// All findings about one template.
pub(crate) fn findings(scene: &Scene<'_>, judged: &Judged<'_>, now: Timestamp) -> Vec<Finding> {
    let mut settled = Vec::new();
    let mut past: Option<Past> = None;
    for rule in RuleId::ALL {
        let action = scene.config.action(rule, &scene.request.namespace).min(scene.config.enforcement);
        if action == Action::Off {
            continue;
        }
        for draft in rules::check(rule, scene, judged) {
            let past = past.get_or_insert_with(|| Past::of(scene, judged));
            settled.push(settle(scene, judged, draft, action, past, now));
        }
    }
    settled
}

/// What the update does to the template, worked out once and only where there is a finding.
struct Past {
    /// Identities of the findings that the old object has.
    known: HashSet<String>,
    /// Whether the request makes new Pods of the template.
    makes_pods: bool,
}

impl Past {
    fn of(scene: &Scene<'_>, judged: &Judged<'_>) -> Self {
        if scene.request.operation != Operation::Update {
            return Self { known: HashSet::new(), makes_pods: true };
        }
        let Some(old) = scene.old_of(judged) else { return Self { known: HashSet::new(), makes_pods: true } };
        let drafts = RuleId::ALL.into_iter().flat_map(|rule| rules::check(rule, scene, old));
        let known = drafts.map(|draft| identity(old, &draft)).collect();
        let (new_root, old_root) = (&scene.request.object, &scene.request.old_object);
        // A controller that scales what it made is let through: it has nobody to show a refusal to, while the Pods that it
        // makes next are refused where people look, in the events of their owner.
        let raised =
            || !scene.by_controller && growth::raised(new_root, &judged.template, old_root, &old.template).is_some();
        let makes_pods = !scene.is_pod() && (growth::changed(&judged.template, Some(&old.template)) || raised());
        Self { known, makes_pods }
    }
}

fn settle(
    scene: &Scene<'_>,
    judged: &Judged<'_>,
    draft: Draft,
    action: Action,
    past: &Past,
    now: Timestamp,
) -> Finding {
    let identity = identity(judged, &draft);
    let (action, spared) = match spared(scene, draft.rule, &identity, past, now) {
        Some(spared @ Spared::Exempted(_)) => (action.min(Action::DryRun), Some(spared)),
        Some(spared) if action == Action::Deny => (Action::Warn, Some(spared)),
        _ => (action, None),
    };
    let Draft { rule, field, found, wanted, message, fix, repair, about: _ } = draft;
    let rule = Rule::BuiltIn(rule);
    Finding { rule, action, field, found, wanted, message, fix, repair, identity, spared }
}

fn identity(judged: &Judged<'_>, draft: &Draft) -> String {
    format!("{} {} {}", draft.rule, judged.template.identity, draft.about)
}

fn spared(scene: &Scene<'_>, rule: RuleId, identity: &str, past: &Past, now: Timestamp) -> Option<Spared> {
    if let Some(spared) = whatever_was_there(scene, rule.as_str(), now) {
        return Some(spared);
    }
    let known = past.known.contains(identity);
    // A closed pool takes no new Pods, whoever makes them and whatever was there.
    let keeps = scene.config.existing == Existing::Keep && rule != RuleId::PoolOpen;
    if known && (keeps || !past.makes_pods) {
        return Some(Spared::Existing);
    }
    (keeps && scene.by_controller).then_some(Spared::Kept)
}

/// What spares a finding of any rule, whatever the object was before.
pub(crate) fn whatever_was_there(scene: &Scene<'_>, rule: &str, now: Timestamp) -> Option<Spared> {
    let exemption = scene.config.exemptions.iter().find(|exemption| exempts(exemption, scene, rule, now));
    let exempted = exemption.map(|exemption| Spared::Exempted(exemption.reason.clone()));
    exempted.or_else(|| is_mirror(scene).then_some(Spared::MirrorPod))
}

fn is_mirror(scene: &Scene<'_>) -> bool {
    scene.is_pod()
        && scene.request.object.at(&["metadata", "annotations", MIRROR]).is_some()
        && scene.request.user.groups.iter().any(|group| group == NODES)
}

/// Whether everything that the exemption names matches, at this moment.
fn exempts(exemption: &Exemption, scene: &Scene<'_>, rule: &str, now: Timestamp) -> bool {
    let request = scene.request;
    let any = |globs: &[crate::config::glob::Glob], name: &str| {
        globs.is_empty() || globs.iter().any(|glob| glob.matches(name))
    };
    exemption.until.is_none_or(|until| now < until)
        && any(&exemption.rules, rule)
        && any(&exemption.namespaces, &request.namespace)
        && any(&exemption.users, &request.user.name)
        && (exemption.groups.is_empty()
            || request.user.groups.iter().any(|group| exemption.groups.iter().any(|glob| glob.matches(group))))
        && any(&exemption.workloads, &format!("{}/{}", request.kind.kind, request.shown_name()))
}
