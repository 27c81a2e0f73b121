//! What the leader writes: status, Events and last good forms.
//!
//! What it does: while this replica leads, brings what stands in the cluster in line with what is in force, and tries again
//! where that fails. Invariant: it writes only what differs from what is there, and nothing that a set is made of, so that
//! nothing that it writes makes it write again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, ObjectReference};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, Error};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use super::MANAGER;
use super::lastgood::{Kept, Store};
use super::status::{self, Note, STATUS};
use super::watch::explained;
use crate::rego::set::{Key, LABEL};
use crate::rego::state::{SetReport, State};

/// How long things may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// After a failure. It doubles with each that follows.
    pub(super) retry: Duration,
    /// The longest that it becomes.
    pub(super) longest: Duration,
    /// How often all is looked at again, in case that someone else changed it.
    pub(super) again: Duration,
    /// For all that is written of one set.
    pub(super) answer: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        let [retry, longest, again, answer] = [1, 60, 600, 20].map(Duration::from_secs);
        Self { retry, longest, again, answer }
    }
}

/// What is told to the writer.
pub(super) struct Told {
    /// What is in force of each set.
    pub(super) reports: watch::Receiver<Arc<Vec<SetReport>>>,
    /// The text of the configuration in force, where it came from the ConfigMap.
    pub(super) configuration: watch::Receiver<Option<Arc<str>>>,
    /// Whether this replica leads.
    pub(super) leads: watch::Receiver<bool>,
}

/// Writes.
pub(super) struct Writer {
    client: Client,
    store: Store,
    /// Who writes, in Events.
    identity: String,
    pace: Pace,
    /// The status of each set that is written in full.
    done: BTreeMap<Key, String>,
    /// The configuration that is kept.
    configuration: Option<Arc<str>>,
    /// The sets of the last round, and those whose end could not be written yet.
    known: BTreeSet<Key>,
    /// What was told last, so that a repetition is silent.
    problem: Option<String>,
}

impl Writer {
    pub(super) fn new(client: Client, store: Store, identity: String, pace: Pace) -> Self {
        let (done, known) = Default::default();
        Self { client, store, identity, pace, done, configuration: None, known, problem: None }
    }

    /// Writes whenever this replica leads, until there is nobody left who would tell.
    pub(super) async fn run(mut self, told: Told) {
        let Told { mut reports, mut configuration, mut leads } = told;
        while leads.wait_for(|leads| *leads).await.is_ok() {
            // What another one wrote meanwhile is not known here.
            self.done.clear();
            self.configuration = None;
            self.known = reports.borrow().iter().map(|report| report.key.clone()).collect();
            tokio::select! {
                () = self.write(&mut reports, &mut configuration) => return,
                lost = leads.wait_for(|leads| !*leads) => if lost.is_err() { return },
            }
        }
    }

    async fn write(
        &mut self,
        reports: &mut watch::Receiver<Arc<Vec<SetReport>>>,
        configuration: &mut watch::Receiver<Option<Arc<str>>>,
    ) {
        let mut wait = self.pace.retry;
        let mut prune = true;
        loop {
            let now = Arc::clone(&reports.borrow_and_update());
            let text = configuration.borrow_and_update().clone();
            match self.round(&now, text, prune).await {
                Ok(()) => {
                    (self.problem, wait, prune) = (None, self.pace.retry, false);
                    tokio::select! {
                        changed = reports.changed() => if changed.is_err() { return },
                        changed = configuration.changed() => if changed.is_err() { return },
                        () = sleep(self.pace.again) => {
                            self.done.clear();
                            self.configuration = None;
                            prune = true;
                        }
                    }
                }
                Err(problem) => {
                    self.tell(problem);
                    // What fails in one namespace does not hold up what is told of another one.
                    tokio::select! {
                        changed = reports.changed() => if changed.is_err() { return },
                        () = sleep(wait) => {}
                    }
                    wait = wait.saturating_mul(2).min(self.pace.longest);
                }
            }
        }
    }

    fn tell(&mut self, problem: String) {
        if self.problem.as_ref() != Some(&problem) {
            warn!(problem, "What is in force could not be written to the cluster; it is tried again");
        }
        self.problem = Some(problem);
    }

    /// Writes all that is not written yet, as far as it can; the first thing that went wrong where something did.
    async fn round(&mut self, reports: &[SetReport], text: Option<Arc<str>>, prune: bool) -> Result<(), String> {
        let mut first = None;
        let new = reports.iter().map(|report| (report, status::status(report)));
        let new = new.filter(|(report, status)| self.done.get(&report.key) != Some(status));
        let new: Vec<_> = new.map(|(report, status)| self.bounded(self.report(report, status))).collect();
        let written: Vec<_> = futures::stream::iter(new).buffer_unordered(AT_A_TIME).collect().await;
        for outcome in written {
            match outcome {
                Ok((key, status)) => drop(self.done.insert(key, status)),
                Err(problem) => first = first.or(Some(problem)),
            }
        }
        let current: BTreeSet<Key> = reports.iter().map(|report| report.key.clone()).collect();
        let gone: Vec<Key> = self.known.difference(&current).cloned().collect();
        self.known = current;
        for key in gone {
            self.done.remove(&key);
            if let Err(problem) = self.bounded(self.unload(&key)).await {
                self.known.insert(key);
                first = first.or(Some(problem));
            }
        }
        if let Some(text) = text
            && self.configuration.as_ref() != Some(&text)
        {
            match self.bounded(self.store.keep_config(&text)).await {
                Ok(kept) => {
                    if let Some(Kept::TooLarge(size)) = kept {
                        warn!(size, "The last good configuration is not kept: no Secret can hold it");
                    }
                    self.configuration = Some(text);
                }
                Err(problem) => first = first.or(Some(problem)),
            }
        }
        if prune {
            first = first.or(self.bounded(self.store.prune()).await.err());
        }
        first.map_or(Ok(()), Err)
    }

