//! Certificates for tests: an authority of its own for each.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use slicegate::server::tls::Pair;

/// An authority, and a pair that it signed for loopback.
pub struct Certificates {
    /// The authority's certificate, as PEM.
    pub authority: String,
    /// The server's certificate, as PEM.
    pub certificate: String,
    /// The server's key, as PEM.
    pub key: String,
}

impl Certificates {
    /// Makes new ones.
    pub fn make() -> Self {
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority_key = KeyPair::generate().unwrap();
        let authority_pem = authority.self_signed(&authority_key).unwrap().pem();
        let issuer = Issuer::new(authority, authority_key);
        let key = KeyPair::generate().unwrap();
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &issuer).unwrap().pem();
        Self { authority: authority_pem, certificate, key: key.serialize_pem() }
    }

    /// The pair as the server serves it.
    pub fn pair(&self) -> Pair {
        Pair::from_pem(("certificate", self.certificate.as_bytes()), ("key", self.key.as_bytes())).unwrap()
    }

    /// A client that trusts this authority alone, and offers these protocols.
    pub fn client(&self, alpn: &[&[u8]]) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.authority.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let mut config = builder.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = alpn.iter().map(|protocol| protocol.to_vec()).collect();
        config
    }
}
