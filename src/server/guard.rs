//! The guard: the admission of what verdicts are made by, policies and the configuration.
//!
//! What it does: tells the writes that change something from those that do not, has the former checked as they will be when
//! they are loaded, tries what is good on recent requests, and answers. What it does not: put anything in force; that is the
//! watches' work, and they trust no guard. Invariants: what is refused here would not be loaded, fails its own tests or breaks
//! what is loaded; a write that changes nothing that is read is let through whatever state the rest is in.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use tokio::time::{Instant, timeout_at};

use super::admit::LARGE;
use super::routes::Rejection;
use super::{App, Rules};
use crate::cluster::{CONFIG_KEY, NAMESPACE};
use crate::review::guard::{Answer, Complaint, encode};
use crate::review::response::encode_unreadable;
use crate::review::{self, Refused};

mod configuration;
mod effect;
mod policy;
mod replay;
mod write;

use policy::Change;
use write::{Read, Write};

/// What is left of the time for the answer when the replay has to end.
const RESERVE: Duration = Duration::from_millis(250);

/// Which ConfigMaps are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// slicegate's own namespace.
    pub home: String,
    /// Where policies may stand.
    pub namespaces: Vec<String>,
    /// Whether the configuration is that of the cluster, and not a file.
    pub configuration: bool,
}

impl Default for Scope {
    fn default() -> Self {
        Self { home: NAMESPACE.to_owned(), namespaces: vec![NAMESPACE.to_owned()], configuration: true }
    }
}

/// How a write was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    LeftAlone,
    Allowed,
    Refused,
    Unreadable,
    Panicked,
}

impl Outcome {
    fn as_str(self) -> &'static str {
        match self {
            Self::LeftAlone => "left-alone",
            Self::Allowed => "allowed",
            Self::Refused => "refused",
            Self::Unreadable => "unreadable",
            Self::Panicked => "panicked",
        }
    }
}

/// Answers one write.
pub(super) async fn answer(app: &Arc<App>, body: Bytes, deadline: Instant) -> Result<Bytes, Rejection> {
    let started = Instant::now();
    let done = |outcome: Outcome| {
        let judged = matches!(outcome, Outcome::Allowed | Outcome::Refused);
        app.metrics.guarded(outcome.as_str(), judged, started.elapsed().as_secs_f64());
    };
    let read = match read(app, body.clone(), deadline).await {
        Ok(read) => read,
        Err(Refused::BadRequest(sentence)) => return Err(Rejection::NoReview(sentence)),
        Err(Refused::Unreadable { uid, reason }) => {
            done(Outcome::Unreadable);
            tracing::info!(uid, reason, verdict = Outcome::Unreadable.as_str(), "guard");
            return Ok(encode_unreadable(&uid, &reason).into());
        }
    };
    let write = match read {
        Read::LeftAlone { uid, warnings } => {
            done(Outcome::LeftAlone);
            return Ok(encode(&uid, &Answer { warnings, ..Answer::default() }).into());
        }
        Read::Judged(write) => write,
    };
    // Libraries that are not read yet are no reason to refuse; the rest is told by the deadline.
    app.wait_for_sets(deadline).await;
    let rules = app.rules();
    let judging = AssertUnwindSafe(judge(app, &rules, &write, deadline)).catch_unwind();
    let Ok(answer) = judging.await else {
        app.metrics.panics.inc();
        done(Outcome::Panicked);
        tracing::error!(uid = write.uid, verdict = Outcome::Panicked.as_str(), "guard");
        let reason = "the write could not be judged after a fault of the admission webhook; its log says more";
        return Ok(encode_unreadable(&write.uid, reason).into());
    };
    let outcome = if answer.allowed() { Outcome::Allowed } else { Outcome::Refused };
    done(outcome);
    report(&write, &answer, outcome, started);
    Ok(encode(&write.uid, &answer).into())
}

/// Reads the review on a thread where it makes nobody wait.
async fn read(app: &Arc<App>, body: Bytes, deadline: Instant) -> Result<Read, Refused> {
    let scope = app.scope.get().cloned().unwrap_or_default();
    let mut core = None;
    if body.len() >= LARGE {
        let Ok(Ok(taken)) = timeout_at(deadline, Arc::clone(&app.large).acquire_owned()).await else {
            app.metrics.late("guard");
            let reason = "the deadline came before this large object could be judged; try again".to_owned();
            let uid = review::uid(&body);
            return Err(uid.map_or_else(
                || Refused::BadRequest(reason.clone()),
                |uid| Refused::Unreadable { uid, reason: reason.clone() },
            ));
        };
        core = Some(taken);
    }
    let uid = review::uid(&body).unwrap_or_default();
    let reading = tokio::task::spawn_blocking(move || {
        let _core = core;
        write::read(&body, &scope)
    });
    reading.await.unwrap_or_else(|_panic| {
        app.metrics.panics.inc();
        let reason = "the write could not be read after a fault of the admission webhook; its log says more".to_owned();
        Err(Refused::Unreadable { uid, reason })
    })
}

/// Judges what is written, and says what it would change.
async fn judge(app: &Arc<App>, rules: &Arc<Rules>, write: &Write, deadline: Instant) -> Answer {
    let mut answer = Answer { name: write.key.name.clone(), ..Answer::default() };
    let mut lints = Vec::new();
    let mut effects = Vec::new();
    if write.is_configuration {
        let text = write.texts.get(CONFIG_KEY).map(String::as_str);
        let checked = configuration::check(text, write.version.as_deref());
        answer.complaints.extend(checked.complaints);
        lints.extend(checked.warnings);
        if let Some(next) = checked.policy {
            answer.digest.clone_from(&next.digest);
            effects.push(effect::Effect::Configuration(Box::new(next)));
        }
    }
    if write.set.is_some() || write.was_set {
        let edit = policy::Edit { app, rules, write, deadline };
        match timeout_at(deadline, edit.check()).await {
            Ok(checked) => {
                answer.complaints.extend(checked.complaints);
                answer.warnings.extend(checked.notes);
                lints.extend(checked.warnings);
                if let Some(digest) = checked.digest {
                    answer.digest = digest;
                }
                effects
                    .extend(checked.changes.into_iter().map(|change: Change| effect::Effect::Policy(Box::new(change))));
            }
            Err(_late) => {
                app.metrics.late("guard");
                answer.complaints.push(Complaint::new(
                    "the policy could not be checked before the deadline, so that nobody knows whether it is good; try again, \
                     and give a policy with many tests a longer timeoutSeconds in the webhook configuration slicegate-guard",
                ));
            }
        }
    }
    if answer.allowed() {
        let until = deadline.checked_sub(RESERVE).unwrap_or(deadline);
        answer.warnings.extend(replay::replay(app, rules, effects, until).await);
    }
    answer.warnings.extend(lints);
    answer
}

/// One line for each write that was judged.
fn report(write: &Write, answer: &Answer, outcome: Outcome, started: Instant) {
    tracing::info!(
        uid = write.uid,
        operation = write.operation.as_str(),
        namespace = write.key.namespace,
        name = write.key.name,
        user = write.user,
        verdict = outcome.as_str(),
        digest = answer.digest,
        problems = answer.complaints.len(),
        reason = answer.complaints.first().map(|complaint| complaint.message.as_str()),
        warnings = answer.warnings.len(),
        dry_run = write.dry_run,
        duration = started.elapsed().as_secs_f64(),
        "guard"
    );
}
