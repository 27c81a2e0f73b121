//! The pools of a configuration.

use super::super::glob::Glob;
use super::super::{Inject, InjectInto, Pool, PoolState, Sharing};
use super::claims::{self, Claimant};
use super::log::Log;
use super::value::{Fields, Value};
use super::words::shown;
use super::{globs, names, nodes};

/// The most pools.
pub(in crate::config) const MOST: usize = 256;

pub(in crate::config) const SHARING: [(&str, Sharing); 4] = [
    ("TimeSlicing", Sharing::TimeSlicing),
    ("MPS", Sharing::Mps),
    ("MIG", Sharing::Mig),
    ("Exclusive", Sharing::Exclusive),
];
pub(in crate::config) const STATES: [(&str, PoolState); 3] =
    [("Open", PoolState::Open), ("Draining", PoolState::Draining), ("Closed", PoolState::Closed)];
pub(in crate::config) const INTO: [(&str, InjectInto); 3] =
    [("Pods", InjectInto::Pods), ("SuspendedJobs", InjectInto::SuspendedJobs), ("Templates", InjectInto::Templates)];

/// Reads the list of pools.
pub(super) fn read(list: &Value<'_>, log: &Log) -> Vec<Pool> {
    let items = list.items("a list of pools").unwrap_or_default();
    if items.len() > MOST {
        list.mistake(&format!("{} pools are more than {MOST}", items.len()));
        return Vec::new();
    }
    let mut claimants: Vec<Claimant<'_>> = Vec::new();
    let mut names: Vec<(&str, usize)> = Vec::new();
    for item in &items {
        let before = log.count();
        let Some(fields) =
            item.fields(&FIELDS, "a pool, such as {name: shared, sharing: TimeSlicing, resources: [...]}")
        else {
            continue;
        };
        if let Some((value, name)) = name(&fields) {
            if let Some((_, line)) = names.iter().find(|(other, _)| *other == name) {
                value.mistake(&format!("the pool on line {line} is named {} as well", shown(name)));
            }
            names.push((name, value.line()));
        }
        let mut claimant = read_pool(&fields);
        claimant.sure = log.count() == before;
        claimants.push(claimant);
    }
    claims::check(&claimants);
    claimants.into_iter().map(|claimant| claimant.pool).collect()
}

pub(in crate::config) const FIELDS: [&str; 9] =
    ["name", "sharing", "state", "resources", "nodes", "limits", "inject", "admit", "default"];
pub(in crate::config) const LIMITS: [&str; 2] = ["perContainer", "perPod"];
pub(in crate::config) const INJECT: [&str; 3] = ["tolerations", "nodeSelector", "into"];
pub(in crate::config) const ADMIT: [&str; 2] = ["latencyCritical", "requireCheckpoint"];

fn name<'t>(fields: &Fields<'t>) -> Option<(Value<'t>, &'t str)> {
    let value = fields.require("name", "a pool needs a name that messages can use")?;
    let name = value.checked("a pool's name", crate::names::dns_label)?;
    Some((value, name))
}

fn read_pool<'t>(fields: &Fields<'t>) -> Claimant<'t> {
    let sharing = fields.require("sharing", "one of TimeSlicing, MPS, MIG, Exclusive");
    let sharing = sharing.and_then(|value| value.word(&SHARING)).unwrap_or(Sharing::TimeSlicing);
    let mut pool = Pool::with_defaults(sharing);
    if let Some(name) = fields.get("name").and_then(|value| value.text("a name")) {
        name.clone_into(&mut pool.name);
    }
    if let Some(state) = fields.get("state").and_then(|value| value.word(&STATES)) {
        pool.state = state;
    }
    let claims = resources(fields);
    pool.resources = claims.iter().map(|(_, glob)| glob.clone()).collect::<Vec<Glob>>();
    if let Some(value) = fields.get("nodes") {
        nodes::read(&value, &mut pool);
    }
    if let Some(value) = fields.get("limits") {
        limits(&value, &mut pool);
    }
    if let Some(value) = fields.get("inject") {
        inject(&value, &mut pool.inject);
    }
    if let Some(value) = fields.get("admit") {
        admit(&value, &mut pool);
    }
    let default = fields.get("default").filter(|value| value.flag() == Some(true));
    pool.default = default.is_some();
    Claimant { pool, claims, default, sure: true }
}

