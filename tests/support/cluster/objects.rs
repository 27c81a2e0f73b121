//! Objects that most end-to-end tests begin with: webhook configurations, a
//! namespace, Nodes.

use std::path::Path;

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::Cluster;

/// The address of a webhook that listens on a loopback port.
pub(crate) fn webhook_url(port: u16, path: &str) -> String {
    format!("https://127.0.0.1:{port}/{}", path.trim_start_matches('/'))
}

/// A `ValidatingWebhookConfiguration` with one webhook. `fields` are laid over
/// the webhook's usual ones; `rules` is the one that every test gives.
pub(crate) fn validating_webhook(name: &str, url: &str, ca_pem: &str, fields: &Value) -> Value {
    configuration("ValidatingWebhookConfiguration", name, url, ca_pem, fields)
}

/// A `MutatingWebhookConfiguration` with one webhook, as above.
pub(crate) fn mutating_webhook(name: &str, url: &str, ca_pem: &str, fields: &Value) -> Value {
    configuration("MutatingWebhookConfiguration", name, url, ca_pem, fields)
}

fn configuration(kind: &str, name: &str, url: &str, ca_pem: &str, fields: &Value) -> Value {
    let mut webhook = json!({
        "name": format!("{name}.slicegate.io"),
        "clientConfig": {"url": url, "caBundle": STANDARD.encode(ca_pem)},
        "admissionReviewVersions": ["v1"],
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "timeoutSeconds": 5,
    });
    if let (Some(webhook), Some(fields)) = (webhook.as_object_mut(), fields.as_object()) {
        webhook.extend(fields.clone());
    }
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name},
        "webhooks": [webhook],
    })
}

// === impl Cluster ===

impl Cluster {
    /// Applies an object, as `kubectl apply` does.
    pub(crate) fn apply(&self, object: &Value) -> Result<()> {
        self.kubectl_stdin(&["apply", "-f", "-"], &object.to_string())?.success().map(drop)
    }

    /// Applies a manifest file, or all files of a folder.
    pub(crate) fn apply_path(&self, path: &Path) -> Result<()> {
        let path = path.to_str().context("a manifest's path is not UTF-8")?;
        self.kubectl(&["apply", "-f", path])?.success().map(drop)
    }

    pub(crate) fn create_namespace(&self, name: &str, labels: &Value) -> Result<()> {
        let namespace = json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name, "labels": labels},
        });
        self.api("POST", "/api/v1/namespaces", Some(&namespace))?.success().map(drop)
    }

    /// Creates a Node that Pods can be bound to. `allocatable` is laid over
    /// some processors and memory; `taints` are all that it has, since the
    /// not-ready taint that every new Node gets is taken off again.
    pub(crate) fn create_node(&self, name: &str, labels: &Value, allocatable: &Value, taints: &Value) -> Result<()> {
        let mut resources = Map::new();
        resources.extend(
            [("cpu", "64"), ("memory", "256Gi"), ("pods", "500")]
                .map(|(resource, amount)| (resource.to_owned(), Value::from(amount))),
        );
        resources.extend(allocatable.as_object().cloned().unwrap_or_default());
        let node = json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "status": {
                "allocatable": resources,
                "capacity": resources,
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        });
        self.api("POST", "/api/v1/nodes", Some(&node))?.success()?;
        let patch = json!({"spec": {"taints": taints}});
        self.api("PATCH", &format!("/api/v1/nodes/{name}"), Some(&patch))?.success().map(drop)
    }
}
