//! The webhook's HTTP: which requests are reviews, and what the others are told.
//!
//! What it does: checks method, path, media type, encoding, size and load, reads the body, and hands it to [`admit`].
//! Invariant: whatever is no answered review is a [`Rejection`], which is the one place that knows a status code, and none
//! of them reaches a rule.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, StatusCode, Uri};
use thiserror::Error;
use tokio::time::Instant;

use super::body::{self, BodyError};
use super::{App, admit, guard};
use crate::duration;
use crate::policy::Phase;

/// Up to this size the number of requests in flight is bound enough for what bodies take.
pub(crate) const SMALL: usize = 64 << 10;

/// What the API server waits where it does not say, and the most that it may be told to wait.
const TIMEOUT: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(30));

/// Why requests get no review's answer: the words in metrics.
pub(crate) const REASONS: [&str; 12] = [
    "path",
    "method",
    "media-type",
    "encoding",
    "too-large",
    "slow-body",
    "broken-body",
    "no-review",
    "client-certificate-name",
    "overload",
    "deadline",
    "panicked",
];

/// A request that gets no review's answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(super) enum Rejection {
    #[error("there is no such path; reviews go to /mutate, /validate and /guard")]
    NotFound,
    #[error("reviews are sent with POST")]
    Method,
    #[error("the Content-Type must be application/json")]
    MediaType,
    #[error("the body must not be compressed")]
    Encoding,
    #[error("the body is larger than {0} bytes")]
    TooLarge(usize),
    #[error("the body did not come in time")]
    SlowBody,
    #[error("the body ended early")]
    BrokenBody,
    #[error("{0}")]
    NoReview(String),
    #[error("the client certificate bears none of the names that may send reviews here (--client-name)")]
    Stranger,
    #[error("too many requests are being answered; try again")]
    Overload,
    #[error("the deadline came before the review was read")]
    Deadline,
    #[error("the review could not be answered after a fault of this program; its log says more")]
    Panicked,
}

impl Rejection {
    fn status(&self) -> StatusCode {
        match self {
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::MediaType | Self::Encoding => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::SlowBody => StatusCode::REQUEST_TIMEOUT,
            Self::BrokenBody | Self::NoReview(_) => StatusCode::BAD_REQUEST,
            Self::Stranger => StatusCode::FORBIDDEN,
            Self::Overload => StatusCode::TOO_MANY_REQUESTS,
            Self::Deadline => StatusCode::GATEWAY_TIMEOUT,
            Self::Panicked => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The word in metrics.
    fn label(&self) -> &'static str {
        match self {
            Self::NotFound => "path",
            Self::Method => "method",
            Self::MediaType => "media-type",
            Self::Encoding => "encoding",
            Self::TooLarge(_) => "too-large",
            Self::SlowBody => "slow-body",
            Self::BrokenBody => "broken-body",
            Self::NoReview(_) => "no-review",
            Self::Stranger => "client-certificate-name",
            Self::Overload => "overload",
            Self::Deadline => "deadline",
            Self::Panicked => "panicked",
        }
    }
}

impl IntoResponse for Rejection {
    fn into_response(self) -> Response {
        let mut response = (self.status(), format!("{self}\n")).into_response();
        let extra = match self {
            Self::Overload => Some((RETRY_AFTER, HeaderValue::from_static("1"))),
            Self::Encoding => Some((ACCEPT_ENCODING, HeaderValue::from_static("identity"))),
            _ => None,
        };
        response.headers_mut().extend(extra);
        response
    }
}

/// The routes of the webhook port.
pub fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/mutate", post(|state, request| review(state, Endpoint::Verdict(Phase::Mutate), request)))
        .route("/validate", post(|state, request| review(state, Endpoint::Verdict(Phase::Validate), request)))
        .route("/guard", post(|state, request| review(state, Endpoint::Guard, request)))
        .fallback(|State(app): State<Arc<App>>, request: Request| async move {
            refuse(&app, Rejection::NotFound, request).await
        })
        .method_not_allowed_fallback(|State(app): State<Arc<App>>, request: Request| async move {
            refuse(&app, Rejection::Method, request).await
        })
        .with_state(app)
}

/// What answers those who have a certificate, but not for a name that may ask.
pub fn strangers(app: Arc<App>) -> Router {
    let refuse = |State(app): State<Arc<App>>, request| async move { refuse(&app, Rejection::Stranger, request).await };
    Router::new().fallback(refuse).with_state(app)
}

/// Who answers.
#[derive(Debug, Clone, Copy)]
enum Endpoint {
    /// The verdict on a workload.
    Verdict(Phase),
    /// The guard of what verdicts are made by.
    Guard,
}

async fn review(State(app): State<Arc<App>>, endpoint: Endpoint, request: Request) -> Response {
    let arrived = Instant::now();
    let Some(_slot) = Slot::take(&app) else { return refuse(&app, Rejection::Overload, request).await };
    if let Err(rejection) = check_headers(request.headers()) {
        return refuse(&app, rejection, request).await;
    }
    let deadline = arrived.checked_add(shortly_before(timeout(request.uri()))).unwrap_or(arrived);
    let body_until = arrived.checked_add(app.limits.body_timeout).map_or(deadline, |until| until.min(deadline));
    let limit = app.limits.max_body;
    let announced = announced(request.headers());
    if announced > limit && request.headers().contains_key(EXPECT) {
        // The client waits for a word before it sends anything, and this is the word.
        return reject(&app, Rejection::TooLarge(limit));
    }
    // A body of unknown length may be as long as any.
    let expected = if request.headers().contains_key(CONTENT_LENGTH) { announced.min(limit) } else { limit };
    let Some(_room) = Room::take(&app, expected) else { return refuse(&app, Rejection::Overload, request).await };
    let answer = match body::read(request.into_body(), announced, limit, body_until).await {
        Ok(bytes) => match endpoint {
            Endpoint::Verdict(phase) => admit::answer(&app, phase, bytes, deadline).await,
            Endpoint::Guard => guard::answer(&app, bytes, deadline).await,
        },
        Err(BodyError::TooLarge) => Err(Rejection::TooLarge(limit)),
        Err(BodyError::TooSlow) => Err(Rejection::SlowBody),
        Err(BodyError::Broken) => Err(Rejection::BrokenBody),
    };
    match answer {
        Ok(bytes) => {
            let mut response = Response::new(Body::from(bytes));
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            response
        }
        Err(rejection) => reject(&app, rejection),
    }
}

