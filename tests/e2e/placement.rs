//! Placement proved by the scheduler: a share Pod runs on a shared Node because slicegate completed it, and nobody else does.

use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use crate::cluster::{Cluster, Options, Slicegate, wait};
use crate::workloads::pod;

fn get(cluster: &Cluster, name: &str) -> Option<Value> {
    cluster.api("GET", &format!("/api/v1/namespaces/team/pods/{name}"), None).ok()?.success().ok()
}

/// The node that the Pod is bound to, or the scheduler's word that there is none.
fn fate(cluster: &Cluster, name: &str) -> Result<String> {
    wait(Duration::from_mins(1), "the scheduler's verdict", || {
        let pod = get(cluster, name)?;
        if let Some(node) = pod["spec"]["nodeName"].as_str() {
            return Some(node.to_owned());
        }
        let conditions = pod["status"]["conditions"].as_array()?;
        let unschedulable = conditions.iter().find(|condition| condition["reason"] == "Unschedulable")?;
        Some(unschedulable["message"].as_str()?.to_owned())
    })
}

#[test]
fn the_scheduler_binds_what_slicegate_completed() -> Result<()> {
    let cluster = Cluster::start(Options::default())?;
    let shares = json!({"nvidia.com/gpu.shared": "8"});
    let taints = json!([{"key": "nvidia.com/gpu.shared", "value": "true", "effect": "NoSchedule"}]);
    cluster.create_node("shared-1", &json!({"gpu-mode": "shared"}), &shares, &taints)?;
    // It advertises shares too, but belongs to no pool: only the nodeSelector keeps the Pod away.
    cluster.create_node("stray-1", &json!({"gpu-mode": "none"}), &shares, &json!([]))?;
    cluster.create_namespace("team", &json!({}))?;
    let create = |pod: &Value| cluster.api("POST", "/api/v1/namespaces/team/pods", Some(pod))?.success();

    // Without slicegate a share Pod without tolerations cannot reach a shared Node.
    let mut before = pod("before", "1");
    before["spec"]["nodeSelector"] = json!({"gpu-mode": "shared"});
    create(&before)?;
    assert!(fate(&cluster, "before")?.contains("untolerated taint"));

    let slicegate = Slicegate::start(&cluster)?;
    slicegate.register(&cluster, |_| {})?;
    create(&pod("after", "1"))?;
    assert_eq!(fate(&cluster, "after")?, "shared-1");
    let mut plain = pod("plain", "1");
    plain["spec"]["containers"][0]["resources"] = json!({});
    create(&plain)?;
    assert_eq!(fate(&cluster, "plain")?, "stray-1");
    let kept = get(&cluster, "plain").unwrap_or_default();
    assert_eq!(kept["spec"]["nodeSelector"], Value::Null, "a Pod without a share is left alone");
    Ok(())
}
