//! The admin port: what probes, dashboards and people ask.
//!
//! Invariant: nothing here changes anything, and nothing here is secret.

use std::fmt::Write as _;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::header::CONTENT_TYPE;
use http::{StatusCode, Uri};

use super::App;
use crate::version::VERSION;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The routes of the admin port.
pub fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/livez", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .route("/policies", get(policies))
        .route("/version", get(version))
        .with_state(app)
}

/// In the words of the API server's own `/readyz`: what fails is always named, all of it with `?verbose`.
async fn readyz(State(app): State<Arc<App>>, uri: Uri) -> Response {
    let draining = app.shutdown.is_draining();
    let ready = app.readiness.holds() && !draining;
    let verbose =
        uri.query().is_some_and(|query| query.split('&').any(|pair| pair == "verbose" || pair.starts_with("verbose=")));
    if ready && !verbose {
        return "ok\n".into_response();
    }
    let mut text = app.readiness.describe();
    for report in app.rules().sets.reports.iter() {
        // Each replica says which form of each set it has in force, so that they can be compared. Writing cannot fail.
        let _ = writeln!(text, "[+]policy {} {} {}", report.key, report.state.as_str(), report.digest);
    }
    text.push_str(if draining { "[-]shutdown in progress\n" } else { "[+]shutdown ok\n" });
    text.push_str(if ready { "readyz check passed\n" } else { "readyz check failed\n" });
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, text).into_response()
}

async fn metrics(State(app): State<Arc<App>>) -> Response {
    match app.metrics.encode() {
        Ok(text) => ([(CONTENT_TYPE, OPEN_METRICS)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

/// The state of each policy set.
async fn policies(State(app): State<Arc<App>>) -> Response {
    match serde_json::to_string(app.rules().sets.reports.as_ref()) {
        Ok(text) => ([(CONTENT_TYPE, "application/json")], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

async fn version() -> Response {
    match serde_json::to_string(&VERSION) {
        Ok(text) => ([(CONTENT_TYPE, "application/json")], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}
