//! Any object, and any operations of a policy, as what is completed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use json_patch::{AddOperation, Patch, PatchOperation, jsonptr::PointerBuf};
use serde_json::Value;
use slicegate::json::{self, Json};
use slicegate::policy::decision::{Action, Change, Decision};
use slicegate::policy::patches::Patched;
use slicegate::policy::{Phase, decide};
use slicegate::review::decode;
use slicegate::review::response::encode;

use super::{parts, scenes};

/// The parts: a byte that chooses the configuration, before an object; operations, as a list.
pub fn body(data: &[u8]) {
    let Some((choice, data)) = data.split_first() else { return };
    let mut parts = parts(data);
    let Some(object) = parts.next() else { return };
    let Ok(tree) = json::parse(object) else { return };
    let value = tree.to_value();
    if let Some(Ok(operations)) = parts.next().map(serde_json::from_slice::<Vec<Value>>) {
        by_policies(&value, &operations);
    }
    by_itself(*choice, &tree);
}

/// What is kept of a policy's operations applies to the object and is all there; the same ones add nothing again.
fn by_policies(object: &Value, operations: &[Value]) {
    let mut patched = Patched::new(object.clone());
    patched.take("set", operations);
    let changes = patched.changes.iter().map(|(_, change)| change.clone());
    assert_eq!(applied(object, &changes.collect::<Vec<_>>()), patched.object);
    let mut again = Patched::new(patched.object.clone());
    again.take("set", operations);
    assert_eq!(again.changes, Vec::new(), "a second run is empty");
}

fn applied(object: &Value, changes: &[Change]) -> Value {
    let operation = |change: &Change| {
        let path = PointerBuf::parse(change.pointer.as_str()).expect("a change has a pointer");
        PatchOperation::Add(AddOperation { path, value: change.value.clone() })
    };
    let mut object = object.clone();
    json_patch::patch(&mut object, &Patch(changes.iter().map(operation).collect())).expect("it applies");
    object
}

/// The built-in injection applies, a second run is empty, and it changes no verdict.
fn by_itself(choice: u8, object: &Json<'_>) {
    let before = object.to_value();
    let text = before.to_string();
    // A number that no double holds is another one after this, and another verdict is right then.
    if json::parse(text.as_bytes()).as_ref() != Ok(object) {
        return;
    }
    let Some(patch) = injected(choice, &text).filter(|patch| !patch.is_empty()) else { return };
    let patch: Patch = serde_json::from_slice(&STANDARD.decode(patch).expect("it is base64")).expect("it is a patch");
    let mut after = before.clone();
    json_patch::patch(&mut after, &patch).expect("it applies");
    let after_text = after.to_string();
    assert_eq!(injected(choice, &after_text).as_deref(), Some(""), "a second run is empty");
    let verdict = |text: &str| judged(choice, text).map(|decision| essence(&decision));
    assert_eq!(verdict(&text), verdict(&after_text), "completing changes no verdict");
}

/// The patch of an object that is made, empty where there is none; nothing where it cannot be reviewed.
fn injected(choice: u8, object: &str) -> Option<String> {
    let review = review(object)?;
    let request = decode(review.as_bytes()).ok()?;
    let (policy, facts) = (scenes::policy(choice), scenes::facts());
    let decision = decide(Phase::Mutate, &request, policy, facts, &[], Timestamp::UNIX_EPOCH);
    let encoded = encode(Phase::Mutate, &request, &decision, "d");
    assert_eq!(encoded.patch_error, None);
    let answer: Value = serde_json::from_slice(&encoded.body).expect("an answer is JSON");
    Some(answer["response"]["patch"].as_str().unwrap_or_default().to_owned())
}

fn judged(choice: u8, object: &str) -> Option<Decision> {
    let review = review(object)?;
    let request = decode(review.as_bytes()).ok()?;
    Some(decide(Phase::Validate, &request, scenes::policy(choice), scenes::facts(), &[], Timestamp::UNIX_EPOCH))
}

/// Findings by what they are about.
fn essence(decision: &Decision) -> Vec<(Action, String)> {
    let mut all: Vec<_> = decision.findings.iter().map(|finding| (finding.action, finding.identity.clone())).collect();
    all.sort();
    all
}

/// The review of an object that is made, of the kind that it says it is.
pub fn review(object: &str) -> Option<String> {
    let tree = json::parse(object.as_bytes()).ok()?;
    let version = tree.text("apiVersion").unwrap_or("v1");
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let kind = serde_json::json!({"group": group, "version": version, "kind": tree.text("kind").unwrap_or("Pod")});
    let user = r#"{"username":"kim"}"#;
    Some(format!(
        r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"u","kind":{kind},"namespace":"blue","operation":"CREATE","userInfo":{user},"object":{object},"oldObject":null}}}}"#
    ))
}
