use pretty_assertions::assert_eq;

use super::*;

fn outcome(json: &str) -> Outcome {
    let mut outcome = Outcome::default();
    outcome.take_complaints("deny", false, &Value::from_json_str(json).unwrap());
    outcome
}

fn messages(json: &str) -> Vec<String> {
    outcome(json).complaints.into_iter().map(|complaint| complaint.message).collect()
}

#[test]
fn every_shape_refuses_but_false() {
    let no_reason = "rule deny refuses this and gives no reason";
    for (json, wanted) in [
        ("false", vec![]),
        ("[]", vec![]),
        ("{}", vec![]),
        ("true", vec![no_reason]),
        ("null", vec![no_reason]),
        ("42", vec!["42"]),
        (r#""text""#, vec!["text"]),
        (r#"["a", "", null, true, 7, ["x", 1]]"#, vec!["a", no_reason, no_reason, no_reason, "7", r#"["x",1]"#]),
        (r#"{"msg": "a", "path": "spec.x", "code": 1}"#, vec!["a"]),
        (r#"{"key": "said"}"#, vec!["said"]),
        (r#"{"key": true}"#, vec!["key"]),
        (r#"[{"code": 7}]"#, vec![r#"rule deny refuses this and gives no msg, only {"code":7}"#]),
        (r#"[{"msg": ""}, {}]"#, vec![r#"rule deny refuses this and gives no msg, only {"msg":""}"#, no_reason]),
    ] {
        assert_eq!(messages(json), wanted, "{json}");
    }
}

#[test]
fn path_and_fix_are_the_authors() {
    let outcome = outcome(r#"[{"msg": "m", "path": "spec.x[0]", "fix": "write y", "details": {"a": 1}}]"#);
    let Complaint { path, fix, .. } = &outcome.complaints[0];
    assert_eq!((path.as_str(), fix.as_str()), ("spec.x[0]", "write y"));
}

#[test]
fn long_texts_and_many_elements_are_cut_with_a_count() {
    let text = outcome(&format!("[\"{}\"]", "ö".repeat(20_000))).complaints.remove(0).message;
    assert!(text.len() < MAX_TEXT + 40 && text.ends_with(" bytes more)"), "{}", text.len());
    let many: Vec<String> = (0..250).map(|number| format!("\"{number}\"")).collect();
    let complaints = outcome(&format!("[{}]", many.join(","))).complaints;
    assert_eq!(complaints.len(), MAX_COMPLAINTS + 1);
    assert_eq!(complaints[MAX_COMPLAINTS].message, "and 150 more that are not shown");
}

#[test]
fn answers_of_opas_own_server_are_read() {
    let answer = |json: &str| {
        let mut outcome = Outcome::default();
        outcome.take_answer(&Value::from_json_str(json).unwrap()).map(|()| outcome)
    };
    assert_eq!(answer(r#"{"response": {"allowed": true}}"#), Ok(Outcome::default()));
    let denied = answer(r#"{"response": {"allowed": false, "status": {"reason": "no"}, "warnings": ["w"]}}"#).unwrap();
    let said: Vec<(&str, bool)> =
        denied.complaints.iter().map(|complaint| (complaint.message.as_str(), complaint.warns)).collect();
    assert_eq!(said, [("w", true), ("no", false)]);
    assert_eq!(answer(r#"{"response": {}}"#).unwrap().complaints.len(), 1, "what does not allow refuses");
    assert!(answer("{}").is_err());
    let patch = "W3sib3AiOiJhZGQiLCJwYXRoIjoiL21ldGFkYXRhL2xhYmVscy9hIiwidmFsdWUiOiJiIn1d";
    let patched = answer(&format!(r#"{{"response": {{"allowed": true, "patch": "{patch}"}}}}"#)).unwrap();
    assert_eq!(patched.patch, [serde_json::json!({"op": "add", "path": "/metadata/labels/a", "value": "b"})]);
}
