//! Further kinds that carry Pod templates.

use super::super::ExtraKind;
use super::globs::MOST;
use super::names;
use super::value::{Fields, Value};
use crate::workload::kinds;

pub(in crate::config) const FIELDS: [&str; 4] = ["group", "kind", "templates", "podSpecs"];

/// Reads the list of further kinds.
pub(super) fn read(list: &Value<'_>) -> Vec<ExtraKind> {
    let items = list.items("a list of kinds").unwrap_or_default();
    if items.len() > MOST {
        list.mistake(&format!("{} elements are more than {MOST}", items.len()));
        return Vec::new();
    }
    let wanted = "a kind, such as {group: example.com, kind: Trainer, templates: [/spec/template]}";
    let mut found: Vec<ExtraKind> = Vec::new();
    for item in items {
        let Some(fields) = item.fields(&FIELDS, wanted) else { continue };
        let Some(kind) = read_kind(&fields) else { continue };
        if found.iter().any(|other| other.group == kind.group && other.kind == kind.kind) {
            item.mistake(&format!("{} is in the list twice", named(&kind)));
        } else {
            found.push(kind);
        }
    }
    found
}

fn read_kind(fields: &Fields<'_>) -> Option<ExtraKind> {
    let group = fields.require("group", "the API group without version, or \"\" for the core group");
    let group = group.and_then(|value| value.checked("an API group", names::group));
    let kind = fields.require("kind", "the kind, such as Trainer");
    let kind = kind.and_then(|value| value.checked("a kind", names::kind));
    let mut taken = Vec::new();
    let templates = pointers(fields, "templates", &mut taken);
    let pod_specs = pointers(fields, "podSpecs", &mut taken);
    if fields.get("templates").is_none() && fields.get("podSpecs").is_none() {
        let help = "say where in it Pod templates are, with templates, podSpecs or both";
        fields.whole().mistake(&format!("the kind has no JSON pointer; {help}"));
    }
    let kind = ExtraKind { group: group?.to_owned(), kind: kind?.to_owned(), templates, pod_specs };
    if kinds::known().any(|known| known == (kind.group.as_str(), kind.kind.as_str())) {
        let name = named(&kind);
        fields.whole().mistake(&format!("{name} is built in; leave it out"));
    }
    Some(kind)
}

fn named(kind: &ExtraKind) -> String {
    let group = if kind.group.is_empty() { "the core group" } else { kind.group.as_str() };
    format!("{} of {group}", kind.kind)
}

/// Reads a list of JSON pointers. None may be in `taken`, and all are afterwards.
fn pointers(fields: &Fields<'_>, name: &str, taken: &mut Vec<Vec<String>>) -> Vec<Vec<String>> {
    let Some(list) = fields.get(name) else { return Vec::new() };
    let items = list.items("a list of JSON pointers, such as [/spec/template]").unwrap_or_default();
    if list.is_empty_list() {
        list.mistake(&format!("the list is empty; leave {name} out or name a JSON pointer"));
    }
    if items.len() > MOST {
        list.mistake(&format!("{} elements are more than {MOST}", items.len()));
        return Vec::new();
    }
    let mut found = Vec::new();
    for item in items {
        let check = |text: &str| names::pointer(text).map(|_| ());
        let Some(Ok(tokens)) = item.checked("a JSON pointer", check).map(names::pointer) else { continue };
        if taken.contains(&tokens) {
            item.mistake("the same JSON pointer is there twice");
            continue;
        }
        taken.push(tokens.clone());
        found.push(tokens);
    }
    found
}
