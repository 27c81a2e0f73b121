//! Who may ask: the authorities that sign client certificates, and the names that one may bear.
//!
//! What it does: demands a certificate in the handshake, has rustls check it, and swaps the authorities without touching a
//! connection. Invariant: without a certificate that one of the present authorities signed for clients, no handshake
//! succeeds; a name is looked at after that and never in its place.

use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::ring;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, UnixTime};

use super::{TlsError, certificate, read};

/// Authorities whose certificates make a client, as one file names them.
#[derive(Debug, Clone)]
pub struct Authorities {
    verifier: Arc<dyn ClientCertVerifier>,
    /// What was read, to tell whether something else was.
    certificates: Vec<CertificateDer<'static>>,
}

impl Authorities {
    /// Reads authorities from a PEM text; the name is for messages.
    ///
    /// # Errors
    /// Where the text holds no certificate, or one that cannot be an authority's.
    pub fn from_pem((name, text): (&str, &[u8])) -> Result<Self, TlsError> {
        let certificates: Vec<_> = CertificateDer::pem_slice_iter(text).collect::<Result<_, _>>().unwrap_or_default();
        if certificates.is_empty() {
            return Err(TlsError::NoCertificate { name: name.to_owned() });
        }
        let unusable = |reason: String| TlsError::NoAuthority { name: name.to_owned(), reason };
        let mut roots = RootCertStore::empty();
        for certificate in &certificates {
            roots.add(certificate.clone()).map_err(|error| unusable(error.to_string()))?;
        }
        let provider = Arc::new(ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
        Ok(Self { verifier: verifier.map_err(|error| unusable(error.to_string()))?, certificates })
    }

    /// Reads authorities from a file.
    ///
    /// # Errors
    /// Likewise, and where the file cannot be read.
    pub fn from_file(path: &Path) -> Result<Self, TlsError> {
        Self::from_pem((&path.display().to_string(), &read(path)?))
    }
}

/// Who may ask at present.
#[derive(Debug)]
pub struct Clients {
    authorities: ArcSwap<Authorities>,
    names: Vec<String>,
}

impl Clients {
    /// Whoever has a certificate by these authorities for one of these names; for any where there are none.
    pub fn new(authorities: Authorities, names: Vec<String>) -> Self {
        Self { authorities: ArcSwap::from_pointee(authorities), names }
    }

    /// Other authorities hold from the next handshake on.
    pub fn replace(&self, authorities: Authorities) {
        self.authorities.store(Arc::new(authorities));
    }

    /// Whether these are the authorities that hold.
    pub fn trusts(&self, authorities: &Authorities) -> bool {
        self.authorities.load().certificates == authorities.certificates
    }

    /// Whether a client may ask whose certificate has passed the handshake. If not, says the names that it bears.
    pub(in crate::server) fn admits(&self, certificate: Option<&CertificateDer<'_>>) -> Result<(), Vec<String>> {
        if self.names.is_empty() {
            return Ok(());
        }
        let borne = certificate.map(|certificate| certificate::names(certificate)).unwrap_or_default();
        if borne.iter().any(|name| self.names.contains(name)) { Ok(()) } else { Err(borne) }
    }

    fn verifier(&self) -> Arc<dyn ClientCertVerifier> {
        Arc::clone(&self.authorities.load().verifier)
    }
}

impl ClientCertVerifier for Clients {
    /// Clients send the one certificate that they have; a list of authorities may change under the handshake.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        self.verifier().verify_client_cert(end_entity, intermediates, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier().verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier().verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier().supported_verify_schemes()
    }
}

/// The word for a handshake that failed because of the client's certificate; nothing where another thing was wrong.
pub(in crate::server) fn refusal(error: &std::io::Error) -> Option<&'static str> {
    match error.get_ref()?.downcast_ref::<rustls::Error>()? {
        rustls::Error::NoCertificatesPresented => Some("client-certificate-missing"),
        rustls::Error::InvalidCertificate(error) => Some(match error {
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. } => "client-certificate-expired",
            _ => "client-certificate-untrusted",
        }),
        _ => None,
    }
}
