//! The end of the process: what is told to stop, in which order, and what happens when a task ends by itself.
//!
//! Invariant: the three steps come in order, each implies the ones before, and none is taken back. A task that was spawned
//! here and ends before it was told to is a reason for the process to end.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The steps to the end, shared by everything that runs.
#[derive(Debug, Clone, Default)]
pub struct Shutdown {
    /// Every answer looks at this one, so it is no token, whose look takes a lock.
    draining: Arc<AtomicBool>,
    stopping: CancellationToken,
    aborting: CancellationToken,
}

impl Shutdown {
    /// First step: no longer ready, and answers ask clients to go elsewhere. Connections are still accepted, since clients
    /// need a while to notice.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// Second step: nothing new is accepted, what is in flight is finished.
    pub fn stop(&self) {
        self.drain();
        self.stopping.cancel();
    }

    /// Last step: what is still there is dropped.
    pub fn abort(&self) {
        self.stop();
        self.aborting.cancel();
    }

    /// Whether the first step was made.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Cancelled by the second step. A child of its own, so that those who wait take no lock together.
    #[must_use]
    pub fn stopping(&self) -> CancellationToken {
        self.stopping.child_token()
    }

    /// Cancelled by the last step, likewise.
    #[must_use]
    pub fn aborting(&self) -> CancellationToken {
        self.aborting.child_token()
    }

    /// Takes all steps: waits `delay` after the first one, and at most `limit` for `work` to finish after the second. Says
    /// whether it finished.
    pub async fn run(&self, delay: Duration, limit: Duration, work: &TaskTracker) -> bool {
        self.drain();
        tokio::time::sleep(delay).await;
        self.stop();
        work.close();
        let finished = tokio::time::timeout(limit, work.wait()).await.is_ok();
        self.abort();
        finished
    }
}

/// Tasks that run for as long as the process does, each with a name.
#[derive(Debug, Default)]
pub struct Tasks(JoinSet<(&'static str, anyhow::Result<()>)>);

impl Tasks {
    /// Starts a task.
    pub fn spawn(&mut self, name: &'static str, task: impl Future<Output = anyhow::Result<()>> + Send + 'static) {
        // A panic is the task's own end too, and has its name.
        let task = AssertUnwindSafe(task).catch_unwind();
        self.0.spawn(async move { (name, task.await.unwrap_or_else(|_| Err(anyhow::anyhow!("it panicked")))) });
    }

    /// Waits until one of them ends, and says which and why. Waits for ever where there is none.
    pub async fn first_end(&mut self) -> anyhow::Error {
        match self.0.join_next().await {
            Some(Ok((name, Ok(())))) => anyhow::anyhow!("{name} ended by itself"),
            Some(Ok((name, Err(error)))) => error.context(format!("{name} failed")),
            Some(Err(error)) => anyhow::Error::new(error).context("a task was cut off"),
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_implies_the_ones_before() {
        let shutdown = Shutdown::default();
        assert!(!shutdown.is_draining());
        shutdown.abort();
        assert!(shutdown.is_draining() && shutdown.stopping.is_cancelled());
    }

    #[tokio::test]
    async fn work_that_does_not_end_is_told_to() {
        let shutdown = Shutdown::default();
        let work = TaskTracker::new();
        let seen = shutdown.clone();
        work.spawn(async move { seen.aborting().cancelled().await });
        assert!(!shutdown.run(Duration::ZERO, Duration::from_millis(1), &work).await);
        work.wait().await;
    }

    #[tokio::test]
    async fn a_task_that_ends_is_named() {
        let mut tasks = Tasks::default();
        tasks.spawn("the watch", async { anyhow::bail!("gone") });
        assert_eq!(format!("{:#}", tasks.first_end().await), "the watch failed: gone");
        tasks.spawn("the port", async { panic!("oh") });
        assert_eq!(format!("{:#}", tasks.first_end().await), "the port failed: it panicked");
        tasks.spawn("the port", async { Ok(()) });
        assert_eq!(format!("{:#}", tasks.first_end().await), "the port ended by itself");
    }
}
