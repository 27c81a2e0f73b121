//! Authorities, and the certificates for servers that they sign.
//!
//! What it does: makes both, and reads an authority that is there. Invariant: a private key
//! is never part of a message.

use std::fmt;

use clap::ValueEnum;
use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    SignatureAlgorithm,
};
use thiserror::Error;

mod read;

pub use read::names;

/// For clocks that are late.
const BACKDATED: SignedDuration = SignedDuration::from_hours(24);

/// Why there is no certificate.
#[derive(Debug, Error)]
pub enum CertificateError {
    /// The text holds no certificate that can be read.
    #[error("it holds no certificate that can be read")]
    NoCertificate,
    /// The text holds no private key that can sign.
    #[error("it holds no private key that can sign (PEM, of ECDSA P-256 or P-384, Ed25519 or RSA)")]
    NoKey,
    /// The key signs for none of the certificates.
    #[error("the private key does not belong to it")]
    Mismatch,
    /// The certificate is no authority's.
    #[error("it is no authority's certificate: it may not sign others")]
    NoAuthority,
    /// The authority's time is over.
    #[error("the authority ended at {0}")]
    Ended(Timestamp),
    /// A time lies beyond what a certificate can say.
    #[error("the end would be later than a certificate can say")]
    TooLong,
    /// A certificate could not be made.
    #[error("a certificate cannot be made: {0}")]
    Making(#[from] rcgen::Error),
}

/// The kind of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum KeyType {
    /// What every client knows.
    EcdsaP256,
    /// Larger, and slower in a handshake.
    EcdsaP384,
    /// What API servers know, and some older clients do not.
    Ed25519,
}

/// An authority that can sign.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Its certificate, as PEM.
    pub certificate: String,
    /// When it ends.
    pub end: Timestamp,
}

/// A server's certificate and its key.
pub struct Signed {
    /// The certificate, as PEM.
    pub certificate: String,
    /// The private key, as PEM.
    pub key: String,
    /// When the certificate ends.
    pub end: Timestamp,
}

impl Authority {
    /// Makes one.
    ///
    /// # Errors
    /// See [`CertificateError`].
    pub fn make(name: &str, key: KeyType, from: Timestamp, end: Timestamp) -> Result<Self, CertificateError> {
        let mut params = params(Vec::new(), name, from, end)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate_for(key.algorithm())?;
        let certificate = params.self_signed(&key)?.pem();
        Ok(Self { issuer: Issuer::new(params, key), certificate, end })
    }

    /// Its private key, as PEM.
    pub fn key(&self) -> String {
        self.issuer.key().serialize_pem()
    }

    /// Signs a new key for a server of these names. It ends with its authority at the latest.
    ///
    /// # Errors
    /// See [`CertificateError`].
    pub fn sign(
        &self,
        names: &[String],
        key: KeyType,
        from: Timestamp,
        end: Timestamp,
    ) -> Result<Signed, CertificateError> {
        if self.end <= from {
            return Err(CertificateError::Ended(self.end));
        }
        let end = end.min(self.end);
        let mut params = params(names.to_vec(), "slicegate", from, end)?;
        params.is_ca = IsCa::ExplicitNoCa;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate_for(key.algorithm())?;
        let certificate = params.signed_by(&key, &self.issuer)?.pem();
        Ok(Signed { certificate, key: key.serialize_pem(), end })
    }
}

impl fmt::Debug for Authority {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Authority")
            .field("certificate", &self.certificate)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Signed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Signed")
            .field("certificate", &self.certificate)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}

impl KeyType {
    fn algorithm(self) -> &'static SignatureAlgorithm {
        match self {
            Self::EcdsaP256 => &rcgen::PKCS_ECDSA_P256_SHA256,
            Self::EcdsaP384 => &rcgen::PKCS_ECDSA_P384_SHA384,
            Self::Ed25519 => &rcgen::PKCS_ED25519,
        }
    }
}

fn params(
    names: Vec<String>,
    common_name: &str,
    from: Timestamp,
    end: Timestamp,
) -> Result<CertificateParams, CertificateError> {
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    let date = |moment: Timestamp| {
        let since = SignedDuration::from_secs(moment.as_second()).unsigned_abs().try_into().ok()?;
        epoch.checked_add(since)
    };
    let from = from.checked_sub(BACKDATED).map_err(|_| CertificateError::TooLong)?;
    let mut params = CertificateParams::new(names)?;
    params.not_before = date(from).ok_or(CertificateError::TooLong)?;
    params.not_after = date(end).ok_or(CertificateError::TooLong)?;
    params.distinguished_name.push(DnType::CommonName, common_name);
    Ok(params)
}

#[cfg(test)]
mod tests;
