//! Which kinds carry templates, and where.
//!
//! What it does: answers the templates of an object by group and kind: from the table of known kinds ([`table`]), from the
//! configuration's further kinds, and by shape for a kind that is in neither. Invariants: an object of any shape is
//! answered, and one that carries nothing has no templates; the work grows with the size of the object and no faster.

use std::collections::BTreeSet;

use crate::config::ExtraKind;
use crate::json::Json;
use crate::workload::path::Path;
use crate::workload::template::{pod_spec, pod_template};
use crate::workload::{Placed, Template};

mod argo;
mod kserve;
mod notebook;
mod pattern;
mod ray;
mod shape;
mod spark;
mod table;
mod trainer;
mod volcano;

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod tests;

/// How many templates of one object may refer to a piece that all of them share (the labels of a Workflow's Pods, say), and
/// how large all that they are given may be. Those after them are read without it, since templates and shared pieces that
/// are both large would cost their product.
const SHARING: (usize, usize) = (256, 2 << 20);

/// The most templates of one object. Nobody writes so many, and each takes a hundred times the memory of the few bytes that
/// can stand for one.
pub const MOST_TEMPLATES: usize = 4096;

/// The longest name of a priority class. A text beyond it names none, and need not be carried to every template.
const LONGEST_NAME: usize = 253;

/// All templates of an object, or one more than [`MOST_TEMPLATES`] of them.
pub fn templates<'r>(group: &str, kind: &str, object: &'r Json<'r>, extra: &[ExtraKind]) -> Vec<Template<'r>> {
    let row = table::find(group, kind);
    let mut templates = row.map(|row| row.read(object)).unwrap_or_default();
    let mut further = extra.iter().filter(|further| further.group == group && further.kind == kind).peekable();
    if row.is_none() && further.peek().is_none() && !is_built_in(group) {
        templates = shape::templates(object);
    }
    for further in further {
        add(&mut templates, object, further);
    }
    templates.truncate(MOST_TEMPLATES.saturating_add(1));
    templates
}

/// The kinds of the table that carry templates, as group and kind.
pub fn known() -> impl Iterator<Item = (&'static str, &'static str)> {
    table::carriers()
}

/// Adds what the configuration says of a kind, less what is there already.
fn add<'r>(templates: &mut Vec<Template<'r>>, object: &'r Json<'r>, further: &ExtraKind) {
    let mut there: BTreeSet<String> = templates.iter().map(place).collect();
    let root = Placed::new(Path::root(), object);
    let full = further.templates.iter().flat_map(|tokens| pattern::pieces(&root, tokens.iter().map(String::as_str)));
    let full: Vec<_> = full.map(|piece| pod_template(object, &piece)).collect();
    let bare = further.pod_specs.iter().flat_map(|tokens| pattern::pieces(&root, tokens.iter().map(String::as_str)));
    let bare = bare.map(|piece| Template { declared_elsewhere: true, ..pod_spec(object, &piece) });
    templates.extend(full.into_iter().chain(bare).filter(|template| there.insert(place(template))));
}

/// What makes two templates the same one: where their PodSpec stands.
fn place(template: &Template<'_>) -> String {
    template.levels.first().map_or(&template.path, |level| &level.path).pointer()
}

/// Whether the group is one of Kubernetes' own, whose kinds are all known.
fn is_built_in(group: &str) -> bool {
    !group.contains('.') || group.ends_with(".k8s.io")
}

/// To how many templates these pieces may be given: to one always.
fn sharing<'j>(pieces: impl Iterator<Item = &'j Json<'j>>) -> usize {
    let (most, size) = SHARING;
    size.checked_div(pieces.map(weight).sum()).unwrap_or(most).clamp(1, most)
}

/// About how much a value holds.
fn weight(value: &Json<'_>) -> usize {
    let below = match value {
        Json::Null | Json::Bool(_) | Json::Number(_) => 0,
        Json::String(text) => text.len(),
        Json::Array(elements) => elements.iter().map(weight).sum(),
        Json::Object(members) => members.iter().map(|(key, value)| key.len().saturating_add(weight(value))).sum(),
    };
    below.saturating_add(8)
}

/// The labels of the object itself, for kinds that hand them down to their Pods.
fn object_labels<'r>(object: &'r Json<'r>) -> Option<Placed<'r>> {
    Placed::new(Path::root(), object).descend(&["metadata", "labels"])
}

/// The annotations of the object itself, likewise.
fn object_annotations<'r>(object: &'r Json<'r>) -> Option<Placed<'r>> {
    Placed::new(Path::root(), object).descend(&["metadata", "annotations"])
}

/// The member `key` where it is an object.
fn object_at<'r>(piece: &Placed<'r>, key: &'static str) -> Option<Placed<'r>> {
    piece.member(key).filter(|member| member.value.as_object().is_some())
}

/// The member `key` where it can be the name of a priority class.
fn name_at<'r>(piece: &Placed<'r>, key: &'static str) -> Option<Placed<'r>> {
    let is_name = |name: &str| !name.is_empty() && name.len() <= LONGEST_NAME;
    piece.member(key).filter(|member| member.value.as_str().is_some_and(is_name))
}
