//! The served certificate follows its files, as a kubelet changes them: a new folder, then one swapped symlink.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use rustls::pki_types::ServerName;
use slicegate::server::reload;
use tempfile::TempDir;
use tokio_rustls::TlsConnector;

use crate::support::certificates::{Authority, Certificates};
use crate::support::client;
use crate::support::reviews::plain_pod;
use crate::support::server::{Options, Protocol, TestServer};

const PROBLEM: &str = r#"slicegate_source_problem{source="certificate"}"#;
const END: &str = "slicegate_certificate_expiry_timestamp_seconds";
const DAY: i64 = 86_400;

/// How often the files are looked at here.
const INTERVAL: Duration = Duration::from_millis(5);

/// A mounted Secret.
struct Mount(TempDir);

impl Mount {
    fn with(first: &Certificates) -> Self {
        let mount = Self(tempfile::tempdir().unwrap());
        mount.swap("0", &first.certificate, &first.key);
        for file in mount.files() {
            symlink(Path::new("..data").join(file.file_name().unwrap()), file).unwrap();
        }
        mount
    }

    fn files(&self) -> [PathBuf; 2] {
        ["tls.crt", "tls.key"].map(|name| self.0.path().join(name))
    }

    /// Swaps in a folder with these two texts, and removes the one before.
    fn swap(&self, version: &str, certificate: &str, key: &str) {
        let (mount, version) = (self.0.path(), format!("..{version}"));
        let before = std::fs::read_link(mount.join("..data"));
        let folder = mount.join(&version);
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("tls.crt"), certificate).unwrap();
        std::fs::write(folder.join("tls.key"), key).unwrap();
        symlink(version, mount.join("..data_tmp")).unwrap();
        std::fs::rename(mount.join("..data_tmp"), mount.join("..data")).unwrap();
        if let Ok(before) = before {
            std::fs::remove_dir_all(mount.join(before)).unwrap();
        }
    }

    fn serve(&self, version: &str, pair: &Certificates) {
        self.swap(version, &pair.certificate, &pair.key);
    }

    /// Has the server follow this mount.
    fn followed_by(&self, server: &TestServer) {
        let (app, current) = (Arc::clone(&server.app), Arc::clone(&server.served));
        let [certificate, key] = self.files();
        let stop = server.app.shutdown.aborting();
        server.runtime().spawn(reload::follow(app, current, (certificate, key), INTERVAL, stop));
    }
}

/// Whether a client that trusts this authority comes through.
fn trusts(server: &TestServer, certificates: &Certificates) -> bool {
    server.block_on(async {
        let connector = TlsConnector::from(Arc::new(certificates.client(&[])));
        connector.connect(ServerName::try_from("localhost").unwrap(), server.tcp().await).await.is_ok()
    })
}

