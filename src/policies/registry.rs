//! Takes offers, and puts in force what is good of them.
//!
//! Invariant: one change at a time, and each request sees the state before it or the state after it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tracing::{error, info, warn};

use super::{Active, Message, Offer, Policies, Sets};
use crate::policy::decision::Action;
use crate::rego::lint::Report;
use crate::rego::problem::Problem;
use crate::rego::program::Speaks;
use crate::rego::routing::{self, Routes, Verdict};
use crate::rego::set::{Key, Role, Set};
use crate::rego::state::{self, SetReport, State};
use crate::rego::unit::Unit;
use crate::workers::meter::Meter;
use crate::workers::protocol::{Check, Checked};
use crate::workers::{Installed, Workers};

/// The wait before a check that told nothing is made again.
const AGAIN: Duration = Duration::from_secs(5);

/// What puts a state in force.
pub(super) type Publish = Box<dyn Fn(Arc<Sets>) + Send>;

/// The sets that were offered, and what became of them.
pub struct Registry {
    workers: Workers,
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
}

/// What is known of one set.
#[derive(Default)]
struct Known {
    /// The digest of what is offered.
    offered: String,
    /// What the check of it found.
    report: Report,
    /// What is in force.
    in_force: Option<InForce>,
}

#[derive(Clone)]
struct InForce {
    unit: Arc<Unit>,
    speaks: Speaks,
    /// Nothing for a library, which nobody asks.
    installed: Option<Arc<Installed>>,
}

impl InForce {
    /// Whether anything that it matches is sent; nothing where it is not asked anyway.
    fn routing(&self, routes: &Routes) -> Verdict {
        let settings = &self.unit.set.settings;
        if self.installed.is_none() || settings.action == Action::Off {
            return Verdict::default();
        }
        routing::verdict(routes, &settings.matches, self.speaks)
    }
}

impl Registry {
    /// A registry, and where to speak to it.
    pub fn new(workers: Workers, home: String, publish: Publish) -> (Self, Policies) {
        let (offers, messages) = mpsc::unbounded_channel();
        let (reports, told) = watch::channel(Arc::default());
        let (waiting, offered, kept, known) = Default::default();
        let meter = workers.meter().clone();
        // Where nobody says anything of it, nothing is known.
        let routes = Some(Routes::default());
        let registry = Self { workers, meter, home, messages, reports, routes, publish, waiting, offered, kept, known };
        (registry, Policies { offers, reports: told })
    }

