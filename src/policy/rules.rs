//! The built-in rules, one file each.
//!
//! What it does: asks each rule about a template and gathers its drafts of findings. Invariant: a rule says what it
//! complains of and nothing of what follows; actions, exemptions and the treatment of what exists come after.

use crate::policy::decision::{Change, RuleId};
use crate::policy::judge::{Judged, Scene};

mod checkpoint_required;
mod declaration_valid;
mod no_gpu_bypass;
mod no_latency_critical;
mod one_pool;
mod placement_matches_pool;
mod pool_open;
mod quantity_valid;
mod share_limit;

/// A finding before anyone decided what it leads to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Draft {
    pub(crate) rule: RuleId,
    pub(crate) field: String,
    pub(crate) found: String,
    pub(crate) wanted: Option<String>,
    pub(crate) message: String,
    pub(crate) fix: String,
    /// The one right repair, where there is exactly one.
    pub(crate) repair: Vec<Change>,
    /// The value without its spelling, and the container, for the identity.
    pub(crate) about: String,
}

/// What one rule has to say about a template.
pub(crate) fn check(rule: RuleId, scene: &Scene<'_>, judged: &Judged<'_>) -> Vec<Draft> {
    match rule {
        RuleId::ShareLimit => share_limit::check(scene, judged),
        RuleId::NoLatencyCritical => no_latency_critical::check(scene, judged),
        RuleId::CheckpointRequired => checkpoint_required::check(scene, judged),
        RuleId::DeclarationValid => declaration_valid::check(scene, judged),
        RuleId::OnePool => one_pool::check(scene, judged),
        RuleId::PlacementMatchesPool => placement_matches_pool::check(scene, judged),
        RuleId::PoolOpen => pool_open::check(scene, judged),
        RuleId::QuantityValid => quantity_valid::check(judged),
        RuleId::NoGpuBypass => no_gpu_bypass::check(judged),
    }
}

/// Why a rule that finds nothing about a template does not.
pub(crate) fn passes(rule: RuleId, scene: &Scene<'_>, judged: &Judged<'_>) -> String {
    match rule {
        RuleId::ShareLimit => share_limit::passes(scene, judged),
        RuleId::NoLatencyCritical => no_latency_critical::passes(scene, judged),
        RuleId::CheckpointRequired => checkpoint_required::passes(scene, judged),
        RuleId::DeclarationValid => declaration_valid::passes(judged),
        RuleId::OnePool => one_pool::passes(judged),
        RuleId::PlacementMatchesPool => placement_matches_pool::passes(scene, judged),
        RuleId::PoolOpen => pool_open::passes(scene, judged),
        RuleId::QuantityValid => quantity_valid::passes(judged),
        RuleId::NoGpuBypass => no_gpu_bypass::passes(judged),
    }
}

/// How many names one sentence holds.
const MOST_NAMES: usize = 8;

/// Names in a sentence: `a`, `a and b`, `a, b and c`. Of many the first ones, and how many more there are.
fn listed<T: AsRef<str>>(names: &[T]) -> String {
    match names {
        [] => String::new(),
        [first @ .., _] if first.len() >= MOST_NAMES => {
            let first: Vec<&str> = first.iter().take(MOST_NAMES).map(AsRef::as_ref).collect();
            format!("{} and {} more", first.join(", "), names.len().saturating_sub(MOST_NAMES))
        }
        [one] => one.as_ref().to_owned(),
        [first @ .., last] => {
            let first: Vec<&str> = first.iter().map(AsRef::as_ref).collect();
            format!("{} and {}", first.join(", "), last.as_ref())
        }
    }
}
