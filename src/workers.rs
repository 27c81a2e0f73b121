//! Worker processes for Rego, and what the server asks of them.
//!
//! What it does: keeps one process for each core and one more that stands ready, each with every set compiled; hands them
//! requests; starts another one for each that dies. A set that is new is checked in a process that serves nobody, then loaded
//! into one worker after the other while the rest go on, and only then asked for. Invariant: a request gets an outcome for
//! each of its sets by its deadline, whatever a policy does.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use crate::policy::Phase;
use crate::rego::input::Context;
use crate::rego::lint::Report;
use crate::rego::outcome::{Failure, Outcome};
use crate::rego::screen::Screen;
use crate::rego::unit::Unit;
use crate::review::Request;

pub mod breaker;
pub mod child;
pub mod meter;
mod prober;
mod process;
pub mod protocol;
mod queue;
mod slot;
mod watchdog;

use breaker::Breaker;
use child::Settings;
use meter::Meter;
use prober::Prober;
use protocol::{Check, Checked, Id};
use queue::{Job, Queue};
use slot::Control;

/// How long one worker may take to load what is new.
const PATIENCE: Duration = Duration::from_secs(30);

/// How many sets are checked at a time, so that one that takes its time does not hold up the next one.
pub const CHECKS: usize = 2;

/// How the pool is set up.
#[derive(Debug, Clone)]
pub struct Options {
    /// The program that knows the worker's verb: this one.
    pub program: PathBuf,
    /// How many workers serve, beside the one that stands ready.
    pub workers: usize,
    /// What each is told.
    pub settings: Settings,
}

impl Default for Options {
    fn default() -> Self {
        let settings =
            Settings { budget: Duration::from_millis(20), compile_budget: Duration::from_secs(2), memory: 64 << 20 };
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        // The path stays that of this very program when the file is replaced under it.
        Self { program: PathBuf::from("/proc/self/exe"), workers, settings }
    }
}

/// The pool.
#[derive(Debug, Clone)]
pub struct Workers(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    options: Options,
    queue: Arc<Queue>,
    meter: Meter,
    breaker: Breaker,
    /// What every worker has loaded, or loads when it starts.
    units: Mutex<BTreeMap<Id, Arc<Unit>>>,
    next: AtomicU32,
    places: Mutex<Vec<mpsc::UnboundedSender<Control>>>,
    prober: Prober,
    /// For what may never be in force, so that nobody's attempts hold up what will be.
    visitor: Prober,
}

/// A set that the workers have loaded. It is unloaded when the last handle to it is gone.
#[derive(Debug)]
pub struct Installed {
    id: Id,
    unit: Arc<Unit>,
    screen: Screen,
    pool: Weak<Inner>,
}

impl Installed {
    /// The set.
    pub fn unit(&self) -> &Arc<Unit> {
        &self.unit
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.upgrade() {
            pool.give_up(self.id);
            for place in pool.places().iter() {
                // A place that is gone has nothing loaded.
                let _ = place.send(Control::Unload(self.id));
            }
        }
    }
}

/// A request for the workers.
#[derive(Debug)]
pub struct Question<'q> {
    /// Which of the two calls.
    pub phase: Phase,
    /// The sets to ask.
    pub sets: &'q [Arc<Installed>],
    /// What is known beside the body.
    pub context: &'q Context,
    /// The review.
    pub body: Bytes,
    /// When the answer has to be there.
    pub deadline: Instant,
}

impl Workers {
    /// A pool without processes; they start with the first set.
    pub fn new(options: Options, meter: Meter) -> Self {
        let (prober, visitor) = (Prober::new(options.clone(), CHECKS), Prober::new(options.clone(), 1));
        let (queue, breaker, units) = Default::default();
        let (next, places) = (AtomicU32::new(0), Mutex::default());
        Self(Arc::new(Inner { options, queue, meter, breaker, units, next, places, prober, visitor }))
    }

    /// Checks a set in a process that serves nobody.
    pub async fn check(&self, check: &Check) -> Checked {
        self.0.prober.check(check).await
    }

    /// Checks a set that somebody is about to write, in a process of its own too. Whoever stops waiting ends that process.
    pub async fn try_out(&self, check: &Check) -> Checked {
        self.0.visitor.check(check).await
    }

