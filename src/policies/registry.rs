//! Takes offers, and puts in force what is good of them.
//!
//! What it does: has each set that is new or changed judged, several at a time, has the good ones loaded, and takes away at once
//! what is offered no more. Invariant: each request sees the state before a change or the one after it; of one set, what was
//! written later is never replaced by what was written earlier; nobody waits for the judgement of another set, but for that of
//! a library which it imports.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};
use tracing::{error, info, warn};

use super::{Message, Offer, Policies, Sets};
use crate::rego::lint::Report;
use crate::rego::problem::Problem;
use crate::rego::routing::Routes;
use crate::rego::set::{Key, Role, Set};
use crate::rego::state::SetReport;
use crate::rego::unit::Unit;
use crate::workers::Workers;
use crate::workers::meter::Meter;
use crate::workers::protocol::Checked;
use known::{InForce, Judged, Known};
use line::{Finding, Form, Judgement, Line, Loaded};

mod known;
mod line;

/// The wait before a check that told nothing is made again.
const AGAIN: Duration = Duration::from_secs(5);

/// What puts a state in force.
pub(super) type Publish = Box<dyn Fn(Arc<Sets>) + Send>;

/// The sets that were offered, and what became of them.
pub struct Registry {
    meter: Meter,
    /// slicegate's own namespace, which is not shown in names.
    home: String,
    messages: mpsc::UnboundedReceiver<Message>,
    reports: watch::Sender<Arc<Vec<SetReport>>>,
    /// What the API server sends; nothing while that is to be told.
    routes: Option<Routes>,
    publish: Publish,
    /// Who waits until all that was offered is settled.
    waiting: Vec<Box<dyn FnOnce() + Send>>,
    /// All sets, by their source.
    offered: BTreeMap<String, BTreeMap<Key, Arc<Set>>>,
    /// The last good forms from before this process.
    kept: BTreeMap<Key, Unit>,
    known: BTreeMap<Key, Known>,
    /// What is being checked and loaded.
    line: Line,
    /// The number of the next judgement: a later one is of a later form.
    next: u64,
    /// When to judge again what told nothing.
    again: Option<Instant>,
    /// Something else is in force than was published, or something else is to be said.
    changed: bool,
    /// A library was judged, so that what imports it is to be looked at.
    stale: bool,
}

impl Registry {
    /// A registry, and where to speak to it.
    pub fn new(workers: Workers, home: String, publish: Publish) -> (Self, Policies) {
        let (offers, messages) = mpsc::unbounded_channel();
        let (reports, told) = watch::channel(Arc::default());
        let (waiting, offered, kept, known) = Default::default();
        let (meter, line) = (workers.meter().clone(), Line::new(workers));
        // Where nobody says anything of it, nothing is known.
        let routes = Some(Routes::default());
        let registry = Self {
            meter,
            home,
            messages,
            reports,
            routes,
            publish,
            waiting,
            offered,
            kept,
            known,
            line,
            next: 1,
            again: None,
            changed: false,
            stale: false,
        };
        (registry, Policies { offers, reports: told })
    }

    /// Runs until it is dropped; when nobody can offer anything any more, what is in force stays.
    pub async fn run(mut self) {
        loop {
            self.line.go_on();
            if !self.is_busy() {
                self.waiting.drain(..).for_each(|then| then());
            }
            let again = self.again;
            tokio::select! {
                Some(message) = self.messages.recv() => {
                    self.take(message);
                    // What came meanwhile is taken together.
                    while let Ok(message) = self.messages.try_recv() {
                        self.take(message);
                    }
                    self.stale = true;
                }
                Some(finding) = self.line.judging.next() => finding.into_iter().for_each(|finding| self.judged(finding)),
                Some(loaded) = self.line.loading.next() => self.loaded(loaded),
                () = sleep_until(again.unwrap_or_else(Instant::now)), if again.is_some() => {
                    (self.again, self.stale) = (None, true);
                }
                else => std::future::pending().await,
            }
            while std::mem::take(&mut self.stale) {
                self.plan();
            }
            if std::mem::take(&mut self.changed) {
                self.publish();
            }
        }
    }

