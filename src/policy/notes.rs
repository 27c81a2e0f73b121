//! What the user should know beside findings: what is not judged, and what mutation cannot do.
//!
//! Invariant: a note never refuses, and is given once, when the template is new or changes.

use crate::policy::decision::Note;
use crate::policy::judge::{Judged, Scene};
use crate::policy::mutation::{self, missing_tolerations};
use crate::policy::toleration::to_value;
use crate::review::Operation;
use crate::workload::growth;

/// The notes on one template.
pub(crate) fn notes(scene: &Scene<'_>, judged: &Judged<'_>) -> Vec<Note> {
    let old = scene.old_of(judged).map(|old| &old.template);
    if scene.request.operation == Operation::Update && !growth::changed(&judged.template, old) {
        return Vec::new();
    }
    let unreadable = judged.template.notes.iter().map(|note| Note {
        field: note.path.to_string(),
        text: format!("{} {}", note.path, note.text),
        repair: Vec::new(),
    });
    claims(scene, judged).into_iter().chain(daemon_set(scene, judged)).chain(unreadable).collect()
}

/// Devices that come by dynamic resource allocation have no count that could be read here.
fn claims(scene: &Scene<'_>, judged: &Judged<'_>) -> Option<Note> {
    let claims = judged.template.field("resourceClaims")?;
    let names = judged.concerned().filter_map(|place| scene.pool(place)).map(|pool| pool.name.as_str());
    let pools: Vec<&str> = names.collect();
    let listed = claims.value.as_array().is_some_and(|claims| !claims.is_empty());
    (listed && !pools.is_empty()).then(|| {
        let (field, pools) = (claims.path.to_string(), pools.join(", "));
        let text = format!("{field}: devices that come through resourceClaims are not judged for pool {pools}");
        Note { field, text, repair: Vec::new() }
    })
}

/// A DaemonSet's controller reads tolerations and nodeSelector of its template before it makes Pods, so that injection comes
/// too late.
fn daemon_set(scene: &Scene<'_>, judged: &Judged<'_>) -> Option<Note> {
    if scene.request.kind.kind != "DaemonSet" {
        return None;
    }
    let [demand] = judged.pools.as_slice() else { return None };
    let pool = scene.pool(demand.pool)?;
    let spec = judged.template.levels.first()?;
    let (mut missing, mut repair, mut fields) = (Vec::new(), Vec::new(), Vec::new());
    if pool.inject.tolerations {
        let tolerations: serde_json::Value = missing_tolerations(spec, pool).into_iter().map(to_value).collect();
        mutation::tolerations(spec, pool, &mut repair, &mut fields);
        missing.extend((tolerations != serde_json::json!([])).then(|| format!("tolerations: {tolerations}")));
    }
    let labels = &pool.node_selector;
    if pool.inject.node_selector && !labels.is_empty() && !judged.placement.forces(labels, scene.facts) {
        missing.push(format!("nodeSelector: {}", serde_json::json!(labels)));
        mutation::node_selector(spec, pool, &mut repair, &mut fields);
    }
    (!missing.is_empty()).then(|| {
        let (field, missing) = (spec.path.to_string(), missing.join(", "));
        let text = format!("{field}: a DaemonSet of pool {} needs in its template {missing}", pool.name);
        Note { field, text, repair }
    })
}
