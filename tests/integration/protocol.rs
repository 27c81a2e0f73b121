//! What is a review, what is none, and what either is told.

use crate::support::reviews::{of_size, plain_pod, review};
use crate::support::server::{Options, Protocol, Reply, TestServer};

const BOTH: [Protocol; 2] = [Protocol::Http1, Protocol::Http2];
const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

fn post(server: &TestServer, protocol: Protocol, path: &str, body: &str) -> Reply {
    server.send(protocol, "POST", path, &JSON, body.to_owned())
}

fn assert_healthy(server: &TestServer) {
    for protocol in BOTH {
        let reply = post(server, protocol, "/validate", &plain_pod("healthy"));
        assert_eq!((reply.status, &reply.json()["response"]["uid"]), (200, &"healthy".into()), "{protocol:?}");
    }
}

#[test]
fn a_review_is_answered_with_its_uid_on_both_paths_and_protocols() {
    let server = TestServer::start(Options::default());
    for protocol in BOTH {
        for path in ["/validate", "/mutate", "/validate?timeout=5s", "/mutate?timeout=nonsense&x=y"] {
            let reply = post(&server, protocol, path, &plain_pod("u-1"));
            assert_eq!((reply.status, reply.header("content-type")), (200, "application/json"), "{protocol:?} {path}");
            let json = reply.json();
            assert_eq!(
                (&json["apiVersion"], &json["kind"]),
                (&"admission.k8s.io/v1".into(), &"AdmissionReview".into())
            );
            assert_eq!((&json["response"]["uid"], &json["response"]["allowed"]), (&"u-1".into(), &true.into()));
        }
    }
}

#[test]
fn an_object_that_cannot_be_judged_is_a_denial_with_the_uid() {
    let server = TestServer::start(Options::default());
    let reply = server.post("/validate", &[], review("u-2", "team-blue", r#"{"a":1,"a":2}"#));
    let response = &reply.json()["response"];
    assert_eq!((reply.status, &response["uid"], &response["allowed"]), (200, &"u-2".into(), &false.into()));
    assert_healthy(&server);
}

#[test]
fn what_is_no_review_is_refused_in_plain_words() {
    let server = TestServer::start(Options::default());
    let small = plain_pod("u");
    for protocol in BOTH {
        for (method, path, headers, body, status, words) in [
            ("POST", "/", &JSON[..], small.as_str(), 404, "no such path"),
            ("POST", "/validate/", &JSON, &small, 404, "no such path"),
            ("POST", "/guards", &JSON, &small, 404, "no such path"),
            ("GET", "/validate", &[], "", 405, "sent with POST"),
            ("PUT", "/mutate", &JSON, &small, 405, "sent with POST"),
            ("POST", "/validate", &[], &small, 415, "Content-Type must be application/json"),
            ("POST", "/validate", &[("content-type", "text/json")], &small, 415, "Content-Type"),
            ("POST", "/validate", &[JSON[0], ("content-encoding", "gzip")], "\u{1f}", 415, "must not be compressed"),
            ("POST", "/validate", &JSON, "", 400, "not JSON"),
            ("POST", "/validate", &JSON, "{", 400, "not JSON"),
            ("POST", "/validate", &JSON, "{}", 400, "no AdmissionReview"),
            ("POST", "/validate", &JSON, "[]", 400, "no JSON object"),
        ] {
            let reply = server.send(protocol, method, path, headers, body.to_owned());
            assert_eq!(reply.status, status, "{protocol:?} {method} {path} {body}");
            assert!(reply.text().contains(words), "{protocol:?} {method} {path}: {}", reply.text());
            assert_eq!(reply.header("content-type"), "text/plain; charset=utf-8");
            assert_eq!(reply.header("allow"), if status == 405 { "POST" } else { "" });
        }
    }
    assert_healthy(&server);
}

#[test]
fn media_types_with_parameters_and_other_case_are_json() {
    let server = TestServer::start(Options::default());
    for value in ["application/json; charset=utf-8", "Application/JSON"] {
        assert_eq!(server.post("/validate", &[("content-type", value)], plain_pod("u")).status, 200, "{value}");
    }
}

#[test]
fn a_body_one_byte_over_the_limit_is_refused() {
    let server = TestServer::start(Options::default());
    let limit = server.app.limits.max_body;
    for protocol in BOTH {
        let reply = post(&server, protocol, "/validate", &of_size("u", limit));
        assert_eq!((reply.status, &reply.json()["response"]["uid"]), (200, &"u".into()), "{protocol:?}");
        let reply = post(&server, protocol, "/validate", &of_size("u", limit + 1));
        assert_eq!(
            (reply.status, reply.text().as_str()),
            (413, "the body is larger than 8388608 bytes\n"),
            "{protocol:?}"
        );
    }
    assert_healthy(&server);
}
