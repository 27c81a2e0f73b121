//! One worker process, seen from the server: its start, its socket, its end.
//!
//! Invariant: nothing here waits for the process without an end; dropping it kills it.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};

use bytes::{Buf, Bytes, BytesMut};
use rustix::fs::{MemfdFlags, memfd_create};
use tokio::net::UnixStream;

use super::child::Settings;
use super::protocol::{Id, MAX_FRAME};
use super::{Options, watchdog};

/// The signal that no policy can send itself: the limits that a worker sets itself end it by others.
const KILL: i32 = 9;

/// A worker process and the line to it.
#[derive(Debug)]
pub(super) struct Process {
    /// There until the end was waited for.
    child: Option<Child>,
    notes: File,
    line: Line,
}

/// How a process ended, and what it was doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct End {
    /// The set that was running.
    pub(super) set: Option<Id>,
    /// Whether it had used up its time.
    pub(super) overran: bool,
    /// Whether somebody else ended it: the kernel for want of memory, or an operator.
    pub(super) killed: bool,
}

impl Process {
    /// Starts one. It is ready when it answers.
    pub(super) fn start(options: &Options) -> io::Result<Self> {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let notes = File::from(memfd_create("slicegate-worker", MemfdFlags::CLOEXEC)?);
        let Settings { budget, compile_budget, memory } = options.settings;
        let child = Command::new(&options.program)
            .arg0("slicegate")
            .arg("rego-worker")
            .args([budget.as_micros(), compile_budget.as_micros(), u128::from(memory)].map(|number| number.to_string()))
            .env_clear()
            .current_dir("/")
            .stdin(OwnedFd::from(theirs))
            .stdout(notes.try_clone()?)
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self { child: Some(child), notes, line: Line::new(UnixStream::from_std(ours)?) })
    }

    /// The line to it.
    pub(super) fn line(&mut self) -> &mut Line {
        &mut self.line
    }

    /// Ends it, if it has not ended by itself, and says how it did.
    pub(super) async fn end(mut self) -> End {
        let mut note = [0; 4];
        let child = self.child.take();
        let waited = tokio::task::spawn_blocking(move || {
            let mut child = child?;
            // One that has ended by itself keeps the status of that.
            let _ = child.kill();
            child.wait().ok()
        });
        let waited = waited.await.ok().flatten();
        let noted = self.notes.read_at(&mut note, 0).is_ok_and(|size| size == note.len());
        let set = u32::from_le_bytes(note).checked_sub(1).filter(|_| noted);
        let overran = waited.is_some_and(|status| status.code() == Some(watchdog::OVERRUN));
        let killed = waited.is_some_and(|status| status.signal() == Some(KILL));
        End { set, overran, killed }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        let _ = child.kill();
        // It is gone in a moment; whoever drops it need not wait for that, and nobody else asks for its status.
        std::thread::spawn(move || child.wait());
    }
}

/// Frames to and from a worker. Writing never waits: what the socket does not take is kept.
#[derive(Debug)]
pub(super) struct Line {
    stream: UnixStream,
    outgoing: VecDeque<Bytes>,
    incoming: BytesMut,
}

impl Line {
    fn new(stream: UnixStream) -> Self {
        Self { stream, outgoing: VecDeque::new(), incoming: BytesMut::new() }
    }

    /// Sends a frame, as far as the socket takes it now.
    pub(super) fn send(&mut self, frame: Bytes) -> io::Result<()> {
        self.outgoing.push_back(frame);
        self.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        while !self.outgoing.is_empty() {
            let slices: Vec<IoSlice<'_>> = self.outgoing.iter().take(8).map(|frame| IoSlice::new(frame)).collect();
            match self.stream.try_write_vectored(&slices) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(size) => self.sent(size),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn sent(&mut self, mut size: usize) {
        while let Some(first) = self.outgoing.front_mut() {
            let taken = size.min(first.len());
            first.advance(taken);
            size = size.saturating_sub(taken);
            if !first.is_empty() {
                return;
            }
            self.outgoing.pop_front();
        }
    }

    /// The payload of the next frame, once it is whole. Sends on what was kept meanwhile. May be dropped and called again.
    pub(super) async fn receive(&mut self) -> io::Result<Bytes> {
        loop {
            if let Some(payload) = self.next()? {
                return Ok(payload);
            }
            tokio::select! {
                ready = self.stream.readable() => ready?,
                ready = self.stream.writable(), if !self.outgoing.is_empty() => {
                    ready?;
                    self.flush()?;
                    continue;
                }
            }
            self.incoming.reserve(16 << 10);
            match self.stream.try_read_buf(&mut self.incoming) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn next(&mut self) -> io::Result<Option<Bytes>> {
        let Some(Ok(size)) = self.incoming.get(..4).map(<[u8; 4]>::try_from) else { return Ok(None) };
        let size = usize::try_from(u32::from_le_bytes(size)).unwrap_or(usize::MAX);
        if size > MAX_FRAME {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a frame that is too long"));
        }
        if self.incoming.len() < size.saturating_add(4) {
            return Ok(None);
        }
        self.incoming.advance(4);
        Ok(Some(self.incoming.split_to(size).freeze()))
    }
}
