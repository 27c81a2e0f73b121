//! What a policy set said, and what it leads to.
//!
//! What it does: turns complaints and errors of sets into findings, as far as the set's own action and the configuration let
//! them go. Invariant: a set can add findings and never take one away; its error obeys `on-error`, and is shown in any case.

use std::sync::Arc;

use jiff::Timestamp;

use crate::config::{Existing, OnDeadline};
use crate::policy::Phase;
use crate::policy::decision::{Action, Decision, Finding, Rule, Spared};
use crate::policy::existing;
use crate::policy::judge::Scene;
use crate::rego::outcome::{Complaint, Failure, Outcome};
use crate::rego::set::{OnError, Settings};

/// What one set said about one request.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// The set's name in messages.
    pub set: Arc<str>,
    /// The digest of the form of it that was asked.
    pub digest: Arc<str>,
    /// What its annotations say.
    pub settings: Arc<Settings>,
    /// What came of it.
    pub outcome: Outcome,
}

impl Verdict {
    /// Adds the set's findings.
    pub(super) fn settle(
        &self,
        scene: &Scene<'_>,
        phase: Phase,
        now: Timestamp,
        findings: &mut Vec<Finding>,
        decision: &mut Decision,
    ) {
        decision.policies.push((Arc::clone(&self.set), Arc::clone(&self.digest)));
        let limit = self.settings.action.min(scene.config.enforcement);
        for complaint in &self.outcome.complaints {
            let action = if complaint.warns { limit.min(Action::Warn) } else { limit };
            findings.push(self.finding(scene, complaint, action, now));
        }
        let Some(failure) = &self.outcome.error else { return };
        let refuses = match failure {
            Failure::Deadline => scene.config.on_deadline == OnDeadline::Deny,
            _ => self.settings.on_error == OnError::Deny,
        };
        let action = if refuses { limit } else { limit.min(Action::Warn) };
        let complaint = Complaint {
            rule: "error".to_owned(),
            warns: false,
            message: format!("the policy {}", failure.explain()),
            path: String::new(),
            fix: "tell the platform team; this is no fault of the object".to_owned(),
        };
        match phase {
            Phase::Validate => findings.push(self.finding(scene, &complaint, action, now)),
            Phase::Mutate => {
                let note = format!("nothing of policy {} was added: it {}", self.set, failure.explain());
                decision.notes.push(note.into());
            }
        }
    }

    fn finding(&self, scene: &Scene<'_>, complaint: &Complaint, action: Action, now: Timestamp) -> Finding {
        let rule = format!("{}/{}", self.set, complaint.rule);
        let kept = || {
            let keeps = scene.config.existing == Existing::Keep && scene.by_controller;
            keeps.then_some(Spared::Kept)
        };
        let (action, spared) = match existing::whatever_was_there(scene, &rule, now).or_else(kept) {
            Some(spared @ Spared::Exempted(_)) => (action.min(Action::DryRun), Some(spared)),
            Some(spared) if action == Action::Deny => (Action::Warn, Some(spared)),
            _ => (action, None),
        };
        let identity = format!("{rule} {} {}", complaint.path, complaint.message);
        let (field, message, fix) = (complaint.path.clone(), complaint.message.clone(), complaint.fix.clone());
        let rule = Rule::Policy(rule.into());
        Finding {
            rule,
            action,
            field,
            found: String::new(),
            wanted: None,
            message,
            fix,
            repair: Vec::new(),
            identity,
            spared,
        }
    }
}
