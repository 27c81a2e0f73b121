//! `share-limit`: no more shares per container and per Pod than the pool allows.
//!
//! The device plugin's `failRequestsGreaterThanOne` refuses the same only on the node, after scheduling, and a ReplicaSet
//! then creates failing Pods without end.

use crate::config::{Pool, Sharing};
use crate::json::Json;
use crate::policy::decision::{Change, RuleId};
use crate::policy::judge::{Judged, PoolDemand, Scene};
use crate::policy::rules::{Draft, listed};
use crate::quantity::Quantity;
use crate::workload::demand::{Ask, Asker};
use crate::workload::{Placed, Role};

pub(super) fn check(scene: &Scene<'_>, judged: &Judged<'_>) -> Vec<Draft> {
    let mut drafts = Vec::new();
    for demand in &judged.pools {
        let Some(pool) = scene.pool(demand.pool) else { continue };
        let over = |ask: &&Ask<'_>| {
            matches!(ask.asker, Asker::Container(_))
                && pool.per_container.is_some_and(|limit| ask.count > u128::from(limit))
        };
        let greedy: Vec<&Ask<'_>> = demand.asks.iter().filter(over).collect();
        drafts.extend(greedy.iter().map(|ask| container(judged, pool, demand, ask)));
        // A container that alone is the whole excess was named already.
        let told = greedy.iter().any(|ask| ask.count >= demand.total);
        if pool.per_pod.is_some_and(|limit| demand.total > u128::from(limit)) && !told {
            drafts.push(whole_pod(judged, pool, demand));
        }
    }
    drafts
}

/// Why the rule finds nothing.
pub(super) fn passes(scene: &Scene<'_>, judged: &Judged<'_>) -> String {
    let within = judged.pools.iter().filter_map(|demand| {
        let pool = scene.pool(demand.pool)?;
        let limit = |limit: Option<u64>| limit.map_or("any number".to_owned(), |limit| format!("at most {limit}"));
        let (container, pod) = (limit(pool.per_container), limit(pool.per_pod));
        let most = demand.asks.iter().map(|ask| ask.count).max().unwrap_or(0);
        let total = demand.total;
        let name = &pool.name;
        Some(format!("pool {name} allows {container} per container (here {most}) and {pod} per Pod (here {total})"))
    });
    let within: Vec<String> = within.collect();
    if within.is_empty() { "it asks for nothing of a pool".to_owned() } else { within.join("; ") }
}

fn container(judged: &Judged<'_>, pool: &Pool, demand: &PoolDemand<'_>, ask: &Ask<'_>) -> Draft {
    let limit = pool.per_container.unwrap_or(u64::MAX);
    let who = judged.asker(ask.asker);
    let spelled = ask.spelling();
    let count = if ask.count == u128::MAX { "more than can be counted".to_owned() } else { ask.count.to_string() };
    let written = if spelled == ask.count.to_string() { String::new() } else { format!(" (written {spelled:?})") };
    Draft {
        rule: RuleId::ShareLimit,
        field: ask.value.path.to_string(),
        found: spelled,
        wanted: Some(limit.to_string()),
        message: format!(
            "{who} asks for {count}{written} of {}, and pool {} allows {limit} per container",
            listed(&demand.resources),
            pool.name
        ),
        fix: format!("set it to {limit}{}", advice(pool)),
        repair: lowered(judged, demand, ask, limit),
        about: format!("{who}={}", ask.count),
    }
}

/// The limit in the place of every count of the container that is above it: Kubernetes wants limits and requests of a
/// device to be equal. Where several resources lead to the pool, which of them to lower is the author's choice.
fn lowered(judged: &Judged<'_>, demand: &PoolDemand<'_>, ask: &Ask<'_>, limit: u64) -> Vec<Change> {
    let ([resource], Asker::Container(place), 1..) = (demand.resources.as_slice(), ask.asker, limit) else {
        return Vec::new();
    };
    let Some(container) = judged.template.containers.get(place) else { return Vec::new() };
    let sides = ["limits", "requests"].into_iter().filter_map(|side| container.resources.as_ref()?.member(side));
    let counts = sides.filter_map(|side| side.member(resource));
    let outside = container.gpu.iter().filter(|(name, _)| name == resource).map(|(_, value)| value.clone());
    let above = |value: &Json<'_>| {
        let count = Quantity::from_json(value).ok().and_then(|quantity: Quantity| quantity.ceil());
        count.is_none_or(|count| count > u128::from(limit))
    };
    let number = |value: &Json<'_>| matches!(value, Json::Number(_));
    let counts = counts.chain(outside).filter(|count| above(count.value));
    let lower = |count: Placed<'_>| Change {
        pointer: count.path.pointer(),
        value: if number(count.value) { limit.into() } else { limit.to_string().into() },
    };
    counts.map(lower).collect()
}

fn whole_pod(judged: &Judged<'_>, pool: &Pool, demand: &PoolDemand<'_>) -> Draft {
    let limit = pool.per_pod.unwrap_or(u64::MAX);
    let holders = holders(judged, demand);
    let askers: Vec<String> =
        holders.iter().take(8).map(|ask| format!("{}: {}", judged.asker(ask.asker), ask.count)).collect();
    let alone = demand.asks.iter().find(|ask| ask.asker == Asker::Pod && ask.count >= demand.total);
    let spec = || judged.template.levels.first().map_or(&judged.template.path, |level| &level.path);
    Draft {
        rule: RuleId::ShareLimit,
        field: alone.map_or_else(spec, |ask| &ask.value.path).to_string(),
        found: demand.total.to_string(),
        wanted: Some(limit.to_string()),
        message: format!(
            "the Pod as a whole holds {} of {} at once ({}), and pool {} allows {limit} per Pod",
            demand.total,
            listed(&demand.resources),
            askers.join(", "),
            pool.name
        ),
        fix: format!("ask for {limit} in all{}", advice(pool)),
        repair: Vec::new(),
        about: format!("pod={}", demand.total),
    }
}

/// Those who hold the total at one time: an init container counts only where the phase of it is the greater one, and the
/// Pod's own resources only where they are more than its containers'.
fn holders<'j>(judged: &Judged<'_>, demand: &'j PoolDemand<'j>) -> Vec<&'j Ask<'j>> {
    let role = |ask: &Ask<'_>| match ask.asker {
        Asker::Container(place) => judged.template.containers.get(place).map(|container| container.role),
        Asker::Pod | Asker::Overhead => None,
    };
    let pod = demand.asks.iter().filter(|ask| matches!(ask.asker, Asker::Pod | Asker::Overhead));
    let run = demand.asks.iter().filter(|ask| ask.asker != Asker::Pod && role(ask) != Some(Role::Init));
    let all: Vec<&Ask<'_>> = demand.asks.iter().collect();
    let sums_up =
        |asks: &[&Ask<'_>]| asks.iter().fold(0_u128, |sum, ask| sum.saturating_add(ask.count)) == demand.total;
    [pod.collect::<Vec<_>>(), run.collect()].into_iter().find(|asks| sums_up(asks)).unwrap_or(all)
}

fn advice(pool: &Pool) -> &'static str {
    match pool.sharing {
        Sharing::TimeSlicing | Sharing::Mps => {
            " (two shares do not buy twice the compute), or ask for an exclusive GPU"
        }
        Sharing::Mig | Sharing::Exclusive => "",
    }
}
