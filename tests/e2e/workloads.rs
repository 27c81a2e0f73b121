//! Objects that the end-to-end tests send.

use serde_json::{Value, json};

/// The label that lets a workload into the shared pool.
pub(crate) fn checkpointed() -> Value {
    json!({"slicegate.io/latency": "tolerant", "slicegate.io/checkpoint": "true"})
}

/// A Pod template with one container that asks for shares.
pub(crate) fn template(shares: &str, labels: &Value) -> Value {
    let mut labels = labels.clone();
    labels["app"] = "work".into();
    json!({"metadata": {"labels": labels}, "spec": {"containers": [
        {"name": "main", "image": "registry.example.test/work:1", "resources": {"limits": {"nvidia.com/gpu.shared": shares}}}]}})
}

/// A Deployment of four replicas that asks for the shared pool by name.
pub(crate) fn deployment(name: &str, shares: &str, labels: &Value) -> Value {
    let mut template = template(shares, labels);
    template["spec"]["nodeSelector"] = json!({"gpu-mode": "shared"});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": 4, "selector": {"matchLabels": {"app": "work"}}, "template": template}})
}

/// A Pod.
pub(crate) fn pod(name: &str, shares: &str) -> Value {
    let mut pod = template(shares, &checkpointed());
    pod["apiVersion"] = "v1".into();
    pod["kind"] = "Pod".into();
    pod["metadata"]["name"] = name.into();
    pod
}
