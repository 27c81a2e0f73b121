//! The requests that wait for a worker.
//!
//! Invariant: first come, first served, but for a request whose worker died: it is next. Who waits no longer is not run.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use super::protocol::{Id, Outcomes};
use crate::policy::Phase;
use crate::rego::outcome::{Failure, Outcome};

/// A request to be judged by a worker.
#[derive(Debug)]
pub(super) struct Job {
    /// Which of the two calls.
    pub(super) phase: Phase,
    /// The sets, each with the failure that it has already cost.
    pub(super) sets: Vec<(Id, Option<Failure>)>,
    /// The serialised context.
    pub(super) context: Bytes,
    /// The review.
    pub(super) body: Bytes,
    /// When it was put into the queue.
    pub(super) since: Instant,
    /// When nobody waits any more.
    pub(super) deadline: Instant,
    /// How often a worker ended under it and blamed no set.
    pub(super) unexplained: u8,
    /// Where the outcomes go.
    pub(super) reply: oneshot::Sender<Outcomes>,
}

impl Job {
    /// The sets that are still to be asked.
    pub(super) fn open(&self) -> Vec<Id> {
        self.sets.iter().filter(|(_, failure)| failure.is_none()).map(|(id, _)| *id).collect()
    }

    /// Notes what a set has cost.
    pub(super) fn blame(&mut self, set: Id, failure: &Failure) {
        for (_, cost) in self.sets.iter_mut().filter(|(id, _)| *id == set) {
            *cost = Some(failure.clone());
        }
    }

    /// Notes the same for all that are open.
    pub(super) fn blame_all(&mut self, failure: &Failure) {
        for (_, cost) in &mut self.sets {
            cost.get_or_insert_with(|| failure.clone());
        }
    }

    /// Answers with the outcomes of the sets that were open, and the failures of the others.
    pub(super) fn finish(self, outcomes: Outcomes) {
        let mut outcomes = outcomes.into_iter();
        let all = self.sets.into_iter().map(|(_, failure)| match failure {
            Some(failure) => Outcome { error: Some(failure), ..Outcome::default() },
            None => outcomes.next().unwrap_or_else(|| Outcome { error: Some(Failure::Died), ..Outcome::default() }),
        });
        // Who asked may be gone.
        let _ = self.reply.send(all.collect());
    }
}

/// The queue that all workers take from.
#[derive(Debug, Default)]
pub(super) struct Queue {
    jobs: Mutex<VecDeque<Job>>,
    more: Notify,
    /// How many workers wait for a request.
    idle: AtomicUsize,
}

/// A worker that waits.
#[derive(Debug)]
pub(super) struct Idle<'q>(&'q AtomicUsize);

impl Drop for Idle<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Queue {
    /// Puts a request at the end.
    pub(super) fn push(&self, job: Job) {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).push_back(job);
        self.more.notify_one();
    }

    /// Puts a request at the front.
    pub(super) fn push_front(&self, job: Job) {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).push_front(job);
        self.more.notify_one();
    }

    /// The next request that somebody waits for. May be dropped without losing one.
    pub(super) async fn next(self: &Arc<Self>) -> Job {
        loop {
            let more = self.more.notified();
            if let Some(job) = self.take() {
                return job;
            }
            more.await;
        }
    }

    /// A request beyond those that idle workers are about to take.
    pub(super) fn surplus(&self) -> Option<Job> {
        let idle = self.idle.load(Ordering::Relaxed);
        let enough = self.jobs.lock().unwrap_or_else(PoisonError::into_inner).len() > idle;
        if enough { self.take() } else { None }
    }

    /// Counts a worker as idle until the value is dropped.
    pub(super) fn idle(&self) -> Idle<'_> {
        self.idle.fetch_add(1, Ordering::Relaxed);
        Idle(&self.idle)
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn take(&self) -> Option<Job> {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        while let Some(job) = jobs.pop_front() {
            if !job.reply.is_closed() && job.deadline > now {
                // A wake-up may have been lost with whoever was dropped while it took one.
                if !jobs.is_empty() {
                    self.more.notify_one();
                }
                return Some(job);
            }
        }
        None
    }
}
