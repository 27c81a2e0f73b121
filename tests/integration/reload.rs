//! The served certificate follows its files, as a kubelet changes them: a new folder, then one swapped symlink.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use slicegate::server::reload;
use tokio_rustls::TlsConnector;

use crate::support::certificates::Certificates;
use crate::support::server::{Options, TestServer};

const PROBLEM: &str = r#"slicegate_source_problem{source="certificate"}"#;

/// Swaps in a folder with these two texts.
fn swap(mount: &Path, version: &str, certificate: &str, key: &str) {
    let folder = mount.join(version);
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("tls.crt"), certificate).unwrap();
    std::fs::write(folder.join("tls.key"), key).unwrap();
    symlink(version, mount.join("..data_tmp")).unwrap();
    std::fs::rename(mount.join("..data_tmp"), mount.join("..data")).unwrap();
}

/// Whether a client that trusts this authority comes through.
fn trusts(server: &TestServer, certificates: &Certificates) -> bool {
    server.block_on(async {
        let connector = TlsConnector::from(Arc::new(certificates.client(&[])));
        connector.connect(ServerName::try_from("localhost").unwrap(), server.tcp().await).await.is_ok()
    })
}

#[test]
fn the_certificate_follows_its_files() {
    let server = TestServer::start(Options::default());
    let mount = tempfile::tempdir().unwrap();
    let mount = mount.path();
    let (second, third) = (Certificates::make(), Certificates::make());
    swap(mount, "..1", &server.certificates.certificate, &server.certificates.key);
    for name in ["tls.crt", "tls.key"] {
        symlink(Path::new("..data").join(name), mount.join(name)).unwrap();
    }
    let files = (mount.join("tls.crt"), mount.join("tls.key"));
    let (app, current) = (Arc::clone(&server.app), Arc::clone(&server.served));
    let stop = server.app.shutdown.aborting();
    server.runtime().spawn(reload::follow(app, current, files, Duration::from_millis(5), stop));

    swap(mount, "..2", &second.certificate, &second.key);
    server.eventually("the second is served", |server| trusts(server, &second));
    assert!(!trusts(&server, &server.certificates));
    assert!(server.metric("slicegate_certificate_expiry_timestamp_seconds") > 1_000_000_000);

    swap(mount, "..3", &third.certificate, &second.key);
    server.eventually("the mismatch is told", |server| server.metric(PROBLEM) == 1);
    assert!(trusts(&server, &second) && !trusts(&server, &third));
    std::fs::remove_file(mount.join("..data")).unwrap();
    swap(mount, "..4", &third.certificate, &third.key);
    server.eventually("the third is served", |server| trusts(server, &third));
    assert_eq!(server.metric(PROBLEM), 0);
}
