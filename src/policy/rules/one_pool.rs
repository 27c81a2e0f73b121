//! `one-pool`: one Pod does not demand resources of two pools, since no node belongs to both.

use crate::policy::decision::RuleId;
use crate::policy::judge::{Judged, Scene};
use crate::policy::rules::{Draft, listed};

pub(super) fn check(scene: &Scene<'_>, judged: &Judged<'_>) -> Vec<Draft> {
    let [first, rest @ ..] = judged.pools.as_slice() else { return Vec::new() };
    if rest.is_empty() {
        return Vec::new();
    }
    let asked: Vec<String> = judged
        .pools
        .iter()
        .filter_map(|demand| Some(format!("{} of pool {}", listed(&demand.resources), scene.pool(demand.pool)?.name)))
        .collect();
    let field = rest.iter().chain([first]).find_map(|demand| demand.asks.first());
    vec![Draft {
        rule: RuleId::OnePool,
        field: field.map(|ask| ask.value.path.to_string()).unwrap_or_default(),
        found: listed(&asked),
        wanted: None,
        message: format!("one Pod asks for {}, and no node belongs to two pools", listed(&asked)),
        fix: "ask for the resource of one pool, or split the work into two Pods".to_owned(),
        repair: Vec::new(),
        about: asked.join(", "),
    }]
}

/// Why the rule finds nothing.
pub(super) fn passes(judged: &Judged<'_>) -> String {
    if judged.pools.is_empty() {
        return "it asks for nothing of a pool".to_owned();
    }
    "all that it asks for is of one pool".to_owned()
}
