//! slicegate away, and the API server away.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use crate::cluster::{Cluster, Options, Slicegate, wait};
use crate::workloads::pod;

#[test]
fn failure_policy_decides_while_slicegate_is_away() -> Result<()> {
    let cluster = Cluster::start(Options { apiserver_only: true, ..Options::default() })?;
    cluster.create_namespace("team", &json!({}))?;
    let create = |name: &str, shares: &str| {
        cluster.api("POST", "/api/v1/namespaces/team/pods?dryRun=All", Some(&pod(name, shares)))
    };
    let slicegate = Slicegate::start(&cluster)?;
    slicegate.register(&cluster, |_| {})?;
    assert_eq!(create("good", "1")?.status, 201);
    drop(slicegate);
    let refused = create("good", "1")?;
    assert!(refused.status == 500 && refused.message().contains("failed calling webhook"), "{}", refused.message());
    // The system's own namespace is not in slicegate's hands.
    let system = cluster.api("POST", "/api/v1/namespaces/kube-system/pods?dryRun=All", Some(&pod("system", "1")))?;
    assert_eq!(system.status, 201, "{}", system.message());

    let slicegate = Slicegate::start(&cluster)?;
    slicegate.register(&cluster, |webhook| webhook["failurePolicy"] = "Ignore".into())?;
    assert_eq!(create("greedy", "2")?.status, 403);
    drop(slicegate);
    assert_eq!(create("greedy", "2")?.status, 201, "Ignore lets through what nobody judged");
    Ok(())
}

#[test]
fn losing_the_api_server_changes_no_verdict() -> Result<()> {
    let cluster = Cluster::start(Options { apiserver_only: true, ..Options::default() })?;
    cluster.create_namespace("saved", &json!({"slicegate.io/checkpoint": "true"}))?;
    let slicegate = Slicegate::start(&cluster)?;
    slicegate.register(&cluster, |_| {})?;
    let mut undeclared = pod("undeclared", "1");
    undeclared["metadata"]["labels"] = json!({});
    let create = || cluster.api("POST", "/api/v1/namespaces/saved/pods?dryRun=All", Some(&undeclared));
    // The Namespace's label is the default where the Pod is silent.
    assert_eq!(create()?.status, 201);
    cluster.stop_apiserver();
    wait(Duration::from_mins(1), "the watches to notice", || {
        let (_, metrics) = slicegate.admin("/metrics").ok()?;
        metrics.contains("slicegate_source_problem{source=\"namespaces\"} 1").then_some(())
    })?;
    let (status, text) = slicegate.admin("/readyz?verbose")?;
    assert_eq!(status, 200, "what is known stays usable: {text}");
    cluster.start_apiserver()?;
    assert_eq!(create()?.status, 201);
    cluster.create_namespace("later", &json!({"slicegate.io/checkpoint": "true"}))?;
    let later = cluster.api("POST", "/api/v1/namespaces/later/pods?dryRun=All", Some(&undeclared))?;
    assert_eq!(later.status, 201, "a Namespace that the watch may not know yet is read: {}", later.message());
    Ok(())
}
