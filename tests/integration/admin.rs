//! The admin port.

use slicegate::config::Config;
use slicegate::policy::Policy;

use crate::support::reviews::plain_pod;
use crate::support::server::{Options, TestServer};

#[test]
fn readiness_names_its_conditions() {
    let server = TestServer::start(Options::default());
    assert_eq!((server.get("/livez").status, server.get("/readyz").text()), (200, "ok\n".to_owned()));
    let nodes = server.app.readiness.condition("nodes", "not listed yet");
    let reply = server.get("/readyz");
    assert_eq!(reply.status, 503);
    assert!(reply.text().contains("[-]nodes not listed yet\n"), "{}", reply.text());
    assert_eq!(server.get("/livez").status, 200);
    nodes.fulfil();
    let reply = server.get("/readyz?verbose");
    assert_eq!((reply.status, reply.text().as_str()), (200, "[+]nodes ok\n[+]shutdown ok\nreadyz check passed\n"));
}

#[test]
fn metrics_count_and_show_the_configuration() {
    let server = TestServer::start(Options::default());
    server.post("/validate", &[], plain_pod("u"));
    server.post("/validate", &[], "{");
    server.app.replace_policy(Policy { config: Config::default(), digest: "abc".to_owned() });
    let reply = server.get("/metrics");
    assert!(reply.header("content-type").starts_with("application/openmetrics-text"));
    for line in [
        r#"slicegate_requests_total{endpoint="validate",operation="CREATE",outcome="allowed"} 1"#,
        r#"slicegate_rejected_requests_total{reason="no-review"} 1"#,
        r#"slicegate_configuration{digest="abc"} 1"#,
        r#"slicegate_request_duration_seconds_count{endpoint="validate"} 1"#,
    ] {
        assert!(reply.text().lines().any(|there| there == line), "{line}\n{}", reply.text());
    }
}

#[test]
fn connections_are_counted_while_they_are_open() {
    let server = TestServer::start(Options::default());
    let open = r#"slicegate_connections{port="webhook"}"#;
    let held = server.block_on(async { [server.tls(&[]).await, server.tls(&[]).await] });
    assert_eq!(server.metric(open), 2);
    drop(held);
    server.eventually("none is open", |server| server.metric(open) == 0);
    assert_eq!(server.metric(r#"slicegate_connections_accepted_total{port="webhook"}"#), 2);
}

#[test]
fn other_paths_and_methods_are_none() {
    let server = TestServer::start(Options::default());
    assert_eq!(server.get("/version").json()["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!((server.get("/").status, server.get("/validate").status), (404, 404));
}
