//! The load generator: connections that send the next review as soon as the last one is answered.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::support::certificates::Certificates;
use crate::support::client;

/// How reviews are sent.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Load {
    /// As API servers call Services.
    Http1 {
        /// How many at a time.
        connections: usize,
    },
    /// As API servers call URLs on loopback.
    Http2 {
        /// How many at a time on the one connection.
        streams: usize,
    },
}

impl fmt::Display for Load {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http1 { connections } => write!(out, "HTTP/1.1, {connections} connections"),
            Self::Http2 { streams } => write!(out, "HTTP/2, one connection, {streams} streams"),
        }
    }
}

impl Load {
    /// Sends this many reviews to `/validate`, and says how many were sent.
    pub(crate) async fn send(self, certificates: &Certificates, address: &str, body: &[u8], count: usize) -> usize {
        self.send_to("/validate?timeout=10s", certificates, address, body, count).await
    }

    /// Sends them to a path; over HTTP/2 to `/validate` alone.
    pub(crate) async fn send_to(
        self,
        path: &str,
        certificates: &Certificates,
        address: &str,
        body: &[u8],
        count: usize,
    ) -> usize {
        let left = Arc::new(AtomicUsize::new(count));
        match self {
            Self::Http1 { connections } => http1(path, certificates, address, body, connections, &left).await,
            Self::Http2 { streams } => http2(certificates, address, body, streams, &left).await,
        }
        count
    }
}

/// Whether there is one more to send.
fn take(left: &AtomicUsize) -> bool {
    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
}

async fn http1(
    path: &str,
    certificates: &Certificates,
    address: &str,
    body: &[u8],
    connections: usize,
    left: &Arc<AtomicUsize>,
) {
    let head = client::head(path, body.len());
    let request = Arc::new([head.as_bytes(), body].concat());
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..connections {
        let mut stream = client::tls(certificates, address).await;
        stream.get_ref().0.set_nodelay(true).unwrap();
        let (request, left) = (Arc::clone(&request), Arc::clone(left));
        tasks.spawn(async move {
            let mut answer = vec![0; 16 << 10];
            while take(&left) {
                exchange(&mut stream, &request, &mut answer).await;
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
}

/// Sends a request and reads its answer into `room`, which must be large enough.
pub(crate) async fn exchange(stream: &mut TlsStream<TcpStream>, request: &[u8], room: &mut [u8]) {
    stream.write_all(request).await.unwrap();
    let mut filled = 0;
    while filled == 0 || filled < whole(&room[..filled]) {
        let count = stream.read(&mut room[filled..]).await.unwrap();
        assert!(count > 0, "the server ended the connection");
        filled += count;
    }
    assert!(room.starts_with(b"HTTP/1.1 200 "));
}

/// How long the answer is that begins like this.
fn whole(begin: &[u8]) -> usize {
    let Some(head) = begin.windows(4).position(|bytes| bytes == b"\r\n\r\n") else { return usize::MAX };
    let name = b"content-length: ";
    let length = begin.windows(name.len()).position(|bytes| bytes.eq_ignore_ascii_case(name)).unwrap() + name.len();
    let digits = begin[length..].iter().take_while(|byte| byte.is_ascii_digit());
    head + 4 + digits.fold(0, |length, digit| length * 10 + usize::from(digit - b'0'))
}

async fn http2(certificates: &Certificates, address: &str, body: &[u8], streams: usize, left: &Arc<AtomicUsize>) {
    let stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let connector = TlsConnector::from(Arc::new(certificates.client(&[b"h2"])));
    let stream = connector.connect(ServerName::try_from("localhost").unwrap(), stream).await.unwrap();
    let io = TokioIo::new(stream);
    let (sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await.unwrap();
    let connection = tokio::spawn(connection);
    let body = Bytes::copy_from_slice(body);
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..streams {
        let (mut sender, left, body) = (sender.clone(), Arc::clone(left), body.clone());
        tasks.spawn(async move {
            while take(&left) {
                let request = http::Request::post("https://localhost/validate?timeout=10s");
                let request = request.header("content-type", "application/json").body(Full::new(body.clone())).unwrap();
                let response = sender.send_request(request).await.unwrap();
                assert_eq!(response.status(), 200);
                response.into_body().collect().await.unwrap();
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
    connection.abort();
}
