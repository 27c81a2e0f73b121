//! `no-latency-critical`: no latency-critical workload in, or placed on, a pool that does not admit it.
//!
//! A share is no reserved slice of the card: whoever else runs there decides how long an answer takes.

use crate::policy::decision::RuleId;
use crate::policy::judge::{Judged, Scene};
use crate::policy::rules::{Draft, listed};

pub(super) fn check(scene: &Scene<'_>, judged: &Judged<'_>) -> Vec<Draft> {
    let Some(source) = judged.class.critical() else { return Vec::new() };
    let refusing =
        judged.concerned().filter_map(|place| scene.pool(place).filter(|pool| !pool.admits_latency_critical));
    let label = &scene.config.latency_label;
    let critical = judged.class.latency.as_ref().filter(|declared| declared.word == "critical");
    let declared = critical.is_some();
    let remedy = match critical {
        Some(declared) if declared.in_object => "change this to tolerant".to_owned(),
        Some(_) => format!("label the workload {label}: tolerant"),
        None => "use another priority class".to_owned(),
    };
    let fix = format!("use an exclusive GPU, or {remedy} if slow answers harm nobody");
    refusing
        .map(|pool| {
            let asked: Vec<&str> = judged.pool_resources().collect();
            let how = if asked.is_empty() {
                "its placement leads there".to_owned()
            } else {
                format!("it asks for {}", listed(&asked))
            };
            Draft {
                rule: RuleId::NoLatencyCritical,
                field: source.clone(),
                found: "critical".to_owned(),
                wanted: declared.then(|| "tolerant".to_owned()),
                message: format!(
                    "the workload is latency-critical, and pool {} guarantees no compute ({how})",
                    pool.name
                ),
                fix: fix.clone(),
                repair: Vec::new(),
                about: format!("{}=critical", pool.name),
            }
        })
        .collect()
}

/// Why the rule finds nothing.
pub(super) fn passes(scene: &Scene<'_>, judged: &Judged<'_>) -> String {
    if judged.class.critical().is_none() {
        return "the workload is not latency-critical".to_owned();
    }
    let pools: Vec<&str> = judged.concerned().filter_map(|place| Some(scene.pool(place)?.name.as_str())).collect();
    match pools.as_slice() {
        [] => "it is latency-critical, and neither in a pool nor placed on one".to_owned(),
        pools => format!("it is latency-critical, and {} admits that", listed(pools)),
    }
}
