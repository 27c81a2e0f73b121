//! Objects that nobody would write: no shape ends the process, and no size takes longer than its length allows.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::tests::{check_places, fixtures};
use crate::json;
use crate::workload::kinds::{MOST_TEMPLATES, known, templates};

/// The keys on which the readers act, so that random objects get past their first step.
const KEYS: &[&str] = &[
    "spec",
    "template",
    "metadata",
    "labels",
    "annotations",
    "containers",
    "initContainers",
    "name",
    "image",
    "resources",
    "steps",
    "dag",
    "tasks",
    "inline",
    "templates",
    "templateDefaults",
    "container",
    "script",
    "sidecars",
    "driver",
    "executor",
    "gpu",
    "quantity",
    "predictor",
    "model",
    "workerSpec",
    "canary",
    "headGroupSpec",
    "workerGroupSpecs",
    "jobTemplate",
    "workflowSpec",
    "podSpecPatch",
    "trainer",
    "resourcesPerNode",
    "podTemplateOverrides",
    "targetJobs",
    "replicatedJobs",
    "podMetadata",
    "nodeSelector",
    "a~/b",
    "",
];

fn key() -> impl Strategy<Value = String> {
    prop::sample::select(KEYS).prop_map(str::to_owned)
}

fn any_json() -> impl Strategy<Value = Value> {
    let text = prop_oneof![Just("x".to_owned()), Just("{{gpu}}".to_owned()), key()];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        text.prop_map(Value::from)
    ];
    leaf.prop_recursive(10, 120, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key(), inner, 0..6).prop_map(|all| Value::Object(all.into_iter().collect())),
        ]
    })
}

/// Reads the object as every kind there is, and as one that nobody knows.
fn read_as_all_kinds(value: &Value) {
    let text = value.to_string();
    let object = json::parse(text.as_bytes()).unwrap();
    for (group, kind) in known().chain([("things.example.test", "Widget"), ("", "ConfigMap")]) {
        for template in templates(group, kind, &object, &[]) {
            check_places(&object, value, &template);
        }
    }
}

/// Puts a value in place of the one at the n-th place of the tree, counted from the root.
fn replace(value: &mut Value, place: &mut usize, with: &Value) {
    if *place == 0 {
        *value = with.clone();
    }
    *place = place.wrapping_sub(1);
    match value {
        Value::Array(elements) => elements.iter_mut().for_each(|element| replace(element, place, with)),
        Value::Object(members) => members.values_mut().for_each(|member| replace(member, place, with)),
        _ => {}
    }
}

fn size(value: &Value) -> usize {
    match value {
        Value::Array(elements) => elements.iter().map(size).sum::<usize>().saturating_add(1),
        Value::Object(members) => members.values().map(size).sum::<usize>().saturating_add(1),
        _ => 1,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_object_is_answered(spec in any_json(), metadata in any_json(), template in any_json()) {
        read_as_all_kinds(&json!({"metadata": metadata, "spec": spec, "template": template}));
        read_as_all_kinds(&spec);
    }
}

#[test]
fn any_field_may_have_any_type() {
    let odd = [Value::Null, json!(7), json!("text"), json!([]), json!({}), json!([null, 1, {}]), json!({"a": null})];
    for fixture in fixtures() {
        for place in 0..size(&fixture.object) {
            for with in &odd {
                let mut value = fixture.object.clone();
                replace(&mut value, &mut place.clone(), with);
                let text = value.to_string();
                let object = json::parse(text.as_bytes()).unwrap();
                for template in templates(&fixture.group, &fixture.kind, &object, &[]) {
                    check_places(&object, &value, &template);
                }
            }
        }
    }
}

#[test]
fn large_objects_take_time_by_their_length() {
    let many = |piece: Value, count: usize| Value::from(vec![piece; count]);
    let labels: Map<String, Value> = (0..50_000).map(|n| (format!("key-{n}"), json!("value"))).collect();
    let objects = [
        ("things.example.test", "Widget", many(json!({"containers": [{"name": "a", "image": "b"}]}), 75_000)),
        ("things.example.test", "Widget", json!({"containers": many(json!({"name": "a"}), 300_000)})),
        (
            "batch.volcano.sh",
            "Job",
            json!({"spec": {"priorityClassName": "p".repeat(1 << 20),
            "tasks": many(json!({"template": {"spec": {}}}), 60_000)}}),
        ),
        (
            "argoproj.io",
            "Workflow",
            json!({"spec": {"podMetadata": {"labels": labels},
            "templateDefaults": {"sidecars": many(json!({"name": "s"}), 60_000), "podSpecPatch": "gpu".repeat(300_000)},
            "templates": many(json!({"script": {}}), 60_000)}}),
        ),
        (
            "serving.kserve.io",
            "InferenceService",
            json!({"metadata": {"labels": labels},
            "spec": {"predictor": {"containers": many(json!({}), 200_000)}, "canary": many(json!({"predictor": {"a": 1}}), 60_000)}}),
        ),
        (
            "trainer.kubeflow.org",
            "TrainJob",
            json!({"spec": {"trainer": {}, "podTemplateOverrides": many(json!({"spec": {}}), 100_000)}}),
        ),
    ];
    for (group, kind, value) in objects {
        let text = value.to_string();
        let object = json::parse(text.as_bytes()).unwrap();
        let start = Instant::now();
        let found = templates(group, kind, &object, &[]);
        let took = start.elapsed();
        assert!(took < Duration::from_secs(10), "{kind} of {} bytes, {} templates: {took:?}", text.len(), found.len());
    }
}

#[test]
fn no_object_has_more_templates_than_that() {
    let pod = r#"{"spec":{"containers":[{"name":"a","image":"b"}]}}"#;
    let many = |one: String| vec![one; MOST_TEMPLATES + 10].join(",");
    for (group, kind, object) in [
        ("argoproj.io", "Workflow", format!(r#"{{"spec":{{"templates":[{}]}}}}"#, many(r#"{"script":1}"#.to_owned()))),
        (
            "ray.io",
            "RayCluster",
            format!(r#"{{"spec":{{"workerGroupSpecs":[{}]}}}}"#, many(format!(r#"{{"template":{pod}}}"#))),
        ),
        (
            "batch.volcano.sh",
            "Job",
            format!(r#"{{"spec":{{"tasks":[{}]}}}}"#, many(format!(r#"{{"template":{pod}}}"#))),
        ),
        (
            "argoproj.io",
            "Experiment",
            format!(r#"{{"spec":{{"templates":[{}]}}}}"#, many(format!(r#"{{"template":{pod}}}"#))),
        ),
        ("example.com", "Fleet", format!(r#"{{"spec":[{}]}}"#, many(pod.to_owned()))),
    ] {
        let object = json::parse(object.as_bytes()).unwrap();
        assert_eq!(templates(group, kind, &object, &[]).len(), MOST_TEMPLATES + 1, "{kind}");
    }
}
