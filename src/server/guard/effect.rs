//! What an edit would have done to requests: the verdicts before and after it, and their difference in words.
//!
//! Invariant: pure but for the time, and every verdict is that of [`crate::policy`]: exemptions, enforcement and the treatment
//! of what exists count here as they do in earnest.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;

use super::policy::{Change, Old};
use crate::facts::Facts;
use crate::policy::decision::{Action, Decision, Rule};
use crate::policy::{Examined, Phase, Policy, Verdict};
use crate::rego::input::Context;
use crate::rego::outcome::{Failure, Outcome};
use crate::rego::program::Speaks;
use crate::rego::set::Settings;
use crate::review::response::line;
use crate::review::{self, Request};

/// The most requests that are told by name for each kind of difference.
const MAX_NAMED: usize = 8;

/// What changes from now on.
#[derive(Debug)]
pub(super) enum Effect {
    /// The configuration is this.
    Configuration(Box<Policy>),
    /// A set judges otherwise.
    Policy(Box<Change>),
}

/// A request that the old form of a set sees, or the new one.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) body: Bytes,
    pub(super) context: Context,
    pub(super) old: bool,
    pub(super) new: bool,
}

/// What differs, by what it was and what it will be.
#[derive(Debug, Default)]
pub(super) struct Differences {
    pub(super) seen: usize,
    kinds: BTreeMap<(Action, Action), Vec<String>>,
}

impl Candidate {
    /// Looks whether a change concerns a request.
    pub(super) fn of(body: &Bytes, change: &Change, policy: &Policy, facts: &Facts) -> Option<Self> {
        let request = review::decode(body).ok()?;
        let examined = Examined::new(Phase::Validate, &request, policy, facts);
        if !examined.concerns_policies() {
            return None;
        }
        let gpu = examined.involves_gpu();
        let fits = |settings: &Settings, speaks: Speaks| fits(settings, speaks, &request, facts, gpu);
        let new = change.new.as_ref().is_some_and(|(unit, speaks)| fits(&unit.set.settings, *speaks));
        let old = match &change.old {
            Old::Nothing => false,
            Old::Broken(settings) => fits(settings, Speaks { validates: true, mutates: false }),
            Old::InForce(unit, speaks) => fits(&unit.set.settings, *speaks),
        };
        (old || new).then(|| Self { body: body.clone(), context: examined.context(), old, new })
    }
}

fn fits(settings: &Settings, speaks: Speaks, request: &Request<'_>, facts: &Facts, gpu: bool) -> bool {
    let namespace = request.namespace.as_ref();
    speaks.validates
        && settings.action != Action::Off
        && settings.matches.may_match(request, gpu)
        && settings.matches.matches_namespace(namespace, facts.namespace(namespace))
}

impl Change {
    /// What the old form said, where it was asked.
    pub(super) fn before(&self, outcome: Option<Outcome>) -> Option<Verdict> {
        match &self.old {
            Old::Nothing => None,
            Old::Broken(settings) => {
                let outcome = Outcome { error: Some(Failure::NotLoaded), ..Outcome::default() };
                Some(self.verdict(Arc::clone(settings), outcome))
            }
            Old::InForce(unit, _) => Some(self.verdict(Arc::new(unit.set.settings.clone()), outcome?)),
        }
    }

    /// What the new form said, where it was asked.
    pub(super) fn after(&self, outcome: Option<Outcome>) -> Option<Verdict> {
        Some(self.verdict(Arc::new(self.new.as_ref()?.0.set.settings.clone()), outcome?))
    }

    fn verdict(&self, settings: Arc<Settings>, outcome: Outcome) -> Verdict {
        // Nobody is told the digest of a form in a replay.
        Verdict { set: Arc::clone(&self.name), digest: Arc::default(), settings, outcome }
    }
}