    /// Runs until it is dropped; when nobody can offer anything any more, what is in force stays.
    pub async fn run(mut self) {
        loop {
            // What could not be checked, through no fault of its own, is tried again.
            let again = self.known.values().any(|known| known.offered.is_empty());
            let pause = if again { AGAIN } else { Duration::MAX };
            match timeout(pause, self.messages.recv()).await {
                Ok(Some(message)) => self.take(message),
                Ok(None) => break,
                Err(_) => {}
            }
            // What came meanwhile is settled together.
            while let Ok(message) = self.messages.try_recv() {
                self.take(message);
            }
            self.settle().await;
            self.waiting.drain(..).for_each(|then| then());
        }
        std::future::pending::<()>().await;
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Offer(Offer { source, sets }) => {
                self.offered.insert(source, sets);
            }
            Message::Kept(units) => self.kept = units,
            Message::Routes(routes) => self.routes = Some(routes),
            Message::RoutesToCome => self.routes = None,
            Message::Settled(then) => self.waiting.push(then),
        }
    }

    /// Brings what is in force to what is offered.
    async fn settle(&mut self) {
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
        }
        // A library may import another one, so that each is checked among all that are offered.
        let offered = sets.iter().filter(|(_, set)| set.role == Role::Library);
        let offered: BTreeMap<Key, Set> = offered.map(|(key, set)| (key.clone(), set.as_ref().clone())).collect();
        for set in sets.values().filter(|set| set.role == Role::Library) {
            self.check(set, &offered).await;
        }
        let mut libraries = self.libraries();
        libraries.retain(|key, _| offered.contains_key(key));
        let mut good = Vec::new();
        for set in sets.values().filter(|set| set.role == Role::Policy) {
            good.extend(self.check(set, &libraries).await);
        }
        self.install(good).await;
        self.publish(&sets);
    }

    /// The libraries in force.
    fn libraries(&self) -> BTreeMap<Key, Set> {
        let libraries = self.known.iter().filter_map(|(key, known)| {
            let set = &known.in_force.as_ref()?.unit.set;
            (set.role == Role::Library).then(|| (key.clone(), set.clone()))
        });
        libraries.collect()
    }

    /// Checks a set that is new or changed. What comes back is good and wants to be loaded.
    async fn check(&mut self, set: &Arc<Set>, libraries: &BTreeMap<Key, Set>) -> Option<(Arc<Unit>, Speaks)> {
        let unit = Unit::new(set.as_ref().clone(), libraries);
        let known = self.known.entry(set.key.clone()).or_default();
        if known.offered == unit.digest {
            return None;
        }
        known.offered.clone_from(&unit.digest);
        let checked = if set.is_empty() {
            Checked {
                report: Report { errors: set.errors.clone(), warnings: set.warnings.clone() },
                ..Checked::default()
            }
        } else {
            self.workers.check(&Check::of(unit.clone())).await
        };
        let Checked { report, speaks, lost, .. } = checked;
        let good = report.errors.is_empty();
        tell(&set.key, &unit.digest, &report);
        let known = self.known.entry(set.key.clone()).or_default();
        known.report = report;
        if lost {
            // Nothing is known of it, so that it is checked again.
            known.offered.clear();
        }
        // What was empty, or a library, is no form of a policy that could stand in for it.
        if !good && set.role == Role::Policy && known.in_force.as_ref().is_some_and(|form| form.installed.is_none()) {
            known.in_force = None;
        }
        let unit = Arc::new(unit);
        if good {
            self.kept.remove(&set.key);
        }
        if good && (set.role == Role::Library || set.is_empty()) {
            if set.is_empty() && known.in_force.as_ref().is_some_and(|in_force| !in_force.unit.set.is_empty()) {
                warn!(policy = %set.key, "unloaded: it holds no module any more");
                self.meter.unloaded();
            }
            known.in_force = Some(InForce { unit, speaks, installed: None });
            return None;
        }
        if good {
            return Some((unit, speaks));
        }
        if known.in_force.is_some() {
            return None;
        }
        self.last_good(&set.key).await
    }

    /// The form of a set that was good before this process began, if it is good still.
    async fn last_good(&mut self, key: &Key) -> Option<(Arc<Unit>, Speaks)> {
        let unit = self.kept.get(key).cloned()?;
        let Checked { report, speaks, lost, .. } = self.workers.check(&Check::of(unit.clone())).await;
        if !lost {
            self.kept.remove(key);
        }
        if !report.errors.is_empty() {
            warn!(policy = %key, "its last good form cannot be loaded any more");
            return None;
        }
        let unit = Arc::new(unit);
        if unit.set.role == Role::Library {
            let known = self.known.entry(key.clone()).or_default();
            known.in_force = Some(InForce { unit, speaks, installed: None });
            return None;
        }
        Some((unit, speaks))
    }

    /// Has sets loaded by all workers.
    async fn install(&mut self, good: Vec<(Arc<Unit>, Speaks)>) {
        if good.is_empty() {
            return;
        }
        let units = good.iter().map(|(unit, _)| Arc::clone(unit)).collect();
        let installed = self.workers.install(units).await;
        for ((unit, speaks), installed) in good.into_iter().zip(installed) {
            let key = &unit.set.key;
            let known = self.known.entry(key.clone()).or_default();
            match installed {
                Ok(installed) => {
                    info!(policy = %key, digest = unit.digest, "policy in force");
                    known.in_force = Some(InForce { unit, speaks, installed: Some(installed) });
                }
                Err(report) => {
                    error!(policy = %key, problem = %first(&report), "policy could not be loaded by a worker");
                    known.report.errors.extend(report.errors);
                }
            }
        }
    }

    /// Puts everything in force at once, and says what became of what was offered.
    fn publish(&self, sets: &BTreeMap<Key, Arc<Set>>) {
        let (mut active, mut reports) = (Vec::new(), Vec::new());
        for (key, set) in sets {
            let Some(known) = self.known.get(key) else { continue };
            reports.push(report(set, known, self.routes.as_ref()));
            active.extend(self.active(set, known).map(Arc::new));
        }
        let (reports, libraries) = (Arc::new(reports), Arc::new(self.libraries()));
        (self.publish)(Arc::new(Sets::new(active, Arc::clone(&reports), libraries)));
        if self.routes.is_some() {
            self.reports.send_replace(reports);
        }
    }

    fn active(&self, set: &Set, known: &Known) -> Option<Active> {
        let name = set.shown_name(&self.home).into();
        match &known.in_force {
            Some(InForce { unit, speaks, installed: Some(installed) }) => Some(Active {
                name,
                settings: Arc::new(unit.set.settings.clone()),
                digest: unit.digest.as_str().into(),
                speaks: *speaks,
                installed: Some(Arc::clone(installed)),
            }),
            Some(_) => None,
            // Nobody knows what it would have said: it obeys `on-error` in the call that may refuse.
            None => (set.role == Role::Policy).then(|| Active {
                name,
                settings: Arc::new(set.settings.clone()),
                digest: known.offered.as_str().into(),
                speaks: Speaks { validates: true, mutates: false },
                installed: None,
            }),
        }
    }
}

fn report(set: &Set, known: &Known, routes: Option<&Routes>) -> SetReport {
    let in_force = known.in_force.as_ref();
    let routing = in_force.zip(routes).map(|(in_force, routes)| in_force.routing(routes)).unwrap_or_default();
    let state = match in_force {
        Some(in_force) if in_force.unit.digest == known.offered && routing.none => State::NotRouted,
        Some(in_force) if in_force.unit.digest == known.offered => State::Loaded,
        Some(_) => State::LastGood,
        None => State::Rejected,
    };
    let shown = in_force.map_or(set, |in_force| &in_force.unit.set);
    SetReport {
        key: set.key.clone(),
        digest: in_force.map_or(&known.offered, |in_force| &in_force.unit.digest).clone(),
        state,
        action: shown.settings.action,
        engine: state::engine(shown.settings.syntax),
        modules: in_force.map_or(0, |in_force| in_force.unit.set.modules.len()),
        errors: known.report.errors.clone(),
        warnings: known.report.warnings.iter().cloned().chain(routing.warnings).collect(),
        in_force: in_force.map(|in_force| Arc::clone(&in_force.unit)),
        offered: known.offered.clone(),
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
