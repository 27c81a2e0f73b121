//! One object to its verdict: the review that the API server would send, answered by the code that serves.
//!
//! What it does: completes the object as the API server would, has it mutated, then validated as it came out of that.
//! Invariant: no verdict comes from anywhere but [`admit::decide`].

use std::num::NonZero;
use std::thread;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::input::Objects;
use super::outcome::{Judged, Outcome, Place};
use super::progress::Progress;
pub(in crate::command) use super::subject::below;
use super::subject::{self, Subject};
use super::{Ruled, defaults};
use crate::manifest::{Document, Located, Mistake, Object, Places};
use crate::policy::Phase;
use crate::policy::decision::{Change, Decision, Finding, Note};
use crate::review::{self, Refused};
use crate::server::admit;

/// What stands before and behind the object of a review.
type Envelope = (String, &'static str);

/// Judges objects.
pub(in crate::command) struct Judge<'r>(pub(in crate::command) &'r Ruled);

/// What is decided of one object.
pub(in crate::command) struct Verdict {
    /// Of the object as it came out of mutation.
    pub(in crate::command) decision: Decision,
    /// What mutation adds.
    pub(in crate::command) changes: Vec<Change>,
    /// The review that was validated.
    pub(in crate::command) body: Bytes,
}

/// Judges everything, on all cores.
pub(super) fn all(ruled: &Ruled, objects: Objects<'_>, shows_progress: bool) -> Outcome {
    let Objects { documents, mistakes, .. } = objects;
    let total = documents.len();
    let progress = Progress::start(total, shows_progress);
    let judge = Judge(ruled);
    let judged = in_parallel(documents, |(source, document, objects)| {
        let judged = objects.map(|objects| judge.document(source, &document, &objects));
        progress.step();
        judged.map_err(|mistake| (source, mistake))
    });
    progress.end();
    let mut outcome = Outcome { judged: Vec::new(), mistakes };
    for result in judged {
        match result {
            Ok(judged) => outcome.judged.extend(judged),
            Err(mistake) => outcome.mistakes.push(mistake),
        }
    }
    outcome.mistakes.sort_by_key(|(source, Mistake { line, column, .. })| (*source, *line, *column));
    outcome
}

