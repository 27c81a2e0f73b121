//! What an object is called in reports. Of a review, that is the object which was sent for review.
//!
//! Invariant: the path leads from the document to the object that all fields are meant in.

use serde_json::Value;

use crate::manifest::Object;

/// A review, written down, of which the object has been handed to the webhooks before.
const REVIEW: (&str, &str) = ("admission.k8s.io/v1", "AdmissionReview");

/// Where a review has the object.
pub(super) const REVIEWED: &str = "request.object";

/// What identifies an object.
pub(in crate::command) struct Subject {
    pub(super) path: String,
    pub(super) api_version: String,
    pub(in crate::command) kind: String,
    pub(in crate::command) namespace: String,
    /// Its name, or the beginning of it and a star.
    pub(in crate::command) name: String,
}

/// Whether it is a review.
pub(super) fn is_review(object: &Object) -> bool {
    (object.api_version.as_str(), object.kind.as_str()) == REVIEW
}

/// A field of the object in the words of its document.
pub(in crate::command) fn below(object: &Object, field: &str) -> String {
    let inner = if is_review(object) { REVIEWED } else { "" };
    let parts = [object.path.as_str(), inner, field.trim_start_matches('.')];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(".")
}

/// The object, which would be in this namespace.
pub(in crate::command) fn of(object: &Object, namespace: &str) -> Subject {
    let reviewed = if is_review(object) { reviewed(object) } else { None };
    reviewed.unwrap_or_else(|| Subject {
        path: below(object, ""),
        api_version: object.api_version.clone(),
        kind: object.kind.clone(),
        namespace: namespace.to_owned(),
        name: name(&object.name, &object.generate_name),
    })
}

/// The object of a review; nothing where that is malformed.
fn reviewed(object: &Object) -> Option<Subject> {
    let review: Value = serde_json::from_str(&object.json).ok()?;
    let text = |pointer: &str| review.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (group, version) = (text("/request/kind/group"), text("/request/kind/version"));
    Some(Subject {
        path: below(object, ""),
        api_version: if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") },
        kind: Some(text("/request/kind/kind")).filter(|kind| !kind.is_empty())?.to_owned(),
        namespace: text("/request/namespace").to_owned(),
        name: name(text("/request/name"), text("/request/object/metadata/generateName")),
    })
}

fn name(name: &str, generate_name: &str) -> String {
    if name.is_empty() && !generate_name.is_empty() { format!("{generate_name}*") } else { name.to_owned() }
}
