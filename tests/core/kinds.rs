//! Every kind of workload from the outside: what is found in it, and where.

use std::fs;

use serde_json::{Value, json};
use slicegate::config::{Config, InjectInto};
use slicegate::facts::Facts;
use slicegate::policy::decision::{Action, Decision};

use crate::judging::Judge;

/// The examples of all kinds, by file name.
fn examples() -> Vec<(String, Value)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/workloads");
    let read = |file: fs::DirEntry| {
        let all: Value = serde_saphyr::from_str(&fs::read_to_string(file.path()).unwrap()).unwrap();
        (file.file_name().to_string_lossy().replace(".yaml", ""), all["object"].clone())
    };
    let mut examples: Vec<_> = fs::read_dir(folder).unwrap().map(|file| read(file.unwrap())).collect();
    examples.sort_by(|(left, _), (right, _)| left.cmp(right));
    examples
}

/// Injection into every template.
fn everywhere() -> Judge {
    let mut config = Config::default();
    for pool in &mut config.pools {
        pool.inject.into = InjectInto::Templates;
    }
    Judge::new(config, Facts::default())
}

fn judge(object: &Value, old: &Value) -> Decision {
    everywhere().judge(object, old)
}

fn mutated(object: &Value) -> Value {
    everywhere().mutated(object)
}

#[test]
fn injection_into_any_kind_is_repeatable() {
    let mut patched = Vec::new();
    for (name, object) in examples() {
        let once = mutated(&object);
        assert_eq!(mutated(&once), once, "{name}");
        assert!(judge(&once, &Value::Null).findings.len() <= judge(&object, &Value::Null).findings.len(), "{name}");
        if once != object {
            patched.push(name);
        }
    }
    assert_eq!(patched, ["job", "notebook", "scheduledsparkapplication"]);
}

#[test]
fn an_unchanged_object_of_any_kind_is_let_through() {
    for (name, object) in examples() {
        assert!(judge(&object, &object).allowed(), "{name}");
    }
}

#[test]
fn findings_name_the_field_that_the_user_wrote() {
    let want = [
        ("inferenceservice", "spec.canary[0].predictor.model.resources.limits[nvidia.com/gpu.shared]"),
        ("inferenceservice-legacy", "spec.predictor.labels[slicegate.io/checkpoint]"),
        ("optimizationjob", "spec.trainJobTemplate.spec.trainer.resourcesPerNode.limits[nvidia.com/gpu.shared]"),
        (
            "pytorchjob",
            "spec.pytorchReplicaSpecs.worker.template.spec.containers[0].resources.limits[nvidia.com/gpu.shared]",
        ),
        ("raycluster", "spec.headGroupSpec.labels[slicegate.io/checkpoint]"),
        ("sparkapplication", "spec.executor.gpu.quantity"),
        ("volcano-job", "spec.tasks[1].template.metadata.labels[slicegate.io/checkpoint]"),
        ("workflow", "spec.templates[1].metadata.labels[slicegate.io/latency]"),
    ];
    let all: std::collections::BTreeMap<_, _> = examples().into_iter().collect();
    for (name, field) in want {
        let decision = judge(&all[name], &Value::Null);
        let denied: Vec<_> = decision.of(Action::Deny).map(|finding| finding.field.as_str()).collect();
        assert!(denied.contains(&field), "{name}: {denied:?}");
    }
}

#[test]
fn what_another_object_may_say_is_no_finding() {
    let all: std::collections::BTreeMap<_, _> = examples().into_iter().collect();
    for name in ["trainjob", "trainingruntime", "cronworkflow", "rollout-by-reference", "hollow", "by-shape-lookalike"]
    {
        let decision = judge(&all[name], &Value::Null);
        assert!(decision.findings.is_empty(), "{name}: {:?}", decision.findings);
    }
    let notes = |name: &str| judge(&all[name], &Value::Null).notes.len();
    assert_eq!(["workflow", "workflowtemplate", "sparkapplication"].map(notes), [1, 1, 1]);
}

/// A label, or a node's label, that a parameter gives shows on the Pod and not before.
#[test]
fn parameters_are_waited_for() {
    let object = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {}, "spec": {"templates": [{
        "metadata": {"labels": {"slicegate.io/latency": "{{inputs.parameters.a}}", "slicegate.io/checkpoint": "{{=b}}"}},
        "nodeSelector": {"gpu-mode": "{{inputs.parameters.c}}"},
        "container": {"image": "a", "resources": {"limits": {"nvidia.com/gpu.shared": 1}}}}]}});
    let decision = judge(&object, &Value::Null);
    assert!(decision.findings.is_empty(), "{:?}", decision.findings);
}

/// Tolerations in a template would hide those that it has from its Workflow.
#[test]
fn injection_hides_nothing() {
    let object =
        |spec: Value| json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {}, "spec": spec});
    let templates = json!([{"metadata": {"labels": {"slicegate.io/checkpoint": "true"}},
        "container": {"image": "a", "resources": {"limits": {"nvidia.com/gpu.shared": 1}}}}]);
    let hidden = object(json!({"tolerations": [{"key": "a", "operator": "Exists"}], "templates": templates}));
    assert_eq!(mutated(&hidden), hidden);
    let free = object(json!({"templates": templates}));
    assert!(mutated(&free).pointer("/spec/templates/0/tolerations").is_some());
}
