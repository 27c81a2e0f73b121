//! The certificate that is served: read, checked, and swapped without touching a connection. Who may ask is in [`clients`].
//!
//! Invariant: a certificate and a key become current together and only if they belong together; what is current stays
//! current until the next pair is whole.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use jiff::Timestamp;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use thiserror::Error;

mod certificate;
pub mod clients;

use clients::Clients;

/// Why a certificate and a key cannot be served.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file could not be read.
    #[error("cannot read {}: {why}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why: lower case, no full stop.
        why: String,
    },
    /// The text holds no certificate.
    #[error("{name} holds no PEM certificate")]
    NoCertificate {
        /// Where the text is from.
        name: String,
    },
    /// The text holds no private key.
    #[error("{name} holds no PEM private key")]
    NoKey {
        /// Where the text is from.
        name: String,
    },
    /// Each can be read, but they are not of one pair.
    #[error("the certificate in {certificate} and the private key in {key} do not belong together")]
    Mismatch {
        /// Where the certificate is from.
        certificate: String,
        /// Where the key is from.
        key: String,
    },
    /// One of them is of a kind that cannot be served.
    #[error("the certificate in {certificate} with the private key in {key} cannot be served: {reason}")]
    Unusable {
        /// Where the certificate is from.
        certificate: String,
        /// Where the key is from.
        key: String,
        /// What rustls says.
        reason: rustls::Error,
    },
    /// The certificate's time is over.
    #[error("the certificate in {certificate} ended at {end}")]
    Expired {
        /// Where the certificate is from.
        certificate: String,
        /// The last moment at which it was valid.
        end: Timestamp,
    },
    /// The certificate's time has not come.
    #[error("the certificate in {certificate} is not valid before {start}")]
    NotYetValid {
        /// Where the certificate is from.
        certificate: String,
        /// The first moment at which it is valid.
        start: Timestamp,
    },
    /// A certificate is none that clients' certificates could be checked against.
    #[error("{name} holds a certificate that is no authority's: {reason}")]
    NoAuthority {
        /// Where the certificate is from.
        name: String,
        /// What rustls says.
        reason: String,
    },
}

impl TlsError {
    /// The words in metrics, those of what went well among them.
    pub const LABELS: [&str; 8] =
        ["served", "unreadable", "no-certificate", "no-key", "mismatch", "unusable", "expired", "not-yet-valid"];

    /// The word in metrics.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "unreadable",
            Self::NoCertificate { .. } => "no-certificate",
            Self::NoKey { .. } => "no-key",
            Self::Mismatch { .. } => "mismatch",
            Self::Unusable { .. } | Self::NoAuthority { .. } => "unusable",
            Self::Expired { .. } => "expired",
            Self::NotYetValid { .. } => "not-yet-valid",
        }
    }
}

/// A certificate with its chain and its key, known to belong together.
#[derive(Debug, Clone)]
pub struct Pair(Arc<CertifiedKey>);

impl Pair {
    /// Reads a pair from two PEM texts; the names are for messages.
    ///
    /// # Errors
    /// See [`TlsError`].
    pub fn from_pem(certificate: (&str, &[u8]), key: (&str, &[u8])) -> Result<Self, TlsError> {
        let names = || (certificate.0.to_owned(), key.0.to_owned());
        let chain: Vec<_> = CertificateDer::pem_slice_iter(certificate.1).collect::<Result<_, _>>().unwrap_or_default();
        if chain.is_empty() {
            return Err(TlsError::NoCertificate { name: certificate.0.to_owned() });
        }
        let private = PrivateKeyDer::from_pem_slice(key.1).map_err(|_| TlsError::NoKey { name: key.0.to_owned() })?;
        match CertifiedKey::from_der(chain, private, &ring::default_provider()) {
            Ok(pair) => Ok(Self(Arc::new(pair))),
            Err(rustls::Error::InconsistentKeys(_)) => {
                let (certificate, key) = names();
                Err(TlsError::Mismatch { certificate, key })
            }
            Err(reason) => {
                let (certificate, key) = names();
                Err(TlsError::Unusable { certificate, key, reason })
            }
        }
    }

    /// Reads a pair from two files.
    ///
    /// # Errors
    /// See [`TlsError`].
    pub fn from_files(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let names = (certificate.display().to_string(), key.display().to_string());
        Self::from_pem((&names.0, &read(certificate)?), (&names.1, &read(key)?))
    }

    /// When the server's own certificate ends; nothing where it does not say so in a way that can be read.
    pub fn not_after(&self) -> Option<Timestamp> {
        certificate::validity(self.0.cert.first()?).map(|(_, end)| end)
    }

    /// The pair, if its time has come and is not over; the name is for messages.
    ///
    /// # Errors
    /// [`TlsError::Expired`] and [`TlsError::NotYetValid`].
    pub fn valid_at(self, now: Timestamp, name: &str) -> Result<Self, TlsError> {
        let certificate = || name.to_owned();
        match self.0.cert.first().and_then(|own| certificate::validity(own)) {
            Some((_, end)) if now > end => Err(TlsError::Expired { certificate: certificate(), end }),
            Some((start, _)) if now < start => Err(TlsError::NotYetValid { certificate: certificate(), start }),
            _ => Ok(self),
        }
    }
}

/// The pair that is served at present; none before the first one is there, and then no handshake succeeds.
#[derive(Debug, Default)]
pub struct Certificates(ArcSwapOption<CertifiedKey>);

impl Certificates {
    /// Serves this pair from the start.
    pub fn of(pair: Pair) -> Self {
        Self(ArcSwapOption::from(Some(pair.0)))
    }

    /// Serves another pair from the next handshake on.
    pub fn replace(&self, pair: Pair) {
        self.0.store(Some(pair.0));
    }

    /// What is served.
    pub fn current(&self) -> Option<Pair> {
        self.0.load_full().map(Pair)
    }

    /// Whether this certificate is the one that is served.
    pub fn serves(&self, pair: &Pair) -> bool {
        self.0.load().as_ref().is_some_and(|served| served.cert == pair.0.cert)
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.load_full()
    }
}

/// TLS 1.2 and 1.3 with HTTP/2 and HTTP/1.1 on offer. Where `clients` says who may ask, who has no certificate by its
/// authorities gets no further than the handshake.
///
/// # Errors
/// Where the crypto provider supports neither version, which ring does.
pub fn server_config(
    certificates: Arc<Certificates>,
    clients: Option<Arc<Clients>>,
) -> Result<ServerConfig, rustls::Error> {
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let versions = [&rustls::version::TLS13, &rustls::version::TLS12];
    let builder = builder.with_protocol_versions(&versions)?;
    let mut config = match clients {
        None => builder.with_no_client_auth().with_cert_resolver(certificates),
        Some(clients) => {
            let mut config = builder.with_client_cert_verifier(clients).with_cert_resolver(certificates);
            // A session that is taken up again would carry the trust of authorities that are gone.
            config.session_storage = Arc::new(NoServerSessionStorage {});
            config.send_tls13_tickets = 0;
            config
        }
    };
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|error| TlsError::Unreadable { path: path.to_owned(), why: error.to_string() })
}
