//! `pool-open`: nothing new enters a draining pool and nothing grows there; nothing at all is made in a closed one.
//!
//! On a rollback one first stops new placement, then drains. What controllers make for what is there goes on while a pool
//! drains; they are known by the request's user, never by ownerReferences, which anyone can write.

use crate::config::PoolState;
use crate::policy::decision::RuleId;
use crate::policy::judge::{Judged, PoolDemand, Scene};
use crate::policy::rules::{Draft, listed};
use crate::review::Operation;
use crate::workload::growth;

pub(super) fn check(scene: &Scene<'_>, judged: &Judged<'_>) -> Vec<Draft> {
    judged.pools.iter().filter_map(|demand| closed(scene, judged, demand)).collect()
}

/// Why the rule finds nothing.
pub(super) fn passes(scene: &Scene<'_>, judged: &Judged<'_>) -> String {
    let pools = judged.pools.iter().filter_map(|demand| scene.pool(demand.pool));
    let states: Vec<String> = pools
        .map(|pool| match pool.state {
            PoolState::Open => format!("pool {} is Open", pool.name),
            PoolState::Draining => {
                format!("pool {} is Draining, and the workload was there and does not grow", pool.name)
            }
            PoolState::Closed => format!("pool {} is Closed", pool.name),
        })
        .collect();
    if states.is_empty() { "it asks for nothing of a pool".to_owned() } else { states.join("; ") }
}

fn closed(scene: &Scene<'_>, judged: &Judged<'_>, demand: &PoolDemand<'_>) -> Option<Draft> {
    let pool = scene.pool(demand.pool)?;
    let asked = demand.asks.first()?.value.path.to_string();
    let (state, (field, what), fix) = match pool.state {
        PoolState::Open => return None,
        PoolState::Draining => (
            "Draining",
            draining(scene, judged, demand, asked)?,
            "use another pool, or wait until this one is open again; what runs may shrink and be deleted",
        ),
        PoolState::Closed => (
            "Closed",
            (asked, "no Pods are made in it, by controllers neither"),
            "use another pool; what runs may shrink and be deleted",
        ),
    };
    Some(Draft {
        rule: RuleId::PoolOpen,
        field,
        found: listed(&demand.resources),
        wanted: None,
        message: format!("pool {} is {state}: {what}", pool.name),
        fix: fix.to_owned(),
        repair: Vec::new(),
        about: format!("{}={state}", pool.name),
    })
}

/// What is new about the workload in a draining pool and by which field, nothing where it was there as it is.
fn draining(
    scene: &Scene<'_>,
    judged: &Judged<'_>,
    demand: &PoolDemand<'_>,
    asked: String,
) -> Option<(String, &'static str)> {
    let was_in = |old: &&Judged<'_>| old.pools.iter().any(|old| old.pool == demand.pool);
    match (scene.request.operation, scene.old_of(judged).filter(was_in)) {
        (Operation::Create, _) if scene.by_controller => None,
        (Operation::Create, _) => Some((asked, "no new workload enters it")),
        (Operation::Update, None) => Some((asked, "no workload that was not in it enters it")),
        (Operation::Update, Some(old)) => {
            let (new_root, old_root) = (&scene.request.object, &scene.request.old_object);
            let more = old.pools.iter().any(|old| old.pool == demand.pool && old.total < demand.total);
            let raised = || growth::raised(new_root, &judged.template, old_root, &old.template);
            let field = if more { Some(asked) } else { raised().filter(|_| !scene.by_controller) };
            field.map(|field| (field, "no workload in it grows"))
        }
        _ => None,
    }
}
