//! Every built-in kind and three third-party ones, by their own resources on a real API server.

use anyhow::Result;
use serde_json::{Value, json};

use crate::cluster::{Cluster, Options, Slicegate};
use crate::workloads::{checkpointed, deployment, pod, template};

/// A custom resource with any content.
fn definition(group: &str, version: &str, kind: &str, plural: &str) -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {"group": group, "scope": "Namespaced", "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{"name": version, "served": true, "storage": true, "schema": schema}]}})
}

fn object(api_version: &str, kind: &str, spec: &Value) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "work"}, "spec": spec})
}

/// Each kind with its template, and where the container's limit stands in it.
pub(crate) fn objects(shares: &str) -> Vec<(Value, &'static str)> {
    let template = template(shares, &checkpointed());
    let mut job_template = template.clone();
    job_template["spec"]["restartPolicy"] = "Never".into();
    let selector = json!({"matchLabels": {"app": "work"}});
    let selected = json!({"selector": selector, "serviceName": "work", "template": template});
    let job = json!({"template": job_template});
    let plain = json!({"selector": {"app": "work"}, "template": template});
    let cron = json!({"schedule": "0 3 * * *", "jobTemplate": {"spec": job}});
    let pytorch = json!({"pytorchReplicaSpecs": {"Worker": {"replicas": 2, "template": template}}});
    let ray = json!({"headGroupSpec": {"template": template.clone()}, "workerGroupSpecs": []});
    let jobset = json!({"replicatedJobs": [{"name": "workers", "template": {"spec": job}}]});
    let mut pod_template = object("v1", "PodTemplate", &Value::Null);
    pod_template["template"] = template.clone();
    vec![
        (pod("work", shares), "spec"),
        (deployment("work", shares, &checkpointed()), "spec.template.spec"),
        (object("apps/v1", "StatefulSet", &selected), "spec.template.spec"),
        (object("apps/v1", "DaemonSet", &json!({"selector": selector, "template": template})), "spec.template.spec"),
        (object("apps/v1", "ReplicaSet", &json!({"selector": selector, "template": template})), "spec.template.spec"),
        (object("v1", "ReplicationController", &plain), "spec.template.spec"),
        (object("batch/v1", "Job", &job), "spec.template.spec"),
        (object("batch/v1", "CronJob", &cron), "spec.jobTemplate.spec.template.spec"),
        (pod_template, "template.spec"),
        (object("kubeflow.org/v1", "PyTorchJob", &pytorch), "spec.pytorchReplicaSpecs.Worker.template.spec"),
        (object("ray.io/v1", "RayCluster", &ray), "spec.headGroupSpec.template.spec"),
        (object("jobset.x-k8s.io/v1alpha2", "JobSet", &jobset), "spec.replicatedJobs[0].template.spec.template.spec"),
    ]
}

/// Defines the third-party ones.
pub(crate) fn define(cluster: &Cluster) -> Result<()> {
    for (group, version, kind, plural) in [
        ("kubeflow.org", "v1", "PyTorchJob", "pytorchjobs"),
        ("ray.io", "v1", "RayCluster", "rayclusters"),
        ("jobset.x-k8s.io", "v1alpha2", "JobSet", "jobsets"),
    ] {
        cluster.apply(&definition(group, version, kind, plural))?;
        let name = format!("crd/{plural}.{group}");
        cluster.kubectl(&["wait", "--for=condition=Established", "--timeout=30s", &name])?.success()?;
    }
    Ok(())
}

#[test]
fn every_kind_is_refused_at_apply_and_let_through_when_sound() -> Result<()> {
    let cluster = Cluster::start(Options { apiserver_only: true, ..Options::default() })?;
    define(&cluster)?;
    cluster.create_namespace("team", &json!({}))?;
    let slicegate = Slicegate::start(&cluster)?;
    slicegate.register(&cluster, |_| {})?;
    for dry_run in [true, false] {
        let args = if dry_run {
            vec!["-n", "team", "apply", "--dry-run=server", "-f", "-"]
        } else {
            vec!["-n", "team", "apply", "-f", "-"]
        };
        for (greedy, spec) in objects("2") {
            let told = cluster.kubectl_stdin(&args, &greedy.to_string())?.failure()?;
            let field = format!("[share-limit] {spec}.containers[0].resources.limits[nvidia.com/gpu.shared]");
            assert!(told.contains(&field), "{}: {told}", greedy["kind"]);
        }
        for (sound, _) in objects("1") {
            let output = cluster.kubectl_stdin(&args, &sound.to_string())?;
            let warned = output.stderr.contains("Warning");
            output.success()?;
            // What a DaemonSet needs in its template cannot be injected into its Pods; everything else needs nothing.
            assert_eq!(warned, sound["kind"] == "DaemonSet", "{}", sound["kind"]);
        }
    }
    Ok(())
}