impl Differences {
    /// Compares what a set says before and after.
    pub(super) fn add_policy(&mut self, body: &[u8], sides: [Option<Verdict>; 2], policy: &Policy, facts: &Facts) {
        let Ok(request) = review::decode(body) else { return };
        let examined = Examined::new(Phase::Validate, &request, policy, facts);
        let now = Timestamp::now();
        let [before, after] = sides.map(|verdict| examined.decide(verdict.as_slice(), now));
        let built_in = before.of(Action::Deny).any(|finding| matches!(finding.rule, Rule::BuiltIn(_)));
        let of_set = |decision: &Decision| {
            let of_set = decision.findings.iter().filter(|finding| matches!(finding.rule, Rule::Policy(_)));
            of_set.map(|finding| finding.action).max().unwrap_or(Action::Off)
        };
        self.seen = self.seen.saturating_add(1);
        // What is refused in any case is refused no more and no less.
        if !built_in {
            self.note(&request, (&before, of_set(&before)), (&after, of_set(&after)), true);
        }
    }

    /// Compares what the built-in rules say under two configurations.
    pub(super) fn add_configuration(&mut self, body: &[u8], policies: [&Policy; 2], facts: &Facts) {
        let Ok(request) = review::decode(body) else { return };
        let now = Timestamp::now();
        let [before, after] =
            policies.map(|policy| crate::policy::decide(Phase::Validate, &request, policy, facts, &[], now));
        let level = |decision: &Decision| {
            let worst = decision.findings.iter().map(|finding| finding.action).max().unwrap_or(Action::Off);
            if decision.allowed() { worst } else { Action::Deny }
        };
        self.seen = self.seen.saturating_add(1);
        self.note(&request, (&before, level(&before)), (&after, level(&after)), false);
    }

    fn note(&mut self, request: &Request<'_>, before: (&Decision, Action), after: (&Decision, Action), policies: bool) {
        if before.1 == after.1 {
            return;
        }
        let (decision, level) = if after.1 > before.1 { after } else { before };
        let first = decision.of(level).find(|finding| matches!(finding.rule, Rule::Policy(_)) == policies);
        let why = first.map(line).or_else(|| decision.refusal.clone()).unwrap_or_default();
        let namespace = if request.namespace.is_empty() { String::new() } else { format!("{}/", request.namespace) };
        let subject = format!("{} {namespace}{}: {why}", request.kind.kind, request.shown_name());
        self.kinds.entry((before.1, after.1)).or_default().push(subject);
    }

    /// The differences as warnings: how many of each kind, then the requests by name.
    pub(super) fn tell(&self, subject: &str, wanted: usize) -> Vec<String> {
        if wanted == 0 {
            return Vec::new();
        }
        let (seen, cut) = (self.seen, self.seen < wanted);
        let requests = if seen == 1 { "recent request" } else { "recent requests" };
        let mut kinds: Vec<_> = self.kinds.iter().collect();
        kinds.sort_by_key(|((before, after), _)| std::cmp::Reverse((*after.max(before), after > before)));
        let counts: Vec<String> = kinds.iter().map(|(kind, all)| format!("{} {}", verb(**kind), all.len())).collect();
        let what = if counts.is_empty() { "nothing changes".to_owned() } else { counts.join(", ") };
        let mut told = Vec::new();
        if seen > 0 {
            told.push(format!("{subject}replayed on {seen} {requests}: {what}"));
        }
        if cut {
            told.push(format!("{subject}the replay was cut short by the deadline: {seen} of {wanted} were judged"));
        }
        for (kind, all) in kinds {
            told.extend(all.iter().take(MAX_NAMED).map(|one| format!("{} {one}", verb(*kind))));
            if let Some(left) = all.len().checked_sub(MAX_NAMED).filter(|left| *left > 0) {
                told.push(format!("{} {left} more", verb(*kind)));
            }
        }
        told
    }
}

fn verb((before, after): (Action, Action)) -> String {
    let word = |action| match action {
        Action::Deny => "deny",
        Action::Warn => "warn about",
        Action::DryRun => "record (dryrun)",
        Action::Off => "ignore",
    };
    if after > before { format!("would newly {}", word(after)) } else { format!("would no longer {}", word(before)) }
}
