//! The task that keeps one place in the pool filled with a living worker.
//!
//! What it does: starts a process, loads every set into it, hands it one request at a time, and finds out whom to blame when
//! it dies. Invariant: a request whose worker died is judged again without the set that was running, and answered in any case.

use std::collections::{BTreeSet, VecDeque};
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, sleep_until};

use super::process::{End, Process};
use super::protocol::{self, Id, Loaded, Order, Outcomes};
use super::queue::Job;
use super::{Inner, child};
use crate::rego::lint::Report;
use crate::rego::outcome::Failure;
use crate::rego::problem::Problem;
use crate::rego::screen::Screen;

/// How long after its request's deadline a worker that says nothing is ended.
const GRACE: Duration = Duration::from_secs(1);

/// The wait before a worker is started that could not be, or that died without having served anything.
const AGAIN: Duration = Duration::from_millis(250);

/// How many requests a worker is handed at a time, so that it need not wait for the next one.
const DEPTH: usize = 3;

/// How often a request may lose its worker to somebody outside, and how often to itself with no set to blame.
const KILLED: u8 = 8;
const UNEXPLAINED: u8 = 2;

/// What the pool tells a place.
#[derive(Debug)]
pub(super) enum Control {
    /// Load a set, and say when it is there.
    Load(Id, oneshot::Sender<Result<Screen, Report>>),
    /// Forget one.
    Unload(Id),
}

/// What a worker owes an answer to, in the order in which it was asked.
enum Owed {
    Load(Id, Option<oneshot::Sender<Result<Screen, Report>>>),
    Judgement(Job),
}

/// Keeps a place filled for as long as the pool exists.
pub(super) async fn keep(pool: Arc<Inner>, mut controls: mpsc::UnboundedReceiver<Control>) {
    // Sets that ended a worker while it loaded them anew. They are missing here, which is their error, and nobody else's.
    let mut skipped = BTreeSet::new();
    loop {
        let started = Instant::now();
        let process = match Process::start(&pool.options) {
            Ok(process) => process,
            Err(error) => {
                tracing::error!(%error, "cannot start a worker for policies");
                sleep(AGAIN).await;
                continue;
            }
        };
        let owed = VecDeque::new();
        let mut worker = Worker { pool: &pool, owed, served: 0, judging: 0, garbled: false, process };
        let closed = worker.run(&mut controls, &skipped).await;
        let Worker { owed, served, process, garbled, .. } = worker;
        let mut end = process.end().await;
        // Who was ended for an answer that cannot be read was not ended from outside.
        end.killed &= !garbled;
        settle(&pool, owed, end, &mut skipped);
        if closed {
            return;
        }
        pool.meter.restarted(end.overran);
        tracing::warn!(
            set = end.set.and_then(|set| pool.name(set)),
            overran = end.overran,
            served,
            "a worker for policies ended"
        );
        if served == 0 && started.elapsed() < AGAIN {
            sleep(AGAIN).await;
        }
    }
}

struct Worker<'p> {
    pool: &'p Arc<Inner>,
    process: Process,
    owed: VecDeque<Owed>,
    /// How many requests it has judged.
    served: u64,
    /// How many of those that it owes an answer to are requests.
    judging: usize,
    /// Whether it gave an answer that cannot be read.
    garbled: bool,
}

