//! The accept loop of one port.
//!
//! What it does: takes connections from a socket that the caller bound, makes them TLS where the port is, and serves a
//! router on them. Invariants: no client can keep the loop from accepting the next one; there are never more connections
//! than the limit; a failure to accept is waited out, never spun on.

use std::io::{Error, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use rustls::ServerConfig;
use rustls_pki_types::CertificateDer;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::tls::clients::{self, Clients};
use super::{App, Limits, connection};

/// How long to wait after a failure to accept, at first and at most.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));

/// Why the server ends connections: the words in metrics.
pub(crate) const REASONS: [&str; 11] = [
    "too-many",
    "handshake-failed",
    "handshake-slow",
    "client-certificate-missing",
    "client-certificate-untrusted",
    "client-certificate-expired",
    "slow-header",
    "idle",
    "age",
    "unfinished",
    "shutdown",
];

/// What is served on one socket.
pub struct Port {
    /// The port's word in metrics and logs.
    pub name: &'static str,
    /// The TLS settings; none for plain HTTP.
    pub tls: Option<Arc<ServerConfig>>,
    /// What answers.
    pub router: Router,
    /// Who may ask, and what answers all others; none for whoever asks.
    pub clients: Option<(Arc<Clients>, Router)>,
    /// What bounds it.
    pub limits: Limits,
    /// From here on nothing is accepted, and connections end between requests.
    pub until: CancellationToken,
}

impl Port {
    /// Accepts until told to stop. `connections` tracks what is then still open.
    pub async fn run(self, socket: TcpListener, app: Arc<App>, connections: TaskTracker) {
        let port = Arc::new(self);
        let places = Arc::new(Semaphore::new(port.limits.max_connections));
        let mut back_off = BACK_OFF.0;
        loop {
            let accepted = tokio::select! {
                () = port.until.cancelled() => return,
                accepted = socket.accept() => accepted,
            };
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(error) if is_of_one_connection(&error) => continue,
                Err(error) => {
                    app.metrics.accept_errors.inc();
                    tracing::warn!(port = port.name, %error, "cannot accept connections");
                    tokio::select! {
                        () = port.until.cancelled() => return,
                        () = tokio::time::sleep(back_off) => {}
                    }
                    back_off = back_off.saturating_mul(2).min(BACK_OFF.1);
                    continue;
                }
            };
            back_off = BACK_OFF.0;
            let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
                port.ended(&app, "too-many");
                continue;
            };
            let (app, port) = (Arc::clone(&app), Arc::clone(&port));
            connections.spawn(async move {
                port.serve(stream, &app).await;
                drop(place);
            });
        }
    }

    async fn serve(&self, stream: TcpStream, app: &App) {
        let label = [("port", self.name)];
        let open = app.metrics.connections.get_or_create_owned(&label);
        app.metrics.connections_accepted.get_or_create(&label).inc();
        open.inc();
        // Answers are written whole; waiting for more to send would only delay them. A socket that refuses this is broken
        // in ways that the next read tells.
        let _ = stream.set_nodelay(true);
        if let Some(reason) = self.speak(stream, app).await {
            self.ended(app, reason);
        }
        open.dec();
    }

    async fn speak(&self, stream: TcpStream, app: &App) -> Option<&'static str> {
        let until = connection::Until { stop: self.until.child_token(), abort: app.shutdown.aborting() };
        let Some(tls) = &self.tls else {
            return connection::serve(stream, self.router.clone(), &self.limits, &app.shutdown, until).await;
        };
        let peer = stream.peer_addr().ok().map(|peer| peer.to_string());
        let handshake = TlsAcceptor::from(Arc::clone(tls)).accept(stream);
        let stream = tokio::select! {
            () = until.abort.cancelled() => return Some("shutdown"),
            shaken = tokio::time::timeout(self.limits.handshake_timeout, handshake) => match shaken {
                Ok(Ok(stream)) => stream,
                Ok(Err(error)) => return Some(self.handshake_failed(peer.as_deref(), &error)),
                Err(_) => return Some("handshake-slow"),
            },
        };
        let certificates = stream.get_ref().1.peer_certificates();
        let router = self.router_for(peer.as_deref(), certificates.and_then(<[_]>::first));
        connection::serve(stream, router, &self.limits, &app.shutdown, until).await
    }

    /// Says why a handshake failed. One that a client's certificate ended is the sign of a cluster that is set up wrongly, or
    /// of somebody who should not ask; the others are noise.
    fn handshake_failed(&self, peer: Option<&str>, error: &Error) -> &'static str {
        if let Some(reason) = clients::refusal(error) {
            tracing::warn!(port = self.name, peer, reason, %error, "client refused");
            return reason;
        }
        tracing::debug!(port = self.name, peer, %error, "TLS handshake failed");
        "handshake-failed"
    }

    /// What answers a client after its handshake.
    fn router_for(&self, peer: Option<&str>, certificate: Option<&CertificateDer<'_>>) -> Router {
        let Some((clients, strangers)) = &self.clients else { return self.router.clone() };
        let Err(names) = clients.admits(certificate) else { return self.router.clone() };
        let reason = "client-certificate-name";
        tracing::warn!(port = self.name, peer, reason, names = names.join(","), "client refused");
        strangers.clone()
    }

    fn ended(&self, app: &App, reason: &'static str) {
        app.metrics.connections_ended.get_or_create(&[("port", self.name), ("reason", reason)]).inc();
    }
}

/// Failures that say something of the connection that would have been accepted, and nothing of the socket.
fn is_of_one_connection(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset | ErrorKind::Interrupted)
}
