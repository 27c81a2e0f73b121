//! Kubeflow's TrainJob, whose templates stand in a runtime that is not in sight.
//!
//! What the job itself says: the resources of the container `node`, and patches of the runtime's templates. Three versions
//! of those patches share one apiVersion (`runtimePatches`, `podTemplateOverrides`, `podSpecOverrides`); each is read where
//! it is there. Invariant: containers of a patch are not read, since they have neither image nor resources.

use crate::json::Json;
use crate::workload::template::empty;
use crate::workload::{Container, Placed, Role, Template};

use super::{object_at, pattern};

/// The trainer's job, and its container, in the runtimes that the project ships.
const NODE: &str = "node";

/// What a TrainJob's spec says of its Pods: the trainer's, and those of jobs that patches name.
pub(super) fn train_job<'r>(object: &'r Json<'r>, spec: &Placed<'r>) -> Vec<Template<'r>> {
    let patches = patches(spec);
    let (node, others): (Vec<_>, Vec<_>) = patches.into_iter().partition(|patch| patch.is_node);
    let trainer = object_at(spec, "trainer").map(|piece| trainer(object, &piece));
    let mut templates = Vec::new();
    if let Some(mut template) = trainer {
        template.parts.extend(node.iter().map(|patch| patch.whole.value));
        // The last patch wins, and the first level.
        template.levels.extend(node.iter().rev().filter_map(|patch| patch.spec.clone()));
        template.labels.extend(node.iter().filter_map(|patch| patch.labels.clone()));
        template.annotations.extend(node.into_iter().filter_map(|patch| patch.annotations));
        let last = template.labels.last().map(|labels| labels.path.clone());
        template.label_path = last.unwrap_or_else(|| spec.path.key("runtimePatches"));
        templates.push(template);
    } else {
        templates.extend(node.into_iter().map(|patch| alone(object, patch)));
    }
    templates.extend(others.into_iter().map(|patch| alone(object, patch)));
    templates
}

/// A patch of the templates of one job, or of several.
struct Patch<'r> {
    whole: Placed<'r>,
    is_node: bool,
    labels: Option<Placed<'r>>,
    annotations: Option<Placed<'r>>,
    spec: Option<Placed<'r>>,
}

fn patches<'r>(spec: &Placed<'r>) -> Vec<Patch<'r>> {
    let current = pattern::written(spec, "runtimePatches/*/trainingRuntimeSpec/template/spec/replicatedJobs/*");
    let current = current.into_iter().filter_map(|job| {
        let is_node = job.value.text("name") == Some(NODE);
        Some(full(job.descend(&["template", "spec", "template"])?, is_node))
    });
    let overrides = pattern::written(spec, "podTemplateOverrides/*");
    let overrides = overrides.into_iter().map(|piece| {
        let is_node = targets_node(&piece);
        full(piece, is_node)
    });
    let oldest = pattern::written(spec, "podSpecOverrides/*").into_iter().map(|piece| Patch {
        is_node: targets_node(&piece),
        labels: None,
        annotations: None,
        spec: Some(piece.clone()),
        whole: piece,
    });
    current.chain(overrides).chain(oldest).collect()
}

fn full(whole: Placed<'_>, is_node: bool) -> Patch<'_> {
    Patch {
        labels: whole.descend(&["metadata", "labels"]),
        annotations: whole.descend(&["metadata", "annotations"]),
        spec: object_at(&whole, "spec"),
        is_node,
        whole,
    }
}

/// An override without targets is one of every job, the trainer's included.
fn targets_node(piece: &Placed<'_>) -> bool {
    let targets = piece.value.list("targetJobs");
    targets.is_empty() || targets.iter().any(|target| target.text("name") == Some(NODE))
}

/// `resourcesPerNode` is itself the container's `resources`; what it does not say stays as the runtime says it.
fn trainer<'r>(object: &'r Json<'r>, piece: &Placed<'r>) -> Template<'r> {
    let mut template = empty(object, piece);
    if let Some(resources) = object_at(piece, "resourcesPerNode") {
        let path = piece.path.clone();
        let node = Container {
            role: Role::Main,
            path,
            name: NODE,
            object: piece.value,
            resources: Some(resources),
            gpu: None,
        };
        template.containers.push(node);
    }
    template
}

fn alone<'r>(object: &'r Json<'r>, patch: Patch<'r>) -> Template<'r> {
    let mut template = empty(object, &patch.whole);
    template.labels.extend(patch.labels);
    template.annotations.extend(patch.annotations);
    template.levels.extend(patch.spec);
    template
}
