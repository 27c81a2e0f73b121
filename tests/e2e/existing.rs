//! What was there before slicegate: it may be shown, shrunk, labelled, debugged and deleted, and makes no new Pods.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::cluster::{Cluster, Options, Output, Slicegate, wait};
use crate::workloads::{checkpointed, deployment, pod};

fn kubectl(cluster: &Cluster, args: &[&str]) -> Result<Output> {
    cluster.kubectl(&[&["-n", "team"][..], args].concat())
}

#[test]
fn what_was_there_before_is_in_nobodys_way() -> Result<()> {
    let cluster = Cluster::start(Options::default())?;
    cluster.create_namespace("team", &json!({}))?;
    let mut legacy = deployment("legacy", "2", &checkpointed());
    legacy["spec"]["replicas"] = 1.into();
    let in_team = |object: &Value| cluster.kubectl_stdin(&["-n", "team", "apply", "-f", "-"], &object.to_string());
    in_team(&legacy)?.success()?;
    let mut held = pod("held", "2");
    held["metadata"]["finalizers"] = json!(["example.test/hold"]);
    in_team(&held)?.success()?;
    let minute = std::time::Duration::from_mins(1);
    wait(minute, "the legacy Pod", || {
        let pods = kubectl(&cluster, &["get", "pods", "-o", "json"]).ok()?.json().ok()?;
        (pods["items"].as_array()?.len() == 2).then_some(())
    })?;
    let slicegate = Slicegate::start(&cluster)?;
    slicegate.register(&cluster, |_| {})?;

    // Nothing of this makes a Pod that carries the finding.
    kubectl(&cluster, &["scale", "deployment/legacy", "--replicas=0"])?.success()?;
    kubectl(&cluster, &["label", "deployment/legacy", "owner=kim"])?.success()?;
    let annotated = kubectl(&cluster, &["annotate", "pod/held", "note=kept"])?;
    assert!(
        annotated.stderr.contains("[share-limit]") && annotated.stderr.contains("was there before"),
        "{}",
        annotated.stderr
    );
    annotated.success()?;
    let debug = kubectl(
        &cluster,
        &["debug", "pod/held", "--image=registry.example.test/shell:1", "--profile=general", "--", "true"],
    )?;
    debug.success().context("kubectl debug")?;

    // This does.
    let restart = kubectl(&cluster, &["rollout", "restart", "deployment/legacy"])?.failure()?;
    assert!(restart.contains("[share-limit]"), "{restart}");
    let grown = kubectl(&cluster, &["patch", "deployment/legacy", "--type=merge", "-p", r#"{"spec":{"replicas":3}}"#])?
        .failure()?;
    assert!(grown.contains("[share-limit]"), "{grown}");
    // A label can change after admission, and counts then.
    let worse = kubectl(&cluster, &["label", "pod/held", "--overwrite", "slicegate.io/latency=critical"])?.failure()?;
    assert!(worse.contains("[no-latency-critical]"), "{worse}");

    // It can go.
    kubectl(&cluster, &["delete", "pod/held", "--wait=false"])?.success()?;
    kubectl(&cluster, &["patch", "pod/held", "--type=merge", "-p", r#"{"metadata":{"finalizers":null}}"#])?
        .success()?;
    kubectl(&cluster, &["delete", "deployment/legacy"])?.success()?;
    // The repair of what is refused is let through.
    in_team(&deployment("legacy", "1", &checkpointed()))?.success()?;
    Ok(())
}

#[test]
fn what_controllers_make_of_a_bad_template_names_the_template() -> Result<()> {
    let cluster = Cluster::start(Options::default())?;
    cluster.create_namespace("team", &json!({}))?;
    let mut legacy = deployment("legacy", "2", &checkpointed());
    legacy["spec"]["replicas"] = 0.into();
    cluster.kubectl_stdin(&["-n", "team", "apply", "-f", "-"], &legacy.to_string())?.success()?;
    let slicegate = Slicegate::start(&cluster)?;
    slicegate.register(&cluster, |_| {})?;
    // A Scale names no template, so that it passes; the Pods are judged when they are made.
    kubectl(&cluster, &["scale", "deployment/legacy", "--replicas=1"])?.success()?;
    let told = wait(std::time::Duration::from_mins(1), "the refusal in the ReplicaSet's events", || {
        let events = kubectl(&cluster, &["get", "events", "-o", "json"]).ok()?.json().ok()?;
        let messages = events["items"].as_array()?.iter().filter_map(|event| event["message"].as_str());
        messages.filter(|message| message.contains("[share-limit]")).map(str::to_owned).next()
    })?;
    assert!(told.contains("made from the template of ReplicaSet legacy-"), "{told}");
    Ok(())
}
