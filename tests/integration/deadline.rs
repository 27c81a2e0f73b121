//! Namespaces that are not known yet, and what is answered when they stay unknown.

use std::sync::Arc;

use slicegate::config::{Config, OnDeadline};
use slicegate::facts::{Event, Facts, Labels};
use slicegate::policy::Policy;
use slicegate::policy::decision::Action;

use crate::support::namespaces::Namespaces;
use crate::support::reviews::{GPU, of_size, pod};
use crate::support::server::{Options, TestServer};

fn start(on_deadline: OnDeadline) -> TestServer {
    start_with(Config { on_deadline, ..Config::default() })
}

fn start_with(config: Config) -> TestServer {
    let known = Event::Namespace("known".to_owned(), Labels::new());
    TestServer::start(Options {
        policy: Some(Policy { config, digest: "test".to_owned() }),
        facts: Facts::default().after(known).unwrap(),
        namespaces: Some(Arc::new(Namespaces::with(&[]))),
        ..Options::default()
    })
}

/// Whether the request is let through, and all that the answer says.
fn ask(server: &TestServer, path: &str, namespace: &str) -> (bool, String) {
    ask_for(server, path, namespace, GPU)
}

fn ask_for(server: &TestServer, path: &str, namespace: &str, limits: &str) -> (bool, String) {
    let reply = server.post(path, &[], pod("u", namespace, limits));
    let json = reply.json();
    assert_eq!((reply.status, &json["response"]["uid"]), (200, &"u".into()));
    (json["response"]["allowed"].as_bool().unwrap(), reply.text())
}

#[test]
fn an_unknown_namespace_is_read_once_and_a_known_one_never() {
    let server = start(OnDeadline::Deny);
    for (namespace, outcome) in [("team-blue", "found"), ("missing", "missing")] {
        assert!(ask(&server, "/validate", namespace).0);
        assert_eq!(server.metric(&format!(r#"slicegate_namespace_reads_total{{outcome="{outcome}"}}"#)), 1);
    }
    ask(&server, "/validate", "known");
    let reads = server.get("/metrics").text();
    let read = |line: &&str| line.starts_with("slicegate_namespace_reads_total") && !line.ends_with(" 0");
    assert_eq!(reads.lines().filter(read).count(), 2, "{reads}");
}

#[test]
fn the_deadline_refuses_unless_told_otherwise() {
    for (on_deadline, allowed) in [(OnDeadline::Deny, false), (OnDeadline::Allow, true)] {
        let server = start(on_deadline);
        assert_eq!(ask(&server, "/validate?timeout=300ms", "stuck").0, allowed, "{on_deadline:?}");
        assert_eq!(server.metric(r#"slicegate_deadlines_total{waited_for="namespace"}"#), 1);
        assert!(ask(&server, "/validate", "known").0);
    }
}

#[test]
fn where_findings_only_warn_the_deadline_refuses_nothing() {
    let server = start_with(Config { enforcement: Action::Warn, ..Config::default() });
    assert!(ask(&server, "/validate?timeout=300ms", "stuck").0);
    assert_eq!(server.metric(r#"slicegate_deadlines_total{waited_for="namespace"}"#), 1);
}

#[test]
fn the_mutating_call_refuses_nothing() {
    let server = start(OnDeadline::Deny);
    for namespace in ["stuck", "broken"] {
        assert!(ask(&server, "/mutate?timeout=300ms", namespace).0, "{namespace}");
    }
}

#[test]
fn a_failing_source_is_as_good_as_none_in_time() {
    let server = start(OnDeadline::Deny);
    for namespace in ["broken", "panic"] {
        assert!(!ask(&server, "/validate", namespace).0, "{namespace}");
    }
    assert_eq!(server.metric("slicegate_panics_total"), 1);
    assert!(ask(&server, "/validate", "known").0);
}

#[test]
fn what_asks_for_no_gpu_waits_for_no_namespace() {
    let server = start(OnDeadline::Deny);
    for namespace in ["stuck", "broken", "panic", "missing", "team-blue"] {
        assert!(ask_for(&server, "/validate", namespace, "{}").0, "{namespace}");
    }
    let text = server.get("/metrics").text();
    let read = |line: &str| line.starts_with("slicegate_namespace_reads_total") && !line.ends_with(" 0");
    assert!(!text.lines().any(read), "{text}");
}

#[test]
fn a_large_object_that_takes_too_long_is_answered_by_the_deadline() {
    let server = start(OnDeadline::Deny);
    let (large, counted) = (of_size("u", 7 << 20), r#"slicegate_deadlines_total{waited_for="large"}"#);
    // How long it takes depends on the machine, so the time that it is given shrinks until it is too short.
    let steps = (1..=60).rev().map(|tenths| tenths * 10).chain((1..=60).rev());
    let mut shorter = steps.cycle();
    server.eventually("the deadline comes first", |server| {
        let timeout = 100 + shorter.next().unwrap();
        std::thread::scope(|scope| {
            let asked = [(); 2]
                .map(|()| scope.spawn(|| server.post(&format!("/validate?timeout={timeout}ms"), &[], large.clone())));
            for reply in asked.map(|asked| asked.join().unwrap()) {
                // Or the body itself was not there in time.
                assert!(reply.status == 408 || reply.json()["response"]["uid"] == "u", "{}", reply.text());
            }
        });
        server.metric(counted) > 0
    });
}
