//! Plain requests to the API server and to etcd's health page, one connection
//! each. It speaks HTTP/1.0, where an answer simply ends with the connection,
//! which is all that a test needs and leaves nothing to get wrong.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use rustls::pki_types::{PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::Value;

use super::pki::Authority;

/// The longest that the API server may take, which itself gives a webhook at
/// most 30 seconds.
const TIMEOUT: Duration = Duration::from_mins(1);

/// A client with the administrator's certificate.
#[derive(Debug)]
pub(crate) struct Client {
    port: u16,
    config: Arc<ClientConfig>,
}

/// The API server's answer.
#[derive(Debug)]
pub(crate) struct Reply {
    /// The HTTP status code.
    pub(crate) status: u16,
    /// What stands in the `Warning` headers, such as a webhook's warnings.
    pub(crate) warnings: Vec<String>,
    /// The object; a `Status` when the request was refused. Text that is no
    /// JSON is a string.
    pub(crate) body: Value,
}

// === impl Reply ===

impl Reply {
    /// The object of a request that the API server accepted, or its message.
    pub(crate) fn success(self) -> Result<Value> {
        let message = self.message().to_owned();
        anyhow::ensure!((200..300).contains(&self.status), "the API server answered {}: {message}", self.status);
        Ok(self.body)
    }

    /// The message of a refusal; empty for another object.
    pub(crate) fn message(&self) -> &str {
        self.body.get("message").and_then(Value::as_str).unwrap_or_default()
    }
}

// === impl Client ===

impl Client {
    pub(crate) fn new(port: u16, authority: &Authority) -> Result<Self> {
        let identity = authority.identity("admin", Some("system:masters"))?;
        let mut roots = RootCertStore::empty();
        roots.add(authority.der().clone()).context("the test authority is not usable")?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_client_auth_cert(vec![identity.certificate_der], PrivatePkcs8KeyDer::from(identity.key_der).into())
            .context("the administrator's certificate is not usable")?;
        Ok(Self { port, config: Arc::new(config) })
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.has("/readyz")
    }

    /// Whether there is something at a path, an unreachable server included.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.request("GET", path, &[], None).is_ok_and(|reply| reply.status == 200)
    }

    pub(crate) fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Result<Reply> {
        let tcp = connect(self.port).context("the API server cannot be reached")?;
        let name = ServerName::IpAddress(Ipv4Addr::LOCALHOST.into());
        let session = ClientConnection::new(Arc::clone(&self.config), name)?;
        let request = render(method, path, headers, body);
        exchange(StreamOwned::new(session, tcp), &request).with_context(|| format!("{method} {path}"))
    }
}

/// Whether etcd says that it has a leader and can write.
pub(crate) fn etcd_is_healthy(port: u16) -> bool {
    connect(port)
        .and_then(|tcp| exchange(tcp, &render("GET", "/health", &[], None)))
        .is_ok_and(|reply| reply.body.get("health").is_some_and(|health| health == "true"))
}

fn connect(port: u16) -> Result<TcpStream> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let tcp = TcpStream::connect_timeout(&address, TIMEOUT)?;
    tcp.set_read_timeout(Some(TIMEOUT))?;
    tcp.set_write_timeout(Some(TIMEOUT))?;
    Ok(tcp)
}

fn render(method: &str, path: &str, headers: &[(&str, &str)], body: Option<&Value>) -> String {
    let content_type = match method {
        "PATCH" => "application/merge-patch+json",
        _ => "application/json",
    };
    let body = body.map(Value::to_string).unwrap_or_default();
    let mut request = format!(
        "{method} {path} HTTP/1.0\r\nHost: 127.0.0.1\r\nAccept: application/json\r\n\
         Content-Type: {content_type}\r\nContent-Length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        request.extend([*name, ": ", *value, "\r\n"]);
    }
    request + "\r\n" + &body
}

fn exchange(mut stream: impl Read + Write, request: &str) -> Result<Reply> {
    stream.write_all(request.as_bytes()).context("the request cannot be sent")?;
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        // A server that closes without TLS' farewell has still answered; a
        // body that was cut shows when it is read.
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => {}
        result => drop(result.context("the answer cannot be read")?),
    }
    parse(&String::from_utf8_lossy(&bytes)).context("the answer is not HTTP")
}

fn parse(text: &str) -> Option<Reply> {
    let (head, body) = text.split_once("\r\n\r\n")?;
    let mut lines = head.lines();
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let warnings = lines
        .filter_map(|line| line.split_once(": "))
        .filter(|(name, _)| name.eq_ignore_ascii_case("warning"))
        .map(|(_, value)| unquote(value))
        .collect();
    let body = serde_json::from_str(body).unwrap_or_else(|_| Value::from(body));
    Some(Reply { status, warnings, body })
}

/// The text of a warning header, `299 - "text"`, where a backslash makes the
/// next character plain.
fn unquote(header: &str) -> String {
    let quoted = header.split_once('"').map_or(header, |(_, rest)| rest);
    let quoted = quoted.strip_suffix('"').unwrap_or(quoted);
    let mut text = String::new();
    let mut characters = quoted.chars();
    while let Some(character) = characters.next() {
        let plain = if character == '\\' { characters.next() } else { Some(character) };
        text.extend(plain);
    }
    text
}
