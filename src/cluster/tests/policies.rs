//! The watch of policies: what makes it tell, and what does not.

use std::collections::BTreeMap;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{PACE, Scene, json_reply, page, query, send, status};
use crate::cluster::policies::follow_all;
use crate::feed::Watched;
use crate::feed::recorder::Told;

fn scene(namespaces: &[&str]) -> Scene {
    let namespaces: Vec<String> = namespaces.iter().map(|&name| name.to_owned()).collect();
    Scene::start(|client, sink| async move { follow_all(&namespaces, &client, PACE, &sink).await })
}

fn policy(name: &str, version: &str, labels: &Value, status: &str, rules: &str) -> Value {
    let metadata = json!({"name": name, "namespace": "n", "resourceVersion": version, "labels": labels,
        "annotations": {"slicegate.io/status": status}});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a.rego": rules}})
}

fn labelled(name: &str, version: &str, rules: &str) -> Value {
    policy(name, version, &json!({"slicegate.io/policy": "true"}), "", rules)
}

fn offered(names: &[&str]) -> Told {
    let sets = names.iter().map(|name| (format!("n/{name}"), vec!["a.rego".to_owned()]));
    Told::Policies("n".to_owned(), sets.collect())
}

#[tokio::test]
async fn policies_are_handed_on_whole_and_only_when_a_set_changed() {
    let mut scene = scene(&["n"]);
    let (request, answer) = scene.asked().await;
    assert_eq!(request.uri().path(), "/api/v1/namespaces/n/configmaps");
    assert!(query(&request).contains("labelSelector=slicegate.io%2Fpolicy"), "{}", request.uri());
    answer.send_response(page("4", "", &[labelled("a", "1", "package a"), labelled("b", "2", "package b")]));
    assert_eq!(scene.told().await, offered(&["a", "b"]));
    assert_eq!(scene.told().await, Told::Synced(Watched::Policies));

    let events = scene.watches("4").await;
    // A status is no part of a set, and neither is a label of another's.
    let labels = json!({"slicegate.io/policy": "true", "team": "blue"});
    send(&events, "MODIFIED", &policy("a", "5", &labels, "{\"state\":\"Loaded\"}", "package a"));
    send(&events, "MODIFIED", &labelled("c", "6", "package c"));
    assert_eq!(scene.told().await, offered(&["a", "b", "c"]));
    send(&events, "MODIFIED", &labelled("a", "7", "package other"));
    assert_eq!(scene.told().await, offered(&["a", "b", "c"]));
    // The label went: a watch by label calls that a deletion, with the state before or after it.
    send(&events, "DELETED", &policy("a", "8", &json!({}), "", "package other"));
    assert_eq!(scene.told().await, offered(&["b", "c"]));
    send(&events, "DELETED", &labelled("c", "9", "package c"));
    assert_eq!(scene.told().await, offered(&["b"]));
    send(&events, "MODIFIED", &policy("b", "10", &json!({}), "", "package b"));
    assert_eq!(scene.told().await, offered(&[]));
    assert!(scene.silent());
}

#[tokio::test]
async fn a_new_list_of_policies_opens_no_gap_and_an_empty_one_counts() {
    let mut scene = scene(&["n"]);
    scene.lists().await.send_response(page("4", "", &[labelled("a", "1", "package a")]));
    assert_eq!(scene.told().await, offered(&["a"]));
    assert_eq!(scene.told().await, Told::Synced(Watched::Policies));
    let events = scene.watches("4").await;
    send(&events, "ERROR", &status(410, "too old resource version"));
    scene.lists().await.send_response(page("8", "more", &[]));
    let rest = scene.lists().await;
    assert!(scene.silent());
    rest.send_response(page("8", "", &[labelled("a", "1", "package a"), labelled("b", "7", "package b")]));
    assert_eq!(scene.told().await, offered(&["a", "b"]));
    assert_eq!(scene.told().await, Told::Synced(Watched::Policies));
    let events = scene.watches("8").await;
    send(&events, "ERROR", &status(410, "too old resource version"));
    scene.lists().await.send_response(page("9", "", &[]));
    assert_eq!(scene.told().await, offered(&[]));
}

#[tokio::test]
async fn policies_are_known_when_each_namespace_was_listed() {
    let mut scene = scene(&["n", "m"]);
    let mut answers = BTreeMap::new();
    for _ in 0..2 {
        let (request, answer) = scene.asked().await;
        answers.insert(request.uri().path().to_owned(), answer);
    }
    let mut answer = |namespace: &str, reply| {
        let answer = answers.remove(&format!("/api/v1/namespaces/{namespace}/configmaps")).unwrap();
        answer.send_response(reply);
    };
    answer("n", page("4", "", &[labelled("a", "1", "package a")]));
    assert_eq!(scene.told().await, offered(&["a"]));
    answer("m", json_reply(403, &status(403, "no")));
    let told = "namespace m: no; the service account lacks a role, deploy/slicegate.yaml has it";
    assert_eq!(scene.told().await, Told::Source(Watched::Policies, Some(told.into())));
    // The watch of the one goes on while the list of the other is tried again.
    let mut watch = None;
    loop {
        let (request, answer) = scene.asked().await;
        if request.uri().path() == "/api/v1/namespaces/m/configmaps" {
            answer.send_response(page("4", "", &[]));
            break;
        }
        watch = Some(answer);
    }
    assert_eq!(scene.told().await, Told::Source(Watched::Policies, None));
    assert_eq!(scene.told().await, Told::Policies("m".to_owned(), vec![]));
    assert_eq!(scene.told().await, Told::Synced(Watched::Policies));
    drop(watch);
}