    /// Loads sets into all workers, one worker after the other. What comes back is `Err` for a set that a worker could not
    /// load, though it was found good.
    pub async fn install(&self, units: Vec<Arc<Unit>>) -> Vec<Result<Arc<Installed>, Report>> {
        self.start();
        let installed = units.into_iter().map(|unit| {
            let id = self.0.next.fetch_add(1, Ordering::Relaxed);
            self.0.units().insert(id, Arc::clone(&unit));
            Installed { id, unit, screen: Screen::default(), pool: Arc::downgrade(&self.0) }
        });
        let mut installed: Vec<Installed> = installed.collect();
        let mut failed: BTreeMap<Id, Report> = BTreeMap::new();
        let mut screens: BTreeMap<Id, Screen> = BTreeMap::new();
        let places: Vec<_> = self.0.places().clone();
        for place in places {
            let mut waiting = Vec::new();
            // One that does not come up is not waited for without end; it loads everything when it does.
            let patience = Instant::now().checked_add(PATIENCE).unwrap_or_else(Instant::now);
            for set in &installed {
                let (done, loaded) = oneshot::channel();
                let _ = place.send(Control::Load(set.id, done));
                waiting.push((set.id, loaded));
            }
            for (id, loaded) in waiting {
                // A worker that is new meanwhile loads everything by itself and answers nobody.
                match timeout_at(patience, loaded).await {
                    Ok(Ok(Err(report))) => drop(failed.insert(id, report)),
                    Ok(Ok(Ok(screen))) => drop(screens.insert(id, screen)),
                    _ => {}
                }
            }
        }
        // A worker that came up meanwhile may have given one up without telling.
        for set in &mut installed {
            set.screen = screens.remove(&set.id).unwrap_or_default();
            if self.0.unit(set.id).is_none() {
                let lost = || child::not_compiled("it ended the process that compiles it");
                failed.entry(set.id).or_insert_with(lost);
            }
        }
        installed.into_iter().map(|set| failed.remove(&set.id).map_or_else(|| Ok(Arc::new(set)), Err)).collect()
    }

    /// Whether a set has nothing to say about a request that is plain, and need not be asked. One that is cut off is not told
    /// silent, since it is not to be relied on.
    pub fn is_silent(&self, set: &Installed, phase: Phase, request: &Request<'_>) -> bool {
        let silent = set.screen.is_silent(phase, request) && !self.0.breaker.is_open(set.id, &request.namespace);
        if silent {
            self.0.meter.evaluated(None);
        }
        silent
    }

    /// Judges a request. There is an outcome for each set, in their order.
    pub async fn evaluate(&self, question: Question<'_>) -> Vec<Outcome> {
        let started = Instant::now();
        let namespace = question.context.namespace.as_str();
        let cut_off = |set: &Installed| (!self.0.breaker.allows(set.id, namespace)).then_some(Failure::CutOff);
        let sets: Vec<(Id, Option<Failure>)> = question.sets.iter().map(|set| (set.id, cut_off(set))).collect();
        let (reply, replied) = oneshot::channel();
        let late = || vec![Outcome { error: Some(Failure::Deadline), ..Outcome::default() }; question.sets.len()];
        // What is written here are texts and lists of them, which always serialise.
        let context = serde_json::to_vec(question.context).unwrap_or_default().into();
        let (phase, body, deadline) = (question.phase, question.body.clone(), question.deadline);
        let job = Job { phase, sets, context, body, since: started, deadline, unexplained: 0, reply };
        if job.open().is_empty() {
            job.finish(Vec::new());
        } else {
            self.0.queue.push(job);
        }
        let outcomes = match timeout_at(question.deadline, replied).await {
            Ok(Ok(outcomes)) => outcomes,
            Ok(Err(_)) | Err(_) => late(),
        };
        for (set, outcome) in question.sets.iter().zip(&outcomes) {
            self.settle(set, namespace, outcome);
        }
        self.0.meter.waited(self.0.queue.len(), started.elapsed());
        outcomes
    }

    /// How many breakers are open.
    pub fn cut_off(&self) -> usize {
        self.0.breaker.open()
    }

    /// What is counted.
    pub fn meter(&self) -> &Meter {
        &self.0.meter
    }

    fn settle(&self, set: &Installed, namespace: &str, outcome: &Outcome) {
        self.0.meter.evaluated(outcome.error.as_ref());
        match &outcome.error {
            Some(failure) if failure.is_costly() => {
                if self.0.breaker.failed(set.id, namespace) {
                    tracing::warn!(set = %set.unit.set.key, namespace, "a policy is cut off for this namespace for a while");
                }
            }
            None | Some(Failure::Error(_)) => {
                if !self.0.breaker.succeeded(set.id, namespace) {
                    return;
                }
            }
            Some(_) => return,
        }
        self.0.meter.cut_off(self.0.breaker.open());
    }

    /// Starts the workers with the first set, so that who has no policies pays for none.
    fn start(&self) {
        let mut places = self.0.places();
        if places.is_empty() {
            for _ in 0..self.0.options.workers.saturating_add(1) {
                let (place, controls) = mpsc::unbounded_channel();
                places.push(place);
                tokio::spawn(slot::keep(Arc::clone(&self.0), controls));
            }
        }
    }
}

impl Inner {
    fn units(&self) -> std::sync::MutexGuard<'_, BTreeMap<Id, Arc<Unit>>> {
        self.units.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn places(&self) -> std::sync::MutexGuard<'_, Vec<mpsc::UnboundedSender<Control>>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unit(&self, id: Id) -> Option<Arc<Unit>> {
        self.units().get(&id).cloned()
    }

    /// The name of a set, for the log.
    fn name(&self, id: Id) -> Option<String> {
        self.unit(id).map(|unit| unit.set.key.to_string())
    }

    /// No worker loads this any more.
    fn give_up(&self, id: Id) {
        self.units().remove(&id);
        self.breaker.forget(id);
    }
}
