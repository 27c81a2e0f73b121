//! kubectl as a user would run it, against the test cluster and no other.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::{Cluster, process};

/// A call that takes longer hangs: nothing that a test asks for does.
const DEADLINE: Duration = Duration::from_mins(1);

/// What one call of kubectl has left.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

// === impl Output ===

impl Output {
    /// The standard output of a call that succeeded, or what kubectl said.
    pub(crate) fn success(self) -> Result<String> {
        if !self.status.success() {
            bail!("kubectl failed ({}): {}", self.status, self.stderr.trim());
        }
        Ok(self.stdout)
    }

    /// The standard error of a call that failed, for tests of a refusal.
    pub(crate) fn failure(self) -> Result<String> {
        if self.status.success() {
            bail!("kubectl should have failed, but said: {}", self.stdout.trim());
        }
        Ok(self.stderr)
    }

    /// The standard output of a call with `-o json`.
    pub(crate) fn json(self) -> Result<Value> {
        let text = self.success()?;
        serde_json::from_str(&text).context("kubectl wrote something else than JSON")
    }
}

// === impl Cluster ===

impl Cluster {
    /// Runs kubectl as the administrator.
    pub(crate) fn kubectl(&self, args: &[&str]) -> Result<Output> {
        self.run_kubectl(args, "")
    }

    /// Runs kubectl as the administrator with a manifest as its input; `args`
    /// hold `-f -`.
    pub(crate) fn kubectl_stdin(&self, args: &[&str], manifest: &str) -> Result<Output> {
        self.run_kubectl(args, manifest)
    }

    /// Runs kubectl in the name of another user, with what may be an empty
    /// input. RBAC applies: a user without a role may do nothing.
    pub(crate) fn kubectl_as(&self, user: &str, groups: &[&str], args: &[&str], manifest: &str) -> Result<Output> {
        let mut all = vec!["--as", user];
        for group in groups {
            all.extend(["--as-group", *group]);
        }
        all.extend(args);
        self.run_kubectl(&all, manifest)
    }

    fn run_kubectl(&self, args: &[&str], input: &str) -> Result<Output> {
        let mut command = self.setup.command("kubectl");
        command.arg("--kubeconfig").arg(self.kubeconfig_path()).args(args).stderr(Stdio::piped());
        let finished = process::run(command, input, DEADLINE).with_context(|| format!("kubectl {}", args.join(" ")))?;
        Ok(Output { status: finished.status, stdout: finished.stdout, stderr: finished.stderr })
    }
}
