//! The watches against an API server at the level of HTTP: each test says what it answers.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::channel::mpsc::{UnboundedSender, unbounded};
use http::header::ACCEPT;
use http::{Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use kube::Client;
use kube::client::Body;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tower_test::mock::{Handle, SendResponse};

use super::Cluster;
use super::read::{self, ConfigMap};
use super::watch::{Pace, follow};
use crate::facts::{Event, Facts, Labels};
use crate::feed::recorder::{DEADLINE, Record, Told, recorder};
use crate::feed::{Sink, Watched};

mod lastgood;
mod lead;
mod leader;
mod policies;
mod routes;

type Reply = Response<UnsyncBoxBody<Bytes, Infallible>>;

const PACE: Pace = Pace {
    first: Duration::from_millis(1),
    longest: Duration::from_millis(2),
    calm: Duration::from_mins(1),
    answer: Duration::from_secs(5),
    watch: Duration::from_mins(1),
};

/// A running watch, the API server that it asks, and what it told.
struct Scene {
    api: Handle<Request<Body>, Reply>,
    told: Record,
    task: JoinHandle<()>,
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Scene {
    fn of_nodes() -> Self {
        Self::start(|client, sink| async move {
            let mut reader = read::Facts::new(read::NODES, Arc::clone(&sink));
            let tell = |problem| sink.source_problem(Watched::Nodes, problem);
            follow(&client, &reader.source(), PACE, &mut reader, &tell).await;
        })
    }

    fn of_configuration() -> Self {
        Self::start(|client, sink| async move {
            let mut reader =
                ConfigMap::new("slicegate-system", Arc::clone(&sink), tokio::sync::watch::Sender::default());
            let tell = |problem| sink.source_problem(Watched::Configuration, problem);
            follow(&client, &ConfigMap::source("slicegate-system"), PACE, &mut reader, &tell).await;
        })
    }

    fn start<F: Future<Output = ()> + Send + 'static>(run: impl FnOnce(Client, Arc<dyn Sink>) -> F) -> Self {
        let (service, api) = tower_test::mock::pair::<Request<Body>, Reply>();
        let (sink, told) = recorder();
        let task = tokio::spawn(run(Client::new(service, "default"), sink));
        Self { api, told, task }
    }

    /// The next request of the watch.
    async fn asked(&mut self) -> (Request<Body>, SendResponse<Reply>) {
        tokio::time::timeout(DEADLINE, self.api.next_request()).await.expect("a request").expect("a client")
    }

    /// The next request, which must be a list and not one of a watch.
    async fn lists(&mut self) -> SendResponse<Reply> {
        let (request, answer) = self.asked().await;
        assert!(!query(&request).contains("watch="), "{}", request.uri());
        answer
    }

    /// The next request, which must watch from this version; what is sent to the answer comes out of the watch.
    async fn watches(&mut self, version: &str) -> UnboundedSender<Value> {
        let (request, answer) = self.asked().await;
        let query = query(&request);
        assert!(query.contains("watch=true") && query.contains(&format!("resourceVersion={version}")), "{query}");
        let (events, lines) = unbounded::<Value>();
        let lines = lines.map(|event| Ok(Frame::data(Bytes::from(format!("{event}\n")))));
        answer.send_response(Response::new(UnsyncBoxBody::new(StreamBody::new(lines))));
        events
    }

    async fn told(&mut self) -> Told {
        self.told.next().await
    }

    fn silent(&mut self) -> bool {
        self.told.silent()
    }
}

fn query<B>(request: &Request<B>) -> &str {
    request.uri().query().unwrap_or_default()
}

fn json_reply(code: u16, body: &Value) -> Reply {
    let body = Full::new(Bytes::from(body.to_string()));
    let mut reply = Response::new(UnsyncBoxBody::new(body.map_err(|never| match never {})));
    *reply.status_mut() = StatusCode::from_u16(code).unwrap();
    reply
}

fn page(version: &str, next: &str, items: &[Value]) -> Reply {
    let metadata = json!({"resourceVersion": version, "continue": next});
    json_reply(200, &json!({"apiVersion": "v1", "kind": "List", "metadata": metadata, "items": items}))
}

fn status(code: u16, message: &str) -> Value {
    let reason = if code == 404 { "NotFound" } else { "" };
    json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message})
}

