//! Reads webhook configurations and what the API server says that it serves.
//!
//! Invariant: what is not as it should be is left out, and nothing else with it.

use serde_json::Value;

use super::{Resource, Rule};

/// All rules of a webhook configuration.
pub fn configuration(object: &Value) -> Vec<Rule> {
    let webhooks = list(object.get("webhooks"));
    let rules = webhooks.flat_map(|webhook| list(webhook.get("rules"))).map(|rule| Rule {
        groups: texts(rule.get("apiGroups")),
        operations: texts(rule.get("operations")),
        resources: texts(rule.get("resources")),
        scope: text(rule, "scope").to_owned(),
    });
    rules.collect()
}

/// What a document of aggregated discovery lists; nothing where it is another document. A resource that is served in several
/// versions stands there several times.
pub fn served(document: &Value) -> Option<Vec<Resource>> {
    (document.get("kind")? == "APIGroupDiscoveryList").then_some(())?;
    let mut all = Vec::new();
    for group in document.get("items")?.as_array()? {
        // The core group has no name.
        let name = group.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        for resource in list(group.get("versions")).flat_map(|version| list(version.get("resources"))) {
            take(name, resource, &mut all);
        }
    }
    Some(all)
}

fn take(group: &str, resource: &Value, all: &mut Vec<Resource>) {
    let (name, namespaced) = (text(resource, "resource"), text(resource, "scope") == "Namespaced");
    let own = kind(group, resource);
    let mut add = |sub: &str, (kind_group, kind): (String, String)| {
        let of_own_kind = own == (kind_group.clone(), kind.clone());
        let (group, name, sub) = (group.to_owned(), name.to_owned(), sub.to_owned());
        let resource = Resource { group, name, sub, kind_group, kind, namespaced, of_own_kind };
        if !resource.kind.is_empty() && !all.contains(&resource) {
            all.push(resource);
        }
    };
    add("", own.clone());
    for sub in list(resource.get("subresources")) {
        add(text(sub, "subresource"), kind(group, sub));
    }
}

/// The group and the kind of what is answered.
fn kind(group: &str, resource: &Value) -> (String, String) {
    let Some(kind) = resource.get("responseKind") else { return (String::new(), String::new()) };
    let named = kind.get("group").and_then(Value::as_str).unwrap_or(group);
    (named.to_owned(), text(kind, "kind").to_owned())
}

fn list(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    value.and_then(Value::as_array).into_iter().flatten()
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn texts(value: Option<&Value>) -> Vec<String> {
    list(value).filter_map(Value::as_str).map(str::to_owned).collect()
}
