//! `checkpoint-required`: a workload in a pool that demands it declares that it can be interrupted without loss.
//!
//! Shared cards have no fault isolation: the neighbour's crash ends everyone's work on the card.

use crate::policy::decision::RuleId;
use crate::policy::judge::{Judged, Scene};
use crate::policy::rules::{Draft, listed};

pub(super) fn check(scene: &Scene<'_>, judged: &Judged<'_>) -> Vec<Draft> {
    let declared = judged.class.checkpoint.as_ref();
    let satisfied = match declared {
        Some(declared) => declared.word != "false",
        None => judged.template.declared_elsewhere,
    };
    if satisfied {
        return Vec::new();
    }
    let key = scene.config.checkpoint_label.as_str();
    let wanted = &judged.template.label_path;
    let words =
        "\"true\" if it resumes from checkpoints, stateless if a failed attempt can be retried without losing data";
    let remedy = match declared {
        Some(declared) if declared.in_object => format!("change this to {words}"),
        _ => format!("add to {wanted} the label {key}: {words}"),
    };
    let demanding = judged.pools.iter().filter_map(|demand| Some((demand, scene.pool(demand.pool)?)));
    demanding
        .filter(|(_, pool)| pool.requires_checkpoint)
        .map(|(demand, pool)| {
            let resources = listed(&demand.resources);
            let (field, found, what) = match declared {
                Some(declared) => {
                    (declared.source.clone(), "false", "declares that it keeps no checkpoints".to_owned())
                }
                None => (
                    format!("{wanted}[{key}]"),
                    "",
                    format!("does not declare its checkpoints ({key}){}", misplaced(judged)),
                ),
            };
            Draft {
                rule: RuleId::CheckpointRequired,
                field,
                found: found.to_owned(),
                wanted: Some("true or stateless".to_owned()),
                message: format!("the workload asks for {resources} of pool {} and {what}", pool.name),
                fix: format!("{remedy}; else use an exclusive GPU"),
                repair: Vec::new(),
                about: format!("{}={found}", pool.name),
            }
        })
        .collect()
}

/// Why the rule finds nothing.
pub(super) fn passes(scene: &Scene<'_>, judged: &Judged<'_>) -> String {
    let pools = judged.pools.iter().filter_map(|demand| scene.pool(demand.pool));
    let demanding: Vec<&str> = pools.filter(|pool| pool.requires_checkpoint).map(|pool| pool.name.as_str()).collect();
    match (demanding.as_slice(), &judged.class.checkpoint) {
        ([], _) => "it asks for nothing of a pool that demands checkpoints".to_owned(),
        (pools, Some(declared)) => {
            format!("{} demands checkpoints, and {} is declared at {}", listed(pools), declared.word, declared.source)
        }
        (pools, None) => format!(
            "{} demands checkpoints, which another object may declare; the Pods are judged when they are made",
            listed(pools)
        ),
    }
}

fn misplaced(judged: &Judged<'_>) -> String {
    let [_, checkpoint] = &judged.class.misplaced;
    if checkpoint.is_empty() { String::new() } else { format!("; {}", checkpoint.join("; ")) }
}
