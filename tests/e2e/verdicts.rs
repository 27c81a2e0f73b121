//! The main job: a real API server asks, and a person with kubectl sees the right verdict on the object that they wrote.

use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::cluster::{Cluster, Options, Slicegate, shipped, wait};
use crate::workloads::{checkpointed, deployment};

const SOON: Duration = Duration::from_mins(1);

/// Applies as a person does, for real or as a dry run, and gives what kubectl said on either stream.
fn apply(cluster: &Cluster, namespace: &str, dry_run: bool, object: &Value) -> Result<(bool, String)> {
    let mut args = vec!["-n", namespace, "apply", "-f", "-"];
    if dry_run {
        args.push("--dry-run=server");
    }
    let output = cluster.kubectl_stdin(&args, &object.to_string())?;
    Ok((output.status.success(), format!("{}{}", output.stdout, output.stderr)))
}

fn ready_pods(cluster: &Cluster, namespace: &str) -> Option<usize> {
    let pods = cluster.api("GET", &format!("/api/v1/namespaces/{namespace}/pods"), None).ok()?.body;
    Some(pods["items"].as_array()?.iter().filter(|pod| pod["spec"]["nodeName"].is_string()).count())
}

fn four_replicas(http2: bool) -> Result<()> {
    let cluster = Cluster::start(Options { http2, ..Options::default() })?;
    let allocatable = json!({"nvidia.com/gpu.shared": "8"});
    let taints = json!([{"key": "nvidia.com/gpu.shared", "value": "true", "effect": "NoSchedule"}]);
    cluster.create_node("shared-1", &json!({"gpu-mode": "shared"}), &allocatable, &taints)?;
    let slicegate = Slicegate::start(&cluster)?;
    slicegate.register(&cluster, |_| {})?;
    cluster.create_namespace("team", &json!({}))?;

    refused(&cluster)?;
    for dry_run in [true, false] {
        let (success, text) = apply(&cluster, "team", dry_run, &deployment("good", "1", &checkpointed()))?;
        assert!(success && !text.contains("Warning"), "{text}");
    }
    wait(SOON, "four Pods to be bound", || (ready_pods(&cluster, "team")? == 4).then_some(()))?;
    let pods = cluster.api("GET", "/api/v1/namespaces/team/pods", None)?.success()?;
    let pod = pods["items"].get(0).context("no Pod")?;
    let added = pod["metadata"]["annotations"]["slicegate.io/injected"].as_str().context("no provenance")?;
    assert!(
        added.contains("\"pool\":\"shared\"") && added.contains("tolerations") && !added.contains("nodeSelector"),
        "{added}"
    );

    told(&slicegate)
}

/// What breaks a rule is refused with its field, for real and as a dry run.
fn refused(cluster: &Cluster) -> Result<()> {
    let critical = json!({"slicegate.io/latency": "critical", "slicegate.io/checkpoint": "true"});
    let unsaved = json!({"slicegate.io/latency": "tolerant", "slicegate.io/checkpoint": "false"});
    let template = "spec.template.spec.containers[0].resources.limits[nvidia.com/gpu.shared]";
    for (name, shares, labels, told) in [
        ("two", "2", checkpointed(), format!("[share-limit] {template}: container \"main\" asks for 2")),
        (
            "spelled",
            "2e0",
            checkpointed(),
            format!("[share-limit] {template}: container \"main\" asks for 2 (written \"2e0\")"),
        ),
        (
            "classless",
            "1",
            json!({}),
            "[checkpoint-required] spec.template.metadata.labels[slicegate.io/checkpoint]".to_owned(),
        ),
        (
            "critical",
            "1",
            critical,
            "[no-latency-critical] spec.template.metadata.labels[slicegate.io/latency]".to_owned(),
        ),
        (
            "unsaved",
            "1",
            unsaved,
            "[checkpoint-required] spec.template.metadata.labels[slicegate.io/checkpoint]".to_owned(),
        ),
    ] {
        for dry_run in [true, false] {
            let (success, text) = apply(cluster, "team", dry_run, &deployment(name, shares, &labels))?;
            assert!(!success && text.contains("Forbidden") && text.contains(&told), "{name} {dry_run}: {text}");
            assert!(text.contains("admission webhook \"validate.slicegate.io\" denied the request"), "{text}");
        }
    }
    Ok(())
}

/// One line a review in the log, and the finding in the metrics.
fn told(slicegate: &Slicegate) -> Result<()> {
    let log = wait(SOON, "the log of a refused dry run", || {
        slicegate.reviews().into_iter().find(|line| line["name"] == "two" && line["dry_run"] == true)
    })?;
    for (field, value) in [
        ("operation", "CREATE"),
        ("kind", "Deployment"),
        ("namespace", "team"),
        ("verdict", "denied"),
        ("rules", "share-limit=deny"),
    ] {
        assert_eq!(log[field], value, "{log}");
    }
    assert!(log["uid"].is_string() && log["user"].is_string() && log["duration"].is_number(), "{log}");
    let (_, metrics) = slicegate.admin("/metrics")?;
    assert!(metrics.contains("slicegate_findings_total{rule=\"share-limit\",action=\"deny\""), "{metrics}");
    Ok(())
}

#[test]
fn a_deployment_of_four_replicas_over_http1() -> Result<()> {
    four_replicas(false)
}

#[test]
fn a_deployment_of_four_replicas_over_h2() -> Result<()> {
    four_replicas(true)
}

#[test]
fn a_priority_class_makes_a_workload_critical() -> Result<()> {
    let cluster = Cluster::start(Options { apiserver_only: true, ..Options::default() })?;
    cluster.apply_path(&shipped("slicegate.yaml"))?;
    let config =
        "apiVersion: slicegate.io/v1alpha1\nkind: Config\nlatencyCritical: {priorityClasses: [\"serving-*\"]}\n";
    cluster.apply(&json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"config.yaml": config},
        "metadata": {"name": "slicegate-config", "namespace": "slicegate-system"}}))?;
    let class = |name: &str, default: bool| {
        json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name},
            "value": 1000, "globalDefault": default})
    };
    cluster.apply(&class("serving-high", false))?;
    cluster.create_namespace("team", &json!({}))?;
    let slicegate = Slicegate::start(&cluster)?;
    slicegate.register(&cluster, |_| {})?;

    let unlabelled = json!({"slicegate.io/checkpoint": "stateless"});
    let mut serving = deployment("serving", "1", &unlabelled);
    serving["spec"]["template"]["spec"]["priorityClassName"] = "serving-high".into();
    let (success, text) = apply(&cluster, "team", true, &serving)?;
    assert!(!success && text.contains("[no-latency-critical]") && text.contains("serving-high"), "{text}");
    let plain = deployment("plain", "1", &unlabelled);
    assert!(apply(&cluster, "team", true, &plain)?.0);

    // The cluster's default class, which the API server puts on Pods and never on templates.
    cluster.apply(&class("serving-default", true))?;
    wait(SOON, "the default class to count", || {
        let (success, text) = apply(&cluster, "team", true, &plain).ok()?;
        (!success && text.contains("serving-default") && text.contains("the cluster's default")).then_some(())
    })
}
