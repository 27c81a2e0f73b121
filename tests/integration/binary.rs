//! The real binary: what it prints, how it ends, and what it refuses to start with.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::support::certificates::{Authority, Certificates};
use crate::support::client;
use crate::support::reviews::plain_pod;
use crate::support::running::{LOOPBACK, Running, eventually, find, get, offline, refused};

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
    let (listen, admin) = server.addresses();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _held = runtime.block_on(client::tls(&certificates, &listen));
    assert!(get(&admin, "/readyz").starts_with("HTTP/1.1 200 "));
    server.signal("TERM");
    server.logged("finishing what is in flight");
    // Until clients have noticed that it is not ready, new ones are answered and asked to leave.
    assert!(get(&admin, "/readyz").starts_with("HTTP/1.1 503 "));
    let answer = runtime.block_on(async { ask(&mut client::tls(&certificates, &listen).await, "late").await });
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("connection: close"), "{answer}");
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

/// An answer to a review on a connection that is kept.
async fn ask(stream: &mut TlsStream<TcpStream>, uid: &str) -> String {
    let body = plain_pod(uid);
    stream.write_all(format!("{}{body}", client::head("/validate", body.len())).as_bytes()).await.unwrap();
    let mut answer = vec![0; 4_096];
    let count = stream.read(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer[..count]).into_owned()
}

#[test]
fn without_file_descriptors_it_waits_and_serves_again() {
    let folder = tempfile::tempdir().unwrap();
    let (certificates, flags) = offline(folder.path());
    let server = Running::start(folder.path(), &flags);
    let (listen, admin) = server.addresses();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut kept = runtime.block_on(client::tls(&certificates, &listen));
    let limit = |files| {
        let pid = Pid::from_raw(i32::try_from(server.child.id()).unwrap());
        prlimit(pid, Resource::Nofile, Rlimit { current: Some(files), maximum: Some(files) }).unwrap();
    };
    limit(48);
    let mut held: Vec<_> = (0..60).map(|_| std::net::TcpStream::connect(&listen).unwrap()).collect();
    server.logged("cannot accept connections");
    // Who is connected is served on.
    assert!(runtime.block_on(ask(&mut kept, "meanwhile")).starts_with("HTTP/1.1 200 "));
    held.clear();
    let answer = runtime.block_on(async { ask(&mut client::tls(&certificates, &listen).await, "after").await });
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(get(&admin, "/readyz").starts_with("HTTP/1.1 200 "));
    let errors = get(&admin, "/metrics");
    let errors = errors.lines().find_map(|line| line.strip_prefix("slicegate_accept_errors_total ")).unwrap();
    assert!(errors.parse::<u64>().unwrap() > 0);
    assert!(runtime.block_on(ask(&mut kept, "at last")).starts_with("HTTP/1.1 200 "));
}

#[test]
fn few_file_descriptors_mean_few_connections() {
    let folder = tempfile::tempdir().unwrap();
    let (_, flags) = offline(folder.path());
    let script = format!("ulimit -n 60; exec {} serve {}", env!("CARGO_BIN_EXE_slicegate"), flags.join(" "));
    let server = Running::spawn(Command::new("sh").args(["-c", &script]).current_dir(folder.path()));
    let line: serde_json::Value = serde_json::from_str(&server.logged("for want of file descriptors")).unwrap();
    assert_eq!((line["descriptors"].as_u64(), line["max_connections"].as_u64()), (Some(60), Some(30)), "{line}");
    let (listen, admin) = server.addresses();
    let held: Vec<_> = (0..60).map(|_| std::net::TcpStream::connect(&listen).unwrap()).collect();
    let ended = r#"slicegate_connections_ended_total{port="webhook",reason="too-many"} 30"#;
    eventually("the others are turned away", || get(&admin, "/metrics").contains(ended));
    drop(held);
    assert!(get(&admin, "/metrics").contains("slicegate_accept_errors_total 0\n"));
}

#[test]
fn clients_are_checked_and_their_authorities_followed() {
    let folder = tempfile::tempdir().unwrap();
    let (certificates, flags) = offline(folder.path());
    let (old, new) = (Authority::new(), Authority::new());
    std::fs::write(folder.path().join("ca.pem"), &old.pem).unwrap();
    let flags = [&flags[..], &["--client-ca", "ca.pem", "--client-name", "kube-apiserver"]].concat();
    let server = Running::start(folder.path(), &flags);
    let (listen, admin) = server.addresses();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let ask = |identity: Option<&Certificates>| {
        runtime.block_on(async {
            let stream = client::tls_as(&certificates, identity, &listen).await?;
            client::try_once(stream, "/validate", &plain_pod("u")).await
        })
    };
    assert!(ask(Some(&old.client("kube-apiserver", &[]))).unwrap().starts_with("HTTP/1.1 200 "));
    ask(None).unwrap_err();
    let line: serde_json::Value = serde_json::from_str(&server.logged("client refused")).unwrap();
    assert_eq!((&line["reason"], &line["level"]), (&"client-certificate-missing".into(), &"WARN".into()), "{line}");
    assert!(line["peer"].as_str().unwrap().starts_with("127.0.0.1:"), "{line}");
    assert!(ask(Some(&old.client("kubelet", &[]))).unwrap().starts_with("HTTP/1.1 403 "));
    let line = server.logged("client refused");
    assert!(line.contains(r#""names":"kubelet""#) && line.contains("client-certificate-name"), "{line}");
    assert!(get(&admin, "/readyz").starts_with("HTTP/1.1 200 "));

    std::fs::write(folder.path().join("next"), &new.pem).unwrap();
    std::fs::rename(folder.path().join("next"), folder.path().join("ca.pem")).unwrap();
    server.logged("clients are checked against other authorities");
    assert!(ask(Some(&new.client("kube-apiserver", &[]))).unwrap().starts_with("HTTP/1.1 200 "));
    ask(Some(&old.client("kube-apiserver", &[]))).unwrap_err();
}

#[test]
fn what_cannot_start_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let (_, flags) = offline(folder.path());
    std::fs::write(folder.path().join("other.pem"), Certificates::make().key).unwrap();
    std::fs::write(folder.path().join("bad.yaml"), "kind: Nonsense\n").unwrap();
    let over = Authority::new().serving(-7_200, -3_600);
    std::fs::write(folder.path().join("over.pem"), over.certificate).unwrap();
    std::fs::write(folder.path().join("over-key.pem"), over.key).unwrap();
    let (ended, told) = refused(folder.path(), &["--offline", "--tls-cert", "over.pem", "--tls-key", "over-key.pem"]);
    assert!(ended == Some(1) && told.contains("the certificate in over.pem ended at 20"), "{told}");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let base = &flags[..3];
    for (extra, code, words) in [
        (&["--tls-key", "other.pem"][..], 1, "certificate in tls.pem and the private key in other.pem do not belong"),
        (&["--tls-key", "none.pem"], 1, "cannot read none.pem"),
        (&["--tls-key", "tls.pem"], 1, "tls.pem holds no PEM private key"),
        (&["--tls-key", "key.pem", "--client-ca", "key.pem"], 1, "key.pem holds no PEM certificate"),
        (&["--tls-key", "key.pem", "--max-body-memory", "1MiB"], 2, "--max-body-memory"),
        (&["--tls-key", "key.pem", "--rego-budget", "1m"], 2, "--rego-budget"),
        (&["--tls-key", "key.pem", "--body-timeout", "0s"], 2, "--body-timeout"),
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
