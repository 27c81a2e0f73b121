//! What is there already: an authority, and the names of a server's certificate.

use std::net::{Ipv4Addr, Ipv6Addr};

use jiff::Timestamp;
use rcgen::{Issuer, KeyPair, PublicKeyData as _};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

use super::{Authority, CertificateError};

impl Authority {
    /// Reads one from its certificate, which may stand among others, and its private key, both as PEM.
    ///
    /// # Errors
    /// See [`CertificateError`]; the first of the pair is about the certificate, [`CertificateError::NoKey`] about the key.
    pub fn read(certificates: &str, key: &str) -> Result<Self, CertificateError> {
        let all: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(certificates.as_bytes())
            .collect::<Result<_, _>>()
            .map_err(|_| CertificateError::NoCertificate)?;
        if all.is_empty() {
            return Err(CertificateError::NoCertificate);
        }
        let key = KeyPair::from_pem(key).map_err(|_| CertificateError::NoKey)?;
        let public = key.subject_public_key_info();
        for der in &all {
            let certificate = parsed(der)?;
            if certificate.public_key().raw != public {
                continue;
            }
            if !certificate.is_ca() {
                return Err(CertificateError::NoAuthority);
            }
            let end = Timestamp::from_second(certificate.validity().not_after.timestamp()).unwrap_or(Timestamp::MAX);
            let issuer = Issuer::from_ca_cert_der(der, key)?;
            return Ok(Self { issuer, certificate: certificates.to_owned(), end });
        }
        Err(CertificateError::Mismatch)
    }
}

/// The names for which a certificate in PEM stands; none where it cannot be read.
pub fn names(certificate: &str) -> Vec<String> {
    let Ok(der) = CertificateDer::from_pem_slice(certificate.as_bytes()) else { return Vec::new() };
    let Ok(certificate) = parsed(&der) else { return Vec::new() };
    let Ok(Some(extension)) = certificate.subject_alternative_name() else { return Vec::new() };
    extension.value.general_names.iter().filter_map(name).collect()
}

fn parsed<'d>(der: &'d CertificateDer<'_>) -> Result<X509Certificate<'d>, CertificateError> {
    X509Certificate::from_der(der).map(|(_, certificate)| certificate).map_err(|_| CertificateError::NoCertificate)
}

fn name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => {
            let four = <[u8; 4]>::try_from(*bytes).map(|bytes| Ipv4Addr::from(bytes).to_string());
            four.or_else(|_| <[u8; 16]>::try_from(*bytes).map(|bytes| Ipv6Addr::from(bytes).to_string())).ok()
        }
        _ => None,
    }
}
