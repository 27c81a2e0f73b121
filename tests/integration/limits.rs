//! What bounds the server: each bound is met, told in its own way, and hurts nobody else.

use std::sync::Arc;
use std::time::Duration;

use slicegate::server::Limits;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::namespaces::Namespaces;
use crate::support::reviews::{GPU, of_size, plain_pod, pod};
use crate::support::server::{Options, Protocol, TestServer};

const SHORT: Duration = Duration::from_millis(200);

fn with(limits: Limits) -> TestServer {
    TestServer::start(Options { limits, ..Options::default() })
}

fn assert_healthy(server: &TestServer) {
    let reply = server.post("/validate", &[], plain_pod("healthy"));
    assert_eq!((reply.status, &reply.json()["response"]["uid"]), (200, &"healthy".into()));
}

/// All that comes until the other side ends the connection, by whatever means.
async fn rest(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut bytes = Vec::new();
    let reading = async { while stream.read_buf(&mut bytes).await.is_ok_and(|count| count > 0) {} };
    tokio::time::timeout(Duration::from_secs(30), reading).await.expect("the connection was not ended");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A request as HTTP/1.1 writes it.
fn request(body: &str) -> String {
    let headers = format!("host: x\r\ncontent-type: application/json\r\ncontent-length: {}", body.len());
    format!("POST /validate HTTP/1.1\r\n{headers}\r\n\r\n{body}")
}

fn ended(server: &TestServer, reason: &str) -> u64 {
    server.metric(&format!(r#"slicegate_connections_ended_total{{port="webhook",reason="{reason}"}}"#))
}

#[test]
fn a_body_that_does_not_come_is_answered_with_408() {
    let server = with(Limits { body_timeout: SHORT, ..Limits::default() });
    let text = server.block_on(async {
        let mut stream = server.tls(&[]).await;
        let head = "POST /validate HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{";
        stream.write_all(head.as_bytes()).await.unwrap();
        rest(&mut stream).await
    });
    assert!(text.starts_with("HTTP/1.1 408 ") && text.contains("did not come in time"), "{text}");
    assert_healthy(&server);
}

#[test]
fn a_head_that_does_not_come_ends_the_connection() {
    let server = with(Limits { header_timeout: SHORT, ..Limits::default() });
    for start in ["", "P", "POST /validate HTTP/1.1\r\nhost: x\r\nx-y:", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"] {
        let mut stream = server.block_on(server.tls(&[]));
        server.block_on(async {
            stream.write_all(start.as_bytes()).await.unwrap();
            rest(&mut stream).await
        });
        assert_healthy(&server);
    }
    assert!(ended(&server, "slow-header") >= 4);
}

#[test]
fn a_second_head_must_come_as_fast_as_the_first() {
    let server = with(Limits { header_timeout: SHORT, ..Limits::default() });
    server.block_on(async {
        let mut stream = server.tls(&[]).await;
        stream.write_all(request(&plain_pod("u")).as_bytes()).await.unwrap();
        let mut answer = vec![0; 4_096];
        let count = stream.read(&mut answer).await.unwrap();
        assert!(answer[..count].starts_with(b"HTTP/1.1 200 "));
        stream.write_all(b"POST /").await.unwrap();
        assert_eq!(rest(&mut stream).await, "");
    });
    assert!(ended(&server, "slow-header") >= 1);
    assert_healthy(&server);
}

#[test]
fn a_handshake_that_does_not_come_ends_the_connection() {
    let server = with(Limits { handshake_timeout: SHORT, ..Limits::default() });
    server.block_on(async { rest(&mut server.tcp().await).await });
    assert_healthy(&server);
    server.eventually("the end is counted", |server| ended(server, "handshake-slow") == 1);
}

#[test]
fn what_is_no_handshake_hurts_nobody() {
    let server = with(Limits::default());
    for hello in [&b"GET /validate HTTP/1.1\r\nhost: x\r\n\r\n"[..], &vec![0; 70_000], b"\x16\x03\x01\xff\xff\x01"] {
        server.block_on(async {
            let mut stream = server.tcp().await;
            // The other side may be gone before all is written.
            let _ = stream.write_all(hello).await;
            let _ = stream.shutdown().await;
            rest(&mut stream).await
        });
        assert_healthy(&server);
    }
    server.eventually("the ends are counted", |server| ended(server, "handshake-failed") == 3);
}

#[test]
fn heads_without_end_are_refused() {
    let server = with(Limits::default());
    let text = server.block_on(async {
        let mut stream = server.tls(&[]).await;
        let head = format!("POST /validate HTTP/1.1\r\nhost: x\r\nx: {}", "x".repeat(70_000));
        let _ = stream.write_all(head.as_bytes()).await;
        rest(&mut stream).await
    });
    assert!(text.starts_with("HTTP/1.1 431 "), "{text}");
    assert_healthy(&server);
}

#[test]
fn connections_beyond_the_limit_are_ended_at_once() {
    let server = with(Limits { max_connections: 2, ..Limits::default() });
    let held = server.block_on(async { (server.tls(&[]).await, server.tls(&[]).await) });
    server.block_on(async { rest(&mut server.tcp().await).await });
    assert!(ended(&server, "too-many") >= 1);
    drop(held);
    server.eventually("the places are free", |server| server.metric(r#"slicegate_connections{port="webhook"}"#) < 1);
    assert_healthy(&server);
}

#[test]
fn requests_beyond_the_limit_are_told_to_try_again() {
    let source = Arc::new(Namespaces::with(&[]));
    let limits = Limits { max_in_flight: 1, ..Limits::default() };
    let server = TestServer::start(Options { limits, namespaces: Some(source.clone()), ..Options::default() });
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| server.post("/validate", &[], pod("waiting", "gated", GPU)));
        server.eventually("one is in flight", |server| server.metric("slicegate_requests_in_flight") == 1);
        for protocol in [Protocol::Http1, Protocol::Http2] {
            // Large enough that the answer comes before the body was sent.
            let reply = server.send(protocol, "POST", "/validate", &[], of_size("u", 1 << 20));
            assert_eq!((reply.status, reply.header("retry-after")), (429, "1"), "{protocol:?}");
        }
        source.gate.add_permits(1);
        assert_eq!(waiting.join().unwrap().json()["response"]["uid"], "waiting");
    });
    assert_healthy(&server);
    assert_eq!(server.metric(r#"slicegate_rejected_requests_total{reason="overload"}"#), 2);
}

#[test]
fn large_bodies_beyond_the_memory_for_them_are_told_to_try_again() {
    let server = with(Limits { max_body_memory: 1 << 20, ..Limits::default() });
    let large = of_size("u", 900 << 10);
    let mut held = server.block_on(server.tls(&[]));
    server.block_on(held.write_all(&request(&large).as_bytes()[..300])).unwrap();
    server.eventually("one is in flight", |server| server.metric("slicegate_requests_in_flight") == 1);
    let reply = server.post("/validate", &[], large.clone());
    assert_eq!((reply.status, reply.header("retry-after")), (429, "1"));
    assert_healthy(&server);
    drop(held);
    server.eventually("none is in flight", |server| server.metric("slicegate_requests_in_flight") == 0);
    assert_eq!(server.post("/validate", &[], large).status, 200);
}

#[test]
fn a_connection_that_rests_too_long_is_ended() {
    let server = with(Limits { idle_timeout: SHORT, ..Limits::default() });
    let request = request(&plain_pod("u"));
    let text = server.block_on(async {
        let mut stream = server.tls(&[]).await;
        stream.write_all(request.as_bytes()).await.unwrap();
        rest(&mut stream).await
    });
    assert!(text.starts_with("HTTP/1.1 200 ") && !text.contains("connection: close"), "{text}");
    server.eventually("the end is counted", |server| ended(server, "idle") >= 1);
    assert_healthy(&server);
}

#[test]
fn an_old_connection_is_ended_between_requests() {
    let server = with(Limits { connection_age: SHORT, ..Limits::default() });
    // On HTTP/1.1 the answer says so, and every request until then is answered on the one connection.
    let request = request(&plain_pod("u"));
    let last = server.block_on(async {
        let mut stream = server.tls(&[]).await;
        loop {
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = vec![0; 4_096];
            let count = stream.read(&mut answer).await.unwrap();
            let answer = String::from_utf8_lossy(&answer[..count]).into_owned();
            assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
            if answer.contains("connection: close") {
                assert_eq!(rest(&mut stream).await, "");
                break answer;
            }
        }
    });
    assert!(last.contains(r#""uid":"u""#));
    // On HTTP/2 a frame says so, and the client goes on with another connection, without a failed request.
    let accepted = r#"slicegate_connections_accepted_total{port="webhook"}"#;
    let before = server.metric(accepted);
    server.eventually("there is another connection", |server| {
        let headers = [("content-type", "application/json")];
        let reply = server.send(Protocol::Http2, "POST", "/validate", &headers, plain_pod("u"));
        assert_eq!(reply.status, 200);
        server.metric(accepted) >= before + 3
    });
    assert!(ended(&server, "age") >= 1);
}

#[test]
fn http2_is_offered_with_its_own_limit() {
    let server = with(Limits { max_streams: 7, ..Limits::default() });
    let settings = server.block_on(async {
        let mut stream = server.tls(&[b"h2"]).await;
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
        let mut head = [0; 9];
        stream.read_exact(&mut head).await.unwrap();
        assert_eq!(head[3], 4, "a SETTINGS frame");
        let mut settings = vec![0; usize::from(u16::from_be_bytes([head[1], head[2]]))];
        stream.read_exact(&mut settings).await.unwrap();
        settings
    });
    let streams = settings.chunks(6).find(|setting| setting[..2] == [0, 3]).unwrap();
    assert_eq!(streams[2..], [0, 0, 0, 7]);
    assert_healthy(&server);
}

#[test]
fn large_reviews_and_small_ones_are_answered_together() {
    let server = with(Limits::default());
    let large = of_size("large", 6 << 20);
    std::thread::scope(|scope| {
        let large = [(); 4].map(|()| scope.spawn(|| server.post("/validate", &[], large.clone())));
        (0..50).for_each(|_| assert_healthy(&server));
        for reply in large {
            assert_eq!(reply.join().unwrap().json()["response"]["uid"], "large");
        }
    });
}
