//! One review from its bytes to the bytes of its answer, with its line in the log.
//!
//! What it does: decodes, asks for a Namespace that nobody knows yet, decides, encodes, counts, logs. What it does not: speak
//! HTTP. Invariants: one request sees one policy and one state of facts; an answer carries the request's uid; a panic in
//! here ends one request and nothing else.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::routes::Rejection;
use super::verdict::Case;
use super::{self as server, App};
use crate::config::OnDeadline;
use crate::facts::Labels;
use crate::metrics::{Outcome, endpoint};
use crate::policy::Phase;
use crate::policy::decision::{Action, Decision, Spared};
use crate::review::response::{encode, encode_unjudged, encode_unreadable};
use crate::review::{self, Operation, Refused, Request};

/// From this size on a review is judged on a thread of its own, since it takes long enough to make others wait.
pub(super) const LARGE: usize = 256 << 10;

/// The most that a large review gives up waiting before its deadline.
const MARGIN: Duration = Duration::from_millis(200);

/// Where the labels of a Namespace are read that the watch does not know yet.
pub trait NamespaceSource: Send + Sync + fmt::Debug {
    /// Reads the labels; nothing where there is no such Namespace. The caller stops waiting at the request's deadline.
    fn read<'a>(&'a self, name: &'a str) -> BoxFuture<'a, anyhow::Result<Option<Labels>>>;
}

/// Answers one review.
pub(super) async fn answer(app: &Arc<App>, phase: Phase, body: Bytes, deadline: Instant) -> Result<Bytes, Rejection> {
    let started = Instant::now();
    if body.len() < LARGE {
        return judge(app, phase, &body, started, Deadline { waiting: deadline, answer: deadline }).await;
    }
    let core = tokio::time::timeout_at(deadline, Arc::clone(&app.large).acquire_owned()).await;
    app.metrics.large_queue.observe(started.elapsed().as_secs_f64());
    let Ok(Ok(core)) = core else { return late(app, phase, &body) };
    // What waits gives up a little before, so that what is known by then is still the answer.
    let within = Deadline { waiting: deadline.checked_sub(margin(deadline)).unwrap_or(deadline), answer: deadline };
    let (judging, runtime, judged) = (Arc::clone(app), Handle::current(), body.clone());
    let work = move || {
        // Held here and not by the request, which may be gone before the work is.
        let _core = core;
        runtime.block_on(judge(&judging, phase, &judged, started, within))
    };
    match tokio::time::timeout_at(deadline, tokio::task::spawn_blocking(work)).await {
        Ok(judged) => judged.unwrap_or(Err(Rejection::Panicked)),
        // The rules themselves took too long; the work ends unheard.
        Err(_) => late(app, phase, &body),
    }
}

/// Until when one review may wait, and until when it has to be answered.
#[derive(Clone, Copy)]
struct Deadline {
    waiting: Instant,
    answer: Instant,
}

/// How long before its deadline a large review gives up waiting: the time that judging the rest may take.
fn margin(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now()).div_f64(10.0).min(MARGIN)
}

/// The answer to a large review that found no free core before its deadline, or was not through by then.
fn late(app: &App, phase: Phase, body: &[u8]) -> Result<Bytes, Rejection> {
    app.metrics.late("large");
    let uid = review::uid(body).ok_or(Rejection::Deadline)?;
    let reason = "the deadline came before this large object could be judged; try again";
    let let_through = app.rules().policy.config.at_deadline() == OnDeadline::Allow;
    tracing::warn!(endpoint = endpoint(phase), uid, let_through, reason, "review");
    Ok(encode_unjudged(phase, &uid, let_through, reason).into())
}

