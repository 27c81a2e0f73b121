//! The outcome of judging one request: findings, notes and changes.
//!
//! Invariant: a [`Decision`] is a value without any reference to the request; who may see which part of it is decided by
//! whoever writes the response, the log and the metrics.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// What a finding leads to. The words are Gatekeeper's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// The rule does not look.
    Off,
    /// Recorded only.
    DryRun,
    /// The user is told; the request goes on.
    Warn,
    /// The request is refused.
    Deny,
}

impl Action {
    /// All of them, the least first.
    pub const ALL: [Self; 4] = [Self::Off, Self::DryRun, Self::Warn, Self::Deny];

    /// The word of the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::DryRun => "dryrun",
            Self::Warn => "warn",
            Self::Deny => "deny",
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// The built-in rules. The ids are stable: configurations, logs and dashboards name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "each rule's own file says what it demands")]
pub enum RuleId {
    ShareLimit,
    NoLatencyCritical,
    CheckpointRequired,
    DeclarationValid,
    OnePool,
    PlacementMatchesPool,
    PoolOpen,
    QuantityValid,
    NoGpuBypass,
}

impl RuleId {
    /// All rules, in the order in which findings are shown.
    pub const ALL: [Self; 9] = [
        Self::QuantityValid,
        Self::ShareLimit,
        Self::NoLatencyCritical,
        Self::CheckpointRequired,
        Self::DeclarationValid,
        Self::OnePool,
        Self::PlacementMatchesPool,
        Self::PoolOpen,
        Self::NoGpuBypass,
    ];

    /// The id, in kebab case.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ShareLimit => "share-limit",
            Self::NoLatencyCritical => "no-latency-critical",
            Self::CheckpointRequired => "checkpoint-required",
            Self::DeclarationValid => "declaration-valid",
            Self::OnePool => "one-pool",
            Self::PlacementMatchesPool => "placement-matches-pool",
            Self::PoolOpen => "pool-open",
            Self::QuantityValid => "quantity-valid",
            Self::NoGpuBypass => "no-gpu-bypass",
        }
    }

    /// The action where the configuration names none.
    pub fn default_action(self) -> Action {
        if self == Self::NoGpuBypass { Action::Warn } else { Action::Deny }
    }
}

impl fmt::Display for RuleId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// A rule: one of the built-in ones, or one of a policy set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rule {
    /// Built in.
    BuiltIn(RuleId),
    /// A set's, as `set/rule`.
    Policy(Arc<str>),
}

impl Rule {
    /// The id in messages, logs and exemptions.
    pub fn as_str(&self) -> &str {
        match self {
            Self::BuiltIn(id) => id.as_str(),
            Self::Policy(id) => id,
        }
    }

    /// The id for metrics, whose labels are a closed set.
    pub fn label(&self) -> &'static str {
        match self {
            Self::BuiltIn(id) => id.as_str(),
            Self::Policy(_) => "policy",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// One rule's complaint about one place of the object.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// What the finding leads to, after the configuration, exemptions and the treatment of what exists.
    pub action: Action,
    /// The field, as the user wrote it, such as `spec.containers[0].resources.limits[nvidia.com/gpu.shared]`.
    pub field: String,
    /// The value found there.
    pub found: String,
    /// The value wanted, where there is one.
    pub wanted: Option<String>,
    /// What is wrong: lower case, no full stop.
    pub message: String,
    /// What to do about it, likewise.
    pub fix: String,
    /// The one right repair, where there is exactly one: additions that take the place of what is there.
    pub repair: Vec<Change>,
    /// What makes it the same finding in the old object: template, container and value, but no spelling.
    pub identity: String,
    /// Why it does not refuse, where it would by itself.
    pub spared: Option<Spared>,
}

/// What the user should know beside the findings.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Note {
    /// The field that it is about; empty where it is about none.
    pub field: String,
    /// A sentence that names the field as well.
    pub text: String,
    /// The one right repair, where there is exactly one.
    pub repair: Vec<Change>,
}

impl From<String> for Note {
    fn from(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

/// Why a finding that would refuse does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spared {
    /// An exemption of the configuration, with its reason.
    Exempted(String),
    /// The object had it before, and the request makes no new Pods that carry it.
    Existing,
    /// A controller made it for what exists, and `existing: Keep` lets that go on.
    Kept,
    /// A mirror Pod stands for a static one, which runs whether its mirror is refused or not.
    MirrorPod,
}

/// One change that mutation makes. All of them add what is not there; only the word on where additions came from takes the
/// place of an older one.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Where, as a JSON pointer.
    pub pointer: String,
    /// What is added there.
    pub value: serde_json::Value,
}

/// The outcome of judging one request.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Decision {
    /// All findings, those of the worst action first, then in the order of the rules and of the object.
    pub findings: Vec<Finding>,
    /// What the user should know beside the findings.
    pub notes: Vec<Note>,
    /// Changes to the object; filled by the mutating call only.
    pub changes: Vec<Change>,
    /// Why the request is refused whatever the findings: the deadline came before the verdict was whole.
    pub refusal: Option<String>,
    /// The policy sets that were asked, each with the digest of the form of it that is in force.
    pub policies: Vec<(Arc<str>, Arc<str>)>,
    /// The object in words, such as `Pod team-blue/embedder-5d9c-*, made by ReplicaSet embedder-5d9c`.
    pub subject: String,
}

impl Decision {
    /// Whether the request goes on.
    pub fn allowed(&self) -> bool {
        self.refusal.is_none() && self.of(Action::Deny).next().is_none()
    }

    /// What the webhooks do, in a word: `denied`, `warned` or `allowed`.
    pub fn verdict(&self) -> &'static str {
        if !self.allowed() {
            "denied"
        } else if !self.notes.is_empty() || self.of(Action::Warn).next().is_some() {
            "warned"
        } else {
            "allowed"
        }
    }

    /// The findings with one action.
    pub fn of(&self, action: Action) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |finding| finding.action == action)
    }
}
