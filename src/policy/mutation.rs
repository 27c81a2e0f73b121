//! What mutation adds: the pool's tolerations, its node labels, and a word on where they came from.
//!
//! What it does: names changes that only add, in a stable order. Invariant: after they are applied it names none, and what
//! is there is never removed, changed or moved.

use serde_json::{Value, json};

use crate::config::{InjectInto, Pool};
use crate::json::Json;
use crate::policy::decision::Change;
use crate::policy::judge::{Judged, Scene};
use crate::policy::toleration::{covers, shown, to_value};
use crate::review::Operation;
use crate::workload::Placed;
use crate::workload::path::{Path, push_token};

/// The annotation that says what was injected, and for which pool.
pub const INJECTED: &str = "slicegate.io/injected";

/// The changes to one template.
pub(crate) fn changes(scene: &Scene<'_>, judged: &Judged<'_>) -> Vec<Change> {
    let [demand] = judged.pools.as_slice() else { return Vec::new() };
    let Some(pool) = scene.pool(demand.pool).filter(|_| judged.ambiguous.is_empty()) else { return Vec::new() };
    // Only where the fields of the Pod stand in one place can adding to that place not hide another one.
    let [spec] = judged.template.levels.as_slice() else { return Vec::new() };
    if judged.template.aliases.iter().any(|(field, _)| matches!(*field, "tolerations" | "nodeSelector")) {
        return Vec::new();
    }
    if !reaches(scene, judged, pool) || judged.placement.node_name.is_some() {
        return Vec::new();
    }
    let mut changes = Vec::new();
    let mut fields = Vec::new();
    if pool.inject.tolerations {
        tolerations(spec, pool, &mut changes, &mut fields);
    }
    if pool.inject.node_selector && !of_daemon_set(scene) {
        node_selector(spec, pool, &mut changes, &mut fields);
    }
    if !changes.is_empty() && spec.path == judged.template.path.key("spec") {
        let note = json!({"pool": pool.name, "fields": fields}).to_string();
        changes.push(annotation(scene, &judged.template.path, &note));
    }
    changes
}

/// The pool's tolerations that no present one covers.
pub(crate) fn missing_tolerations<'p>(spec: &Placed<'_>, pool: &'p Pool) -> Vec<&'p crate::config::Toleration> {
    let present = spec.value.list("tolerations");
    pool.tolerations.iter().filter(|wanted| !present.iter().any(|present| covers(present, wanted))).collect()
}

/// Whether the pool's settings complete this object: Pods always, Jobs that are created suspended, or every template.
fn reaches(scene: &Scene<'_>, judged: &Judged<'_>, pool: &Pool) -> bool {
    let kind = &scene.request.kind;
    let suspended_job = || {
        (kind.group.as_ref(), kind.kind.as_ref()) == ("batch", "Job")
            && scene.request.object.at(&["spec", "suspend"]) == Some(&Json::Bool(true))
    };
    scene.request.operation == Operation::Create
        && (scene.is_pod()
            || (pool.inject.into >= InjectInto::SuspendedJobs && suspended_job())
            || (pool.inject.into == InjectInto::Templates && accepts_placement(&kind.group, judged)))
}

/// Knative refuses placement in its templates by default, and a template whose other half stands elsewhere cannot be
/// completed.
fn accepts_placement(group: &str, judged: &Judged<'_>) -> bool {
    group != "serving.knative.dev" && !judged.template.declared_elsewhere
}

/// A DaemonSet's controller names the node itself, by affinity.
fn of_daemon_set(scene: &Scene<'_>) -> bool {
    let owners = scene.request.object.get("metadata").map_or(&[][..], |metadata| metadata.list("ownerReferences"));
    scene.request.kind.kind == "DaemonSet"
        || owners
            .iter()
            .any(|owner| owner.text("kind") == Some("DaemonSet") && owner.get("controller") == Some(&Json::Bool(true)))
}

/// What gives a PodSpec the pool's tolerations.
pub(super) fn tolerations(spec: &Placed<'_>, pool: &Pool, changes: &mut Vec<Change>, fields: &mut Vec<String>) {
    let path = spec.path.key("tolerations");
    let missing = missing_tolerations(spec, pool);
    fields.extend(missing.iter().map(|toleration| format!("{path}[{}]", shown(toleration))));
    let values = missing.into_iter().map(to_value);
    match spec.value.get("tolerations") {
        None => changes.extend(whole(path.pointer(), values.collect::<Vec<Value>>())),
        Some(Json::Array(_)) => {
            let end = format!("{}/-", path.pointer());
            changes.extend(values.map(|value| Change { pointer: end.clone(), value }));
        }
        // Something that is no list is refused by the API server; the author should see that and no patch.
        Some(_) => {}
    }
}

/// What gives a PodSpec the pool's node labels.
pub(super) fn node_selector(spec: &Placed<'_>, pool: &Pool, changes: &mut Vec<Change>, fields: &mut Vec<String>) {
    let path = spec.path.key("nodeSelector");
    let present = spec.value.get("nodeSelector");
    let missing = pool.node_selector.iter().filter(|(key, _)| present.is_none_or(|present| present.get(key).is_none()));
    let missing: Vec<(&String, &String)> = missing.collect();
    if present.is_some_and(|present| present.as_object().is_none()) || missing.is_empty() {
        return;
    }
    fields.extend(missing.iter().map(|(key, _)| path.key(key).to_string()));
    if present.is_none() {
        let value = missing.into_iter().map(|(key, value)| (key.clone(), value.as_str().into()));
        changes.push(Change { pointer: path.pointer(), value: Value::Object(value.collect()) });
    } else {
        changes.extend(
            missing
                .into_iter()
                .map(|(key, value)| Change { pointer: path.key(key).pointer(), value: value.as_str().into() }),
        );
    }
}

fn annotation(scene: &Scene<'_>, template: &Path<'_>, note: &str) -> Change {
    let mut pointer = format!("{}/metadata", template.pointer());
    let mut value = Value::from(note);
    let here = template.resolve(&scene.request.object).unwrap_or(&Json::Null);
    match (here.get("metadata"), here.at(&["metadata", "annotations"])) {
        (None, _) => value = json!({"annotations": {INJECTED: value}}),
        (Some(_), None) => {
            pointer.push_str("/annotations");
            value = json!({INJECTED: value});
        }
        (Some(_), Some(_)) => {
            pointer.push_str("/annotations");
            push_token(&mut pointer, INJECTED);
        }
    }
    Change { pointer, value }
}

fn whole(pointer: String, values: Vec<Value>) -> Option<Change> {
    (!values.is_empty()).then_some(Change { pointer, value: Value::Array(values) })
}
