//! `slicegate certs` as its users run it, and the server with what it made.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use pretty_assertions::assert_eq;
use rustls::pki_types::ServerName;
use slicegate::certificates::names;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::support::certificates::Certificates;
use crate::support::running::{LOOPBACK, Running};

/// How the program ended, and what it wrote.
struct Ended {
    code: Option<i32>,
    out: String,
    told: String,
}

fn run(folder: &Path, flags: &[&str]) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slicegate"));
    let output = command.arg("certs").args(flags).current_dir(folder).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ended { code: output.status.code(), out: text(output.stdout), told: text(output.stderr) }
}

/// Runs what must succeed, with no key in what it prints.
fn made(folder: &Path, flags: &[&str]) -> String {
    let Ended { code, out, told } = run(folder, flags);
    assert_eq!((code, told.as_str()), (Some(0), ""), "{out}");
    assert!(!out.contains("PRIVATE KEY"));
    out
}

fn refused(folder: &Path, flags: &[&str], code: i32, words: &str) {
    let before = files(folder);
    let ended = run(folder, flags);
    assert_eq!((ended.code, ended.out.as_str()), (Some(code), ""), "{}", ended.told);
    assert!(ended.told.contains(words), "{}", ended.told);
    assert_eq!(files(folder), before, "{flags:?} changes nothing");
}

/// The files of a folder, which have to be nothing but these four.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let Ok(entries) = fs::read_dir(folder.join("certs")) else { return BTreeMap::new() };
    let entries = entries.map(|entry| entry.unwrap());
    entries
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read_to_string(entry.path()).unwrap()))
        .inspect(|(name, _)| {
            assert!(["ca.pem", "ca-key.pem", "tls.pem", "tls-key.pem"].contains(&name.as_str()), "{name}");
        })
        .collect()
}

/// Whether a server with the pair in the folder is taken for this name by who trusts the authority.
fn serves(folder: &Path, authority: &str, name: &'static str) -> bool {
    let flags = ["--offline", "--tls-cert", "certs/tls.pem", "--tls-key", "certs/tls-key.pem"];
    let server = Running::start(folder, &[&flags, &LOOPBACK[..]].concat());
    let (listen, _) = server.addresses();
    let trusting = Certificates { authority: authority.to_owned(), certificate: String::new(), key: String::new() };
    let connector = TlsConnector::from(Arc::new(trusting.client(&[])));
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let stream = TcpStream::connect(listen).await.unwrap();
        connector.connect(ServerName::try_from(name).unwrap(), stream).await.is_ok()
    })
}

#[test]
fn what_is_made_is_served_and_taken() {
    for key in ["ecdsa-p256", "ecdsa-p384", "ed25519"] {
        let folder = tempfile::tempdir().unwrap();
        let out = made(folder.path(), &["--key-type", key]);
        let files = files(folder.path());
        assert_eq!(files.len(), 4);
        for (name, mode) in [("ca-key.pem", 0o600), ("tls-key.pem", 0o600), ("ca.pem", 0o644), ("tls.pem", 0o644)] {
            let found = fs::metadata(folder.path().join("certs").join(name)).unwrap().permissions().mode() & 0o777;
            // Whatever else the umask of whoever runs the tests takes away.
            assert_eq!(found & !mode, 0, "{name} has {found:o}");
        }
        assert!(out.contains("certs/tls.pem: for slicegate.slicegate-system.svc, "), "{out}");
        assert!(out.contains("create secret tls slicegate-tls --cert=certs/tls.pem --key=certs/tls-key.pem"), "{out}");
        assert!(out.contains(r#"sed "s/caBundle: \"\"/caBundle: $(base64 < certs/ca.pem | tr -d '\n')/""#), "{out}");
        assert!(serves(folder.path(), &files["ca.pem"], "slicegate.slicegate-system.svc"), "{key}");
        assert!(!serves(folder.path(), &files["ca.pem"], "elsewhere.slicegate-system.svc"), "{key}");
    }
}

#[test]
fn a_renewal_keeps_the_authority_and_the_names() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    made(folder, &["--name", "gpu.example", "--name", "10.1.2.3", "--days", "20"]);
    let before = files(folder);
    let out = made(folder, &["--renew", "--key-type", "ed25519"]);
    let after = files(folder);
    assert!(out.contains("stays as it is") && !out.contains("sed "), "{out}");
    for (name, same) in [("ca.pem", true), ("ca-key.pem", true), ("tls.pem", false), ("tls-key.pem", false)] {
        assert_eq!(before[name] == after[name], same, "{name}");
    }
    assert_eq!(names(&after["tls.pem"]), ["gpu.example", "10.1.2.3"]);
    assert!(serves(folder, &before["ca.pem"], "gpu.example"));
    made(folder, &["--renew", "--name", "other.example"]);
    assert_eq!(names(&files(folder)["tls.pem"]), ["other.example"]);
}

#[test]
fn nothing_is_replaced_unasked() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    refused(folder, &["--renew"], 1, "cannot read certs/ca.pem; a renewal needs the authority");
    made(folder, &[]);
    refused(folder, &[], 1, "certs/ca.pem is there already");
    let first = files(folder);
    fs::remove_file(folder.join("certs/ca.pem")).unwrap();
    refused(folder, &[], 1, "certs/ca-key.pem is there already");
    made(folder, &["--force"]);
    assert!(files(folder).iter().all(|(name, text)| first[name] != *text));
    assert!(serves(folder, &files(folder)["ca.pem"], "slicegate.slicegate-system.svc"));
}

#[test]
fn an_authority_that_cannot_sign_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    made(folder, &["--days", "30", "--authority-days", "10"]);
    let out = made(folder, &["--renew"]);
    assert!(out.contains("it ends with its authority"), "{out}");
    let good = files(folder);
    let put = |name: &str, text: &str| fs::write(folder.join("certs").join(name), text).unwrap();
    put("ca-key.pem", "nothing");
    refused(folder, &["--renew"], 1, "certs/ca-key.pem: it holds no private key");
    put("ca-key.pem", &good["tls-key.pem"]);
    refused(folder, &["--renew"], 1, "certs/ca.pem: the private key does not belong to it (certs/ca-key.pem)");
    put("ca.pem", &good["tls.pem"]);
    refused(folder, &["--renew"], 1, "certs/ca.pem: it is no authority's certificate");
    put("ca.pem", "nothing");
    refused(folder, &["--renew"], 1, "certs/ca.pem: it holds no certificate");
}

#[test]
fn wrong_use_ends_with_2() {
    let folder = tempfile::tempdir().unwrap();
    for flags in [
        &["--renew", "--force"][..],
        &["--name", "https://slicegate"],
        &["--days", "0"],
        &["--key-type", "rsa"],
        &["certs"],
    ] {
        refused(folder.path(), flags, 2, "--help");
    }
}