fn node(name: &str, version: &str) -> Value {
    json!({"metadata": {"name": name, "resourceVersion": version, "labels": {"gpu-mode": "shared"}}})
}

fn known(name: &str) -> (String, Labels) {
    (name.to_owned(), Labels::from([("gpu-mode".to_owned(), "shared".to_owned())]))
}

fn event(kind: &str, object: &Value) -> Value {
    json!({"type": kind, "object": object})
}

fn send(events: &UnboundedSender<Value>, kind: &str, object: &Value) {
    events.unbounded_send(event(kind, object)).unwrap();
}

#[tokio::test]
async fn pages_make_one_list_and_changes_follow() {
    let mut scene = Scene::of_nodes();
    let (request, answer) = scene.asked().await;
    assert_eq!(request.uri().path(), "/api/v1/nodes");
    assert!(request.headers()[ACCEPT].to_str().unwrap().contains("as=PartialObjectMetadataList"));
    answer.send_response(page("4", "more", &[node("n1", "1")]));
    let (request, answer) = scene.asked().await;
    assert!(query(&request).contains("continue=more"), "{}", request.uri());
    assert!(scene.silent());
    answer.send_response(page("4", "", &[node("n2", "2")]));
    assert_eq!(scene.told().await, Told::Fact(Event::Nodes(vec![known("n1"), known("n2")])));
    assert_eq!(scene.told().await, Told::Synced(Watched::Nodes));

    let events = scene.watches("4").await;
    send(&events, "ADDED", &node("n3", "5"));
    send(&events, "DELETED", &node("n1", "6"));
    send(&events, "BOOKMARK", &json!({"apiVersion": "v1", "kind": "Node", "metadata": {"resourceVersion": "9"}}));
    let (name, labels) = known("n3");
    assert_eq!(scene.told().await, Told::Fact(Event::Node(name, labels)));
    assert_eq!(scene.told().await, Told::Fact(Event::NodeGone("n1".into())));
    drop(events);
    // The end of a watch is no trouble: it goes on where it was.
    let _events = scene.watches("9").await;
    assert!(scene.silent());
}

#[tokio::test]
async fn a_new_list_opens_no_gap() {
    let mut scene = Scene::of_nodes();
    scene.lists().await.send_response(page("4", "", &[node("n1", "1"), node("n2", "2")]));
    let Told::Fact(listed) = scene.told().await else { panic!("no list") };
    let before = Facts::default().after(listed).unwrap();
    assert_eq!(scene.told().await, Told::Synced(Watched::Nodes));
    let events = scene.watches("4").await;
    send(&events, "ERROR", &status(410, "too old resource version"));

    // All through the new list, one that expires half-way included, nothing is told, so the old state stays.
    scene.lists().await.send_response(page("8", "more", &[]));
    scene.lists().await.send_response(json_reply(410, &status(410, "the continue token expired")));
    assert_eq!(scene.told().await, Told::Source(Watched::Nodes, Some("the continue token expired".into())));
    scene.lists().await.send_response(page("9", "more", &[node("n2", "2")]));
    let rest = scene.lists().await;
    assert!(scene.silent());
    rest.send_response(page("9", "", &[node("n3", "7")]));
    assert_eq!(scene.told().await, Told::Source(Watched::Nodes, None));
    let Told::Fact(listed) = scene.told().await else { panic!("no list") };
    assert_eq!(listed, Event::Nodes(vec![known("n2"), known("n3")]));
    let after = before.after(listed).unwrap();
    assert_eq!(
        (before.node("n1").is_some(), after.node("n1").is_some(), after.node("n3").is_some()),
        (true, false, true)
    );
    assert_eq!(scene.told().await, Told::Synced(Watched::Nodes));
    let _events = scene.watches("9").await;
}

