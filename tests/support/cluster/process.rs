//! The programs that a test starts: one that runs until it is dropped, and one
//! that runs to its end. Both have a deadline for everything that they are
//! waited for, and none outlives the test program.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};

/// Time between two looks at something that cannot tell by itself.
const POLL: Duration = Duration::from_millis(25);

/// How many lines of a log an error shows.
const TAIL: usize = 25;

/// Makes a program of tests/e2e/controlplane end when its standard input does.
/// That happens however the test program ends, even when it is killed.
const EXIT_WITH_STDIN: &str = "EXIT_WITH_STDIN";

/// A program in the background, killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Process {
    name: String,
    child: Child,
    log: PathBuf,
    // Never written to: it only has to stay open for as long as this lives.
    _stdin: Option<ChildStdin>,
}

/// What a program has left when it ended by itself.
pub(crate) struct Finished {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A command that inherits nothing from the user's environment but the path:
/// no kubeconfig, no proxy, none of the variables that etcd takes as flags.
pub(crate) fn command(program: &Path, home: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("HOME", home);
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    command
}

// === impl Process ===

impl Process {
    /// Starts `command` with its output going to the end of the file `log`.
    pub(crate) fn start(mut command: Command, log: &Path) -> Result<Self> {
        let name = program_name(&command);
        let file = open_log(log)?;
        let copy = file.try_clone().context("the log file cannot be opened twice")?;
        let mut child = command
            .env(EXIT_WITH_STDIN, "1")
            .stdin(Stdio::piped())
            .stdout(file)
            .stderr(copy)
            .spawn()
            .with_context(|| format!("{name} cannot be started"))?;
        Ok(Self { name, _stdin: child.stdin.take(), child, log: log.to_owned() })
    }

    /// Asks `is_ready` until it says yes. A program that ends before, or is not
    /// ready by the deadline, is an error that shows the end of its log.
    pub(crate) fn wait_ready(&mut self, deadline: Duration, mut is_ready: impl FnMut() -> bool) -> Result<()> {
        let end = Instant::now() + deadline;
        loop {
            if let Some(status) = self.child.try_wait()? {
                bail!("{} ended before it was ready ({status}); {}", self.name, self.tail());
            }
            if is_ready() {
                return Ok(());
            }
            if Instant::now() >= end {
                bail!("{} was not ready after {deadline:?}; {}", self.name, self.tail());
            }
            pause();
        }
    }

    /// Sends it a signal, by its name.
    pub(crate) fn signal(&self, name: &str) -> Result<()> {
        let sent = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status()?;
        anyhow::ensure!(sent.success(), "{} cannot be signalled", self.name);
        Ok(())
    }

    /// Waits until it has ended by itself or by a signal.
    pub(crate) fn wait_end(&mut self, deadline: Duration) -> Result<ExitStatus> {
        let mut failed = None;
        let child = &mut self.child;
        let ended = wait(deadline, "a program to end", || {
            child.try_wait().unwrap_or_else(|error| {
                failed = Some(error);
                None
            })
        });
        ended.with_context(|| format!("{}: {failed:?}; {}", self.name, self.tail()))
    }

    fn tail(&self) -> String {
        let text = read_log(&self.log);
        let lines: Vec<&str> = text.lines().collect();
        let shown = lines.get(lines.len().saturating_sub(TAIL)..).unwrap_or_default();
        format!("its log ends with:\n{}", shown.join("\n"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Killing fails only for one that has ended. Waiting makes sure that
        // its port and its files are free when this returns.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a command to its end with `input` as its standard input. It is killed
/// if it takes longer than the deadline. Its standard error is the test's own
/// unless the command says otherwise.
pub(crate) fn run(mut command: Command, input: &str, deadline: Duration) -> Result<Finished> {
    let name = program_name(&command);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("{name} cannot be started"))?;
    // Each pipe has a thread of its own: a program blocks when no one reads
    // what it writes, whatever it is that the other side is waiting for.
    if let Some(mut stdin) = child.stdin.take() {
        let input = input.to_owned();
        // A program need not read its input, so a closed pipe is no fault.
        std::thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
    }
    let end = Instant::now() + deadline;
    let stdout = read_in_background(child.stdout.take());
    let stderr = read_in_background(child.stderr.take());
    let output = receive(&stdout, end).and_then(|out| Some((out, receive(&stderr, end)?)));
    let Some((stdout, stderr)) = output else {
        let _ = child.kill();
        let _ = child.wait();
        bail!("{name} was killed because it had not ended after {deadline:?}");
    };
    let status = child.wait().with_context(|| format!("{name} cannot be waited for"))?;
    Ok(Finished { status, stdout, stderr })
}

/// Asks until there is an answer, and fails when there is none by the
/// deadline. `what` completes the sentence "timed out waiting for".
pub(crate) fn wait<T>(deadline: Duration, what: &str, mut ask: impl FnMut() -> Option<T>) -> Result<T> {
    let end = Instant::now() + deadline;
    loop {
        if let Some(answer) = ask() {
            return Ok(answer);
        }
        if Instant::now() >= end {
            return Err(anyhow!("timed out waiting for {what} ({deadline:?})"));
        }
        pause();
    }
}

/// Lets a moment pass between two looks.
pub(crate) fn pause() {
    let (_sender, receiver) = mpsc::channel::<()>();
    // Nothing is ever sent, so this is the time-out, and a means to wait that
    // does not depend on the clock of a test's runtime.
    let _ = receiver.recv_timeout(POLL);
}

/// The log's text, as far as there is one.
pub(crate) fn read_log(path: &Path) -> String {
    std::fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

fn program_name(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or_else(|| OsStr::new("program"));
    name.to_string_lossy().into_owned()
}

fn open_log(path: &Path) -> Result<File> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .with_context(|| format!("the log file {} cannot be opened", path.display()))
}

fn read_in_background<R: Read + Send + 'static>(pipe: Option<R>) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut bytes);
        }
        // The receiver is gone when the deadline has passed.
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receiver
}

fn receive(receiver: &mpsc::Receiver<String>, end: Instant) -> Option<String> {
    receiver.recv_timeout(end.saturating_duration_since(Instant::now())).ok()
}
