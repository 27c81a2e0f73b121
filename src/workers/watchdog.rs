//! Ends the process when the policy in hand has used up its time.
//!
//! The engine looks at its own timer between steps, which is enough for loops; nothing looks while one builtin runs. So the
//! process watches itself, by its own processor time: a machine that does other work takes nothing from a policy's budget.
//! Invariant: while nothing runs, nothing wakes up.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Thread;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The exit code of a worker whose policy used up its time.
pub(super) const OVERRUN: i32 = 71;

/// How often a running policy is looked at.
const TICK: Duration = Duration::from_millis(4);

/// What the thread that runs policies tells the one that watches.
#[derive(Debug, Default)]
pub(super) struct Watchdog {
    /// The processor time at which the work in hand has to be done, in nanoseconds; 0 where there is none.
    until: AtomicU64,
    /// Whether the watching thread sleeps until it is woken.
    asleep: AtomicBool,
    watcher: std::sync::OnceLock<Thread>,
}

/// The processor time that this process has used.
pub(super) fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

impl Watchdog {
    /// Something begins that may take this long, and says when. The engine's own timer goes first: half as much again is
    /// allowed.
    pub(super) fn begin(&self, limit: Duration) -> Duration {
        let allowed = limit.saturating_add(limit.checked_div(2).unwrap_or_default()).saturating_add(TICK);
        let now = processor_time();
        let until = now.saturating_add(allowed).as_nanos();
        self.until.store(u64::try_from(until).unwrap_or(u64::MAX), Ordering::SeqCst);
        if self.asleep.swap(false, Ordering::SeqCst)
            && let Some(watcher) = self.watcher.get()
        {
            watcher.unpark();
        }
        now
    }

    /// It is done.
    pub(super) fn end(&self) {
        self.until.store(0, Ordering::SeqCst);
    }

    /// Watches for as long as the other thread lives, which ends the process.
    pub(super) fn watch(&self) {
        let _ = self.watcher.set(std::thread::current());
        let mut idle = 0_u32;
        loop {
            let until = self.until.load(Ordering::SeqCst);
            if until == 0 {
                idle = idle.saturating_add(1);
            } else {
                idle = 0;
                if processor_time().as_nanos() > u128::from(until) && self.until.load(Ordering::SeqCst) == until {
                    std::process::exit(OVERRUN);
                }
            }
            // Between two requests that follow each other it stays awake, so that the first need not wake it.
            if idle < 25 {
                std::thread::park_timeout(TICK);
                continue;
            }
            self.asleep.store(true, Ordering::SeqCst);
            if self.until.load(Ordering::SeqCst) == 0 {
                std::thread::park();
            }
            self.asleep.store(false, Ordering::SeqCst);
            idle = 0;
        }
    }
}
