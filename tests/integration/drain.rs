//! The end of the server: what is in flight is finished, and nobody is left waiting.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;

use crate::support::namespaces::Namespaces;
use crate::support::reviews::{GPU, plain_pod, pod};
use crate::support::server::{Options, Protocol, TestServer};

const LONG: Duration = Duration::from_secs(30);
const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

fn start() -> (TestServer, Arc<Namespaces>) {
    let source = Arc::new(Namespaces::with(&[]));
    (TestServer::start(Options { namespaces: Some(source.clone()), ..Options::default() }), source)
}

#[test]
fn a_draining_server_answers_and_asks_to_leave() {
    let (server, _) = start();
    assert_eq!(server.post("/validate", &[], plain_pod("u")).header("connection"), "");
    server.app.shutdown.drain();
    let reply = server.post("/validate", &[], plain_pod("u"));
    assert_eq!((reply.status, reply.header("connection")), (200, "close"));
    assert_eq!(server.send(Protocol::Http2, "POST", "/validate", &JSON, plain_pod("u")).status, 200);
    let ready = server.get("/readyz");
    assert_eq!(ready.status, 503);
    assert!(ready.text().contains("[-]shutdown"), "{}", ready.text());
}

#[test]
fn what_is_in_flight_is_finished_and_nothing_new_begins() {
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let (server, source) = start();
        std::thread::scope(|scope| {
            let review = pod("waiting", "gated", GPU);
            let waiting = scope.spawn(|| server.send(protocol, "POST", "/validate", &JSON, review));
            server.eventually("one is in flight", |server| server.metric("slicegate_requests_in_flight") == 1);
            let drained =
                scope.spawn(|| server.block_on(server.app.shutdown.run(Duration::ZERO, LONG, &server.connections)));
            server.eventually("the socket is closed", |server| {
                server.block_on(TcpStream::connect(server.address)).is_err()
            });
            assert!(!drained.is_finished());
            source.gate.add_permits(1);
            let reply = waiting.join().unwrap();
            assert_eq!((reply.status, &reply.json()["response"]["uid"]), (200, &"waiting".into()), "{protocol:?}");
            assert!(drained.join().unwrap(), "all connections ended");
        });
    }
}

#[test]
fn connections_that_rest_do_not_hold_up_the_end() {
    let (server, _) = start();
    for protocol in [Protocol::Http1, Protocol::Http2] {
        server.send(protocol, "POST", "/validate", &JSON, plain_pod("u"));
    }
    assert!(server.block_on(server.app.shutdown.run(Duration::ZERO, LONG, &server.connections)));
}

#[test]
fn what_does_not_finish_is_dropped() {
    let (server, _) = start();
    let server = &server;
    std::thread::scope(|scope| {
        let request = async {
            let body = pod("u", "stuck", GPU);
            let headers = format!("content-type: application/json\r\ncontent-length: {}", body.len());
            let mut stream = server.tls(&[]).await;
            let request = format!("POST /validate?timeout=30s HTTP/1.1\r\nhost: x\r\n{headers}\r\n\r\n{body}");
            tokio::io::AsyncWriteExt::write_all(&mut stream, request.as_bytes()).await.unwrap();
            let mut answer = Vec::new();
            let _ = tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut answer).await;
            answer
        };
        let waiting = scope.spawn(move || server.block_on(request));
        server.eventually("one is in flight", |server| server.metric("slicegate_requests_in_flight") == 1);
        let drain = server.app.shutdown.run(Duration::ZERO, Duration::from_millis(50), &server.connections);
        assert!(!server.block_on(drain));
        assert_eq!(waiting.join().unwrap(), b"");
    });
}