fn resources<'t>(fields: &Fields<'t>) -> Vec<globs::Located<'t>> {
    let needed = "the extended resources that lead to the pool, such as [nvidia.com/gpu.shared]";
    let Some(list) = fields.require("resources", needed) else { return Vec::new() };
    if list.is_empty_list() {
        list.mistake("the list is empty, so nothing leads to the pool; name its extended resources");
        return Vec::new();
    }
    globs::read(&list, "an extended resource or a glob of some", names::resource_glob)
}

fn limits(value: &Value<'_>, pool: &mut Pool) {
    let Some(fields) = value.fields(&LIMITS, "limits, such as {perContainer: 1, perPod: 1}") else {
        return;
    };
    let container = fields.get_or_null("perContainer");
    let pod = fields.get_or_null("perPod");
    let read = [(&container, &mut pool.per_container), (&pod, &mut pool.per_pod)]
        .map(|(value, limit)| value.as_ref().is_none_or(|value| read_limit(value, limit)));
    let Some(per_pod) = pool.per_pod.filter(|_| read == [true, true]) else { return };
    match (pool.per_container, container, pod) {
        (Some(per_container), _, Some(pod)) if per_container > per_pod => {
            pod.mistake(&format!(
                "{per_pod} is less than perContainer, which is {per_container}; no Pod could use that"
            ));
        }
        (Some(per_container), Some(container), None) if per_container > per_pod => {
            let default = format!("perPod, which is {per_pod} where it is not given; set perPod as well");
            container.mistake(&format!("{per_container} is more than {default}"));
        }
        (None, Some(container), None) => {
            container
                .mistake(&format!("no limit here, and {per_pod} for perPod, which is not given; set perPod as well"));
        }
        _ => {}
    }
}

/// Reads a limit, where null is none; whether there was no mistake.
fn read_limit(value: &Value<'_>, limit: &mut Option<u64>) -> bool {
    let wanted = "a whole number from 1, or null for no limit";
    let number = if value.is_null() { None } else { value.number(wanted) };
    match number.map(|number| (number, u64::try_from(number))) {
        None if !value.is_null() => return false,
        None => *limit = None,
        Some((_, Ok(number))) if number > 0 => *limit = Some(number),
        Some((0, _)) => {
            value.mistake(&format!("wanted {wanted}, found 0; to let nothing in, write state: Closed"));
            return false;
        }
        Some((number, _)) => {
            value.mistake(&format!("wanted {wanted}, found {number}"));
            return false;
        }
    }
    true
}

fn inject(value: &Value<'_>, inject: &mut Inject) {
    let wanted = "what mutation adds, such as {tolerations: true, nodeSelector: true, into: Pods}";
    let Some(fields) = value.fields(&INJECT, wanted) else { return };
    let flag = |name: &str, default: bool| fields.get(name).and_then(|value| value.flag()).unwrap_or(default);
    inject.tolerations = flag("tolerations", inject.tolerations);
    inject.node_selector = flag("nodeSelector", inject.node_selector);
    inject.into = fields.get("into").and_then(|value| value.word(&INTO)).unwrap_or(inject.into);
}

fn admit(value: &Value<'_>, pool: &mut Pool) {
    let wanted = "whom the pool admits, such as {latencyCritical: false, requireCheckpoint: true}";
    let Some(fields) = value.fields(&ADMIT, wanted) else { return };
    let flag = |name: &str, default: bool| fields.get(name).and_then(|value| value.flag()).unwrap_or(default);
    pool.admits_latency_critical = flag("latencyCritical", pool.admits_latency_critical);
    pool.requires_checkpoint = flag("requireCheckpoint", pool.requires_checkpoint);
}
