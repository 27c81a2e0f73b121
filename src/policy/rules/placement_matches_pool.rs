//! `placement-matches-pool`: nodeSelector, required node affinity and nodeName do not contradict the pool that the demand
//! names; and demand that could mean several pools says by placement which.

use crate::policy::decision::RuleId;
use crate::policy::judge::{Judged, PoolDemand, Scene};
use crate::policy::rules::{Draft, listed};
use crate::workload::demand::ResourceDemand;

pub(super) fn check(scene: &Scene<'_>, judged: &Judged<'_>) -> Vec<Draft> {
    let mut drafts: Vec<Draft> =
        judged.pools.iter().filter_map(|demand| contradiction(scene, judged, demand)).collect();
    if drafts.is_empty() {
        drafts.extend(elsewhere(scene, judged));
    }
    let unclear = judged.ambiguous.iter().filter_map(|place| judged.demand.resources.get(*place));
    drafts.extend(unclear.map(|demand| unplaced(scene, judged, demand).unwrap_or_else(|| ambiguous(scene, demand))));
    drafts
}

/// Why the rule finds nothing.
pub(super) fn passes(scene: &Scene<'_>, judged: &Judged<'_>) -> String {
    let pools: Vec<String> = judged
        .concerned()
        .filter_map(|place| Some(format!("{} ({})", scene.pool(place)?.name, shown_labels(scene, place))))
        .collect();
    match pools.as_slice() {
        [] => "it is neither in a pool nor placed on one".to_owned(),
        pools => format!("nothing in its placement keeps it from {}", listed(pools)),
    }
}

fn contradiction(scene: &Scene<'_>, judged: &Judged<'_>, demand: &PoolDemand<'_>) -> Option<Draft> {
    let pool = scene.pool(demand.pool)?;
    let contradiction = judged.placement.contradicts(&pool.node_selector, scene.facts)?;
    let labels = shown_labels(scene, demand.pool);
    Some(Draft {
        rule: RuleId::PlacementMatchesPool,
        message: format!(
            "{} keeps the Pod from every node of pool {} ({labels}), which {} leads to",
            if contradiction.found.is_empty() { "it" } else { contradiction.found.as_str() },
            pool.name,
            listed(&demand.resources)
        ),
        fix: format!("ask for {labels}, or for the resource of the pool that is meant"),
        repair: Vec::new(),
        about: format!("{}={}", pool.name, contradiction.found),
        wanted: Some(labels),
        field: contradiction.field,
        found: contradiction.found,
    })
}

/// Placed on one pool without asking for any of its resources, but for a GPU of another kind.
fn elsewhere(scene: &Scene<'_>, judged: &Judged<'_>) -> Vec<Draft> {
    let within = |place: &usize| judged.pools.iter().any(|demand| demand.pool == *place);
    let mut drafts = Vec::new();
    for place in judged.placed_on.iter().filter(|place| !within(place)) {
        let Some(pool) = scene.pool(*place) else { continue };
        for demand in &judged.demand.resources {
            let Some(ask) = demand.asks.first() else { continue };
            drafts.push(Draft {
                rule: RuleId::PlacementMatchesPool,
                field: ask.value.path.to_string(),
                found: demand.resource.to_owned(),
                wanted: None,
                message: format!(
                    "the Pod is placed on pool {}, and {} is none of its resources",
                    pool.name, demand.resource
                ),
                fix: format!(
                    "ask for a resource of the pool, or remove the placement on {}",
                    shown_labels(scene, *place)
                ),
                repair: Vec::new(),
                about: format!("{}={}", pool.name, demand.resource),
            });
        }
    }
    drafts
}

/// Demand that could mean several pools, while the placement keeps the Pod from all of them.
fn unplaced(scene: &Scene<'_>, judged: &Judged<'_>, demand: &ResourceDemand<'_>) -> Option<Draft> {
    let mut contradictions = Vec::new();
    let mut pools = Vec::new();
    for place in scene.config.pools_of_resource(demand.resource) {
        let pool = scene.pool(place)?;
        contradictions.push(judged.placement.contradicts(&pool.node_selector, scene.facts)?);
        pools.push(format!("{} ({})", pool.name, shown_labels(scene, place)));
    }
    let contradiction = contradictions.into_iter().next()?;
    Some(Draft {
        rule: RuleId::PlacementMatchesPool,
        message: format!(
            "{:?} keeps the Pod from every node of the pools {}, to one of which {} leads",
            contradiction.found,
            listed(&pools),
            demand.resource
        ),
        fix: "place the Pod on the pool that is meant".to_owned(),
        repair: Vec::new(),
        about: format!("unplaced={}={}", demand.resource, contradiction.found),
        wanted: None,
        field: contradiction.field,
        found: contradiction.found,
    })
}

fn ambiguous(scene: &Scene<'_>, demand: &ResourceDemand<'_>) -> Draft {
    let pools = scene.config.pools_of_resource(demand.resource);
    let choices: Vec<String> = pools
        .filter_map(|place| Some(format!("{} ({})", scene.pool(place)?.name, shown_labels(scene, place))))
        .collect();
    let field = demand.asks.first().map(|ask| ask.value.path.to_string()).unwrap_or_default();
    Draft {
        rule: RuleId::PlacementMatchesPool,
        field,
        found: demand.resource.to_owned(),
        wanted: None,
        message: format!(
            "{} leads to the pools {}, and nothing says which is meant",
            demand.resource,
            listed(&choices)
        ),
        fix: "add the nodeSelector of the pool that is meant".to_owned(),
        repair: Vec::new(),
        about: format!("ambiguous={}", demand.resource),
    }
}

fn shown_labels(scene: &Scene<'_>, place: usize) -> String {
    let pool = scene.pool(place);
    let labels = pool.into_iter().flat_map(|pool| &pool.node_selector);
    let labels: Vec<String> = labels.map(|(key, value)| format!("{key}: {value}")).collect();
    labels.join(", ")
}
