//! Finds the folder with the programs of the control plane, and has
//! tests/e2e/build.sh build them first where they are missing. A program that
//! can neither be found nor built is an error, so that a test fails and never
//! passes for lack of what it tests against.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};

use super::process;

/// A first build downloads and compiles Kubernetes.
const BUILD: Duration = Duration::from_mins(45);

/// The folder that holds etcd, kube-apiserver, kube-controller-manager,
/// kube-scheduler, kubectl and oracle.
pub(crate) fn folder() -> Result<PathBuf> {
    static FOLDER: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    // An error cannot be cloned, and each test has to show it.
    FOLDER.get_or_init(|| build().map_err(|error| format!("{error:#}"))).clone().map_err(|error| anyhow!(error))
}

fn build() -> Result<PathBuf> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/build.sh");
    let mut command = Command::new(&script);
    // What it says goes to the terminal as it comes: a first build is long, and
    // silence would look like a test that hangs.
    command.stderr(Stdio::inherit());
    let finished = process::run(command, "", BUILD).with_context(|| format!("{} cannot be run", script.display()))?;
    if !finished.status.success() {
        bail!("{} failed ({}); its own message stands above", script.display(), finished.status);
    }
    let last = finished.stdout.lines().last().unwrap_or_default();
    let folder = PathBuf::from(last);
    if !folder.join("oracle").exists() {
        bail!("{} named no folder of programs as its last line: {last:?}", script.display());
    }
    Ok(folder)
}