fn reloads(server: &TestServer, outcome: &str) -> u64 {
    server.metric(&format!(r#"slicegate_certificate_reloads_total{{source="certificate",outcome="{outcome}"}}"#))
}

#[test]
fn the_certificate_follows_its_files() {
    let server = TestServer::start(Options::default());
    let mount = Mount::with(&server.certificates);
    mount.followed_by(&server);
    let (second, third) = (Certificates::make(), Certificates::make());

    mount.serve("second", &second);
    server.eventually("the second is served", |server| trusts(server, &second));
    assert!(!trusts(&server, &server.certificates));
    let end = u64::try_from(second.pair().not_after().unwrap().as_second()).unwrap();
    assert_eq!((server.metric(END), reloads(&server, "served")), (end, 1));

    mount.swap("torn", &third.certificate, &second.key);
    server.eventually("the mismatch is told", |server| server.metric(PROBLEM) == 1);
    assert!(trusts(&server, &second) && !trusts(&server, &third));
    mount.serve("third", &third);
    server.eventually("the third is served", |server| trusts(server, &third));
    assert_eq!(server.metric(PROBLEM), 0);
}

#[test]
fn what_cannot_be_served_keeps_what_is() {
    let authority = Authority::new();
    let server = TestServer::start(Options::default());
    let mount = Mount::with(&server.certificates);
    mount.followed_by(&server);
    let good = authority.serving(-DAY, 2 * DAY);
    mount.serve("good", &good);
    server.eventually("the first is served", |server| reloads(server, "served") == 1);
    let end = server.metric(END);

    let (over, early) = (authority.serving(-2 * DAY, -DAY), authority.serving(DAY, 2 * DAY));
    let other = authority.serving(-DAY, DAY);
    let (half, _) = other.certificate.split_at(200);
    for (version, certificate, key, outcome, words) in [
        ("torn", other.certificate.as_str(), good.key.as_str(), "mismatch", "do not belong together"),
        ("half", half, &other.key, "no-certificate", "holds no PEM certificate"),
        ("empty", &other.certificate, "", "no-key", "holds no PEM private key"),
        ("over", &over.certificate, &over.key, "expired", "ended at 20"),
        ("early", &early.certificate, &early.key, "not-yet-valid", "is not valid before 20"),
    ] {
        mount.swap(version, certificate, key);
        server.eventually(version, |server| reloads(server, outcome) == 1);
        let ready = server.get("/readyz?verbose");
        assert_eq!((ready.status, server.metric(PROBLEM), server.metric(END)), (200, 1, end), "{version}");
        assert!(ready.text().contains(words), "{version}: {}", ready.text());
        assert!(trusts(&server, &good), "{version}");
    }
    std::fs::remove_file(mount.0.path().join("..data")).unwrap();
    server.eventually("the missing file is told", |server| reloads(server, "unreadable") == 1);
    assert!(trusts(&server, &good));

    mount.serve("same", &good);
    server.eventually("all is well", |server| server.metric(PROBLEM) == 0);
    let ready = server.get("/readyz?verbose").text();
    assert!(ready.contains("[+]tls ok: the certificate ends at") && !ready.contains("refused"), "{ready}");
    assert_eq!(reloads(&server, "served"), 1);
}

#[test]
fn a_certificate_is_served_when_its_time_comes() {
    let server = TestServer::start(Options::default());
    let mount = Mount::with(&server.certificates);
    mount.followed_by(&server);
    let soon = Authority::new().serving(3, DAY);
    mount.serve("soon", &soon);
    server.eventually("it is not served yet", |server| reloads(server, "not-yet-valid") == 1);
    server.eventually("it is served", |server| reloads(server, "served") == 1);
    assert!(trusts(&server, &soon));
}

/// Asks for as long as it is told to; every answer is the right one.
struct Load<'s> {
    server: &'s TestServer,
    trusted: &'s Certificates,
    over: AtomicBool,
    answered: AtomicUsize,
}

impl Load<'_> {
    fn ask(&self, send: impl Fn(String) -> String) {
        while !self.over.load(Ordering::Relaxed) {
            let uid = format!("u-{}", self.answered.fetch_add(1, Ordering::Relaxed));
            let answer = send(plain_pod(&uid));
            assert!(answer.contains(&format!(r#""uid":"{uid}""#)), "{answer}");
        }
    }

    /// On connections that are kept.
    fn kept(&self, protocol: Protocol) {
        let client = self.server.client_for(protocol, self.trusted.client(&[]));
        self.ask(|body| {
            let headers = [("content-type", "application/json")];
            let sent = self.server.sent_by(&client, "POST", "/validate", &headers, Bytes::from(body));
            self.server.block_on(sent).text()
        });
    }

    /// Each on a connection of its own, whose handshake may meet any moment of a rotation.
    fn fresh(&self) {
        let address = self.server.address.to_string();
        self.ask(|body| {
            self.server
                .block_on(async { client::once(client::tls(self.trusted, &address).await, "/validate", &body).await })
        });
    }
}

#[test]
fn a_hundred_rotations_under_load_fail_no_request() {
    const ROTATIONS: usize = 100;
    let authority = Authority::new();
    let server = TestServer::start(Options::default());
    let mount = Mount::with(&server.certificates);
    mount.followed_by(&server);
    let first = authority.serving(-DAY, DAY);
    mount.serve("first", &first);
    server.eventually("the first is served", |server| trusts(server, &first));
    let (over, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    let load = Load { server: &server, trusted: &first, over, answered };
    std::thread::scope(|scope| {
        let mut asking = vec![
            scope.spawn(|| load.kept(Protocol::Http1)),
            scope.spawn(|| load.kept(Protocol::Http2)),
            scope.spawn(|| load.fresh()),
            scope.spawn(|| load.fresh()),
        ];
        for rotation in 1..=ROTATIONS {
            let next = authority.serving(-DAY, DAY);
            mount.serve(&rotation.to_string(), &next);
            let (pair, before) = (next.pair(), load.answered.load(Ordering::Relaxed));
            server.eventually("the next is served under load", |server| {
                let more = load.answered.load(Ordering::Relaxed) > before + 4;
                assert!(asking.iter().all(|asking| !asking.is_finished()), "a request failed");
                server.served.serves(&pair) && more
            });
        }
        load.over.store(true, Ordering::Relaxed);
        asking.drain(..).for_each(|asking| asking.join().unwrap());
    });
    assert_eq!(reloads(&server, "served"), 1 + u64::try_from(ROTATIONS).unwrap());
    assert_eq!(server.metric(PROBLEM), 0);
}
