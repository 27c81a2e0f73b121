//! An object judged and completed by the bytes that the API server would send and get.

use jiff::Timestamp;
use serde_json::{Value, json};
use slicegate::config::Config;
use slicegate::facts::Facts;
use slicegate::policy::decision::Decision;
use slicegate::policy::{Phase, Policy, decide};
use slicegate::review::decode;
use slicegate::review::response::encode;

/// The review of an object that is made, or that changes where there is an old one.
pub(crate) fn review(object: &Value, old: &Value) -> String {
    let version = object["apiVersion"].as_str().unwrap();
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let kind = json!({"group": group, "version": version, "kind": object["kind"]});
    let operation = if old.is_null() { "CREATE" } else { "UPDATE" };
    let request = json!({"uid": "u", "kind": kind, "namespace": "blue", "operation": operation,
        "userInfo": {"username": "kim"}, "object": object, "oldObject": old});
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).to_string()
}

/// What is in force and known while objects are judged.
pub(crate) struct Judge {
    pub(crate) policy: Policy,
    pub(crate) facts: Facts,
}

impl Judge {
    pub(crate) fn new(config: Config, facts: Facts) -> Self {
        Self { policy: Policy { config, digest: "default".to_owned() }, facts }
    }

    /// The verdict on an object.
    pub(crate) fn judge(&self, object: &Value, old: &Value) -> Decision {
        let body = review(object, old);
        let request = decode(body.as_bytes()).unwrap();
        decide(Phase::Validate, &request, &self.policy, &self.facts, &[], Timestamp::UNIX_EPOCH)
    }

    /// The object after mutation, by the bytes that would be sent.
    pub(crate) fn mutated(&self, object: &Value) -> Value {
        let body = review(object, &Value::Null);
        let request = decode(body.as_bytes()).unwrap();
        let decision = decide(Phase::Mutate, &request, &self.policy, &self.facts, &[], Timestamp::UNIX_EPOCH);
        let encoded = encode(Phase::Mutate, &request, &decision, "default");
        assert_eq!(encoded.patch_error, None);
        let answer: Value = serde_json::from_slice(&encoded.body).unwrap();
        let mut patched = object.clone();
        if let Some(patch) = answer.pointer("/response/patch").and_then(Value::as_str) {
            let patch = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, patch).unwrap();
            json_patch::patch(&mut patched, &serde_json::from_slice::<json_patch::Patch>(&patch).unwrap()).unwrap();
        }
        patched
    }
}
