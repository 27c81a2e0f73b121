//! The process that checks sets and serves nobody.
//!
//! Invariant: whatever a set does to it, the answer is a report; the next set gets a new process if it has to.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::timeout;

use super::Options;
use super::child::{self, Settings};
use super::process::Process;
use super::protocol::{self, Check, Checked, Order};
use crate::duration;

/// How long a check may take by the wall, beyond its processor time.
const PATIENCE: Duration = Duration::from_secs(30);

/// A process that is started when it is needed, and one check at a time.
#[derive(Debug)]
pub(super) struct Prober {
    options: Options,
    process: Mutex<Option<Process>>,
}

impl Prober {
    pub(super) fn new(options: Options) -> Self {
        Self { options, process: Mutex::new(None) }
    }

    /// Checks a set.
    pub(super) async fn check(&self, check: &Check) -> Checked {
        let mut place = self.process.lock().await;
        let refused = |why: &str| Checked { report: child::not_compiled(why), ..Checked::default() };
        let process = place.take().map_or_else(|| Process::start(&self.options), Ok);
        let mut process = match process {
            Ok(process) => process,
            Err(error) => return refused(&format!("no process could be started to check it: {error}")),
        };
        let frame = protocol::frame(&Order::Check(Box::new(check.clone())));
        let asked = async {
            process.line().send(frame.into())?;
            process.line().receive().await
        };
        let limit = self.options.settings.compile_budget.saturating_add(PATIENCE);
        if let Ok(Ok(payload)) = timeout(limit, asked).await
            && let Ok(checked) = protocol::answer(&payload)
        {
            *place = Some(process);
            return checked;
        }
        let end = process.end().await;
        let Settings { budget, compile_budget, memory } = self.options.settings;
        if end.overran {
            let (whole, one) = (duration::show(compile_budget), duration::show(budget));
            refused(&format!(
                "it uses up its time: compiling it may take {whole} of processor time, and judging one request {one}; make it \
                 smaller, flatter, or let it loop less"
            ))
        } else {
            let megabytes = memory >> 20;
            refused(&format!(
                "it ended the process that tried it, by more than {megabytes} MiB of memory or by its depth"
            ))
        }
    }
}
