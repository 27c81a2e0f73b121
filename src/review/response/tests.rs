use jiff::Timestamp;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::*;
use crate::config::Config;
use crate::facts::Facts;
use crate::policy::{Policy, decide};
use crate::review::decode;

fn answer(phase: Phase, object: &Value) -> Value {
    let review = json!({"apiVersion": API_VERSION, "kind": "AdmissionReview", "request": {"uid": "u-1",
        "kind": {"group": "", "version": "v1", "kind": "Pod"}, "namespace": "blue", "operation": "CREATE",
        "object": object}});
    let body = review.to_string();
    let request = decode(body.as_bytes()).unwrap();
    let policy = Policy { config: Config::default(), digest: "d".to_owned() };
    let decision = decide(phase, &request, &policy, &Facts::default(), &[], Timestamp::UNIX_EPOCH);
    let encoded = encode(phase, &request, &decision, &policy.digest);
    assert_eq!(encoded.patch_error, None);
    serde_json::from_slice(&encoded.body).unwrap()
}

fn pod(shares: &str) -> Value {
    json!({"metadata": {"name": "p", "labels": {"slicegate.io/checkpoint": "true"}},
        "spec": {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu.shared": shares}}}]}})
}

#[test]
fn a_refusal_says_what_where_and_how_to_mend_it() {
    let field = "spec.containers[0].resources.limits[nvidia.com/gpu.shared]";
    let what = "container \"main\" asks for 2 of nvidia.com/gpu.shared, and pool shared allows 1 per container; set it to 1 \
        (two shares do not buy twice the compute), or ask for an exclusive GPU";
    let repair = r#"[{"op":"add","path":"/spec/containers/0/resources/limits/nvidia.com~1gpu.shared","value":"1"}]"#;
    let expected = json!({"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": {
        "uid": "u-1", "allowed": false,
        "status": {"status": "Failure", "code": 403, "reason": "Forbidden",
            "message": format!("[share-limit] {field}: {what}\n(Pod blue/p)"),
            "details": {"name": "p", "group": "", "kind": "Pod",
                "causes": [{"reason": "share-limit", "message": what, "field": field},
                    {"reason": "slicegate.io/repair", "message": repair, "field": field}]}},
        "auditAnnotations": {"configuration": "d", "rules": "share-limit=deny"}}});
    assert_eq!(answer(Phase::Validate, &pod("2")), expected);
}

#[test]
fn the_mutating_call_never_denies() {
    let response = &answer(Phase::Mutate, &pod("2"))["response"];
    assert_eq!(*response, json!({"uid": "u-1", "allowed": true, "auditAnnotations": {"configuration": "d"}}));
}

#[test]
fn a_patch_completes_the_pod() {
    use base64::Engine as _;
    let response = answer(Phase::Mutate, &pod("1"));
    assert_eq!(response["response"]["patchType"], "JSONPatch");
    let patch = response["response"]["patch"].as_str().unwrap();
    let patch = base64::engine::general_purpose::STANDARD.decode(patch).unwrap();
    let patch: Value = serde_json::from_slice(&patch).unwrap();
    assert_eq!(
        patch,
        json!([
            {"op": "add", "path": "/spec/tolerations",
                "value": [{"key": "nvidia.com/gpu.shared", "operator": "Exists", "effect": "NoSchedule"}]},
            {"op": "add", "path": "/spec/nodeSelector", "value": {"gpu-mode": "shared"}},
            {"op": "add", "path": "/metadata/annotations", "value": {"slicegate.io/injected":
                "{\"fields\":[\"spec.tolerations[nvidia.com/gpu.shared:NoSchedule]\",\"spec.nodeSelector[gpu-mode]\"],\"pool\":\"shared\"}"}},
        ])
    );
}

#[test]
fn what_cannot_be_judged_is_refused_with_its_uid() {
    let answer: Value = serde_json::from_slice(&encode_unreadable("u-2", "no\nobject")).unwrap();
    assert_eq!(answer["response"]["uid"], "u-2");
    assert_eq!(answer["response"]["allowed"], false);
    assert_eq!(answer["response"]["status"]["message"], "no\\u{a}object");
}
