//! KServe's services and runtimes.
//!
//! A component (predictor, transformer, explainer) is a PodSpec whose fields stand beside the component's own, labels
//! among them; the model is one more container. The labels of an InferenceService reach its Pods, and those of a component
//! override them. What a runtime adds is not in sight, but the service's own labels win over it.

use crate::json::Json;
use crate::workload::template::{container, pod_spec};
use crate::workload::{Placed, Role, Template};

use super::{object_annotations, object_at, object_labels, pattern, sharing};

/// The members of a component that are containers: the model, and the older forms of it by framework; what explains.
const MODELS: &[&str] = &[
    "model",
    "sklearn",
    "xgboost",
    "tensorflow",
    "pytorch",
    "triton",
    "onnx",
    "huggingface",
    "pmml",
    "lightgbm",
    "paddle",
    "art",
    "alibi",
];

/// The components of an InferenceService, the workers of a predictor that spans nodes, and canaries.
pub(super) fn inference_service<'r>(object: &'r Json<'r>, spec: &Placed<'r>) -> Vec<Template<'r>> {
    let mut templates = Vec::new();
    let predictor = object_at(spec, "predictor");
    if let Some(predictor) = &predictor {
        templates.push(component(object, predictor, &[predictor]));
        let workers = object_at(predictor, "workerSpec");
        templates.extend(workers.map(|workers| component(object, &workers, &[predictor])));
    }
    let others = ["transformer", "explainer"].into_iter().filter_map(|name| object_at(spec, name));
    templates.extend(others.map(|piece| component(object, &piece, &[&piece])));
    let labels = object_labels(object);
    let most = sharing(predictor.iter().chain(&labels).map(|piece| piece.value));
    for canary in pattern::written(spec, "canary/*/predictor").iter().take(most) {
        let stable = predictor.as_ref();
        let mut template = component(object, canary, &stable.into_iter().chain([canary]).collect::<Vec<_>>());
        template.levels.extend(stable.cloned());
        template.parts.extend(stable.map(|stable| stable.value));
        templates.push(template);
    }
    templates
}

/// A runtime: the PodSpec that services start from, and that of its workers.
pub(super) fn runtime<'r>(object: &'r Json<'r>, spec: &Placed<'r>) -> Vec<Template<'r>> {
    let main = with_labels(pod_spec(object, spec), &[spec]);
    let workers = object_at(spec, "workerSpec");
    let workers = workers.map(|workers| with_labels(pod_spec(object, &workers), &[&workers]));
    [main].into_iter().chain(workers).collect()
}

/// The bare PodSpecs of a service of language models. Its labels stand beside them, one map for each role.
pub(super) fn llm<'r>(object: &'r Json<'r>, spec: &Placed<'r>) -> Vec<Template<'r>> {
    let has_bases = !spec.value.list("baseRefs").is_empty();
    let roles: [(&[&'static str], &[&[&'static str]]); 3] = [
        (&[], &[&["template"], &["worker"]]),
        (&["prefill"], &[&["template"], &["worker"]]),
        (&["router", "scheduler"], &[&["template"], &["tokenizer", "template"]]),
    ];
    let mut templates = Vec::new();
    for (role, places) in roles {
        let Some(role) = spec.descend(role) else { continue };
        let specs = places.iter().filter_map(|place| role.descend(place));
        for piece in specs.filter(|piece| piece.value.as_object().is_some()) {
            let template = with_labels(pod_spec(object, &piece), &[&role]);
            templates.push(Template { declared_elsewhere: has_bases, ..template });
        }
    }
    templates
}

/// A component's template. Its labels are the object's and those of `holders`.
fn component<'r>(object: &'r Json<'r>, piece: &Placed<'r>, holders: &[&Placed<'r>]) -> Template<'r> {
    let mut template = pod_spec(object, piece);
    template.labels.extend(object_labels(object));
    template.annotations.extend(object_annotations(object));
    template.parts.extend(template.labels.iter().map(|labels| labels.value).collect::<Vec<_>>());
    let models = MODELS.iter().filter_map(|model| object_at(piece, model));
    let models: Vec<_> = models.map(|model| container(model, Role::Main, "kserve-container")).collect();
    let first = template.containers.iter().take_while(|container| container.role.is_init()).count();
    template.containers.splice(first..first, models);
    with_labels(template, holders)
}

fn with_labels<'r>(mut template: Template<'r>, holders: &[&Placed<'r>]) -> Template<'r> {
    for holder in holders {
        template.label_path = holder.path.key("labels");
        let labels = holder.member("labels");
        template.parts.extend(labels.iter().map(|labels| labels.value));
        template.labels.extend(labels);
        template.annotations.extend(holder.member("annotations"));
    }
    template
}
