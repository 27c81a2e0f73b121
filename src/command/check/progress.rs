//! A line on the terminal while work takes more than a second.
//!
//! Invariant: it is written to standard error, only to a terminal, and is gone before anything else is shown.

use std::io::{IsTerminal as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How long nothing is shown, and how often it changes.
const PATIENCE: Duration = Duration::from_secs(1);

/// Counts what is done.
pub(super) struct Progress {
    done: Arc<AtomicUsize>,
    shown: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// Begins to count to this number.
    pub(super) fn start(total: usize, wanted: bool) -> Self {
        let done = Arc::new(AtomicUsize::new(0));
        let shown = (wanted && std::io::stderr().is_terminal()).then(|| {
            let (end, ended) = channel();
            let counted = Arc::clone(&done);
            let thread = thread::spawn(move || {
                let mut line = false;
                while ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                    let done = counted.load(Ordering::Relaxed);
                    // A terminal that is gone needs no line.
                    let _ = write!(std::io::stderr(), "\r{done} of {total} documents judged");
                    line = true;
                }
                if line {
                    let _ = write!(std::io::stderr(), "\r\x1b[K");
                }
            });
            (end, thread)
        });
        Self { done, shown }
    }

    /// One more is done.
    pub(super) fn step(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    /// All is done.
    pub(super) fn end(self) {
        if let Some((end, thread)) = self.shown {
            drop(end);
            // A panic of a thread that only shows something concerns nobody.
            let _ = thread.join();
        }
    }
}
