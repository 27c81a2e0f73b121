//! The watch of the webhook configurations: when it tells, and what it does without an answer.

use std::collections::BTreeMap;

use http::Request;
use http::header::ACCEPT;
use kube::client::Body;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use tower_test::mock::SendResponse;

use super::{PACE, Reply, Scene, json_reply, page, query, status};
use crate::cluster::routes::follow_all;
use crate::feed::Watched;
use crate::feed::recorder::Told;
use crate::rego::routing::{Routes, configuration};

fn scene() -> Scene {
    Scene::start(|client, sink| async move { follow_all(&client, PACE, &sink).await })
}

/// The next requests, by their path, until this one is among them.
async fn until(
    scene: &mut Scene,
    wanted: &str,
    waiting: &mut BTreeMap<String, SendResponse<Reply>>,
) -> (Request<Body>, SendResponse<Reply>) {
    loop {
        let (request, answer) = scene.asked().await;
        if request.uri().path().ends_with(wanted) {
            return (request, answer);
        }
        waiting.insert(request.uri().path().to_owned(), answer);
    }
}

fn webhooks(resources: &[&str]) -> Value {
    let rules = json!([{"apiGroups": [""], "operations": ["CREATE"], "resources": resources, "scope": "*"}]);
    json!({"metadata": {"name": "slicegate", "resourceVersion": "3"}, "webhooks": [{"rules": rules}]})
}

#[tokio::test]
async fn all_of_it_is_told_when_all_of_it_is_known() {
    let mut scene = scene();
    let mut waiting = BTreeMap::new();
    let (request, validating) = until(&mut scene, "/validatingwebhookconfigurations", &mut waiting).await;
    assert_eq!(request.uri().path(), "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations");
    assert!(query(&request).contains("fieldSelector=metadata.name%3Dslicegate"), "{}", request.uri());
    validating.send_response(page("4", "", &[webhooks(&["pods"])]));
    let mutating = match waiting.remove("/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations") {
        Some(answer) => answer,
        None => until(&mut scene, "/mutatingwebhookconfigurations", &mut waiting).await.1,
    };
    assert!(scene.silent());
    // The other one is not there, which is another thing than not knowing yet.
    mutating.send_response(page("4", "", &[]));
    assert_eq!(scene.told().await, Told::Synced(Watched::Webhooks));
    let core = if let Some(answer) = waiting.remove("/api") {
        answer
    } else {
        let (request, answer) = until(&mut scene, "/api", &mut waiting).await;
        assert!(request.headers()[ACCEPT].to_str().unwrap().contains("as=APIGroupDiscoveryList"));
        answer
    };
    // One that is too old to tell all at once.
    core.send_response(json_reply(200, &json!({"kind": "APIVersions", "versions": ["v1"]})));
    let validating = Some(configuration(&webhooks(&["pods"])));
    assert_eq!(scene.told().await, Told::Routes(Routes { validating, mutating: None, served: None }));
}

#[tokio::test]
async fn a_refusal_is_told_and_leaves_nothing_waiting() {
    let mut scene = scene();
    let (mut told, mut seen) = (Vec::new(), 0);
    while seen < 3 {
        let (request, answer) = scene.asked().await;
        // What is asked again is refused again.
        let path = request.uri().path().to_owned();
        answer.send_response(json_reply(403, &status(403, "no")));
        if !told.contains(&path) {
            told.push(path);
            seen += 1;
        }
    }
    let mut routes = None;
    while routes.is_none() {
        match scene.told().await {
            Told::Routes(told) => routes = Some(told),
            Told::Source(Watched::Webhooks, Some(problem)) => assert!(problem.starts_with("no; "), "{problem}"),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(routes, Some(Routes::default()));
}
