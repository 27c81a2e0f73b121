//! The served certificate, followed through its files.
//!
//! What it does: looks at both files every few seconds and serves what became of them. It compares contents, since a mounted
//! Secret changes by a swapped symlink that closes no file. Invariant: what is served is a pair that belongs together; what
//! is no such pair changes nothing, and is told once.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::App;
use super::tls::{Certificates, Pair, TlsError};

/// The source's word in metrics.
const SOURCE: &str = "certificate";

/// Serves the pair from now on, and shows when it ends.
pub fn serve(app: &App, certificates: &Certificates, pair: Pair) {
    if let Some(end) = pair.not_after() {
        app.metrics.set_certificate_end(end.as_second());
    }
    certificates.replace(pair);
}

/// Follows the files until told to stop.
pub async fn follow(
    app: Arc<App>,
    certificates: Arc<Certificates>,
    files: (PathBuf, PathBuf),
    interval: Duration,
    stop: CancellationToken,
) {
    let files = Arc::new(files);
    let (mut before, mut judged) = (None, None);
    loop {
        let both = Arc::clone(&files);
        // A read that panicked read nothing, and the next one may.
        let now = tokio::task::spawn_blocking(move || Contents::read(&both)).await.ok();
        // Half a change looks like a pair that does not belong together, so only what stood still is judged.
        if now.is_some() && now == before && now != judged {
            if let Some(contents) = &now {
                judge(&app, &certificates, contents.pair(&files));
            }
            judged.clone_from(&now);
        }
        before = now;
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(interval) => {}
        }
    }
}

fn judge(app: &App, certificates: &Certificates, pair: Result<Pair, TlsError>) {
    app.metrics.set_problem(SOURCE, pair.is_err());
    match pair {
        Ok(pair) if certificates.serves(&pair) => {}
        Ok(pair) => {
            tracing::info!(ends = pair.not_after().map(|end| end.to_string()), "another certificate is served");
            serve(app, certificates, pair);
        }
        Err(error) => tracing::error!(%error, "certificate refused; the last good one stays"),
    }
}

/// What stands in both files, or why they cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Contents(Result<Vec<u8>, String>, Result<Vec<u8>, String>);

impl Contents {
    fn read((certificate, key): &(PathBuf, PathBuf)) -> Self {
        let bytes = |path: &Path| std::fs::read(path).map_err(|error| error.to_string());
        Self(bytes(certificate), bytes(key))
    }

    fn pair(&self, (certificate, key): &(PathBuf, PathBuf)) -> Result<Pair, TlsError> {
        let names = (certificate.display().to_string(), key.display().to_string());
        let text = |path: &Path, bytes: &Result<Vec<u8>, String>| match bytes {
            Ok(bytes) => Ok(bytes.clone()),
            Err(why) => Err(TlsError::Unreadable { path: path.to_owned(), why: why.clone() }),
        };
        Pair::from_pem((&names.0, &text(certificate, &self.0)?), (&names.1, &text(key, &self.1)?))
    }
}
