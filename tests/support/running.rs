//! The real binary in a process of its own, with both of its outputs as lines.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use super::certificates::Certificates;

const WAIT: Duration = Duration::from_secs(30);

/// Ports that the system chooses.
pub const LOOPBACK: [&str; 4] = ["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];

/// A server that runs in a folder. It ends with the value.
pub struct Running {
    /// The process.
    pub child: Child,
    /// The lines of standard output, which is the log.
    pub log: Receiver<String>,
    /// The lines of standard error.
    pub told: Receiver<String>,
}

impl Running {
    /// Starts `slicegate serve`.
    pub fn start(folder: &Path, flags: &[&str]) -> Self {
        Self::spawn(&mut slicegate(folder, flags))
    }

    /// Starts a command that becomes it.
    pub fn spawn(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let log = lines(child.stdout.take().unwrap());
        let told = lines(child.stderr.take().unwrap());
        Self { child, log, told }
    }

    /// The next line of the log that holds these words.
    pub fn logged(&self, words: &str) -> String {
        find(&self.log, words)
    }

    /// The addresses of both ports.
    pub fn addresses(&self) -> (String, String) {
        let line: serde_json::Value = serde_json::from_str(&self.logged("serving")).unwrap();
        (line["listen"].as_str().unwrap().to_owned(), line["admin"].as_str().unwrap().to_owned())
    }

    /// Sends a signal, by its name.
    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }

    /// Waits for the end and says how it went.
    pub fn code(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The command that serves from a folder.
pub fn slicegate(folder: &Path, flags: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slicegate"));
    command.arg("serve").args(flags).current_dir(folder);
    command
}

/// Runs what must not start, to its end.
pub fn refused(folder: &Path, flags: &[&str]) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = slicegate(folder, flags).output().unwrap();
    (status.code(), String::from_utf8(stderr).unwrap())
}

/// Puts a pair of certificates into a folder, and says which flags use it.
pub fn offline(folder: &Path) -> (Certificates, Vec<&'static str>) {
    let certificates = Certificates::make();
    std::fs::write(folder.join("tls.pem"), &certificates.certificate).unwrap();
    std::fs::write(folder.join("key.pem"), &certificates.key).unwrap();
    (certificates, [&["--offline", "--tls-cert", "tls.pem", "--tls-key", "key.pem"], &LOOPBACK[..]].concat())
}

/// The next line that holds these words.
pub fn find(lines: &Receiver<String>, words: &str) -> String {
    loop {
        let line = lines.recv_timeout(WAIT).unwrap_or_else(|_| panic!("no line with {words:?}"));
        if line.contains(words) {
            return line;
        }
    }
}

/// Asks until the answer is yes, and gives up after half a minute.
pub fn eventually(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < WAIT, "{what}");
    }
}

/// An answer of the admin port, with its head; empty where there is none.
pub fn get(admin: &str, path: &str) -> String {
    let ask = || {
        let mut stream = TcpStream::connect(admin)?;
        stream.set_read_timeout(Some(WAIT))?;
        write!(stream, "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok::<_, std::io::Error>(text)
    };
    ask().unwrap_or_default()
}

fn lines(output: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (send, receive) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                break;
            }
        }
    });
    receive
}
