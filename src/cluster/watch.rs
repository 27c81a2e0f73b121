//! A list, then a watch from where it ended, again and again.
//!
//! What it does: keeps one kind of object followed through lost connections, expired versions and restarts of the API
//! server. It is kube's own watcher in what it asks for, and differs in three things that on-call needs: the answer to a
//! list is waited for only so long; a connection that stands again is told, even when nothing changes on it; and a server
//! that ends each watch at once is not asked without pause. Invariant: a list is handed on when it is complete and never
//! in parts, so that what was known stays until then.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::pin::pin;
use std::time::Duration;

use futures::TryStreamExt;
use kube::api::{ListParams, WatchParams};
use kube::core::{ObjectList, Request, WatchEvent};
use kube::{Client, Error};
use serde_json::Value;
use thiserror::Error as ThisError;
use tokio::time::{Instant, sleep, timeout};
use tracing::{info, warn};

use crate::feed::Watched;

/// What is followed.
pub(super) struct Source {
    /// How people call it.
    pub(super) what: Watched,
    /// The path of the collection on the API server.
    pub(super) path: String,
    /// A field selector.
    pub(super) fields: Option<String>,
    /// A label selector.
    pub(super) labels: Option<String>,
    /// Leave all but the metadata at the API server.
    pub(super) metadata_only: bool,
}

/// Is told why the API server cannot be reached, and nothing once it is reached again.
pub(super) type Tell<'s> = &'s (dyn Fn(Option<String>) + Sync);

/// Takes what is followed.
pub(super) trait Reader: Send {
    /// What is kept of an object.
    type Item: Send;

    /// What is kept of this object; nothing where it is of no use.
    fn read(&self, object: Value) -> Option<Self::Item>;

    /// All there is; what is not among it is gone.
    fn listed(&mut self, all: Vec<Self::Item>);

    /// One that is new or changed.
    fn applied(&mut self, item: Self::Item);

    /// One that is gone.
    fn deleted(&mut self, item: Self::Item);
}

/// How long things may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// The wait after a first failure. It doubles with each that follows.
    pub(super) first: Duration,
    /// The longest wait: how much later than others slicegate learns that the API server is back.
    pub(super) longest: Duration,
    /// A time without failures after which the next one counts as a first.
    pub(super) calm: Duration,
    /// For the answer to a list, and for the beginning of one to a watch.
    pub(super) answer: Duration,
    /// How long the API server keeps a watch open. A connection that died silently is noticed a moment after that.
    pub(super) watch: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(200),
            longest: Duration::from_secs(10),
            calm: Duration::from_mins(1),
            answer: Duration::from_secs(30),
            watch: Duration::from_mins(1),
        }
    }
}

/// Follows a source. Ends only by being dropped.
pub(super) async fn follow<R: Reader>(client: &Client, source: &Source, pace: Pace, reader: &mut R, tell: Tell<'_>) {
    let mut contact = Contact::new(source.what, pace, tell);
    let mut version = None;
    loop {
        let step = match &mut version {
            None => match list(client, source, pace, reader).await {
                Ok((all, listed)) => {
                    contact.stands();
                    reader.listed(all);
                    version = Some(listed);
                    Ok(())
                }
                Err(trouble) => Err(trouble),
            },
            Some(from) => watch(client, source, pace, reader, from, &mut contact).await,
        };
        if let Err(trouble) = step {
            if trouble.needs_list() {
                version = None;
            }
            contact.lost(&trouble).await;
        }
    }
}

