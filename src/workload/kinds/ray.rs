//! Ray's clusters, and the jobs and services that hold the spec of one.
//!
//! Labels of a group override those of its template, key by key. What a group calls `resources` are Ray's own and reach no
//! container. The head gets a container for the autoscaler where it is on.

use crate::json::Json;
use crate::workload::template::{container, pod_template};
use crate::workload::{Placed, Role, Template};

use super::{MOST_TEMPLATES, object_at, pattern};

/// The head and the worker groups of a cluster's spec.
pub(super) fn cluster<'r>(object: &'r Json<'r>, spec: &Placed<'r>) -> Vec<Template<'r>> {
    let head = object_at(spec, "headGroupSpec").and_then(|head| group(object, &head));
    let head = head.map(|template| with_autoscaler(template, spec));
    let workers = pattern::written(spec, "workerGroupSpecs/*");
    let workers = workers.iter().filter_map(|worker| group(object, worker));
    head.into_iter().chain(workers).take(MOST_TEMPLATES.saturating_add(1)).collect()
}

/// The cluster of a job's spec, and the Pod that submits the job to it.
pub(super) fn job<'r>(object: &'r Json<'r>, spec: &Placed<'r>) -> Vec<Template<'r>> {
    let cluster = object_at(spec, "rayClusterSpec").map(|spec| cluster(object, &spec)).unwrap_or_default();
    let submitter = object_at(spec, "submitterPodTemplate").map(|piece| pod_template(object, &piece));
    cluster.into_iter().chain(submitter).collect()
}

fn group<'r>(object: &'r Json<'r>, group: &Placed<'r>) -> Option<Template<'r>> {
    let mut template = pod_template(object, &object_at(group, "template")?);
    if let Some(labels) = group.member("labels") {
        template.label_path = labels.path.clone();
        template.parts.push(labels.value);
        template.labels.push(labels);
    }
    Some(template)
}

fn with_autoscaler<'r>(mut head: Template<'r>, spec: &Placed<'r>) -> Template<'r> {
    let is_on = spec.value.get("enableInTreeAutoscaling") == Some(&Json::Bool(true));
    if let Some(options) = object_at(spec, "autoscalerOptions").filter(|_| is_on) {
        head.parts.push(options.value);
        // The options' own `name` is no container's.
        let mut autoscaler = container(options, Role::Main, "autoscaler");
        autoscaler.name = "autoscaler";
        head.containers.push(autoscaler);
    }
    head
}