#[tokio::test]
async fn malformed_objects_stop_nothing() {
    let mut scene = Scene::of_nodes();
    let nameless = json!({"metadata": {"resourceVersion": "1"}});
    let odd = json!({"metadata": {"name": "odd", "resourceVersion": "2", "labels": {"gpu-mode": "shared", "n": 7}}});
    scene.lists().await.send_response(page("4", "", &[nameless.clone(), odd, json!("no object"), node("n1", "3")]));
    assert_eq!(scene.told().await, Told::Fact(Event::Nodes(vec![known("odd"), known("n1")])));
    assert_eq!(scene.told().await, Told::Synced(Watched::Nodes));
    let events = scene.watches("4").await;
    send(&events, "ADDED", &nameless);
    send(&events, "MODIFIED", &json!({"metadata": {"name": "n1", "resourceVersion": "5", "labels": ["x"]}}));
    send(&events, "ADDED", &node("n2", "6"));
    assert_eq!(scene.told().await, Told::Fact(Event::Node("n1".into(), Labels::new())));
    let (name, labels) = known("n2");
    assert_eq!(scene.told().await, Told::Fact(Event::Node(name, labels)));
}

#[tokio::test]
async fn losing_the_api_server_changes_nothing_that_is_known() {
    let mut scene = Scene::of_nodes();
    scene.lists().await.send_response(page("4", "", &[node("n1", "1")]));
    assert_eq!(scene.told().await, Told::Fact(Event::Nodes(vec![known("n1")])));
    assert_eq!(scene.told().await, Told::Synced(Watched::Nodes));
    drop(scene.watches("4").await);
    // It ended at once, and then nobody listens any more, for a while.
    assert_eq!(scene.told().await, Told::Source(Watched::Nodes, Some("the watch ended as soon as it began".into())));
    for _ in 0..3 {
        scene.asked().await.1.send_error("connection refused");
    }
    let Told::Source(Watched::Nodes, Some(problem)) = scene.told().await else { panic!("no problem") };
    assert!(problem.contains("connection refused"), "{problem}");
    let events = scene.watches("4").await;
    assert_eq!(scene.told().await, Told::Source(Watched::Nodes, None));
    send(&events, "ADDED", &node("n2", "5"));
    let (name, labels) = known("n2");
    assert_eq!(scene.told().await, Told::Fact(Event::Node(name, labels)));
}

#[tokio::test]
async fn a_refusal_says_what_to_do_and_a_restored_storage_is_listed_anew() {
    let mut scene = Scene::of_nodes();
    let refused = status(403, "nodes is forbidden");
    scene.lists().await.send_response(json_reply(403, &refused));
    let told = "nodes is forbidden; the service account lacks a role, deploy/slicegate.yaml has it";
    assert_eq!(scene.told().await, Told::Source(Watched::Nodes, Some(told.into())));
    scene.lists().await.send_response(page("4", "", &[]));
    assert_eq!(scene.told().await, Told::Source(Watched::Nodes, None));
    assert_eq!(scene.told().await, Told::Fact(Event::Nodes(vec![])));
    assert_eq!(scene.told().await, Told::Synced(Watched::Nodes));
    let (_, answer) = scene.asked().await;
    answer.send_response(json_reply(504, &status(504, "Too large resource version: 4, current: 2")));
    scene.lists().await.send_response(page("2", "", &[node("n1", "1")]));
    let _events = scene.watches("2").await;
}

fn config_map(version: &str, data: &Value) -> Value {
    let metadata = json!({"name": "slicegate-config", "namespace": "slicegate-system", "resourceVersion": version});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
}

const GOOD: &str = "apiVersion: slicegate.io/v1alpha1\nkind: Config\nenforcement: warn\n";

