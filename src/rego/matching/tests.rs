use pretty_assertions::assert_eq;

use super::*;
use crate::review;

fn body(kind: &str, group: &str, operation: &str, labels: &str) -> String {
    format!(
        r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"u","kind":{{"group":"{group}","version":"v1","kind":"{kind}"}},"namespace":"team-a","operation":"{operation}","object":{{"metadata":{{"labels":{labels}}}}}}}}}"#
    )
}

fn fits(text: &str, kind: &str, group: &str, operation: &str, labels: &str, gpu: bool) -> bool {
    let body = body(kind, group, operation, labels);
    let request = review::decode(body.as_bytes()).unwrap();
    Match::parse(text).unwrap().may_match(&request, gpu)
}

#[test]
fn what_is_given_has_to_hold() {
    for (text, wanted) in [
        ("", true),
        ("kinds: [Deployment]", true),
        ("kinds: [Deployment.apps]", true),
        ("kinds: [Deployment.batch]", false),
        ("kinds: ['*']", true),
        ("kinds: [Pod]", false),
        ("kinds: [{apiGroups: [apps], kinds: [Deployment, StatefulSet]}]", true),
        ("kinds: [{apiGroups: [''], kinds: ['*']}]", false),
        ("namespaces: [team-*]", true),
        ("namespaces: [ops]", false),
        ("excludedNamespaces: [team-a]", false),
        ("operations: [UPDATE]", false),
        ("operations: ['*']", true),
        ("objectSelector: {matchLabels: {app: x}}", true),
        ("objectSelector: {matchLabels: {app: y}}", false),
        ("labelSelector: {matchExpressions: [{key: app, operator: NotIn, values: [x]}]}", false),
        ("objectSelector: {matchExpressions: [{key: other, operator: DoesNotExist}]}", true),
    ] {
        assert_eq!(fits(text, "Deployment", "apps", "CREATE", r#"{"app":"x"}"#, true), wanted, "{text}");
    }
}

#[test]
fn without_kinds_it_sees_what_involves_a_gpu() {
    assert!(!fits("", "Pod", "", "CREATE", "{}", false));
    assert!(fits("kinds: [Pod]", "Pod", "", "CREATE", "{}", false));
    assert!(!fits("", "Pod", "", "DELETE", "{}", true));
}

#[test]
fn the_namespace_has_to_carry_its_labels() {
    let matches = Match::parse("namespaceSelector: {matchLabels: {gpu: 'yes'}}").unwrap();
    let labels = Labels::from([("gpu".to_owned(), "yes".to_owned())]);
    assert!(matches.matches_namespace("a", Some(&labels)));
    assert!(!matches.matches_namespace("a", Some(&Labels::new())));
    assert!(!matches.matches_namespace("a", None));
    assert!(matches.matches_namespace("", None), "what is cluster-wide is in no Namespace");
}

#[test]
fn mistakes_have_their_line() {
    let problems = Match::parse("kinds: [Pod]\noperations: [REMOVE]").unwrap_err();
    assert_eq!((problems[0].line, problems[0].file.as_str()), (2, ANNOTATION));
    let selector = "objectSelector: {matchExpressions: [{key: a, operator: In}]}";
    assert!(Match::parse(selector).unwrap_err()[0].message.contains("needs values"));
}

#[test]
fn what_can_never_match_is_told() {
    for (text, says) in [
        ("operations: [DELETE]", Some("sees nothing at all")),
        ("operations: [CREATE, DELETE, CONNECT]", Some("no request of DELETE or CONNECT does: name the kinds")),
        ("operations: ['*']", None),
        ("kinds: [Pod]\noperations: [DELETE]", None),
        ("", None),
    ] {
        let told = Match::parse(text).unwrap().weaknesses().map(|told| told.message);
        assert_eq!(told.is_some(), says.is_some(), "{text}: {told:?}");
        assert!(told.unwrap_or_default().contains(says.unwrap_or_default()), "{text}");
    }
}
