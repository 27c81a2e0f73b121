//! Reviews sent to a replica itself, as an API server would send them, over one connection that is kept.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::{Value, json};

use crate::cluster::{Cluster, Slicegate};

/// Far above the longest deadline that a review gives.
const TIMEOUT: Duration = Duration::from_mins(1);

/// A connection to a replica.
pub(crate) struct Direct(BufReader<StreamOwned<ClientConnection, TcpStream>>);

/// A verdict.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) allowed: bool,
    /// Why not; empty where it is allowed.
    pub(crate) message: String,
}

impl Direct {
    /// Connects.
    pub(crate) fn to(slicegate: &Slicegate, cluster: &Cluster) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(cluster.ca_pem().as_bytes())?)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let session = ClientConnection::new(Arc::new(config), ServerName::try_from("localhost")?)?;
        let stream = TcpStream::connect(("127.0.0.1", slicegate.port()))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        Ok(Self(BufReader::new(StreamOwned::new(session, stream))))
    }

    /// Has a review judged within so many seconds. Everything but a verdict is an error.
    pub(crate) fn ask(&mut self, review: &str, seconds: u32) -> Result<Verdict> {
        let head = format!(
            "POST /validate?timeout={seconds}s HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            review.len()
        );
        let stream = self.0.get_mut();
        stream.write_all((head + review).as_bytes())?;
        stream.flush()?;
        let (mut length, mut first, mut line) = (0, String::new(), String::new());
        self.0.read_line(&mut first)?;
        while line != "\r\n" {
            line.clear();
            ensure!(self.0.read_line(&mut line)? > 0, "the replica ended the connection after {first:?}");
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse()?;
            }
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body)?;
        ensure!(first.starts_with("HTTP/1.1 200 "), "{first}{}", String::from_utf8_lossy(&body));
        let body: Value = serde_json::from_slice(&body)?;
        let allowed = body["response"]["allowed"].as_bool().context("no verdict")?;
        let message = body["response"]["status"]["message"].as_str().unwrap_or_default().to_owned();
        Ok(Verdict { allowed, message })
    }
}

/// The review of a new Pod.
pub(crate) fn review(namespace: &str, pod: &Value) -> String {
    let mut pod = pod.clone();
    pod["metadata"]["namespace"] = namespace.into();
    let name = pod["metadata"]["name"].clone();
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002", "name": name, "namespace": namespace, "operation": "CREATE",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "userInfo": {"username": "kim"}, "object": pod, "oldObject": null, "dryRun": false,
    }})
    .to_string()
}