/// Does work on all cores; the results come in the order of the items.
pub(super) fn in_parallel<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let share = items.len().div_ceil(cores).max(1);
    if items.len() < 2 || cores < 2 {
        return items.into_iter().map(work).collect();
    }
    let mut items = items.into_iter();
    let work = &work;
    thread::scope(|scope| {
        let mut threads = Vec::new();
        loop {
            let some: Vec<T> = items.by_ref().take(share).collect();
            if some.is_empty() {
                break;
            }
            threads.push(scope.spawn(move || some.into_iter().map(work).collect::<Vec<R>>()));
        }
        let results = threads.into_iter().flat_map(|thread| match thread.join() {
            Ok(results) => results,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        results.collect()
    })
}

impl Judge<'_> {
    /// Judges the objects of a document.
    fn document(&self, source: usize, document: &Document<'_>, objects: &[Object]) -> Vec<Judged> {
        let mut places: Option<Places<'_>> = None;
        let judged = objects.iter().map(|object| {
            let verdict = self.judge(object);
            let (decision, changes) = match verdict {
                Ok(Verdict { decision, changes, .. }) => (decision, changes),
                Err(refusal) => (Decision { refusal: Some(refusal), ..Decision::default() }, Vec::new()),
            };
            let Decision { findings, notes, refusal, .. } = decision;
            // Reading the document a second time for the place of an object of which nothing is said would cost as much
            // as all the rest.
            let quiet = findings.is_empty() && notes.is_empty() && refusal.is_none();
            let mut locate = |field: &str| {
                if let (true, Some(line)) = (quiet, object.line) {
                    let start = document.offset;
                    return Located { line, column: 1, span: start..start, exact: false };
                }
                let places = places.get_or_insert_with(|| Places::of(document));
                places.locate(&below(object, field))
            };
            let located = locate("metadata.name");
            let findings: Vec<(Finding, Located)> =
                findings.into_iter().map(|finding| place(finding, |finding| &finding.field, &mut locate)).collect();
            let notes: Vec<(Note, Located)> =
                notes.into_iter().map(|note| place(note, |note| &note.field, &mut locate)).collect();
            let end = document.offset.saturating_add(document.text.len());
            let subject = subject::of(object, self.namespace(object));
            let Subject { path, api_version, kind, namespace, name } = subject;
            Judged {
                source,
                document: Place { number: document.number, start: document.offset, end },
                path,
                api_version,
                kind,
                namespace,
                name,
                located,
                findings,
                notes,
                changes,
                refusal,
            }
        });
        judged.collect()
    }

    /// Judges one object.
    ///
    /// # Errors
    /// Why the webhooks would refuse it without judging it.
    pub(in crate::command) fn judge(&self, object: &Object) -> Result<Verdict, String> {
        // Before anything is written into it, since what stands in it twice would be lost by that.
        crate::json::parse(object.json.as_bytes()).map_err(|error| error.to_string())?;
        let (envelope, body) = self.review(object);
        let mut verdict = self.0.runtime.block_on(self.verdict(envelope, body))?;
        keep_written(object, &mut verdict.decision.findings);
        Ok(verdict)
    }

    async fn verdict(&self, envelope: Option<Envelope>, body: Bytes) -> Result<Verdict, String> {
        let app = &self.0.app;
        let deadline = || Instant::now().checked_add(self.0.options.timeout).unwrap_or_else(Instant::now);
        let fault = || "it could not be judged after a fault of slicegate".to_owned();
        let request = review::decode(&body).map_err(reason)?;
        let mutated = admit::decide(app, Phase::Mutate, &request, &body, deadline()).await;
        let (mutated, _) = mutated.ok_or_else(fault)?;
        let after = if mutated.changes.is_empty() {
            body.clone()
        } else {
            let object = review::apply(&request.object, &mutated.changes)?;
            let replaced = match &envelope {
                Some((before, after)) => Some(format!("{before}{object}{after}").into_bytes()),
                None => review::replaced(&body, &object),
            };
            replaced.ok_or_else(fault)?.into()
        };
        let request = review::decode(&after).map_err(reason)?;
        let validated = admit::decide(app, Phase::Validate, &request, &after, deadline()).await;
        let (mut decision, _) = validated.ok_or_else(fault)?;
        decision.notes.extend(mutated.notes);
        Ok(Verdict { decision, changes: mutated.changes, body: after.clone() })
    }

    /// The review of the object's creation, and what of it stands around the object where it was made here.
    fn review(&self, object: &Object) -> (Option<Envelope>, Bytes) {
        if subject::is_review(object) {
            return (None, object.json.clone().into());
        }
        let options = &self.0.options;
        let namespace = self.namespace(object);
        let (group, version) = object.api_version.split_once('/').unwrap_or(("", &object.api_version));
        let moved = (object.namespace != namespace).then(|| defaults::in_namespace(&object.json, namespace)).flatten();
        let mut json = moved.as_ref().unwrap_or(&object.json);
        let facts = self.0.app.facts();
        let is_pod = (group, object.kind.as_str()) == ("", "Pod");
        let completed = is_pod.then(|| defaults::pod(json, facts.default_priority_class())).flatten();
        json = completed.as_ref().unwrap_or(json);
        let kind = json!({"group": group, "version": version, "kind": object.kind});
        let resource = json!({"group": group, "version": version, "resource": plural(&object.kind)});
        let user = json!({"username": options.user, "groups": options.groups});
        let (name, namespace) = (json!(object.name), json!(namespace));
        // The object is put in as it stands: another writer might change its numbers, or what stands in it twice.
        let before = format!(
            r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"check","kind":{kind},"resource":{resource},"requestKind":{kind},"requestResource":{resource},"name":{name},"namespace":{namespace},"operation":"CREATE","userInfo":{user},"object":"#
        );
        let after =
            r#","oldObject":null,"dryRun":true,"options":{"apiVersion":"meta.k8s.io/v1","kind":"CreateOptions"}}}"#;
        let body = format!("{before}{json}{after}").into();
        (Some((before, after)), body)
    }

    /// The namespace that an object would be in.
    pub(in crate::command) fn namespace<'o>(&'o self, object: &'o Object) -> &'o str {
        match (object.namespace.as_str(), defaults::is_namespaced(&object.kind)) {
            ("", true) => &self.0.options.namespace,
            (own, _) => own,
        }
    }
}

/// Leaves out of repairs what the API server copies from the limits by itself: nobody wrote it, and nobody needs to.
fn keep_written(object: &Object, findings: &mut [Finding]) {
    let is_copied = |change: &Change| object.kind == "Pod" && change.pointer.contains("/resources/requests/");
    if !findings.iter().flat_map(|finding| &finding.repair).any(is_copied) {
        return;
    }
    let written: Value = serde_json::from_str(&object.json).unwrap_or_default();
    for finding in findings {
        finding.repair.retain(|change| !is_copied(change) || written.pointer(&change.pointer).is_some());
    }
}

fn place<T>(item: T, field: impl Fn(&T) -> &String, locate: &mut impl FnMut(&str) -> Located) -> (T, Located) {
    let field = field(&item);
    let located = locate(if field.is_empty() { "metadata.name" } else { field });
    (item, located)
}

fn reason(refused: Refused) -> String {
    match refused {
        Refused::BadRequest(reason) | Refused::Unreadable { reason, .. } => reason,
    }
}

/// The resource of a kind, as Kubernetes' own names are made.
fn plural(kind: &str) -> String {
    let kind = kind.to_lowercase();
    match kind.as_bytes() {
        [.., b's' | b'x'] => format!("{kind}es"),
        [.., b'a' | b'e' | b'i' | b'o' | b'u', b'y'] => format!("{kind}s"),
        [.., b'y'] => format!("{}ies", kind.strip_suffix('y').unwrap_or(&kind)),
        _ => format!("{kind}s"),
    }
}
