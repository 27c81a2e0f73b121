//! The served certificate and the authorities of clients, followed through their files.
//!
//! What it does: looks at the files every few seconds and puts in force what became of them. It compares contents, since a
//! mounted Secret changes by a swapped symlink that closes no file. Invariant: what is served is a pair that belongs together
//! and whose time it was when it came; what is no such pair changes nothing, and is told once.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::App;
use super::tls::clients::{Authorities, Clients};
use super::tls::{Certificates, Pair, TlsError};

/// The sources' words in metrics.
const CERTIFICATE: &str = "certificate";
const CLIENT_CA: &str = "client-ca";

/// The readiness line that tells about the certificate.
pub const CONDITION: &str = "tls";

/// Serves the pair from now on, and shows when it ends.
pub fn serve(app: &App, certificates: &Certificates, pair: Pair) {
    if let Some(end) = pair.not_after() {
        app.metrics.set_certificate_end(end.as_second());
    }
    app.metrics.set_problem(CERTIFICATE, false);
    app.readiness.note(CONDITION, &ends(&pair));
    certificates.replace(pair);
}

/// Follows the files of the certificate and its key until told to stop.
pub async fn follow(
    app: Arc<App>,
    certificates: Arc<Certificates>,
    files: (PathBuf, PathBuf),
    interval: Duration,
    stop: CancellationToken,
) {
    let names = (files.0.display().to_string(), files.1.display().to_string());
    let mut told = None;
    let judge = move |[certificate, key]: &[Content; 2]| {
        let pair = certificate.text().and_then(|certificate| {
            Pair::from_pem((&names.0, certificate), (&names.1, key.text()?))?.valid_at(Timestamp::now(), &names.0)
        });
        settle(&app, &certificates, pair, &mut told);
    };
    looking([files.0, files.1], interval, stop, judge).await;
}

/// Follows the file of the authorities of clients until told to stop.
pub async fn follow_clients(
    app: Arc<App>,
    clients: Arc<Clients>,
    file: PathBuf,
    interval: Duration,
    stop: CancellationToken,
) {
    let name = file.display().to_string();
    let mut told = None;
    let judge = move |[content]: &[Content; 1]| {
        let authorities = content.text().and_then(|text| Authorities::from_pem((&name, text)));
        app.metrics.set_problem(CLIENT_CA, authorities.is_err());
        match authorities {
            Ok(authorities) if clients.trusts(&authorities) => told = None,
            Ok(authorities) => {
                tracing::info!(file = name, "clients are checked against other authorities");
                app.metrics.reloaded(CLIENT_CA, "served");
                clients.replace(authorities);
                told = None;
            }
            Err(error) if told.as_ref() == Some(&error.to_string()) => {}
            Err(error) => {
                tracing::error!(%error, "authorities of clients refused; the last good ones stay");
                app.metrics.reloaded(CLIENT_CA, error.label());
                told = Some(error.to_string());
            }
        }
    };
    looking([file], interval, stop, judge).await;
}

/// Puts a pair in force, or says why not. `told` is what was said last.
fn settle(app: &App, certificates: &Certificates, pair: Result<Pair, TlsError>, told: &mut Option<String>) {
    app.metrics.set_problem(CERTIFICATE, pair.is_err());
    match pair {
        Ok(pair) => {
            if !certificates.serves(&pair) {
                tracing::info!(ends = pair.not_after().map(|end| end.to_string()), "another certificate is served");
                app.metrics.reloaded(CERTIFICATE, "served");
                serve(app, certificates, pair);
            } else if told.is_some() {
                app.readiness.note(CONDITION, &ends(&pair));
            }
            *told = None;
        }
        Err(error) if told.as_ref() == Some(&error.to_string()) => {}
        Err(error) => {
            tracing::error!(%error, "certificate refused; the last good one stays");
            app.metrics.reloaded(CERTIFICATE, error.label());
            let served = certificates.current().map(|pair| ends(&pair)).unwrap_or_default();
            app.readiness.note(CONDITION, &format!("{served}; what came after it was refused: {error}"));
            *told = Some(error.to_string());
        }
    }
}

fn ends(pair: &Pair) -> String {
    pair.not_after().map_or_else(|| "no end is known".to_owned(), |end| format!("the certificate ends at {end}"))
}

/// Looks at files until told to stop, and hands over what stood still between two looks: half a change looks like a pair
/// that does not belong together. What stays the same is handed over again, since its time may come or end.
async fn looking<const N: usize>(
    files: [PathBuf; N],
    interval: Duration,
    stop: CancellationToken,
    mut judge: impl FnMut(&[Content; N]),
) {
    let files = Arc::new(files);
    let mut before = None;
    loop {
        let all = Arc::clone(&files);
        // A read that panicked read nothing, and the next one may.
        let now = tokio::task::spawn_blocking(move || all.each_ref().map(|file| Content::read(file))).await.ok();
        if now == before
            && let Some(contents) = &now
        {
            judge(contents);
        }
        before = now;
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(interval) => {}
        }
    }
}

/// What stands in a file, or why it cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Content(PathBuf, Result<Vec<u8>, String>);

impl Content {
    fn read(path: &Path) -> Self {
        Self(path.to_owned(), std::fs::read(path).map_err(|error| error.to_string()))
    }

    fn text(&self) -> Result<&[u8], TlsError> {
        self.1.as_deref().map_err(|why| TlsError::Unreadable { path: self.0.clone(), why: why.clone() })
    }
}
