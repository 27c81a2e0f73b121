use super::*;

fn review(request: &str) -> String {
    format!(r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{request}}}"#)
}

fn pod(object: &str) -> String {
    review(&format!(
        r#"{{"uid":"u","kind":{{"group":"","version":"v1","kind":"Pod"}},"operation":"CREATE","object":{object}}}"#
    ))
}

#[test]
fn decodes_what_a_rule_may_read() {
    let body = review(
        r#"{"uid":"u-1","kind":{"group":"apps","version":"v1","kind":"Deployment"},"namespace":"blue","operation":"UPDATE",
        "userInfo":{"username":"kim","groups":["a","b"],"extra":{"x":["y"]}},"object":{"a":1},"oldObject":{"a":2},"dryRun":true}"#,
    );
    let request = decode(body.as_bytes()).unwrap();
    assert_eq!((request.uid.as_ref(), request.kind.kind.as_ref(), request.dry_run), ("u-1", "Deployment", true));
    assert_eq!(request.user, User { name: "kim".into(), groups: vec!["a".into(), "b".into()] });
    assert_eq!(request.old_object.get("a"), Some(&Json::Number("2")));
}

#[test]
fn what_is_no_review_is_a_bad_request() {
    for body in [
        "",
        "{",
        "[]",
        "null",
        "{}",
        r#"{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","request":{}}"#,
    ] {
        assert!(matches!(decode(body.as_bytes()), Err(Refused::BadRequest(_))), "{body}");
    }
    for request in ["null", "[]", "{}", r#"{"uid":"u"}"#, r#"{"uid":"u","operation":"PATCH","kind":{"kind":"Pod"}}"#] {
        assert!(matches!(decode(review(request).as_bytes()), Err(Refused::BadRequest(_))), "{request}");
    }
}

#[test]
fn an_object_that_cannot_be_judged_keeps_its_uid() {
    let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
    for object in ["null", "[]", "7", "\"pod\"", "true", r#"{"a":1,"a":2}"#, &deep, r#"{}, "object":{}"#] {
        match decode(pod(object).as_bytes()) {
            Err(Refused::Unreadable { uid, .. }) => assert_eq!(uid, "u"),
            other => panic!("{object}: {other:?}"),
        }
    }
}

#[test]
fn names_of_generated_objects_show_their_prefix() {
    let body = pod(r#"{"metadata":{"generateName":"embedder-"}}"#);
    assert_eq!(decode(body.as_bytes()).unwrap().shown_name(), "embedder-*");
}

#[test]
fn the_uid_is_found_without_judging_the_rest() {
    let broken = pod("{").replace("\"u\"", "\"u-7\"");
    assert_eq!(uid(broken.as_bytes()), Some("u-7".to_owned()));
    for body in [&b"{}"[..], b"[]", b"{\"request\":{}}", b"{\"request\":[]}", b"{\"request\":{\"uid\":7}}", b"\xff"] {
        assert_eq!(uid(body), None);
    }
}
