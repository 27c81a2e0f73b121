//! The processes that check sets and serve nobody.
//!
//! Invariant: whatever a set does to it, the answer is a report; the next set gets a new process if it has to.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::Options;
use super::child::{self, Settings};
use super::process::Process;
use super::protocol::{self, Check, Checked, Order};
use crate::duration;

/// How long a check may take by the wall, beyond its processor time.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often a check is begun.
const ATTEMPTS: usize = 3;

/// Processes that are started when they are needed, each for one check at a time.
#[derive(Debug)]
pub(super) struct Prober {
    options: Options,
    slots: Semaphore,
    /// Those that are between two checks.
    idle: Mutex<Vec<Process>>,
}

impl Prober {
    /// This many at most.
    pub(super) fn new(options: Options, most: usize) -> Self {
        Self { options, slots: Semaphore::new(most), idle: Mutex::default() }
    }

    /// Checks a set. A process that somebody else ended, or that could not be started, says nothing of the set: another one
    /// tries, a few times. Whoever stops waiting ends the process.
    pub(super) async fn check(&self, check: &Check) -> Checked {
        // Nobody closes it.
        let _slot = self.slots.acquire().await;
        let mut idle = self.idle().pop();
        let frame: Bytes = protocol::frame(&Order::Check(Box::new(check.clone()))).into();
        let mut why = String::new();
        for _ in 0..ATTEMPTS {
            let process = idle.take().map_or_else(|| Process::start(&self.options), Ok);
            match self.attempt(process, frame.clone()).await {
                Attempt::Done(checked, process) => {
                    self.idle().push(process);
                    return *checked;
                }
                Attempt::Refused(why) => return refused(&why, false),
                Attempt::Lost(reason) => why = reason,
            }
        }
        refused(&format!("it could not be checked, and will be again in a moment: {why}"), true)
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Process>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn attempt(&self, process: io::Result<Process>, frame: Bytes) -> Attempt {
        let mut process = match process {
            Ok(process) => process,
            Err(error) => return Attempt::Lost(format!("no process could be started: {error}")),
        };
        let asked = async {
            process.line().send(frame)?;
            process.line().receive().await
        };
        let limit = self.options.settings.compile_budget.saturating_add(PATIENCE);
        let answered = timeout(limit, asked).await;
        let late = answered.is_err();
        if let Ok(Ok(payload)) = answered
            && let Ok(checked) = protocol::answer(&payload)
        {
            return Attempt::Done(Box::new(checked), process);
        }
        let end = process.end().await;
        let Settings { budget, compile_budget, memory } = self.options.settings;
        if end.overran {
            let (whole, one) = (duration::show(compile_budget), duration::show(budget));
            return Attempt::Refused(format!(
                "it uses up its time: compiling it may take {whole} of processor time, and judging one request {one}; make it \
                 smaller, flatter, or let it loop less"
            ));
        }
        if end.killed || late {
            return Attempt::Lost("the process that tried it was ended from outside, or got no processor".to_owned());
        }
        let megabytes = memory >> 20;
        Attempt::Refused(format!(
            "it ended the process that tried it, by more than {megabytes} MiB of memory or by its depth"
        ))
    }
}

/// How a check ended.
enum Attempt {
    Done(Box<Checked>, Process),
    /// The set is to blame.
    Refused(String),
    /// Nobody knows.
    Lost(String),
}

fn refused(why: &str, lost: bool) -> Checked {
    Checked { report: child::not_compiled(why), lost, ..Checked::default() }
}
