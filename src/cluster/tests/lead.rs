//! The leader's writing, request by request.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use tokio::sync::watch;
use tower_test::mock::SendResponse;

use super::{Reply, Scene, json_reply, page, status as failure};
use crate::cluster::lastgood::Store;
use crate::cluster::lead::{Pace, Told, Writer};
use crate::cluster::status::status;
use crate::policy::decision::Action;
use crate::rego::set::{Key, Set};
use crate::rego::state::{SetReport, State};
use crate::rego::unit::Unit;

const PACE: Pace = Pace {
    retry: Duration::from_millis(1),
    longest: Duration::from_millis(2),
    again: Duration::from_mins(10),
    answer: Duration::from_secs(10),
};
const MAP: &str = "/api/v1/namespaces/n/configmaps/a";
const SECRET: &str = "/api/v1/namespaces/n/secrets/slicegate-last-good-a";
const EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/n/events";

/// A replica that writes, and what it is told.
struct Writing {
    scene: Scene,
    reports: watch::Sender<Arc<Vec<SetReport>>>,
    leads: watch::Sender<bool>,
    _configuration: watch::Sender<Option<Arc<str>>>,
}

impl Writing {
    fn start(reports: Vec<SetReport>) -> Self {
        let (reports, reported) = watch::channel(Arc::new(reports));
        let (configuration, configured) = watch::channel(None);
        let (leads, leading) = watch::channel(false);
        let told = Told { reports: reported, configuration: configured, leads: leading };
        let scene = Scene::start(|client, _| async move {
            let store = Store::new(client.clone(), "n", &["n".to_owned()]);
            Writer::new(client, store, "me".to_owned(), PACE).run(told).await;
        });
        Self { scene, reports, leads, _configuration: configuration }
    }

    /// The next request, which must be this one.
    async fn asks(&mut self, method: Method, path: &str) -> SendResponse<Reply> {
        let (request, answer) = self.scene.asked().await;
        assert_eq!((request.method(), request.uri().path()), (&method, path));
        answer
    }

    /// The list of what is kept, which is looked at once for each time that a replica begins to lead.
    async fn prunes(&mut self) {
        self.asks(Method::GET, "/api/v1/namespaces/n/secrets").await.send_response(page("1", "", &[]));
    }
}

fn report() -> SetReport {
    let key = Key { namespace: "n".to_owned(), name: "a".to_owned() };
    let files = BTreeMap::from([("a.rego".to_owned(), "package a".to_owned())]);
    let unit = Unit::new(Set::of_files(key.clone(), "true", &BTreeMap::new(), files), &BTreeMap::new());
    SetReport {
        key,
        digest: unit.digest.clone(),
        state: State::Loaded,
        action: Action::Deny,
        engine: "rego.v1",
        modules: 1,
        errors: vec![],
        warnings: vec![],
        offered: unit.digest.clone(),
        in_force: Some(Arc::new(unit)),
    }
}

fn metadata(metadata: &Value) -> Reply {
    let kind = json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": metadata});
    json_reply(200, &kind)
}

fn map(annotations: &Value) -> Reply {
    let labels = json!({"slicegate.io/policy": "true"});
    metadata(&json!({"name": "a", "namespace": "n", "uid": "u", "labels": labels, "annotations": annotations}))
}

fn secret(digest: &str) -> Reply {
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "u"});
    metadata(&json!({"name": "slicegate-last-good-a", "namespace": "n", "ownerReferences": [owner],
        "annotations": {"slicegate.io/digest": digest}}))
}

#[tokio::test]
async fn what_stands_there_already_is_not_written_again() {
    let report = report();
    let mut writing = Writing::start(vec![report.clone()]);
    writing.leads.send_replace(true);
    writing.asks(Method::GET, MAP).await.send_response(map(&json!({"slicegate.io/status": status(&report)})));
    writing.asks(Method::GET, SECRET).await.send_response(secret(&report.digest));
    writing.prunes().await;
    // The same once more makes no request: the next one is for what differs.
    writing.reports.send_replace(Arc::new(vec![report.clone()]));
    let rejected = SetReport { state: State::Rejected, ..report };
    writing.reports.send_replace(Arc::new(vec![rejected]));
    writing.asks(Method::GET, MAP).await.send_response(map(&json!({})));
    let answer = writing.asks(Method::PATCH, MAP).await;
    answer.send_response(map(&json!({})));
    writing.asks(Method::POST, EVENTS).await.send_response(json_reply(201, &json!({"metadata": {}})));
}

#[tokio::test]
async fn what_failed_is_tried_again_and_an_event_is_made_once() {
    let report = report();
    let mut writing = Writing::start(vec![report.clone()]);
    writing.leads.send_replace(true);
    writing.asks(Method::GET, MAP).await.send_response(map(&json!({})));
    writing.asks(Method::PATCH, MAP).await.send_response(json_reply(409, &failure(409, "the uid is another")));
    writing.prunes().await;
    writing.asks(Method::GET, MAP).await.send_response(map(&json!({})));
    writing.asks(Method::PATCH, MAP).await.send_response(map(&json!({})));
    writing.asks(Method::POST, EVENTS).await.send_response(json_reply(403, &failure(403, "no events here")));
    writing.asks(Method::GET, SECRET).await.send_error("connection refused");
    writing.prunes().await;
    writing.asks(Method::GET, MAP).await.send_response(map(&json!({"slicegate.io/status": status(&report)})));
    writing.asks(Method::GET, SECRET).await.send_response(json_reply(404, &failure(404, "not found")));
    let (request, answer) = writing.scene.asked().await;
    assert_eq!((request.method(), request.uri().path()), (&Method::PATCH, SECRET));
    answer.send_response(json_reply(200, &json!({"metadata": {}})));
    writing.prunes().await;
}

#[tokio::test]
async fn a_set_that_is_gone_is_told_only_if_the_api_server_says_so() {
    let report = report();
    let mut writing = Writing::start(vec![report.clone()]);
    writing.leads.send_replace(true);
    writing.asks(Method::GET, MAP).await.send_response(map(&json!({"slicegate.io/status": status(&report)})));
    writing.asks(Method::GET, SECRET).await.send_response(secret(&report.digest));
    writing.prunes().await;
    // The ConfigMap is there, label and all: whatever became of the report, its last good form stays.
    writing.reports.send_replace(Arc::default());
    writing.asks(Method::GET, MAP).await.send_response(map(&json!({})));
    writing.reports.send_replace(Arc::new(vec![report.clone()]));
    writing.asks(Method::GET, MAP).await.send_response(map(&json!({"slicegate.io/status": status(&report)})));
    writing.asks(Method::GET, SECRET).await.send_response(secret(&report.digest));
    writing.reports.send_replace(Arc::default());
    writing.asks(Method::GET, MAP).await.send_response(json_reply(404, &failure(404, "not found")));
    // Not one of slicegate's, whatever it is called.
    writing.asks(Method::GET, SECRET).await.send_response(secret(&report.digest));
    writing.asks(Method::POST, EVENTS).await.send_response(json_reply(201, &json!({"metadata": {}})));
}

#[tokio::test]
async fn one_that_does_not_lead_asks_nothing() {
    let mut writing = Writing::start(vec![report()]);
    writing.reports.send_replace(Arc::new(vec![]));
    writing.leads.send_replace(true);
    writing.prunes().await;
    writing.leads.send_replace(false);
}
