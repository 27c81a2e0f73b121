//! `slicegate serve --dev`: certificates to try with, and requests to try.
//!
//! Invariant: a file that exists is never written; the private key can be read by its owner alone, and the authority's key
//! is never stored.

use std::io::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use anyhow::Context as _;
use jiff::{Timestamp, ToSpan as _};

use crate::certificates::{Authority, KeyType};
use crate::files::replace::{self, Access, File};
use crate::server::tls::Pair;

const FOLDER: &str = "certs";
const AUTHORITY: &str = "certs/ca.pem";
const CERTIFICATE: &str = "certs/tls.pem";
const KEY: &str = "certs/tls-key.pem";

/// The longest that clients of some systems accept for a certificate is 825 days.
const DAYS: i64 = 820;

/// Reads the pair in `certs/`, after making it where there is none.
pub(super) fn pair(address: IpAddr) -> anyhow::Result<Pair> {
    let files = [AUTHORITY, CERTIFICATE, KEY].map(Path::new);
    if !files.iter().any(|file| file.exists()) {
        make(address).context("cannot make certificates")?;
    }
    if let Some(missing) = files.iter().find(|file| !file.exists()) {
        anyhow::bail!(
            "{} is missing beside the others in {FOLDER}/; remove those to have all made anew",
            missing.display()
        );
    }
    Ok(Pair::from_files(Path::new(CERTIFICATE), Path::new(KEY))?)
}

/// Prints what can be done now, to standard error: standard output is the log's.
pub(super) fn explain(listen: SocketAddr, admin: SocketAddr) -> anyhow::Result<()> {
    let host = if listen.ip().is_unspecified() { SocketAddr::from(([127, 0, 0, 1], listen.port())) } else { listen };
    let curl = |path: &str, review: &str| {
        format!(
            "curl -sS --cacert {AUTHORITY} -H 'Content-Type: application/json' https://{host}{path} --data '{review}'"
        )
    };
    let refused = curl("/validate", &review("2", ""));
    let patched = curl("/mutate", &review("1", r#","labels":{"slicegate.io/checkpoint":"true"}"#));
    let mut out = std::io::stderr().lock();
    writeln!(
        out,
        "slicegate answers reviews on https://{host}/validate and https://{host}/mutate. Try, from this folder:\n\n\
         # refused: two shares of one GPU, and no word on checkpoints\n{refused}\n\n\
         # patched: what leads the Pod to the shared pool is added\n{patched}\n\n\
         http://{admin}/readyz?verbose   http://{admin}/metrics   http://{admin}/livez   http://{admin}/version\n"
    )
    .context("cannot write to standard error")
}

/// A review of a Pod that is made with this many shares.
fn review(shares: &str, labels: &str) -> String {
    let pod = format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"trainer","namespace":"team-blue"{labels}}},"spec":{{"containers":[{{"name":"main","image":"registry.example/trainer:1","resources":{{"limits":{{"nvidia.com/gpu.shared":"{shares}"}}}}}}]}}}}"#
    );
    format!(
        r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"705ab4f5-6393-11e8-b7cc-42010a800002","kind":{{"group":"","version":"v1","kind":"Pod"}},"resource":{{"group":"","version":"v1","resource":"pods"}},"name":"trainer","namespace":"team-blue","operation":"CREATE","userInfo":{{"username":"kim"}},"object":{pod},"oldObject":null,"dryRun":false}}}}"#
    )
}

fn make(address: IpAddr) -> anyhow::Result<()> {
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    if !address.is_unspecified() && !address.is_loopback() {
        names.push(address.to_string());
    }
    let now = Timestamp::now();
    let (key, end) = (KeyType::EcdsaP256, now.checked_add(DAYS.saturating_mul(24).hours())?);
    let authority = Authority::make("slicegate development authority", key, now, end)?;
    let signed = authority.sign(&names, key, now, end)?;
    std::fs::create_dir_all(FOLDER).with_context(|| format!("cannot make the folder {FOLDER}/"))?;
    let file = |path, access, text| File { path: Path::new(path), access, text };
    let files = [
        file(KEY, Access::Owner, &signed.key),
        file(CERTIFICATE, Access::All, &signed.certificate),
        file(AUTHORITY, Access::All, &authority.certificate),
    ];
    replace::write(&files).map_err(|(path, error)| anyhow::Error::new(error).context(path.display().to_string()))
}
