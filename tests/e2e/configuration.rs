//! The configuration in its ConfigMap: live, and never worse than the last good one.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use crate::cluster::{Cluster, Options, Slicegate, wait};
use crate::workloads::pod;

const SOON: Duration = Duration::from_secs(30);
const HEAD: &str = "apiVersion: slicegate.io/v1alpha1\nkind: Config\n";

#[test]
fn an_edit_is_live_and_a_bad_one_keeps_the_last_good_one() -> Result<()> {
    let cluster = Cluster::start(Options { apiserver_only: true, ..Options::default() })?;
    cluster.create_namespace("team", &json!({}))?;
    let slicegate = Slicegate::start(&cluster)?;
    slicegate.register(&cluster, |_| {})?;
    let configure = |text: &str| {
        cluster.apply(&json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"config.yaml": text},
            "metadata": {"name": "slicegate-config", "namespace": "slicegate-system"}}))
    };
    let create = || cluster.api("POST", "/api/v1/namespaces/team/pods?dryRun=All", Some(&pod("greedy", "2")));
    let digest = || -> Result<String> {
        let (_, metrics) = slicegate.admin("/metrics")?;
        Ok(metrics.lines().find(|line| line.starts_with("slicegate_configuration{")).unwrap_or_default().to_owned())
    };
    assert_eq!(create()?.status, 403);
    assert!(digest()?.contains("default"));

    configure(&format!("{HEAD}enforcement: warn\n"))?;
    let reply = wait(SOON, "the edit to be live", || create().ok().filter(|reply| reply.status == 201))?;
    assert!(reply.warnings.iter().any(|warning| warning.contains("[share-limit]")), "{:?}", reply.warnings);
    let warned = digest()?;

    configure(&format!("{HEAD}enforcement: shout\npols: []\n"))?;
    wait(SOON, "the mistake to be told", || {
        let log = slicegate.log();
        (log.contains("line 3, column 14") && log.contains("line 4, column 1")).then_some(())
    })?;
    assert_eq!((create()?.status, digest()?), (201, warned.clone()));

    cluster.kubectl(&["-n", "slicegate-system", "delete", "configmap", "slicegate-config"])?.success()?;
    wait(SOON, "the deletion to be told", || slicegate.log().contains("it was deleted").then_some(()))?;
    assert_eq!((create()?.status, digest()?), (201, warned));

    configure(&format!("{HEAD}enforcement: deny\n"))?;
    wait(SOON, "the repair to be live", || create().ok().filter(|reply| reply.status == 403))?;
    Ok(())
}
