//! The cluster's certificate authority and what it signs. A client's
//! certificate is its identity: Kubernetes reads the common name as the user
//! and the organization as its group.

use anyhow::{Context as _, Result};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};
use rustls::pki_types::CertificateDer;

/// An authority that lives in memory, for one cluster.
#[derive(Debug)]
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its private key, as PEM and as DER.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) certificate: String,
    pub(crate) key: String,
    pub(crate) certificate_der: CertificateDer<'static>,
    pub(crate) key_der: Vec<u8>,
}

// === impl Authority ===

impl Authority {
    pub(crate) fn new() -> Result<Self> {
        let mut params = params("slicegate-test-ca", None, &[])?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let issuer = CertifiedIssuer::self_signed(params, new_key()?)
            .context("the test cluster's certificate authority cannot be made")?;
        Ok(Self { issuer })
    }

    pub(crate) fn pem(&self) -> String {
        self.issuer.pem()
    }

    pub(crate) fn der(&self) -> &CertificateDer<'static> {
        self.issuer.der()
    }

    /// A certificate for a server of these DNS names and IP addresses.
    pub(crate) fn serving(&self, names: &[&str]) -> Result<Pair> {
        let params = params(names.first().copied().unwrap_or("server"), None, names)?;
        self.sign(params, ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// A certificate that makes its bearer this user.
    pub(crate) fn identity(&self, user: &str, group: Option<&str>) -> Result<Pair> {
        self.sign(params(user, group, &[])?, ExtendedKeyUsagePurpose::ClientAuth)
    }

    fn sign(&self, mut params: CertificateParams, purpose: ExtendedKeyUsagePurpose) -> Result<Pair> {
        params.extended_key_usages = vec![purpose];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        let key = new_key()?;
        let certificate = params.signed_by(&key, &self.issuer).context("a test certificate cannot be signed")?;
        Ok(Pair {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
            certificate_der: certificate.der().clone(),
            key_der: key.serialize_der(),
        })
    }
}

/// A new private key; also what service account tokens are signed with.
pub(crate) fn new_key() -> Result<KeyPair> {
    KeyPair::generate().context("a private key cannot be made")
}

fn params(user: &str, group: Option<&str>, names: &[&str]) -> Result<CertificateParams> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).context("a name cannot stand in a certificate")?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, user);
    if let Some(group) = group {
        params.distinguished_name.push(DnType::OrganizationName, group);
    }
    Ok(params)
}
