//! A request's body, read whole within its bounds.
//!
//! Invariant: never more than the limit is held, whatever the client announces or sends.

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use std::time::Duration;
use tokio::time::Instant;

/// How much of a body is thrown away before a refusal, and for how long. Clients that write their whole body before they
/// read would otherwise see a reset connection in place of the answer.
const DISCARD: (usize, Duration) = (16 << 20, Duration::from_secs(1));

/// Why a body could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyError {
    TooLarge,
    TooSlow,
    Broken,
}

/// Reads the body.
pub(super) async fn read(body: Body, announced: usize, limit: usize, until: Instant) -> Result<Bytes, BodyError> {
    if announced > limit {
        discard(body).await;
        return Err(BodyError::TooLarge);
    }
    tokio::time::timeout_at(until, collect(body, announced, limit)).await.unwrap_or(Err(BodyError::TooSlow))
}

/// Reads and forgets what the client still sends, within bounds.
pub(super) async fn discard(mut body: Body) {
    let (most, time) = DISCARD;
    let reading = async {
        let mut seen: usize = 0;
        while let Some(Ok(frame)) = body.frame().await {
            seen = seen.saturating_add(frame.data_ref().map_or(0, Bytes::len));
            if seen > most {
                break;
            }
        }
    };
    // Whether it came to its end or not, the refusal is sent.
    let _ = tokio::time::timeout(time, reading).await;
}

async fn collect(mut body: Body, announced: usize, limit: usize) -> Result<Bytes, BodyError> {
    // Most bodies come in one piece, which is then not copied.
    let Some(first) = next(&mut body).await? else { return Ok(Bytes::new()) };
    if first.len() > limit {
        return Err(too_large(body).await);
    }
    let Some(second) = next(&mut body).await? else { return Ok(first) };
    let mut whole = BytesMut::with_capacity(announced.max(first.len().saturating_add(second.len())).min(limit));
    whole.extend_from_slice(&first);
    let mut piece = Some(second);
    while let Some(bytes) = piece {
        if whole.len().saturating_add(bytes.len()) > limit {
            drop(whole);
            return Err(too_large(body).await);
        }
        whole.extend_from_slice(&bytes);
        piece = next(&mut body).await?;
    }
    Ok(whole.freeze())
}

async fn too_large(body: Body) -> BodyError {
    discard(body).await;
    BodyError::TooLarge
}

/// The next piece of data that is not empty; trailers are nobody's business.
async fn next(body: &mut Body) -> Result<Option<Bytes>, BodyError> {
    while let Some(frame) = body.frame().await {
        match frame.map(http_body::Frame::into_data) {
            Ok(Ok(data)) if data.is_empty() => {}
            Ok(Ok(data)) => return Ok(Some(data)),
            Ok(Err(_trailers)) => {}
            Err(_) => return Err(BodyError::Broken),
        }
    }
    Ok(None)
}