impl Worker<'_> {
    /// Serves until the process ends or the pool does; says whether the pool did.
    async fn run(&mut self, controls: &mut mpsc::UnboundedReceiver<Control>, skipped: &BTreeSet<Id>) -> bool {
        let all = self.pool.units().clone();
        for (id, unit) in all.into_iter().filter(|(id, _)| !skipped.contains(id)) {
            self.owed.push_back(Owed::Load(id, None));
            if self.process.line().send(load_frame(id, &unit)).is_err() {
                return false;
            }
        }
        loop {
            // A worker that has one request in hand takes the next one already, where all others are busy too.
            while self.judging < DEPTH && self.judging == self.owed.len() && self.judging > 0 {
                let Some(job) = self.pool.queue.surplus() else { break };
                if !self.judge(job) {
                    return false;
                }
            }
            let (pool, idle) = (self.pool, self.owed.is_empty());
            let _idle = idle.then(|| pool.queue.idle());
            let kill_at = self.kill_at();
            let overdue = async {
                match kill_at {
                    Some(at) => sleep_until(at).await,
                    None => pending().await,
                }
            };
            let went_on = tokio::select! {
                received = self.process.line().receive() => received.is_ok_and(|payload| self.answered(&payload)),
                control = controls.recv() => match control {
                    Some(control) => self.obey(control),
                    None => return true,
                },
                job = pool.queue.next(), if idle => self.judge(job),
                () = overdue => false,
            };
            if !went_on {
                return false;
            }
        }
    }

    /// The moment at which silence is no longer waited for.
    fn kill_at(&self) -> Option<Instant> {
        self.owed.iter().find_map(|owed| match owed {
            Owed::Judgement(job) => job.deadline.checked_add(GRACE),
            Owed::Load(..) => None,
        })
    }

    fn judge(&mut self, job: Job) -> bool {
        self.pool.meter.queued(job.since.elapsed());
        let frame = protocol::evaluation(job.phase, &job.open(), &job.context, &job.body);
        self.owed.push_back(Owed::Judgement(job));
        self.judging = self.judging.saturating_add(1);
        self.process.line().send(frame.into()).is_ok()
    }

    fn obey(&mut self, control: Control) -> bool {
        let frame = match control {
            Control::Load(id, done) => {
                let Some(unit) = self.pool.unit(id) else { return true };
                self.owed.push_back(Owed::Load(id, Some(done)));
                load_frame(id, &unit)
            }
            Control::Unload(id) => protocol::frame(&Order::Unload(id)).into(),
        };
        self.process.line().send(frame).is_ok()
    }

    fn answered(&mut self, payload: &Bytes) -> bool {
        match self.owed.pop_front() {
            Some(Owed::Judgement(job)) => {
                let Ok(outcomes) = protocol::answer::<Outcomes>(payload) else {
                    self.owed.push_front(Owed::Judgement(job));
                    self.garbled = true;
                    return false;
                };
                self.served = self.served.saturating_add(1);
                self.judging = self.judging.saturating_sub(1);
                job.finish(outcomes);
                true
            }
            Some(Owed::Load(_, done)) => {
                let Ok(Loaded { screen, report }) = protocol::answer(payload) else { return false };
                if let Some(done) = done {
                    let _ = done.send(screen.ok_or(report));
                }
                true
            }
            None => false,
        }
    }
}

fn load_frame(id: Id, unit: &Arc<crate::rego::unit::Unit>) -> Bytes {
    protocol::frame(&Order::Load { id, unit: Box::new(unit.as_ref().clone()) }).into()
}

/// Answers whatever the dead worker owed.
fn settle(pool: &Arc<Inner>, owed: VecDeque<Owed>, end: End, skipped: &mut BTreeSet<Id>) {
    let failure = if end.overran { Failure::Budget } else { Failure::Died };
    let mut first = true;
    for owed in owed {
        match owed {
            Owed::Load(id, done) => {
                // One that was killed from outside while it loaded says nothing of the set, and neither does one that ended
                // over something else: the next process loads all of them, and nobody is told that it failed.
                if first && end.set == Some(id) && !end.killed {
                    if let Some(done) = done {
                        pool.give_up(id);
                        let _ = done.send(Err(child::not_compiled("it ended the process that compiles it")));
                    } else {
                        skipped.insert(id);
                    }
                }
            }
            Owed::Judgement(mut job) => {
                // Who was ended from outside is blamed only when it happens again and again.
                let limit = if end.killed { KILLED } else { UNEXPLAINED };
                let patient = (end.killed || end.set.is_none()) && job.unexplained < limit;
                match end.set.filter(|_| first) {
                    _ if !first => {}
                    _ if patient => job.unexplained = job.unexplained.saturating_add(1),
                    Some(set) => job.blame(set, &failure),
                    None => job.blame_all(&unreadable()),
                }
                if job.open().is_empty() { job.finish(Vec::new()) } else { pool.queue.push_front(job) }
            }
        }
        first = false;
    }
}

/// The failure of a request that ended workers before any policy ran.
fn unreadable() -> Failure {
    Failure::Error(Problem::of_set("the request is more than policies can read"))
}