async fn judge(
    app: &App,
    phase: Phase,
    body: &Bytes,
    started: Instant,
    deadline: Deadline,
) -> Result<Bytes, Rejection> {
    let decoded = caught(app, || review::decode(body)).ok_or(Rejection::Panicked)?;
    let request = match decoded {
        Ok(request) => request,
        Err(Refused::BadRequest(sentence)) => return Err(Rejection::NoReview(sentence)),
        Err(Refused::Unreadable { uid, reason }) => {
            let seconds = started.elapsed().as_secs_f64();
            app.metrics.answered(phase, None, Outcome::Unreadable, seconds);
            let outcome = Outcome::Unreadable.as_str();
            tracing::info!(endpoint = endpoint(phase), uid, verdict = outcome, reason, duration = seconds, "review");
            return Ok(encode_unreadable(&uid, &reason).into());
        }
    };
    let verdict = decide(app, phase, &request, body, deadline.waiting).await.and_then(|(decision, rules)| {
        let encoded = caught(app, || encode(phase, &request, &decision, &rules.policy.digest))?;
        Some((decision, encoded))
    });
    let Some((decision, encoded)) = verdict else {
        let decision = Decision { subject: request.shown_name(), ..Decision::default() };
        report(app, phase, &request, &decision, Outcome::Panicked, started);
        let reason = "the request could not be judged after a fault of the admission webhook; its log says more";
        return Ok(encode_unreadable(&request.uid, reason).into());
    };
    if let Some(error) = encoded.patch_error {
        app.metrics.patch_errors.inc();
        tracing::error!(uid = request.uid.as_ref(), error, "the patch was left out");
    }
    if body.len() >= LARGE && Instant::now() >= deadline.answer {
        // Another answer has gone out, and was counted and logged.
        return Err(Rejection::Deadline);
    }
    report(app, phase, &request, &decision, outcome(phase, &decision), started);
    Ok(encoded.body.into())
}

/// Decides about one request, by what is in force at this moment; nothing after a panic. Whoever wants a verdict asks here,
/// the command line too.
pub(crate) async fn decide(
    app: &App,
    phase: Phase,
    request: &Request<'_>,
    body: &Bytes,
    deadline: Instant,
) -> Option<(Decision, Arc<server::Rules>)> {
    // A replica that has not read its policies yet is not ready; who asks it all the same waits, or is told to come again.
    let judged = matches!(request.operation, Operation::Create | Operation::Update);
    let read = !judged || app.wait_for_sets(deadline).await;
    let unread = (!read).then_some("the policies are not read yet; try again");
    if !read {
        app.metrics.late("policies-read");
    }
    let (rules, facts) = (app.rules(), app.facts());
    let case = Case { app, phase, request, body, rules: &rules, deadline, unread };
    let decision = case.decide(&facts).await?;
    Some((decision, rules))
}

/// The last net: a panic costs the request that it happened in.
pub(super) fn caught<T>(app: &App, work: impl FnOnce() -> T) -> Option<T> {
    let done = catch_unwind(AssertUnwindSafe(work)).ok();
    if done.is_none() {
        app.metrics.panics.inc();
    }
    done
}

fn outcome(phase: Phase, decision: &Decision) -> Outcome {
    let warned = !decision.notes.is_empty() || decision.of(Action::Warn).next().is_some();
    match phase {
        Phase::Validate if !decision.allowed() => Outcome::Denied,
        Phase::Mutate if !decision.changes.is_empty() => Outcome::Patched,
        _ if warned => Outcome::Warned,
        _ => Outcome::Allowed,
    }
}

/// Counts the request and writes its one line.
fn report(app: &App, phase: Phase, request: &Request<'_>, decision: &Decision, outcome: Outcome, started: Instant) {
    let seconds = started.elapsed().as_secs_f64();
    app.metrics.answered(phase, Some(request.operation), outcome, seconds);
    if phase == Phase::Validate {
        decision.findings.iter().for_each(|finding| app.metrics.found(finding));
    }
    tracing::info!(
        endpoint = endpoint(phase),
        uid = request.uid.as_ref(),
        operation = request.operation.as_str(),
        kind = request.kind.kind.as_ref(),
        namespace = request.namespace.as_ref(),
        name = request.shown_name(),
        user = request.user.name.as_ref(),
        verdict = outcome.as_str(),
        rules = %Rules(decision),
        exemption = exemption(decision),
        reason = decision.refusal,
        dry_run = request.dry_run,
        duration = seconds,
        "review"
    );
}

/// Why a finding was let through, where an exemption did.
fn exemption(decision: &Decision) -> Option<&str> {
    decision.findings.iter().find_map(|finding| match &finding.spared {
        Some(Spared::Exempted(reason)) => Some(reason.as_str()),
        _ => None,
    })
}

/// The rules that found something, each with its action and once.
struct Rules<'a>(&'a Decision);

impl fmt::Display for Rules<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut written: Vec<(_, _)> = Vec::new();
        for finding in &self.0.findings {
            let seen = (&finding.rule, finding.action);
            if !written.contains(&seen) {
                let comma = if written.is_empty() { "" } else { "," };
                write!(out, "{comma}{}={}", finding.rule, finding.action)?;
                written.push(seen);
            }
        }
        Ok(())
    }
}