    async fn bounded<T>(&self, work: impl Future<Output = Result<T, Error>>) -> Result<T, String> {
        match timeout(self.pace.answer, work).await {
            Ok(outcome) => outcome.map_err(|error| explained(&error)),
            Err(_) => Err(format!("no answer within {:?}", self.pace.answer)),
        }
    }

    /// Writes what there is to say of one set.
    async fn report(&self, report: &SetReport, status: String) -> Result<(Key, String), Error> {
        let key = report.key.clone();
        // What is gone, or no policy any more, is no report soon.
        let Some(map) = self.policy(&key).await? else { return Ok((key, status)) };
        let uid = map.uid.as_deref().unwrap_or_default();
        let before = map.annotations.as_ref().and_then(|all| all.get(STATUS)).map(String::as_str);
        let news = status::is_news(before, &status);
        if before != Some(status.as_str()) {
            self.annotate(&key, uid, json!(status)).await?;
        }
        if news {
            self.emit(&key, Some(uid), status::note(report)).await;
        }
        if let (State::Loaded | State::NotRouted, Some(unit)) = (report.state, &report.in_force) {
            if unit.set.is_empty() {
                self.store.forget(&key).await?;
            } else if let Kept::TooLarge(size) = self.store.keep_unit(unit, uid).await? {
                warn!(policy = %key, size, "The last good form is not kept: no Secret can hold it");
                if news {
                    self.emit(&key, Some(uid), status::not_kept(size)).await;
                }
            }
        }
        Ok((key, status))
    }

    /// Writes that a set is there no more.
    async fn unload(&self, key: &Key) -> Result<(), Error> {
        let found = self.maps(key).get_metadata_opt(&key.name).await?.map(|map| map.metadata);
        let (uid, why) = match &found {
            Some(map) if labelled(map) => return Ok(()),
            Some(map) => (map.uid.as_deref(), format!("its label {LABEL} was removed")),
            None => (None, "it was deleted".to_owned()),
        };
        self.store.forget(key).await?;
        if found.as_ref().and_then(|map| map.annotations.as_ref()).is_some_and(|all| all.contains_key(STATUS)) {
            self.annotate(key, uid.unwrap_or_default(), Value::Null).await?;
        }
        info!(policy = %key, why, "Policy unloaded");
        self.emit(key, uid, status::unloaded(&why)).await;
        Ok(())
    }

    /// The metadata of a ConfigMap that is a policy.
    async fn policy(&self, key: &Key) -> Result<Option<ObjectMeta>, Error> {
        let map = self.maps(key).get_metadata_opt(&key.name).await?;
        Ok(map.map(|map| map.metadata).filter(labelled))
    }

    /// Writes the annotation, or takes it away, if the ConfigMap is still the one of this uid.
    async fn annotate(&self, key: &Key, uid: &str, status: Value) -> Result<(), Error> {
        let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        let patch = json!({"metadata": {"uid": uid, "annotations": {STATUS: status}}});
        self.maps(key).patch_metadata(&key.name, &params, &Patch::Merge(patch)).await.map(drop)
    }

    /// Makes an Event. It tells of what is written elsewhere too, so that one that is lost is not made again.
    async fn emit(&self, key: &Key, uid: Option<&str>, note: Note) {
        let regarding = ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("ConfigMap".to_owned()),
            namespace: Some(key.namespace.clone()),
            name: Some(key.name.clone()),
            uid: uid.map(str::to_owned),
            ..ObjectReference::default()
        };
        let event = Event {
            metadata: ObjectMeta {
                namespace: Some(key.namespace.clone()),
                generate_name: Some(format!("{}-", key.name)),
                ..ObjectMeta::default()
            },
            action: Some("Load".to_owned()),
            event_time: Some(MicroTime(Timestamp::now())),
            note: Some(note.text),
            reason: Some(note.reason.to_owned()),
            regarding: Some(regarding),
            reporting_controller: Some("slicegate.io/slicegate".to_owned()),
            reporting_instance: Some(self.identity.clone()),
            type_: Some(if note.warning { "Warning" } else { "Normal" }.to_owned()),
            ..Event::default()
        };
        let events: Api<Event> = Api::namespaced(self.client.clone(), &key.namespace);
        if let Err(error) = events.create(&PostParams::default(), &event).await {
            warn!(policy = %key, reason = note.reason, problem = explained(&error), "Event lost");
        }
    }

    fn maps(&self, key: &Key) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), &key.namespace)
    }
}

/// How many sets are written at a time.
const AT_A_TIME: usize = 8;

fn labelled(map: &ObjectMeta) -> bool {
    map.labels.as_ref().is_some_and(|labels| labels.contains_key(LABEL))
}
