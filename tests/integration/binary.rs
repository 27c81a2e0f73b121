//! The real binary: what it prints, how it ends, and what it refuses to start with.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::certificates::Certificates;
use crate::support::client;
use crate::support::reviews::plain_pod;

const WAIT: Duration = Duration::from_secs(30);
pub(crate) const LOOPBACK: [&str; 4] = ["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];

/// A server that runs in a folder, with both of its outputs as lines.
pub(crate) struct Running {
    child: Child,
    log: Receiver<String>,
    told: Receiver<String>,
}

impl Running {
    pub(crate) fn start(folder: &Path, flags: &[&str]) -> Self {
        let mut child = slicegate(folder, flags).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let log = lines(child.stdout.take().unwrap());
        let told = lines(child.stderr.take().unwrap());
        Self { child, log, told }
    }

    /// The next line of the log that holds these words.
    fn logged(&self, words: &str) -> String {
        find(&self.log, words)
    }

    /// The addresses of both ports.
    pub(crate) fn addresses(&self) -> (String, String) {
        let line: serde_json::Value = serde_json::from_str(&self.logged("serving")).unwrap();
        (line["listen"].as_str().unwrap().to_owned(), line["admin"].as_str().unwrap().to_owned())
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }

    fn code(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn slicegate(folder: &Path, flags: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slicegate"));
    command.arg("serve").args(flags).current_dir(folder);
    command
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

fn find(lines: &Receiver<String>, words: &str) -> String {
    loop {
        let line = lines.recv_timeout(WAIT).unwrap_or_else(|_| panic!("no line with {words:?}"));
        if line.contains(words) {
            return line;
        }
    }
}

/// Runs what must not start, to its end.
fn refused(folder: &Path, flags: &[&str]) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = slicegate(folder, flags).output().unwrap();
    (status.code(), String::from_utf8(stderr).unwrap())
}

fn paste(folder: &Path, line: &str) -> serde_json::Value {
    let Output { status, stdout, stderr } = Command::new("sh").args(["-c", line]).current_dir(folder).output().unwrap();
    assert!(status.success(), "{line}: {}", String::from_utf8_lossy(&stderr));
    serde_json::from_slice(&stdout).unwrap_or_else(|_| panic!("{line}: {}", String::from_utf8_lossy(&stdout)))
}

#[test]
fn the_lines_of_dev_work_when_pasted() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut server = Running::start(folder, &[&["--dev"], &LOOPBACK[..]].concat());
    let refused = paste(folder, &find(&server.told, "/validate --data"));
    assert_eq!(refused["response"]["allowed"], false, "{refused}");
    assert!(refused["response"]["status"]["message"].as_str().unwrap().contains("[share-limit]"), "{refused}");
    let patched = paste(folder, &find(&server.told, "/mutate --data"));
    assert_eq!(
        (&patched["response"]["allowed"], &patched["response"]["patchType"]),
        (&true.into(), &"JSONPatch".into())
    );
    let admin = find(&server.told, "/readyz");
    for url in admin.split_whitespace() {
        let code = Command::new("curl").args(["-sS", "-o", "/dev/null", "-w", "%{http_code}", url]).output().unwrap();
        assert_eq!(code.stdout, b"200", "{url}");
    }
    server.signal("TERM");
    assert_eq!(server.code(), Some(0));
}

#[test]
fn dev_makes_certificates_once_and_overwrites_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let flags = [&["--dev"], &LOOPBACK[..]].concat();
    let read =
        || ["ca.pem", "tls.pem", "tls-key.pem"].map(|name| std::fs::read(folder.join("certs").join(name)).unwrap());
    drop(Running::start(folder, &flags).logged("serving"));
    let first = read();
    let mode = std::fs::metadata(folder.join("certs/tls-key.pem")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    drop(Running::start(folder, &flags).logged("serving"));
    assert_eq!(first, read());
    std::fs::remove_file(folder.join("certs/tls.pem")).unwrap();
    let (code, told) = refused(folder, &flags);
    assert_eq!(code, Some(1));
    assert!(told.contains("certs/tls.pem is missing"), "{told}");
    assert_eq!(std::fs::read(folder.join("certs/tls-key.pem")).unwrap(), first[2]);
}

/// A folder with a pair of certificates, and the flags that use it.
fn offline(folder: &Path) -> (Certificates, Vec<&'static str>) {
    let certificates = Certificates::make();
    std::fs::write(folder.join("tls.pem"), &certificates.certificate).unwrap();
    std::fs::write(folder.join("key.pem"), &certificates.key).unwrap();
    (certificates, [&["--offline", "--tls-cert", "tls.pem", "--tls-key", "key.pem"], &LOOPBACK[..]].concat())
}

#[test]
fn sigterm_lets_a_request_finish() {
    let folder = tempfile::tempdir().unwrap();
    let (certificates, flags) = offline(folder.path());
    let mut server = Running::start(folder.path(), &flags);
    let (listen, _) = server.addresses();
    let body = plain_pod("in-flight");
    let (first, second) = body.split_at(10);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let answer = runtime.block_on(async {
        let mut stream = client::tls(&certificates, &listen).await;
        let head = client::head("/validate", body.len());
        stream.write_all(format!("{head}{first}").as_bytes()).await.unwrap();
        // The handshake is done, so the connection is known to the server before the signal is.
        server.signal("TERM");
        server.logged("finishing what is in flight");
        stream.write_all(second.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    });
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("in-flight"), "{answer}");
    assert_eq!(server.code(), Some(0));
}

#[test]
fn a_second_signal_ends_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (certificates, flags) = offline(folder.path());
    let flags = [&flags[..], &["--drain-delay", "1h"]].concat();
    let mut server = Running::start(folder.path(), &flags);
    let (listen, _) = server.addresses();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _held = runtime.block_on(client::tls(&certificates, &listen));
    server.signal("TERM");
    server.logged("finishing what is in flight");
    server.signal("INT");
    server.logged("second signal");
    assert_eq!(server.code(), Some(1));
}

#[test]
fn a_review_is_one_line_of_json() {
    let folder = tempfile::tempdir().unwrap();
    let (certificates, flags) = offline(folder.path());
    let mut server = Running::start(folder.path(), &flags);
    let (listen, _) = server.addresses();
    let body = plain_pod("logged").replace("kim", r"kim\nforged \u202e");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let held = runtime.block_on(async {
        let mut stream = client::tls(&certificates, &listen).await;
        stream.write_all(format!("{}{body}", client::head("/validate", body.len())).as_bytes()).await.unwrap();
        stream
    });
    let line: serde_json::Value = serde_json::from_str(&server.logged("\"uid\"")).unwrap();
    for (field, value) in [
        ("level", "INFO"),
        ("message", "review"),
        ("endpoint", "validate"),
        ("uid", "logged"),
        ("operation", "CREATE"),
        ("kind", "Pod"),
        ("namespace", "team-blue"),
        ("name", "web"),
        ("user", "kim\nforged \u{202e}"),
        ("verdict", "allowed"),
        ("rules", ""),
    ] {
        assert_eq!(line[field], value, "{field}: {line}");
    }
    assert!(line["duration"].as_f64().unwrap() > 0.0 && line["timestamp"].as_str().unwrap().ends_with('Z'), "{line}");
    drop(held);
    server.signal("TERM");
    assert_eq!(server.code(), Some(0));
}

#[test]
fn few_file_descriptors_are_waited_out() {
    let folder = tempfile::tempdir().unwrap();
    let (certificates, flags) = offline(folder.path());
    let script = format!("ulimit -n 40; exec {} serve {}", env!("CARGO_BIN_EXE_slicegate"), flags.join(" "));
    let mut child =
        Command::new("sh").args(["-c", &script]).current_dir(folder.path()).stdout(Stdio::piped()).spawn().unwrap();
    let log = lines(child.stdout.take().unwrap());
    let (_unused, told) = channel();
    let server = Running { child, log, told };
    let (listen, _) = server.addresses();
    let held: Vec<_> = (0..60).map(|_| std::net::TcpStream::connect(&listen).unwrap()).collect();
    server.logged("cannot accept connections");
    drop(held);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let body = plain_pod("after");
    let answer = runtime.block_on(async {
        let mut stream = client::tls(&certificates, &listen).await;
        stream.write_all(format!("{}{body}", client::head("/validate", body.len())).as_bytes()).await.unwrap();
        let mut answer = vec![0; 4096];
        let count = stream.read(&mut answer).await.unwrap();
        String::from_utf8_lossy(&answer[..count]).into_owned()
    });
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

#[test]
fn what_cannot_start_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let (_, flags) = offline(folder.path());
    std::fs::write(folder.path().join("other.pem"), Certificates::make().key).unwrap();
    std::fs::write(folder.path().join("bad.yaml"), "kind: Nonsense\n").unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let base = &flags[..3];
    for (extra, code, words) in [
        (&["--tls-key", "other.pem"][..], 1, "certificate in tls.pem and the private key in other.pem do not belong"),
        (&["--tls-key", "none.pem"], 1, "cannot read none.pem"),
        (&["--tls-key", "tls.pem"], 1, "tls.pem holds no PEM private key"),
        (&["--tls-key", "key.pem", "--config", "none.yaml"], 1, "none.yaml"),
        (&["--tls-key", "key.pem", "--config", "bad.yaml"], 1, "bad.yaml"),
        (&["--tls-key", "key.pem", "--listen", &taken], 1, &taken),
        (&["--tls-key", "key.pem", "--log-level", "=x="], 2, "--log-level"),
        (&["--tls-key", "key.pem", "--max-body", "8MB"], 2, "--max-body"),
        (&[], 2, "--tls-key"),
        (&["--nonsense"], 2, "--nonsense"),
    ] {
        let (ended, told) = refused(folder.path(), &[base, extra].concat());
        assert_eq!(ended, Some(code), "{extra:?}: {told}");
        assert!(told.contains(words), "{extra:?}: {told}");
        if code == 1 {
            assert_eq!(told.matches(words).count(), 1, "told once: {told}");
        }
    }
}

#[test]
fn help_shows_variables_and_defaults() {
    let output = Command::new(env!("CARGO_BIN_EXE_slicegate")).args(["serve", "--help"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    for words in ["SLICEGATE_LISTEN", "[default: 0.0.0.0:8443", "SLICEGATE_MAX_BODY", "[default: 8MiB]", "Examples:"] {
        assert!(text.contains(words), "{words}\n{text}");
    }
}
