//! From a request to its decision: what is asked of whom before [`crate::policy`] decides.
//!
//! What it does: reads a Namespace that nobody knows yet, asks the policy sets that the request concerns, and brings their
//! patches together. Invariant: whoever does not answer in time costs what `onDeadline` or the set's `on-error` says, and
//! nothing else.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt as _;
use jiff::Timestamp;
use tokio::time::Instant;

use super::admit::{LARGE, caught};
use super::{App, Rules};
use crate::config::OnDeadline;
use crate::facts::{Event, Facts, Labels};
use crate::json;
use crate::metrics::endpoint;
use crate::policies::Active;
use crate::policy::decision::{Action, Decision, Note};
use crate::policy::patches::Patched;
use crate::policy::{Examined, Phase, Verdict};
use crate::rego::outcome::{Failure, Outcome};
use crate::rego::screen::is_plain;
use crate::review::{Request, replaced};
use crate::workers::Question;

/// One request and all that it is judged by.
pub(super) struct Case<'c> {
    pub(super) app: &'c App,
    pub(super) phase: Phase,
    pub(super) request: &'c Request<'c>,
    pub(super) body: &'c Bytes,
    pub(super) rules: &'c Rules,
    pub(super) deadline: Instant,
    /// What could not be waited for, where something could not.
    pub(super) unread: Option<&'static str>,
}

/// What is known of the request's Namespace beside the facts.
enum Found {
    /// Nothing more is needed, or there is nothing more.
    Known,
    /// Its labels.
    Labels(Labels),
    /// It could not be read in time, and why.
    Unknown(String),
}

