//! The election, with times of milliseconds.

use std::time::Duration;

use http::Method;
use http_body_util::BodyExt as _;
use kube::client::Body;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tower_test::mock::SendResponse;

use super::{Reply, Scene, json_reply, status};
use crate::cluster::leader::{Election, Pace};
use crate::feed::recorder::DEADLINE;

const SHORT: Pace = Pace {
    lease: Duration::from_millis(1),
    renew: Duration::from_millis(2),
    give_up: Duration::from_secs(5),
    answer: Duration::from_secs(5),
};

/// A candidate, the API server that it asks, and what it says of itself.
struct Candidate {
    scene: Scene,
    leads: watch::Receiver<bool>,
    stop: CancellationToken,
}

impl Candidate {
    fn new(pace: Pace) -> Self {
        let (told, leads) = watch::channel(false);
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let scene = Scene::start(move |client, _| {
            Election::new(client, "slicegate-system", "me".to_owned(), pace).run(told, stopped)
        });
        Self { scene, leads, stop }
    }

    /// The next request: its method, its path and its body.
    async fn asked(&mut self) -> (Method, String, Value, SendResponse<Reply>) {
        let (request, answer) = self.scene.asked().await;
        let (head, body) = request.into_parts();
        let bytes = Body::collect(body).await.unwrap().to_bytes();
        let body = serde_json::from_slice(&bytes).unwrap_or_default();
        (head.method, head.uri.path().to_owned(), body, answer)
    }

    /// Answers the look at the lease with this holder and version.
    async fn holds(&mut self, holder: &str, version: &str, seconds: i32) {
        let (method, path, _, answer) = self.asked().await;
        let wanted = "/apis/coordination.k8s.io/v1/namespaces/slicegate-system/leases/slicegate";
        assert_eq!((method, path.as_str()), (Method::GET, wanted));
        answer.send_response(json_reply(200, &lease(holder, version, seconds)));
    }

    /// The next request, which must write; answered with what was written. Gives the holder, the version and the transitions.
    async fn writes(&mut self, wanted: Method) -> (String, String, i64) {
        let (method, _, body, answer) = self.asked().await;
        assert_eq!(method, wanted);
        answer.send_response(json_reply(200, &body));
        let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let transitions = body["spec"]["leaseTransitions"].as_i64().unwrap_or_default();
        (text("/spec/holderIdentity"), text("/metadata/resourceVersion"), transitions)
    }

    async fn becomes(&mut self, leading: bool) {
        tokio::time::timeout(DEADLINE, self.leads.wait_for(|leads| *leads == leading)).await.unwrap().unwrap();
    }
}

fn lease(holder: &str, version: &str, seconds: i32) -> Value {
    json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "slicegate", "namespace": "slicegate-system", "resourceVersion": version},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": seconds, "leaseTransitions": 3,
            "renewTime": "2020-01-01T00:00:00.000000Z"}})
}

#[tokio::test]
async fn the_first_one_makes_the_lease_and_gives_it_back_at_the_end() {
    let mut candidate = Candidate::new(SHORT);
    let (_, _, _, answer) = candidate.asked().await;
    answer.send_response(json_reply(404, &status(404, "leases \"slicegate\" not found")));
    assert_eq!(candidate.writes(Method::POST).await, ("me".to_owned(), String::new(), 0));
    candidate.becomes(true).await;
    candidate.holds("me", "7", 1).await;
    assert_eq!(candidate.writes(Method::PUT).await, ("me".to_owned(), "7".to_owned(), 3));
    // Whatever it waits for when it is told to stop, the last thing that it does is to give it back.
    candidate.stop.cancel();
    candidate.becomes(false).await;
    let released = loop {
        let (method, _, body, answer) = candidate.asked().await;
        if method == Method::PUT && body["spec"].get("holderIdentity").is_none() {
            answer.send_response(json_reply(200, &body));
            break body;
        }
    };
    assert_eq!(released["metadata"]["resourceVersion"], "7");
}

#[tokio::test]
async fn a_lease_of_another_one_counts_for_as_long_as_it_changes() {
    let mut candidate = Candidate::new(SHORT);
    // Its times are long past, which says nothing: clocks differ.
    candidate.holds("other", "1", 60).await;
    candidate.holds("other", "2", 60).await;
    assert!(!*candidate.leads.borrow());
    // One that lasts no time is over when it is seen again unchanged.
    candidate.holds("other", "3", 0).await;
    assert_eq!(candidate.writes(Method::PUT).await, ("me".to_owned(), "3".to_owned(), 4));
    candidate.becomes(true).await;
    // Another one was faster.
    candidate.holds("other", "9", 60).await;
    candidate.becomes(false).await;
    // It gave it back.
    candidate.holds("", "10", 60).await;
    assert_eq!(candidate.writes(Method::PUT).await, ("me".to_owned(), "10".to_owned(), 4));
    candidate.becomes(true).await;
}

#[tokio::test]
async fn one_that_cannot_renew_in_time_no_longer_leads_and_goes_on_trying() {
    let pace = Pace { give_up: Duration::from_millis(50), ..SHORT };
    let mut candidate = Candidate::new(pace);
    candidate.holds("", "1", 1).await;
    candidate.writes(Method::PUT).await;
    candidate.becomes(true).await;
    // The API server answers nothing at all.
    let mut held = Vec::new();
    let (_, _, _, answer) = candidate.asked().await;
    held.push(answer);
    candidate.becomes(false).await;
    candidate.scene.asked().await.1.send_error("connection refused");
    candidate.holds("", "2", 1).await;
    let (_, _, _, answer) = candidate.asked().await;
    answer.send_response(json_reply(409, &status(409, "the object has been modified")));
    candidate.holds("me", "3", 1).await;
    candidate.writes(Method::PUT).await;
    candidate.becomes(true).await;
}
