//! One connection: how long it may be silent, slow or old.
//!
//! What it does: serves HTTP/1.1 or HTTP/2 on a stream and watches over it with one timer for each connection, none for each
//! request. Invariant: a connection ends when its client is silent or slow for too long; one that is only old, or belongs
//! to a server that stops, ends between requests.

use std::hash::{BuildHasher, RandomState};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use http::header::CONNECTION;
use http::{HeaderValue, Request, Version};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tower_service::Service as _;

use super::Limits;
use crate::shutdown::Shutdown;

/// How long requests may take to finish after a connection was told to end. No API server waits longer for an answer.
const GRACE: Duration = Duration::from_secs(30);

/// Room for the head of an HTTP/1.1 request.
const HEAD_SIZE: usize = 64 << 10;

/// When a connection ends from outside.
pub(super) struct Until {
    /// Between requests.
    pub(super) stop: CancellationToken,
    /// At once.
    pub(super) abort: CancellationToken,
}

/// Serves a connection to its end. Says why, where it is the server that ended it.
pub(super) async fn serve<S>(
    stream: S,
    router: Router,
    limits: &Limits,
    shutdown: &Shutdown,
    until: Until,
) -> Option<&'static str>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let activity = Arc::new(Activity::new(limits));
    let builder = builder(limits);
    let stream = TokioIo::new(Watched { stream, activity: Arc::clone(&activity) });
    let (seen, draining) = (Arc::clone(&activity), shutdown.clone());
    let service = service_fn(move |request: Request<Incoming>| {
        let busy = Busy::begin(&seen, request.version());
        let answer = router.clone().call(request);
        let draining = draining.clone();
        async move {
            let mut response = answer.await?;
            if busy.0.leaves(&draining) {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, std::convert::Infallible>(response)
        }
    });
    let mut connection = pin!(builder.serve_connection(stream, service));
    let mut tick = pin!(sleep(activity.tick));
    let mut ending: Option<(Instant, Option<&'static str>)> = None;
    loop {
        tokio::select! {
            biased;
            _ = connection.as_mut() => return ending.and_then(|(_, reason)| reason),
            () = until.stop.cancelled(), if ending.is_none() => {
                connection.as_mut().graceful_shutdown();
                ending = Some((Instant::now(), None));
            }
            () = until.abort.cancelled() => return Some("shutdown"),
            () = &mut tick => {
                tick.set(sleep(activity.tick));
                match activity.due(limits, ending.map(|(since, _)| since)) {
                    Due::Nothing => {}
                    Due::Gentle(reason) => {
                        connection.as_mut().graceful_shutdown();
                        ending = Some((Instant::now(), Some(reason)));
                    }
                    Due::Now(reason) => return Some(reason),
                }
            }
        }
    }
}

fn builder(limits: &Limits) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    // The header timeout of hyper starts with the end of the answer before, so it would end connections that rest.
    builder.http1().timer(TokioTimer::new()).header_read_timeout(None).max_buf_size(HEAD_SIZE);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.max_streams)
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(20));
    builder
}

/// What a connection does, in milliseconds since it began; zero stands for never.
#[derive(Debug)]
struct Activity {
    began: Instant,
    /// How often somebody looks.
    tick: Duration,
    /// The age at which the connection is too old.
    age: Duration,
    in_flight: AtomicU32,
    /// When the last request was answered.
    idle_since: AtomicU64,
    /// When the first byte came of a head that is not whole yet.
    head_since: AtomicU64,
    /// Whether a request was seen at all.
    used: AtomicBool,
    http2: AtomicBool,
    /// Whether the next answer on HTTP/1.1 asks the client to leave.
    old: AtomicBool,
}

/// What a look at a connection leads to.
enum Due {
    Nothing,
    /// It ends after the requests in flight.
    Gentle(&'static str),
    Now(&'static str),
}

impl Activity {
    fn new(limits: &Limits) -> Self {
        let shortest = limits.header_timeout.min(limits.idle_timeout).min(limits.connection_age);
        // Up to a tenth more, so that connections which began together do not end together.
        let spread = RandomState::new().hash_one(()).checked_rem(100).unwrap_or_default();
        let spread = limits
            .connection_age
            .checked_div(1_000)
            .unwrap_or_default()
            .saturating_mul(u32::try_from(spread).unwrap_or_default());
        Self {
            began: Instant::now(),
            tick: shortest.checked_div(4).unwrap_or_default().max(Duration::from_millis(10)),
            age: limits.connection_age.saturating_add(spread),
            in_flight: AtomicU32::new(0),
            idle_since: AtomicU64::new(0),
            head_since: AtomicU64::new(0),
            used: AtomicBool::new(false),
            http2: AtomicBool::new(false),
            old: AtomicBool::new(false),
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX).max(1)
    }

    /// Whether an answer asks its client to come back on another connection. HTTP/2 has a frame for that.
    fn leaves(&self, shutdown: &Shutdown) -> bool {
        !self.http2.load(Ordering::Relaxed) && (self.old.load(Ordering::Relaxed) || shutdown.is_draining())
    }

    fn due(&self, limits: &Limits, ending_since: Option<Instant>) -> Due {
        let now = self.now();
        let since = |moment: u64| Duration::from_millis(now.saturating_sub(moment));
        if ending_since.is_some_and(|since| since.elapsed() >= GRACE) {
            return Due::Now("unfinished");
        }
        let busy = self.in_flight.load(Ordering::Acquire) > 0;
        if busy {
            return self.due_by_age(since(0));
        }
        let head = self.head_since.load(Ordering::Relaxed);
        let unused = !self.used.load(Ordering::Relaxed);
        let http2 = self.http2.load(Ordering::Relaxed);
        if unused && since(0) >= limits.header_timeout || !http2 && head > 0 && since(head) >= limits.header_timeout {
            return Due::Now("slow-header");
        }
        if ending_since.is_none() && since(self.idle_since.load(Ordering::Relaxed)) >= limits.idle_timeout {
            return Due::Gentle("idle");
        }
        if ending_since.is_none() { self.due_by_age(since(0)) } else { Due::Nothing }
    }

    fn due_by_age(&self, age: Duration) -> Due {
        if age < self.age || self.old.swap(true, Ordering::Relaxed) {
            return Due::Nothing;
        }
        // On HTTP/1.1 the end would meet a request that is on its way; the next answer asks the client instead.
        if self.http2.load(Ordering::Relaxed) { Due::Gentle("age") } else { Due::Nothing }
    }
}

/// A request in flight on its connection.
struct Busy(Arc<Activity>);

impl Busy {
    fn begin(activity: &Arc<Activity>, version: Version) -> Self {
        activity.in_flight.fetch_add(1, Ordering::AcqRel);
        activity.head_since.store(0, Ordering::Relaxed);
        if !activity.used.load(Ordering::Relaxed) {
            activity.used.store(true, Ordering::Relaxed);
            activity.http2.store(version == Version::HTTP_2, Ordering::Relaxed);
        }
        Self(Arc::clone(activity))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.idle_since.store(self.0.now(), Ordering::Relaxed);
        self.0.in_flight.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A stream that notes when the head of a request begins to come.
struct Watched<S> {
    stream: S,
    activity: Arc<Activity>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buffer);
        let activity = &self.activity;
        let resting =
            || activity.in_flight.load(Ordering::Relaxed) == 0 && activity.head_since.load(Ordering::Relaxed) == 0;
        if buffer.filled().len() > before && resting() {
            activity.head_since.store(activity.now(), Ordering::Relaxed);
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
