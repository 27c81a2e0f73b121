//! Who may ask: `--client-ca` and `--client-name`, with real TLS clients.

use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use slicegate::server::reload;
use slicegate::server::tls::clients::{Authorities, Clients};
use tokio_rustls::TlsConnector;

use crate::support::certificates::{Authority, Certificates};
use crate::support::client;
use crate::support::reviews::plain_pod;
use crate::support::server::{Options, TestServer};

/// What a client sees: the answer's status and text, or the words of the connection's end.
fn ask(server: &TestServer, identity: Option<&Certificates>) -> Result<String, String> {
    server.block_on(async {
        let connector = TlsConnector::from(Arc::new(server.certificates.client_as(identity, &[])));
        let stream = connector.connect(ServerName::try_from("localhost").unwrap(), server.tcp().await).await;
        let stream = stream.map_err(|error| error.to_string())?;
        client::try_once(stream, "/validate", &plain_pod("u")).await.map_err(|error| error.to_string())
    })
}

fn start(authority: &Authority, names: &[&str]) -> (TestServer, Arc<Clients>) {
    let authorities = Authorities::from_pem(("ca.pem", authority.pem.as_bytes())).unwrap();
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    let clients = Arc::new(Clients::new(authorities, names));
    (TestServer::start(Options { clients: Some(Arc::clone(&clients)), ..Options::default() }), clients)
}

fn refused(server: &TestServer, reason: &str) -> u64 {
    server.metric(&format!(r#"slicegate_connections_ended_total{{port="webhook",reason="{reason}"}}"#))
}

#[test]
fn only_a_client_with_the_right_certificate_is_answered() {
    let authority = Authority::new();
    let (server, _) = start(&authority, &["kube-apiserver", "apiserver.example"]);
    for right in [authority.client("kube-apiserver", &[]), authority.client("x", &["y.example", "apiserver.example"])] {
        let answer = ask(&server, Some(&right)).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains(r#""uid":"u""#), "{answer}");
    }
    let stranger = Authority::new();
    for (identity, reason, alert) in [
        (None, "client-certificate-missing", "CertificateRequired"),
        (Some(stranger.client("kube-apiserver", &[])), "client-certificate-untrusted", "UnknownCA"),
        (Some(authority.expired_client()), "client-certificate-expired", "CertificateExpired"),
    ] {
        let end = ask(&server, identity.as_ref()).unwrap_err();
        assert!(end.contains(alert), "{reason}: {end}");
        server.eventually(reason, |server| refused(server, reason) == 1);
    }
    for wrong in [authority.client("kubelet", &["kube-apiserver.example"]), authority.client("KUBE-APISERVER", &[])] {
        let answer = ask(&server, Some(&wrong)).unwrap();
        assert!(answer.starts_with("HTTP/1.1 403 ") && answer.contains("--client-name"), "{answer}");
    }
    assert_eq!(server.metric(r#"slicegate_rejected_requests_total{reason="client-certificate-name"}"#), 2);
    assert_eq!((server.get("/readyz").status, server.get("/livez").status), (200, 200), "probes need no certificate");
}

#[test]
fn without_names_any_certificate_by_the_authority_will_do() {
    let authority = Authority::new();
    let (server, _) = start(&authority, &[]);
    assert!(ask(&server, Some(&authority.client("anybody", &[]))).unwrap().starts_with("HTTP/1.1 200 "));
    assert!(ask(&server, Some(&Authority::new().client("anybody", &[]))).is_err());
}

#[test]
fn authorities_follow_their_file() {
    let (old, new) = (Authority::new(), Authority::new());
    let (server, clients) = start(&old, &[]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.pem");
    // Put in place whole, as a mounted ConfigMap is.
    let write = |text: &str| {
        std::fs::write(folder.path().join("next"), text).unwrap();
        std::fs::rename(folder.path().join("next"), &file).unwrap();
    };
    write(&old.pem);
    let stop = server.app.shutdown.aborting();
    let follow = reload::follow_clients(Arc::clone(&server.app), clients, file.clone(), Duration::from_millis(5), stop);
    server.runtime().spawn(follow);
    let passes = |authority: &Authority| ask(&server, Some(&authority.client("x", &[]))).is_ok();
    assert!(passes(&old) && !passes(&new));

    write(&format!("{}{}", old.pem, new.pem));
    server.eventually("both are trusted", |_| passes(&new));
    assert!(passes(&old));
    write(&new.pem);
    server.eventually("the old one is not trusted any more", |_| !passes(&old));

    write("nothing");
    let problem = r#"slicegate_source_problem{source="client-ca"}"#;
    server.eventually("it is told", |server| server.metric(problem) == 1);
    assert!(passes(&new));
    let reloads = |outcome| {
        server.metric(&format!(r#"slicegate_certificate_reloads_total{{source="client-ca",outcome="{outcome}"}}"#))
    };
    assert_eq!((reloads("served"), reloads("no-certificate")), (2, 1));
}
