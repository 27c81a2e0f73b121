//! The whole server within the test's process, over real TLS on loopback.
//!
//! How to use it:
//!
//! ```ignore
//! // In the root of a test binary; `tests/support` has no file of its own for the module.
//! #[path = "../support"]
//! #[allow(unreachable_pub, dead_code, reason = "each test binary uses a part of the support")]
//! mod support {
//!     pub mod certificates;
//!     pub mod server;
//! }
//! use support::server::{Options, Protocol, TestServer};
//!
//! let server = TestServer::start(Options { policy: Some(policy), facts, ..Options::default() });
//! let reply = server.post("/validate", &[], review);                       // HTTP/1.1, with the JSON content type
//! let reply = server.send(Protocol::Http2, "POST", "/mutate?timeout=5s", &[("content-type", "text/plain")], review);
//! assert_eq!((reply.status, reply.json()["response"]["allowed"].as_bool()), (200, Some(false)));
//! server.app.replace_policy(next);                                          // the parts are all there
//! ```
//!
//! All calls block, and may come from many threads at once; `block_on` runs a future beside the server. Connections are kept
//! and used again, one pool for each protocol. The server ends with the value.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use slicegate::config::Config;
use slicegate::facts::Facts;
use slicegate::policy::Policy;
use slicegate::server::admit::NamespaceSource;
use slicegate::server::{self, App, Limits, tls};
use slicegate::workers;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::task::TaskTracker;

use super::certificates::Certificates;

/// What a server starts with.
#[derive(Default)]
pub struct Options {
    /// The policy; the default configuration where there is none.
    pub policy: Option<Policy>,
    /// What is known of the cluster.
    pub facts: Facts,
    /// What bounds the server.
    pub limits: Limits,
    /// Where unknown Namespaces are read.
    pub namespaces: Option<Arc<dyn NamespaceSource>>,
    /// Who may ask; whoever does where nothing is said.
    pub clients: Option<Arc<tls::clients::Clients>>,
    /// How policy sets are evaluated; by the test's own program, which cannot do it, where nothing is said.
    pub workers: Option<workers::Options>,
}

/// Which HTTP is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// As API servers do with Services.
    Http1,
    /// As API servers do with URLs on loopback.
    Http2,
}

/// An answer.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// The headers.
    pub headers: http::HeaderMap,
    /// The body.
    pub body: Bytes,
}

/// A client that keeps its connections.
pub type HttpsClient = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// A server that runs.
pub struct TestServer {
    /// What its parts share.
    pub app: Arc<App>,
    /// The certificates that it serves and that its clients trust.
    pub certificates: Certificates,
    /// The certificate that is served, to be swapped.
    pub served: Arc<tls::Certificates>,
    /// Where reviews are answered.
    pub address: SocketAddr,
    /// Where the admin port is.
    pub admin: SocketAddr,
    /// Open connections of the webhook port.
    pub connections: TaskTracker,
    http1: HttpsClient,
    http2: HttpsClient,
    plain: Client<HttpConnector, Full<Bytes>>,
    runtime: Option<Runtime>,
}

impl Reply {
    /// The body as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// A header, empty where it is missing.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

impl TestServer {
    /// Starts one.
    pub fn start(options: Options) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let policy = options.policy.unwrap_or(Policy { config: Config::default(), digest: "default".to_owned() });
        let workers = options.workers.unwrap_or_default();
        let app = Arc::new(App::with_workers(policy, options.facts, options.limits, workers));
        if let Some(source) = options.namespaces {
            app.read_namespaces_from(source);
        }
        let certificates = Certificates::make();
        let served = Arc::new(tls::Certificates::of(certificates.pair()));
        let webhook = server::webhook(&app, Arc::clone(&served), options.clients).unwrap();
        let connections = TaskTracker::new();
        let _guard = runtime.enter();
        let (address, socket) = bind(&runtime);
        runtime.spawn(webhook.run(socket, Arc::clone(&app), connections.clone()));
        let (admin, socket) = bind(&runtime);
        runtime.spawn(server::admin(&app).run(socket, Arc::clone(&app), TaskTracker::new()));
        Self {
            http1: https(Protocol::Http1, certificates.client(&[])),
            http2: https(Protocol::Http2, certificates.client(&[])),
            plain: Client::builder(TokioExecutor::new()).build_http(),
            runtime: Some(runtime),
            app,
            certificates,
            served,
            address,
            admin,
            connections,
        }
    }