/// Reads what the client still sends, so that it comes to read the answer, and refuses.
async fn refuse(app: &App, rejection: Rejection, request: Request) -> Response {
    if !request.headers().contains_key(EXPECT) {
        body::discard(request.into_body()).await;
    }
    reject(app, rejection)
}

fn reject(app: &App, rejection: Rejection) -> Response {
    app.metrics.rejected.get_or_create(&[("reason", rejection.label())]).inc();
    tracing::debug!(reason = rejection.label(), "request rejected: {rejection}");
    rejection.into_response()
}

fn check_headers(headers: &HeaderMap) -> Result<(), Rejection> {
    let mut types = headers.get_all(CONTENT_TYPE).iter().peekable();
    if types.peek().is_none() || !types.all(is_json) {
        return Err(Rejection::MediaType);
    }
    let plain = |value: &HeaderValue| value.is_empty() || value.as_bytes().eq_ignore_ascii_case(b"identity");
    if headers.get_all(CONTENT_ENCODING).iter().all(plain) { Ok(()) } else { Err(Rejection::Encoding) }
}

fn is_json(value: &HeaderValue) -> bool {
    let essence = value.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
    essence.trim_ascii().eq_ignore_ascii_case(b"application/json")
}

/// The length that the client announces; nothing announced counts as nothing.
fn announced(headers: &HeaderMap) -> usize {
    let length = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    length.and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// How long the API server waits, as it says in the query.
fn timeout(uri: &Uri) -> Duration {
    let (default, most) = TIMEOUT;
    let mut pairs = uri.query().unwrap_or_default().split('&');
    let text = pairs.find_map(|pair| pair.strip_prefix("timeout="));
    let asked = text.and_then(|text| duration::parse(text).ok()).filter(|asked| !asked.is_zero());
    asked.unwrap_or(default).min(most)
}

/// The moment to answer at the latest: a tenth before the deadline and at least 100 ms, but not before half of it.
fn shortly_before(timeout: Duration) -> Duration {
    let tenth = timeout.checked_div(10).unwrap_or_default();
    let half = timeout.checked_div(2).unwrap_or_default();
    timeout.saturating_sub(tenth.max(Duration::from_millis(100)).min(half))
}

/// A place among the requests that are answered at a time.
struct Slot<'a>(&'a App);

impl<'a> Slot<'a> {
    fn take(app: &'a App) -> Option<Self> {
        let slot = Self(app);
        let before = app.metrics.in_flight.inc();
        // The slot that is dropped here gives its place back.
        usize::try_from(before).is_ok_and(|before| before < app.limits.max_in_flight).then_some(slot)
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.0.metrics.in_flight.dec();
    }
}

/// Room in memory for a body that is not small.
struct Room<'a>(&'a App, usize);

impl<'a> Room<'a> {
    fn take(app: &'a App, expected: usize) -> Option<Self> {
        let size = if expected > SMALL { expected } else { 0 };
        let room = Self(app, size);
        if size == 0 {
            return Some(room);
        }
        // The room that is dropped here gives back what it took.
        let before = app.body_memory.fetch_add(size, Ordering::Relaxed);
        (before.saturating_add(size) <= app.limits.max_body_memory).then_some(room)
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.0.body_memory.fetch_sub(self.1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn media_types_are_compared_without_parameters_and_case() {
        for value in ["application/json", "Application/JSON; charset=utf-8", " application/json ;x=y"] {
            assert_eq!(check_headers(&headers(&[("content-type", value)])), Ok(()), "{value}");
        }
        for value in ["", "text/json", "application/jsonx", "application/x-www-form-urlencoded"] {
            assert_eq!(check_headers(&headers(&[("content-type", value)])), Err(Rejection::MediaType), "{value}");
        }
        assert_eq!(check_headers(&HeaderMap::new()), Err(Rejection::MediaType));
    }

    #[test]
    fn only_the_plain_encoding_is_taken() {
        let with = |value| headers(&[("content-type", "application/json"), ("content-encoding", value)]);
        assert_eq!(check_headers(&with("Identity")), Ok(()));
        assert_eq!(check_headers(&with("gzip")), Err(Rejection::Encoding));
        assert_eq!(check_headers(&with("identity, gzip")), Err(Rejection::Encoding));
    }

    #[test]
    fn the_deadline_is_the_api_servers() {
        let of = |uri: &str| timeout(&uri.parse().unwrap()).as_millis();
        assert_eq!(
            (of("/validate?timeout=5s"), of("/validate?a=b&timeout=1m"), of("/validate")),
            (5_000, 30_000, 10_000)
        );
        assert_eq!(
            (of("/validate?timeout=soon"), of("/validate?timeout=0s"), of("/validate?timeout=-1s")),
            (10_000, 10_000, 10_000)
        );
    }

    #[test]
    fn the_answer_comes_shortly_before_the_deadline() {
        let at = |millis| shortly_before(Duration::from_millis(millis)).as_millis();
        assert_eq!((at(10_000), at(500), at(100)), (9_000, 400, 50));
    }
}
