//! What is made can be read again, and what cannot sign is told.

use jiff::ToSpan as _;

use super::*;
use crate::server::tls::Pair;

const KEYS: [KeyType; 3] = [KeyType::EcdsaP256, KeyType::EcdsaP384, KeyType::Ed25519];

fn now() -> Timestamp {
    "2026-06-01T12:00:00Z".parse().unwrap()
}

fn later(hours: i64) -> Timestamp {
    now().checked_add(hours.hours()).unwrap()
}

fn authority(key: KeyType) -> Authority {
    Authority::make("an authority", key, now(), later(100)).unwrap()
}

#[test]
fn an_authority_signs_again_after_it_was_written() {
    for key in KEYS {
        let made = authority(key);
        let read = Authority::read(&made.certificate, &made.key()).unwrap();
        assert_eq!((read.end, &read.certificate), (later(100), &made.certificate));
        let names = ["a.b.svc".to_owned(), "10.0.0.1".to_owned(), "fd00::1".to_owned()];
        for key in KEYS {
            let signed = read.sign(&names, key, now(), later(50)).unwrap();
            let pair = Pair::from_pem(("c", signed.certificate.as_bytes()), ("k", signed.key.as_bytes())).unwrap();
            assert_eq!((pair.not_after(), signed.end), (Some(later(50)), later(50)));
            assert_eq!(super::names(&signed.certificate), names);
        }
    }
}

#[test]
fn a_certificate_ends_with_its_authority() {
    let authority = authority(KeyType::EcdsaP256);
    let sign = |from, end| authority.sign(&["a".to_owned()], KeyType::EcdsaP256, from, end);
    assert_eq!(sign(now(), later(200)).unwrap().end, later(100));
    assert!(matches!(sign(later(100), later(200)), Err(CertificateError::Ended(end)) if end == later(100)));
    assert!(matches!(sign(Timestamp::MIN, later(1)), Err(CertificateError::TooLong)));
}

#[test]
fn what_cannot_sign_is_told() {
    let (one, other) = (authority(KeyType::EcdsaP256), authority(KeyType::Ed25519));
    let server = one.sign(&["a".to_owned()], KeyType::EcdsaP256, now(), later(1)).unwrap();
    let read = |certificate: &str, key: &str| Authority::read(certificate, key).unwrap_err().to_string();
    assert!(read("", &one.key()).contains("no certificate"));
    assert!(
        read("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", &one.key()).contains("no certificate")
    );
    assert!(read(&one.certificate, "").contains("no private key"));
    assert!(read(&one.certificate, &other.key()).contains("does not belong"));
    assert!(read(&server.certificate, &server.key).contains("no authority"));
    let bundle = format!("{}{}", other.certificate, one.certificate);
    assert_eq!(Authority::read(&bundle, &one.key()).unwrap().certificate, bundle);
    assert!(super::names("nothing").is_empty() && super::names(&one.certificate).is_empty());
}

#[test]
fn no_key_is_shown() {
    let authority = authority(KeyType::EcdsaP256);
    let server = authority.sign(&["a".to_owned()], KeyType::EcdsaP256, now(), later(1)).unwrap();
    let shown = format!("{authority:?}{server:?}");
    assert!(shown.contains("BEGIN CERTIFICATE") && !shown.contains("PRIVATE"), "{shown}");
}
