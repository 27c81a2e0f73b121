//! What the API server does to an object before webhooks see it, as far as a verdict may depend on it.
//!
//! Requests that are missing come from limits, for Pods only (`SetDefaults_Pod` in `pkg/apis/core/v1/defaults.go`); Pods
//! without a priority class get the cluster's default one (the admission plugin Priority); a namespaced object without a
//! namespace gets that of the request. Invariant: what is not touched stays as it was written, numbers to the digit.

use std::collections::BTreeMap;

use serde_json::value::{RawValue, to_raw_value};

type Members = BTreeMap<String, Box<RawValue>>;

/// The kinds without a namespace whose names do not begin with `Cluster`, as all others do that carry templates of Pods.
const CLUSTER_SCOPED: [&str; 16] = [
    "APIService",
    "CSIDriver",
    "CSINode",
    "CustomResourceDefinition",
    "DeviceClass",
    "IngressClass",
    "MutatingWebhookConfiguration",
    "Namespace",
    "Node",
    "PersistentVolume",
    "PriorityClass",
    "ResourceFlavor",
    "ResourceSlice",
    "RuntimeClass",
    "StorageClass",
    "ValidatingWebhookConfiguration",
];

/// Whether objects of a kind stand in namespaces.
pub(super) fn is_namespaced(kind: &str) -> bool {
    (!kind.starts_with("Cluster") || kind == "Cluster") && !CLUSTER_SCOPED.contains(&kind)
}

/// The object with this namespace.
pub(super) fn in_namespace(object: &str, namespace: &str) -> Option<String> {
    edit(object, |object| {
        let metadata = object.get("metadata").map_or("{}", |metadata| metadata.get());
        let metadata = edit(metadata, |metadata| {
            metadata.insert("namespace".to_owned(), to_raw_value(namespace).ok()?);
            Some(())
        });
        object.insert("metadata".to_owned(), raw(metadata?)?);
        Some(())
    })
}

/// A Pod as the API server completes it; nothing where there is nothing to complete.
pub(super) fn pod(object: &str, priority_class: Option<&str>) -> Option<String> {
    let mut changed = false;
    let object = edit(object, |object| {
        let spec = edit(object.get("spec")?.get(), |spec| {
            for list in ["containers", "initContainers"] {
                let Some(containers) = spec.get(list).and_then(|list| containers(list.get())) else { continue };
                spec.insert(list.to_owned(), raw(containers)?);
                changed = true;
            }
            let named = spec.get("priorityClassName").is_some_and(|name| !matches!(name.get(), "null" | "\"\""));
            if let Some(class) = priority_class.filter(|_| !named) {
                spec.insert("priorityClassName".to_owned(), to_raw_value(class).ok()?);
                changed = true;
            }
            Some(())
        });
        object.insert("spec".to_owned(), raw(spec?)?);
        Some(())
    });
    object.filter(|_| changed)
}

/// Containers with what their requests lack; nothing where they lack nothing.
fn containers(list: &str) -> Option<String> {
    let containers: Vec<&RawValue> = serde_json::from_str(list).ok()?;
    let completed: Vec<Option<String>> = containers.iter().map(|container| complete(container.get())).collect();
    if completed.iter().all(Option::is_none) {
        return None;
    }
    let texts = containers.iter().zip(completed).map(|(old, new)| new.unwrap_or_else(|| old.get().to_owned()));
    Some(format!("[{}]", texts.collect::<Vec<_>>().join(",")))
}

fn complete(container: &str) -> Option<String> {
    let mut changed = false;
    let container = edit(container, |container| {
        let resources = edit(container.get("resources")?.get(), |resources| {
            let limits: Members = serde_json::from_str(resources.get("limits")?.get()).ok()?;
            let requests = resources.get("requests").map_or("{}", |requests| requests.get());
            let mut requests: Members = serde_json::from_str(if requests == "null" { "{}" } else { requests }).ok()?;
            for (name, limit) in limits {
                requests.entry(name).or_insert_with(|| {
                    changed = true;
                    limit
                });
            }
            resources.insert("requests".to_owned(), to_raw_value(&requests).ok()?);
            Some(())
        });
        container.insert("resources".to_owned(), raw(resources?)?);
        Some(())
    });
    container.filter(|_| changed)
}

/// An object's text with some members replaced; nothing where it is no object, or the change says so.
fn edit(text: &str, change: impl FnOnce(&mut Members) -> Option<()>) -> Option<String> {
    let mut members: Members = serde_json::from_str(text).ok()?;
    change(&mut members)?;
    serde_json::to_string(&members).ok()
}

fn raw(text: String) -> Option<Box<RawValue>> {
    RawValue::from_string(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_come_from_limits_and_nothing_else_changes() {
        let object = r#"{"kind":"Pod","x":1e400,"spec":{"containers":[{"name":"a","resources":{"limits":{"g":18446744073709551617,"c":"1"},"requests":{"c":"2"}}},{"name":"b"}]}}"#;
        let completed = pod(object, Some("batch")).unwrap();
        assert_eq!(
            completed,
            r#"{"kind":"Pod","spec":{"containers":[{"name":"a","resources":{"limits":{"g":18446744073709551617,"c":"1"},"requests":{"c":"2","g":18446744073709551617}}},{"name":"b"}],"priorityClassName":"batch"},"x":1e400}"#
        );
        assert_eq!(pod(&completed, Some("other")), None);
        assert_eq!(pod(r#"{"spec":null}"#, Some("batch")), None);
        assert_eq!(pod("[]", None), None);
    }

    #[test]
    fn an_object_gets_its_namespace() {
        assert_eq!(in_namespace(r#"{"kind":"Pod"}"#, "a").unwrap(), r#"{"kind":"Pod","metadata":{"namespace":"a"}}"#);
        assert!(is_namespaced("Deployment") && !is_namespaced("ClusterTrainingRuntime") && !is_namespaced("Node"));
    }
}