/// Why a list or a watch ended.
#[derive(Debug, ThisError)]
enum Trouble {
    #[error("{}", explained(.0))]
    Failed(#[from] Error),
    #[error("no answer within {0:?}")]
    Late(Duration),
    #[error("the list has no resource version")]
    NoVersion,
    #[error("the watch ended as soon as it began")]
    Brief,
    /// Nothing is wrong: what the watch would begin at is too old for the API server.
    #[error("the version is too old")]
    Gone,
}

impl Trouble {
    /// Whether going on from the last version is in doubt. Whatever the API server itself says against a watch makes a new
    /// list: the version may also be from before its storage was restored.
    fn needs_list(&self) -> bool {
        match self {
            Self::Gone | Self::NoVersion => true,
            Self::Failed(Error::Api(status)) => status.code != TOO_MANY_REQUESTS,
            Self::Failed(_) | Self::Late(_) | Self::Brief => false,
        }
    }
}

const TOO_MANY_REQUESTS: u16 = 429;
const GONE: u16 = 410;
const PAGE: u32 = 500;
/// How much longer than the API server the client waits for the end of a watch.
const GRACE: Duration = Duration::from_secs(10);
/// A watch that ends sooner was not worth its request.
const BRIEF: Duration = Duration::from_secs(1);

async fn list<R: Reader>(
    client: &Client,
    source: &Source,
    pace: Pace,
    reader: &R,
) -> Result<(Vec<R::Item>, String), Trouble> {
    let mut all = Vec::new();
    let mut params = ListParams {
        field_selector: source.fields.clone(),
        label_selector: source.labels.clone(),
        limit: Some(PAGE),
        ..ListParams::default()
    };
    loop {
        let request = Request::new(source.path.as_str());
        let request = if source.metadata_only { request.list_metadata(&params) } else { request.list(&params) };
        let part = client.request::<ObjectList<Value>>(request.map_err(Error::BuildRequest)?);
        let part = timeout(pace.answer, part).await.map_err(|_| Trouble::Late(pace.answer))??;
        all.extend(part.items.into_iter().filter_map(|object| reader.read(object)));
        params.continue_token = part.metadata.continue_.filter(|token| !token.is_empty());
        if params.continue_token.is_none() {
            let version = part.metadata.resource_version.filter(|version| !version.is_empty());
            return Ok((all, version.ok_or(Trouble::NoVersion)?));
        }
    }
}

/// Watches from a version, and moves it along with what comes. The end that the API server makes is no trouble.
async fn watch<R: Reader>(
    client: &Client,
    source: &Source,
    pace: Pace,
    reader: &mut R,
    version: &mut String,
    contact: &mut Contact<'_>,
) -> Result<(), Trouble> {
    let seconds = u32::try_from(pace.watch.as_secs()).unwrap_or(u32::MAX);
    let params = WatchParams {
        field_selector: source.fields.clone(),
        label_selector: source.labels.clone(),
        timeout: Some(seconds),
        ..WatchParams::default()
    };
    let request = Request::new(source.path.as_str());
    let request =
        if source.metadata_only { request.watch_metadata(&params, version) } else { request.watch(&params, version) };
    let began = Instant::now();
    let events = client.request_events::<Value>(request.map_err(Error::BuildRequest)?);
    let events = timeout(pace.answer, events).await.map_err(|_| Trouble::Late(pace.answer))?.map_err(gone)?;
    contact.stands();
    let mut events = pin!(events);
    let silence = pace.watch.saturating_add(GRACE);
    let mut silent = true;
    while let Some(event) = timeout(silence, events.try_next()).await.map_err(|_| Trouble::Late(silence))?? {
        silent = false;
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                advance(version, &object);
                if let Some(item) = reader.read(object) {
                    reader.applied(item);
                }
            }
            WatchEvent::Deleted(object) => {
                advance(version, &object);
                if let Some(item) = reader.read(object) {
                    reader.deleted(item);
                }
            }
            WatchEvent::Bookmark(mark) => *version = mark.metadata.resource_version,
            WatchEvent::Error(status) => return Err(gone(Error::Api(status))),
        }
    }
    if silent && began.elapsed() < BRIEF { Err(Trouble::Brief) } else { Ok(()) }
}

fn advance(version: &mut String, object: &Value) {
    if let Some(next) = object.pointer("/metadata/resourceVersion").and_then(Value::as_str) {
        next.clone_into(version);
    }
}

fn gone(error: Error) -> Trouble {
    match error {
        Error::Api(status) if status.code == GONE => Trouble::Gone,
        other => Trouble::Failed(other),
    }
}

/// Whether the API server can be reached, and how long to wait where it cannot.
struct Contact<'s> {
    what: Watched,
    pace: Pace,
    tell: Tell<'s>,
    /// What was told last; nothing while all is well.
    told: Option<String>,
    wait: Duration,
    failed: Option<Instant>,
}

impl<'s> Contact<'s> {
    fn new(what: Watched, pace: Pace, tell: Tell<'s>) -> Self {
        Self { what, pace, tell, told: None, wait: pace.first, failed: None }
    }

    fn stands(&mut self) {
        if self.told.take().is_some() {
            info!(watched = self.what.as_str(), "Watch stands again");
            (self.tell)(None);
        }
    }

    /// Tells of trouble once, and waits a while.
    async fn lost(&mut self, trouble: &Trouble) {
        if !matches!(trouble, Trouble::Gone) {
            let text = trouble.to_string();
            if self.told.as_ref() != Some(&text) {
                warn!(watched = self.what.as_str(), problem = text, "Watch is broken; what is known stays");
                (self.tell)(Some(text.clone()));
                self.told = Some(text);
            }
        }
        if self.failed.is_none_or(|last| last.elapsed() > self.pace.calm) {
            self.wait = self.pace.first;
        }
        // Replicas that lost the API server in the same moment come back in different ones.
        sleep(between_half_and_whole(self.wait)).await;
        self.wait = self.wait.saturating_mul(2).min(self.pace.longest);
        self.failed = Some(Instant::now());
    }
}

/// A part of a wait that differs from one call to the next.
pub(super) fn between_half_and_whole(wait: Duration) -> Duration {
    // A hasher of the standard library begins at random, which is all the chance that this needs.
    let chance = RandomState::new().build_hasher().finish();
    let share = u16::try_from(chance % 1_000).unwrap_or_default();
    wait.mul_f32(0.5 + f32::from(share) / 2_000.0)
}

/// What the API server said and what to do about it, or the whole chain of an error on the way to it.
pub(super) fn explained(error: &Error) -> String {
    if let Error::Api(status) = error {
        let remedy = match status.code {
            401 => "; the credentials are expired or those of another cluster",
            403 => "; the service account lacks a role, deploy/slicegate.yaml has it",
            _ => "",
        };
        return format!("{}{remedy}", status.message);
    }
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}
