//! The command line of `slicegate certs`.

use std::net::IpAddr;
use std::path::PathBuf;

use crate::certificates::KeyType;
use crate::names;

/// The names by which API servers and people call the Service of deploy/slicegate.yaml.
const NAMES: [&str; 4] = [
    "slicegate.slicegate-system.svc",
    "slicegate.slicegate-system.svc.cluster.local",
    "slicegate.slicegate-system",
    "slicegate",
];

/// Make or renew the certificates that the server needs
///
/// Makes an authority (ca.pem, ca-key.pem) and a pair that it signed for the server (tls.pem, tls-key.pem), and says what to do
/// with them. The API server trusts the authority by the caBundle of the webhook configurations, so that a renewed pair of the
/// same authority needs the Secret alone. Keep ca-key.pem where only those who renew can read it; the cluster does not need it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  slicegate certs
      an authority and a pair for the Service of deploy/slicegate.yaml, in certs/
  slicegate certs --renew
      a new pair from the authority in certs/, for the names of the pair there
  slicegate certs --out /secure/gpu --name slicegate.gpu-admission.svc --days 90
      for another namespace

Exit codes:
  0  the files were made
  1  they were not: one is there already, the authority cannot sign, or a file cannot be read or written
  2  the command line is wrong")]
pub struct Certs {
    /// The folder of the files; it is made where it is missing
    #[arg(long, env = "SLICEGATE_CERTS_OUT", value_name = "FOLDER", default_value = "certs")]
    pub out: PathBuf,

    /// A DNS name or an address of the server; give it again for each further one [default: those of the Service slicegate in
    /// slicegate-system; with --renew, those of the pair that is there]
    #[arg(long = "name", env = "SLICEGATE_CERTS_NAME", value_name = "NAME", value_delimiter = ',', value_parser = name)]
    pub names: Vec<String>,

    /// How many days the pair is good for
    #[arg(long, env = "SLICEGATE_CERTS_DAYS", value_name = "DAYS", value_parser = days(), default_value_t = 365)]
    pub days: i64,

    /// How many days a new authority is good for
    #[arg(long, env = "SLICEGATE_CERTS_AUTHORITY_DAYS", value_name = "DAYS", value_parser = days(), default_value_t = 3650)]
    pub authority_days: i64,

    /// The kind of the keys that are made; an authority that is there may have an RSA key as well
    #[arg(long, env = "SLICEGATE_CERTS_KEY_TYPE", value_name = "KIND", default_value = "ecdsa-p256")]
    pub key_type: KeyType,

    /// Replace the pair by a new one from the authority that is there
    #[arg(long, env = "SLICEGATE_CERTS_RENEW")]
    pub renew: bool,

    /// Replace files that are there, the authority's as well; API servers then need the new caBundle
    #[arg(long, conflicts_with = "renew")]
    pub force: bool,
}

impl Certs {
    /// The names where none are given.
    pub fn default_names() -> Vec<String> {
        NAMES.map(str::to_owned).to_vec()
    }
}

/// A name that a certificate can stand for: an address, or a DNS name whose first label may be a star.
fn name(text: &str) -> Result<String, String> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(address.to_string());
    }
    names::subdomain(text.strip_prefix("*.").unwrap_or(text))
        .map(|()| text.to_owned())
        .map_err(|why| format!("it is no address, and no DNS name: {why}"))
}

fn days() -> clap::builder::RangedI64ValueParser<i64> {
    clap::value_parser!(i64).range(1..=36_500)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_addresses_or_dns_names() {
        for good in ["slicegate", "a.b.svc", "*.b.svc", "10.0.0.1", "fd00::1"] {
            assert_eq!(name(good), Ok(good.to_owned()));
        }
        for bad in ["", "*", "a b", "Upper", "a..b", "https://a", "a:8443", "10.0.0.1:80", "a.*.b"] {
            assert!(name(bad).is_err(), "{bad}");
        }
        assert!(Certs::default_names().iter().all(|default| name(default).is_ok()));
    }
}