#[tokio::test]
async fn without_a_config_map_the_defaults_hold_until_one_comes() {
    let mut scene = Scene::of_configuration();
    let (request, answer) = scene.asked().await;
    assert_eq!(request.uri().path(), "/api/v1/namespaces/slicegate-system/configmaps");
    assert!(query(&request).contains("fieldSelector=metadata.name%3Dslicegate-config"), "{}", request.uri());
    answer.send_response(page("4", "", &[]));
    assert_eq!(scene.told().await, Told::Policy("default".into()));
    assert_eq!(scene.told().await, Told::Synced(Watched::Configuration));

    let events = scene.watches("4").await;
    send(&events, "ADDED", &config_map("5", &json!({"config.yaml": GOOD})));
    // `printf '...' | sha256sum` of the same text.
    let digest = "6a8943f7269cfb554ae7eb3febaa03d6a304a0e48140a2df6025d19363ca3cac";
    let Told::Policy(told) = scene.told().await else { panic!("no policy") };
    assert_eq!(told, digest);
    assert_eq!(scene.told().await, Told::Synced(Watched::Configuration));

    // What cannot be used, and a deletion, keep it; the same text again is no news but that all is well.
    for (kind, data, word) in [
        ("MODIFIED", json!({"config.yml": GOOD}), "the key config.yaml is missing"),
        ("MODIFIED", json!({"config.yaml": 7}), "the key config.yaml is not a text"),
        ("DELETED", json!({"config.yaml": 7}), "it was deleted"),
    ] {
        send(&events, kind, &config_map("6", &data));
        let Told::Configuration(Some(problem)) = scene.told().await else { panic!("no problem") };
        let kept = format!("\nthe last good one stays in force: {digest}");
        assert_eq!(problem, format!("ConfigMap slicegate-system/slicegate-config: {word}{kept}"));
    }
    send(&events, "ADDED", &config_map("8", &json!({"config.yaml": GOOD})));
    assert_eq!(scene.told().await, Told::Configuration(None));
    assert_eq!(scene.told().await, Told::Synced(Watched::Configuration));
}

#[tokio::test]
async fn a_bad_start_is_no_start_and_is_repaired_live() {
    let mut scene = Scene::of_configuration();
    scene.lists().await.send_response(page("4", "", &[config_map("3", &json!({}))]));
    let Told::Configuration(Some(problem)) = scene.told().await else { panic!("no problem") };
    assert!(problem.contains("there is no last good one"), "{problem}");
    let events = scene.watches("4").await;
    assert!(scene.silent());
    send(&events, "MODIFIED", &config_map("5", &json!({"config.yaml": GOOD})));
    assert!(matches!(scene.told().await, Told::Policy(_)));
    assert_eq!(scene.told().await, Told::Configuration(None));
    assert_eq!(scene.told().await, Told::Synced(Watched::Configuration));
}

#[tokio::test]
async fn a_namespace_is_read_once() {
    let (service, mut api) = tower_test::mock::pair::<Request<Body>, Reply>();
    let cluster = Cluster::new(Client::new(service, "default"), "slicegate-system".into());
    let served = tokio::spawn(async move {
        let (request, answer) = api.next_request().await.unwrap();
        assert_eq!(request.uri().path(), "/api/v1/namespaces/blue");
        assert!(request.headers()[ACCEPT].to_str().unwrap().contains("as=PartialObjectMetadata"));
        let kind = json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
            "metadata": {"name": "blue", "labels": {"gpu-mode": "shared"}}});
        answer.send_response(json_reply(200, &kind));
        let (_, answer) = api.next_request().await.unwrap();
        answer.send_response(json_reply(404, &status(404, "namespaces \"red\" not found")));
        api.next_request().await.unwrap().1.send_error("connection refused");
    });
    assert_eq!(cluster.namespace_labels("blue").await.unwrap(), Some(known("blue").1));
    assert_eq!(cluster.namespace_labels("red").await.unwrap(), None);
    let error = cluster.namespace_labels("green").await.unwrap_err().to_string();
    assert!(error.starts_with("namespace green cannot be read: ") && error.contains("refused"), "{error}");
    served.await.unwrap();
}