impl Case<'_> {
    /// Decides; nothing after a panic.
    pub(super) async fn decide(&self, facts: &Facts) -> Option<Decision> {
        let mut decision = self.decide_from(facts).await?;
        if let Some(reason) = self.unread {
            self.without_all(&mut decision, reason.to_owned());
        }
        Some(decision)
    }

    /// Decides from these facts, and the Namespace where they lack it.
    async fn decide_from(&self, facts: &Facts) -> Option<Decision> {
        let examined = caught(self.app, || self.examined(self.request, facts))?;
        if !self.needs_namespace(&examined, facts) {
            return self.judge(&examined, facts).await;
        }
        match self.namespace().await {
            Found::Known => self.judge(&examined, facts).await,
            Found::Labels(labels) => {
                let next = facts.after(Event::Namespace(self.request.namespace.to_string(), labels));
                let facts = next.as_ref().unwrap_or(facts);
                let examined = caught(self.app, || self.examined(self.request, facts))?;
                self.judge(&examined, facts).await
            }
            Found::Unknown(reason) => {
                let mut decision = self.judge(&examined, facts).await?;
                self.without_all(&mut decision, reason);
                Some(decision)
            }
        }
    }

    fn examined<'s>(&'s self, request: &'s Request<'s>, facts: &'s Facts) -> Examined<'s> {
        Examined::new(self.phase, request, &self.rules.policy, facts)
    }

    /// The sets that nothing but the Namespace's labels may speak against.
    fn candidates(&self, examined: &Examined<'_>) -> impl Iterator<Item = &Arc<Active>> {
        let sets = &self.rules.sets;
        let concerns = !sets.active.is_empty() && examined.concerns_policies();
        let (mutates, gpu) = (self.phase == Phase::Mutate, concerns && examined.involves_gpu());
        sets.of_kind(&self.request.kind.kind).filter(move |set| concerns && set.may_match(self.request, mutates, gpu))
    }

    /// Whether nobody knows the request's Namespace yet and its labels may matter. A workload without GPUs waits for
    /// nothing, and is refused for nothing that cannot be read.
    fn needs_namespace(&self, examined: &Examined<'_>, facts: &Facts) -> bool {
        let name = self.request.namespace.as_ref();
        self.app.namespaces.get().is_some()
            && !name.is_empty()
            && facts.namespace(name).is_none()
            && (examined.reads_namespace() || self.candidates(examined).next().is_some())
    }

    /// Asks the sets that the request concerns, and decides.
    async fn judge(&self, examined: &Examined<'_>, facts: &Facts) -> Option<Decision> {
        let namespace = self.request.namespace.as_ref();
        let labels = facts.namespace(namespace);
        let sets: Vec<Arc<Active>> =
            self.candidates(examined).filter(|set| set.matches_namespace(namespace, labels)).cloned().collect();
        if self.phase == Phase::Validate && (!sets.is_empty() || examined.involves_gpu()) {
            self.app.recent.keep(self.request, self.body);
        }
        let verdicts = self.ask(&sets, examined, self.body).await?;
        if verdicts.iter().all(|verdict| verdict.outcome.patch.is_empty()) {
            return caught(self.app, || examined.decide(&verdicts, Timestamp::now()));
        }
        self.complete(&sets, &verdicts, facts).await
    }

    /// Reads the request's Namespace once.
    async fn namespace(&self) -> Found {
        let (app, name) = (self.app, self.request.namespace.as_ref());
        let Some(source) = app.namespaces.get() else { return Found::Known };
        let unknown = |why: String| Found::Unknown(format!("the labels of Namespace {name} {why}"));
        let reading = AssertUnwindSafe(async { source.read(name).await }).catch_unwind();
        let (found, outcome) = match tokio::time::timeout_at(self.deadline, reading).await {
            Ok(Ok(Ok(Some(labels)))) => (Found::Labels(labels), "found"),
            Ok(Ok(Ok(None))) => (Found::Known, "missing"),
            Ok(Ok(Err(error))) => (unknown(format!("cannot be read: {error:#}")), "error"),
            Ok(Err(_panic)) => {
                app.metrics.panics.inc();
                (unknown("cannot be read".to_owned()), "error")
            }
            Err(_) => {
                app.metrics.late("namespace");
                (unknown("could not be read before the deadline".to_owned()), "deadline")
            }
        };
        app.metrics.namespace_reads.get_or_create(&[("outcome", outcome)]).inc();
        found
    }

    /// Asks sets about a request. Nobody is asked where none is concerned.
    async fn ask(&self, sets: &[Arc<Active>], examined: &Examined<'_>, body: &Bytes) -> Option<Vec<Verdict>> {
        if sets.is_empty() {
            return Some(Vec::new());
        }
        let silent = caught(self.app, || self.silent(sets, examined.request(), body))?;
        let asked = sets.iter().zip(&silent).filter(|(_, silent)| !**silent);
        let asked: Vec<_> = asked.filter_map(|(set, _)| set.installed.clone()).collect();
        let mut outcomes = Vec::new();
        if !asked.is_empty() {
            let context = caught(self.app, || examined.context())?;
            let (phase, deadline, body) = (self.phase, self.deadline, body.clone());
            let question = Question { phase, sets: &asked, context: &context, body, deadline };
            outcomes = self.app.workers.evaluate(question).await;
        }
        if outcomes.iter().any(|outcome| outcome.error == Some(Failure::Deadline)) {
            self.app.metrics.late("policies");
        }
        let mut outcomes = outcomes.into_iter();
        let lost = || Outcome { error: Some(Failure::Died), ..Outcome::default() };
        let verdicts = sets.iter().zip(silent).map(|(set, silent)| match &set.installed {
            Some(_) if silent => set.verdict(Outcome::default()),
            Some(_) => set.verdict(outcomes.next().unwrap_or_else(lost)),
            None => set.failed(Failure::NotLoaded),
        });
        Some(verdicts.collect())
    }

    /// Which of the sets need not be asked, since they have nothing to say.
    fn silent(&self, sets: &[Arc<Active>], request: &Request<'_>, body: &Bytes) -> Vec<bool> {
        let plain = body.len() < LARGE && is_plain(request);
        let (workers, phase) = (&self.app.workers, self.phase);
        let silent = |set: &Arc<Active>| {
            plain && set.installed.as_ref().is_some_and(|set| workers.is_silent(set, phase, request))
        };
        sets.iter().map(silent).collect()
    }

    /// Decides in the mutating call, on the object as the patches of sets leave it.
    async fn complete(&self, sets: &[Arc<Active>], verdicts: &[Verdict], facts: &Facts) -> Option<Decision> {
        let mut patched = self.patched(verdicts, &[]);
        // A patch that goes on changing what it has changed would never come to rest.
        let restless = self.restless(sets, &patched, facts).await?;
        if !restless.is_empty() {
            patched = self.patched(verdicts, &restless);
        }
        let text = patched.object.to_string();
        let request = self.with_object(&text)?;
        let mut decision = caught(self.app, || self.examined(&request, facts).decide(verdicts, Timestamp::now()))?;
        let changes = patched.changes.into_iter().map(|(_, change)| change);
        decision.changes = changes.chain(decision.changes).collect();
        let restless = restless.into_iter().map(|set| {
            format!("policy {set}: its patch was left out, since it changes its own result when it runs again")
        });
        decision.notes.extend(patched.notes.into_iter().chain(restless).map(Note::from));
        Some(decision)
    }

    /// The request with another object, whose text this is.
    fn with_object<'t>(&'t self, text: &'t str) -> Option<Request<'t>> {
        let object = json::parse(text.as_bytes()).ok()?;
        Some(Request { object, ..self.request.clone() })
    }

    fn patched(&self, verdicts: &[Verdict], but: &[String]) -> Patched {
        let mut patched = Patched::new(self.request.object.to_value());
        for verdict in verdicts.iter().filter(|verdict| verdict.settings.action > Action::DryRun) {
            if !but.iter().any(|set| **set == *verdict.set) {
                patched.take(&verdict.set, &verdict.outcome.patch);
            }
        }
        patched
    }

    /// The sets whose patch has more to add to the object that it is applied to.
    async fn restless(&self, sets: &[Arc<Active>], patched: &Patched, facts: &Facts) -> Option<Vec<String>> {
        let again: Vec<Arc<Active>> =
            sets.iter().filter(|set| patched.changes.iter().any(|(name, _)| **name == *set.name)).cloned().collect();
        let Some(body) = replaced(self.body, &patched.object) else { return Some(Vec::new()) };
        let text = patched.object.to_string();
        let request = self.with_object(&text)?;
        let examined = caught(self.app, || self.examined(&request, facts))?;
        let verdicts = self.ask(&again, &examined, &body.into()).await?;
        let restless = verdicts.iter().filter(|verdict| {
            let mut further = Patched::new(patched.object.clone());
            further.take(&verdict.set, &verdict.outcome.patch);
            !further.changes.is_empty()
        });
        Some(restless.map(|verdict| verdict.set.to_string()).collect())
    }

    /// Where not all is known, `onDeadline` says what holds: nothing is refused for it under `allow`, everything
    /// under `deny`. The mutating call never refuses; it adds nothing then.
    fn without_all(&self, decision: &mut Decision, reason: String) {
        let at_deadline = self.rules.policy.config.at_deadline();
        if (self.phase, at_deadline) != (Phase::Validate, OnDeadline::Deny) {
            // A refusal has the reason in its own line.
            let (uid, endpoint) = (self.request.uid.as_ref(), endpoint(self.phase));
            tracing::warn!(endpoint, uid, reason, "let through without the whole verdict");
        }
        match (self.phase, at_deadline) {
            (Phase::Validate, OnDeadline::Deny) => decision.refusal = Some(reason),
            (Phase::Validate, OnDeadline::Allow) => {
                for finding in &mut decision.findings {
                    finding.action = finding.action.min(Action::Warn);
                }
                let note = format!("let through without the whole verdict, as onDeadline says: {reason}");
                decision.notes.push(note.into());
            }
            (Phase::Mutate, _) => {
                decision.changes.clear();
                decision.notes.push(format!("nothing was added: {reason}").into());
            }
        }
    }
}