    /// Sends a review over HTTP/1.1; the content type is JSON unless a header says otherwise.
    pub fn post(&self, path: &str, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Reply {
        let json = [("content-type", "application/json")];
        let has_type = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        let headers = if has_type { headers.to_vec() } else { [&json, headers].concat() };
        self.send(Protocol::Http1, "POST", path, &headers, body)
    }

    /// Sends anything.
    pub fn send(
        &self,
        protocol: Protocol,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Reply {
        self.block_on(self.sending(protocol, method, path, headers, body.into()))
    }

    /// As [`TestServer::send`], to be awaited beside others.
    pub async fn sending(
        &self,
        protocol: Protocol,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Reply {
        let client = if protocol == Protocol::Http1 { &self.http1 } else { &self.http2 };
        self.sent_by(client, method, path, headers, body).await
    }

    /// A client of one protocol, with TLS settings of its own.
    pub fn client_for(&self, protocol: Protocol, tls: ClientConfig) -> HttpsClient {
        let _guard = self.runtime().enter();
        https(protocol, tls)
    }

    /// As [`TestServer::sending`], by another client.
    pub async fn sent_by(
        &self,
        client: &HttpsClient,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Reply {
        let uri = format!("https://localhost:{}{path}", self.address.port());
        let mut request = http::Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = client.request(request.body(Full::new(body)).unwrap()).await.unwrap();
        reply(response).await
    }

    /// Asks the admin port.
    pub fn get(&self, path: &str) -> Reply {
        let uri = format!("http://{}{path}", self.admin).parse().unwrap();
        self.block_on(async { reply(self.plain.get(uri).await.unwrap()).await })
    }

    /// A metric's value: the number after `name` (with its labels) in `/metrics`; zero where it is missing.
    pub fn metric(&self, name: &str) -> u64 {
        let text = self.get("/metrics").text();
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
        value.unwrap_or_default()
    }

    /// Asks until the answer is yes, and gives up after half a minute.
    pub fn eventually(&self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        let start = std::time::Instant::now();
        while !holds(self) {
            assert!(start.elapsed().as_secs() < 30, "{what}: {}", self.get("/metrics").text());
        }
    }

    /// A connection without TLS.
    pub async fn tcp(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// A connection after its TLS handshake, for which these protocols were offered.
    pub async fn tls(&self, alpn: &[&[u8]]) -> TlsStream<TcpStream> {
        let connector = TlsConnector::from(Arc::new(self.certificates.client(alpn)));
        connector.connect(ServerName::try_from("localhost").unwrap(), self.tcp().await).await.unwrap()
    }

    /// Runs a future beside the server.
    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime().block_on(future)
    }

    /// The threads on which the server runs.
    pub fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().unwrap()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.app.shutdown.abort();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn https(protocol: Protocol, tls: ClientConfig) -> HttpsClient {
    let connector = HttpsConnectorBuilder::new().with_tls_config(tls).https_only();
    match protocol {
        Protocol::Http1 => Client::builder(TokioExecutor::new()).build(connector.enable_http1().build()),
        Protocol::Http2 => {
            Client::builder(TokioExecutor::new()).http2_only(true).build(connector.enable_http2().build())
        }
    }
}

async fn reply(response: http::Response<hyper::body::Incoming>) -> Reply {
    let (parts, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Reply { status: parts.status.as_u16(), headers: parts.headers, body }
}

fn bind(runtime: &Runtime) -> (SocketAddr, TcpListener) {
    let socket = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    (socket.local_addr().unwrap(), socket)
}
