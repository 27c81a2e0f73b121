//! Certificates for tests: an authority of its own for each, unless one is shared.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    date_time_ymd,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
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

/// Who signs.
pub struct Authority {
    /// The authority's certificate, as PEM.
    pub pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// A new one.
    pub fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        // A name of its own, or clients would take one for the other until they look at the signature.
        let name = format!("authority {:?}", key.public_key_raw());
        params.distinguished_name.push(DnType::CommonName, name);
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    /// A pair for loopback, valid from and until so many seconds after now.
    pub fn serving(&self, from: i64, until: i64) -> Certificates {
        let mut params = CertificateParams::new(vec!["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
        between(&mut params, from, until);
        self.sign(&params)
    }

    /// A pair for a client, with a common name and alternative names.
    pub fn client(&self, common_name: &str, names: &[&str]) -> Certificates {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, common_name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(&params)
    }

    /// A pair for a client whose time is over.
    pub fn expired_client(&self) -> Certificates {
        let mut params = CertificateParams::default();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        between(&mut params, -7_200, -3_600);
        self.sign(&params)
    }

    fn sign(&self, params: &CertificateParams) -> Certificates {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().pem();
        Certificates { authority: self.pem.clone(), certificate, key: key.serialize_pem() }
    }
}

fn between(params: &mut CertificateParams, from: i64, until: i64) {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let [from, until] = [from, until].map(|after| Duration::from_secs(now.checked_add_signed(after).unwrap()));
    params.not_before = date_time_ymd(1970, 1, 1) + from;
    params.not_after = date_time_ymd(1970, 1, 1) + until;
}

impl Certificates {
    /// Makes new ones.
    pub fn make() -> Self {
        Authority::new().serving(-86_400, 86_400)
    }

    /// The pair as the server serves it.
    pub fn pair(&self) -> Pair {
        Pair::from_pem(("certificate", self.certificate.as_bytes()), ("key", self.key.as_bytes())).unwrap()
    }

    /// A client that trusts this authority alone, and offers these protocols.
    pub fn client(&self, alpn: &[&[u8]]) -> ClientConfig {
        self.client_as(None, alpn)
    }

    /// The same, with a certificate of its own.
    pub fn client_as(&self, identity: Option<&Self>, alpn: &[&[u8]]) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.authority.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let builder = builder.with_root_certificates(roots);
        let mut config = match identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                let chain = vec![CertificateDer::from_pem_slice(identity.certificate.as_bytes()).unwrap()];
                let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).unwrap();
                builder.with_client_auth_cert(chain, key).unwrap()
            }
        };
        config.alpn_protocols = alpn.iter().map(|protocol| protocol.to_vec()).collect();
        config
    }
}
