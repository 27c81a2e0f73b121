//! A thread that writes what others hand it.
//!
//! Invariant: handing over never waits for the output. What does not fit between the two is dropped as whole lines and
//! counted; what was taken is written before [`Writer`] is gone.

use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;

/// The most that waits to be written.
const ROOM: usize = 4 << 20;

/// From this size on the thread is woken at once.
const BATCH: usize = 64 << 10;

/// How long lines are gathered before they are written, so that a busy server makes one system call for many.
const GATHER: Duration = Duration::from_millis(20);

/// The thread, and the end of it.
#[derive(Debug)]
pub(super) struct Writer {
    sink: Sink,
    thread: Option<JoinHandle<()>>,
}

/// Where lines are handed over.
#[derive(Debug, Clone)]
pub(super) struct Sink(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    pending: Mutex<Pending>,
    wake: Condvar,
    dropped: Counter,
}

#[derive(Debug, Default)]
struct Pending {
    bytes: Vec<u8>,
    closing: bool,
}

impl Writer {
    /// Starts the thread.
    pub(super) fn start(output: impl Write + Send + 'static) -> std::io::Result<Self> {
        let sink = Sink(Arc::default());
        let shared = Arc::clone(&sink.0);
        let thread = std::thread::Builder::new().name("log".to_owned()).spawn(move || shared.drain(output))?;
        Ok(Self { sink, thread: Some(thread) })
    }

    pub(super) fn sink(&self) -> Sink {
        self.sink.clone()
    }

    pub(super) fn dropped(&self) -> Counter {
        self.sink.0.dropped.clone()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.sink.0.lock().closing = true;
        self.sink.0.wake.notify_one();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing more to write.
            let _ = thread.join();
        }
    }
}

impl Sink {
    /// Takes one line, or counts it where there is no room.
    pub(super) fn write(&self, line: &[u8]) {
        let mut pending = self.0.lock();
        let before = pending.bytes.len();
        let after = before.saturating_add(line.len());
        if after > ROOM {
            self.0.dropped.inc();
            return;
        }
        pending.bytes.extend_from_slice(line);
        drop(pending);
        if before == 0 || (before < BATCH && after >= BATCH) {
            self.0.wake.notify_one();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn drain(&self, mut output: impl Write) {
        let mut bytes = Vec::new();
        loop {
            let pending = self.wake.wait_while(self.lock(), |pending| pending.bytes.is_empty() && !pending.closing);
            let pending = pending.unwrap_or_else(PoisonError::into_inner);
            let short = |pending: &mut Pending| pending.bytes.len() < BATCH && !pending.closing;
            let gathered = self.wake.wait_timeout_while(pending, GATHER, short);
            let mut pending = gathered.unwrap_or_else(PoisonError::into_inner).0;
            std::mem::swap(&mut bytes, &mut pending.bytes);
            let done = pending.closing && bytes.is_empty();
            drop(pending);
            if done {
                return;
            }
            if output.write_all(&bytes).and_then(|()| output.flush()).is_err() {
                let lines = bytes.split(|byte| *byte == b'\n').count().saturating_sub(1);
                self.dropped.inc_by(u64::try_from(lines).unwrap_or_default());
            }
            bytes.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// Says when it is written to, and goes on when it is told to.
    struct Slow(mpsc::Sender<Vec<u8>>, mpsc::Receiver<()>);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.send(bytes.to_vec()).unwrap();
            let _ = self.1.recv();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_was_taken_is_written_and_the_rest_is_counted() {
        let (written, seen) = mpsc::channel();
        let (go, wait) = mpsc::channel();
        let writer = Writer::start(Slow(written, wait)).unwrap();
        let sink = writer.sink();
        sink.write(b"first\n");
        assert_eq!(seen.recv().unwrap(), b"first\n");
        let line = vec![b'x'; ROOM / 2 - 1];
        (0..4).for_each(|_| sink.write(&line));
        assert_eq!(writer.dropped().get(), 2);
        drop(go);
        drop(writer);
        assert_eq!(seen.iter().map(|bytes| bytes.len()).sum::<usize>(), line.len() * 2);
    }
}