    fn is_busy(&self) -> bool {
        self.line.is_loading() || self.known.values().any(Known::is_awaited)
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Offer(Offer { source, sets }) => {
                self.offered.insert(source, sets);
            }
            Message::Kept(units) => self.kept = units,
            Message::Routes(routes) => {
                self.routes = Some(routes);
                self.known.values_mut().for_each(Known::forget_routing);
                self.changed = true;
            }
            Message::RoutesToCome => self.routes = None,
            Message::Settled(then) => self.waiting.push(then),
        }
    }

    /// Takes away what is not offered any more, and has judged what is new.
    fn plan(&mut self) {
        let mut sets: BTreeMap<Key, Arc<Set>> = BTreeMap::new();
        for set in self.offered.values().flatten() {
            sets.insert(set.0.clone(), Arc::clone(set.1));
        }
        let gone: Vec<Key> = self.known.keys().filter(|key| !sets.contains_key(*key)).cloned().collect();
        for key in gone {
            warn!(policy = %key, "unloaded: it was deleted, or its label was removed");
            self.meter.unloaded();
            self.known.remove(&key);
            self.kept.remove(&key);
            self.line.leave(&key);
            self.changed = true;
        }
        // A library may import another one, so that each is judged among all that are offered.
        let offered = sets.iter().filter(|(_, set)| set.role == Role::Library);
        let offered: BTreeMap<Key, Set> = offered.map(|(key, set)| (key.clone(), set.as_ref().clone())).collect();
        for set in sets.values().filter(|set| set.role == Role::Library) {
            self.consider(set, &offered);
        }
        let awaited: BTreeSet<Key> = offered.keys().filter(|key| self.is_awaited(key)).cloned().collect();
        let mut libraries = self.libraries();
        libraries.retain(|key, _| offered.contains_key(key));
        for set in sets.values().filter(|set| set.role == Role::Policy) {
            let waits = !awaited.is_empty() && Unit::new(set.as_ref().clone(), &offered).imports(&awaited);
            self.known(set).waits = waits;
            if !waits {
                self.consider(set, &libraries);
            }
        }
    }

    fn is_awaited(&self, key: &Key) -> bool {
        self.known.get(key).is_some_and(Known::is_awaited)
    }

    fn known(&mut self, set: &Set) -> &mut Known {
        // What is judged already is of an earlier set of that name.
        self.known.entry(set.key.clone()).or_insert_with(|| Known::after(self.next))
    }

    /// The libraries in force.
    fn libraries(&self) -> BTreeMap<Key, Set> {
        let libraries = self.known.iter().filter_map(|(key, known)| {
            let set = &known.in_force.as_ref()?.unit.set;
            (set.role == Role::Library).then(|| (key.clone(), set.clone()))
        });
        libraries.collect()
    }

    /// Has a set judged that is new or changed. One that is judged already and not yet done is superseded.
    fn consider(&mut self, set: &Arc<Set>, libraries: &BTreeMap<Key, Set>) {
        let unit = Unit::new(set.as_ref().clone(), libraries);
        let known = self.known(set);
        if known.wanted == unit.digest {
            return;
        }
        known.wanted.clone_from(&unit.digest);
        let in_force = known.in_force.is_some();
        let number = self.next;
        self.next = self.next.saturating_add(1);
        self.known(set).number = number;
        self.line.leave(&set.key);
        let kept = self.kept.get(&set.key).filter(|_| !in_force).cloned();
        let judgement = Judgement { number, set: Arc::clone(set), unit, kept };
        if set.is_empty() {
            let report = Report { errors: set.errors.clone(), warnings: set.warnings.clone() };
            self.judged(Finding { judgement, checked: Checked { report, ..Checked::default() }, kept: None });
        } else {
            self.line.join(judgement);
        }
    }

    /// Takes what was found of a set, unless it is superseded.
    fn judged(&mut self, finding: Finding) {
        let Finding { judgement: Judgement { number, set, unit, kept }, checked, kept: kept_checked } = finding;
        let Some(known) = self.known.get_mut(&set.key).filter(|known| known.number == number) else { return };
        let Checked { report, speaks, lost, .. } = checked;
        tell(&set.key, &unit.digest, &report);
        if lost {
            // Nothing is known of it, so that it is judged again.
            known.wanted.clear();
            self.again = Some(Instant::now().checked_add(AGAIN).unwrap_or_else(Instant::now));
        }
        let good = report.errors.is_empty();
        let judged = Judged { number, set: Arc::clone(&set), digest: unit.digest.clone(), report };
        if good {
            self.kept.remove(&set.key);
            return self.take_form(Form { judged, unit: Arc::new(unit), speaks });
        }
        // What was empty, or a library, is no form of a policy that could stand in for it.
        if set.role == Role::Policy && known.in_force.as_ref().is_some_and(|form| form.installed.is_none()) {
            known.in_force = None;
        }
        let stands_in = kept.zip(kept_checked).filter(|_| known.in_force.is_none());
        if let Some((unit, checked)) = stands_in {
            if !checked.lost {
                self.kept.remove(&set.key);
            }
            if checked.report.errors.is_empty() {
                return self.take_form(Form { judged, unit: Arc::new(unit), speaks: checked.speaks });
            }
            warn!(policy = %set.key, "its last good form cannot be loaded any more");
        }
        known.judged = Some(judged);
        self.told_of(set.role);
    }

    /// Has a good form loaded, or puts it in force at once where nobody is asked about it: a library, or what holds nothing.
    fn take_form(&mut self, form: Form) {
        let set = &form.unit.set;
        if set.role == Role::Policy && !set.is_empty() {
            return self.line.load(form);
        }
        let role = form.judged.set.role;
        let Some(known) = self.known.get_mut(&form.judged.set.key) else { return };
        let held = known.in_force.as_ref().is_some_and(|in_force| !in_force.unit.set.is_empty());
        if set.is_empty() && held {
            warn!(policy = %set.key, "unloaded: it holds no module any more");
            self.meter.unloaded();
        }
        known.put_in_force(form.judged.number, InForce { unit: form.unit, speaks: form.speaks, installed: None });
        known.judged = Some(form.judged);
        self.told_of(role);
    }

    /// What waits for a library goes on when that is judged, and what imports it is judged anew when it is another one.
    fn told_of(&mut self, role: Role) {
        self.changed = true;
        self.stale |= role == Role::Library;
    }

    /// Takes what the workers have loaded. It counts also where a later form is being judged: it was good, and that one may
    /// not be.
    fn loaded(&mut self, loaded: Loaded) {
        self.changed = true;
        for (form, installed) in loaded {
            let Form { mut judged, unit, speaks } = form;
            let (key, number) = (judged.set.key.clone(), judged.number);
            // A library with a mistake may be answered by what it was before, a policy; who imports it goes on all the same.
            self.stale |= judged.set.role == Role::Library;
            let Some(known) = self.known.get_mut(&key).filter(|known| known.takes(number)) else { continue };
            match installed {
                Ok(installed) => {
                    info!(policy = %key, digest = unit.digest, "policy in force");
                    known.put_in_force(number, InForce { unit, speaks, installed: Some(installed) });
                }
                Err(report) => {
                    error!(policy = %key, problem = %first(&report), "policy could not be loaded by a worker");
                    judged.report.errors.extend(report.errors);
                }
            }
            if known.judged.as_ref().is_none_or(|known| known.number < number) {
                known.judged = Some(judged);
            }
        }
    }

    /// Puts everything in force at once, and says what became of what was offered.
    fn publish(&mut self) {
        let (mut active, mut reports) = (Vec::new(), Vec::new());
        for known in self.known.values_mut() {
            reports.extend(known.report(self.routes.as_ref()));
            active.extend(known.active(&self.home).map(Arc::new));
        }
        let (reports, libraries) = (Arc::new(reports), Arc::new(self.libraries()));
        (self.publish)(Arc::new(Sets::new(active, Arc::clone(&reports), libraries)));
        if self.routes.is_some() {
            self.reports.send_replace(reports);
        }
    }
}

fn tell(key: &Key, digest: &str, report: &Report) {
    if report.errors.is_empty() {
        for warning in &report.warnings {
            warn!(policy = %key, %warning, "policy has a weakness");
        }
    } else {
        error!(policy = %key, digest, problems = report.errors.len(), first = %first(report), "policy refused");
    }
}

fn first(report: &Report) -> String {
    report.errors.first().map(Problem::to_string).unwrap_or_default()
}
