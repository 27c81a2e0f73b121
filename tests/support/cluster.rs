//! A real Kubernetes control plane for the end-to-end tests: etcd,
//! kube-apiserver, and, unless a test has no use for them,
//! kube-controller-manager and kube-scheduler. There is no kubelet, so Nodes
//! are plain objects and no container ever runs.
//!
//! Everything is a cluster's own: folder, ports, certificates, kubeconfigs.
//! The user's own clusters and settings are never looked at. What is started
//! here ends with the [`Cluster`], and also when the test program is killed or
//! keeps its cluster in a `static`, where Rust runs no destructors. (Programs
//! from `KUBEBUILDER_ASSETS` do not know how to do the latter.)

#![allow(dead_code, unused_imports, reason = "each test program that includes this uses a part of it")]

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use tempfile::TempDir;

// The paths are spelt out because Rust looks for a module's own modules in
// another folder when the module itself was included by a path.
#[path = "cluster/api.rs"]
mod api;
#[path = "cluster/kubectl.rs"]
mod kubectl;
#[path = "cluster/objects.rs"]
mod objects;
#[path = "cluster/oracle.rs"]
mod oracle;
#[path = "cluster/pki.rs"]
mod pki;
#[path = "cluster/process.rs"]
mod process;
#[path = "cluster/programs.rs"]
mod programs;
#[path = "cluster/setup.rs"]
mod setup;
#[path = "cluster/slicegate.rs"]
mod slicegate;

pub(crate) use api::Reply;
pub(crate) use kubectl::Output;
pub(crate) use objects::{mutating_webhook, validating_webhook, webhook_url};
pub(crate) use oracle::Oracle;
pub(crate) use pki::Pair;
pub(crate) use process::{pause, wait};
pub(crate) use slicegate::{Slicegate, get, shipped};

use api::Client;
use pki::Authority;
use process::Process;
use setup::{Ports, Setup};

/// How long each program may take until it serves. Far above the few seconds
/// that it needs, since a machine that also compiles is slow.
const START: Duration = Duration::from_mins(2);

/// How often a start is repeated with other ports, should another program have
/// taken one of them in the moment between choosing and using it.
const ATTEMPTS: u32 = 3;

/// What a test wants to be different from the usual control plane.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    /// Call webhooks over HTTP/2. The API server does so for a loopback URL
    /// only; behind a Service, as in production, it speaks HTTP/1.1, and so it
    /// does here unless this is set.
    pub(crate) http2: bool,
    /// Start neither controller manager nor scheduler: admission alone needs
    /// neither, and they cost a second and 250 MB.
    pub(crate) apiserver_only: bool,
    /// Write an audit log with each request's metadata and annotations, to be
    /// read with [`Cluster::audit_log`].
    pub(crate) audit: bool,
    /// Further flags of kube-apiserver.
    pub(crate) apiserver_args: Vec<String>,
}

/// A running control plane. Its programs end when this is dropped.
#[derive(Debug)]
pub(crate) struct Cluster {
    // Dropped in this order: what calls a program goes before that program,
    // and the folder that they write to goes last.
    scheduler: Option<Process>,
    controllers: Option<Process>,
    apiserver: Mutex<Option<Process>>,
    etcd: Process,
    client: Client,
    setup: Setup,
    folder: TempDir,
}

// === impl Cluster ===

impl Cluster {
    /// Builds the programs if need be, starts them, and returns when the API
    /// server is ready and, if there are controllers, they have begun to work.
    pub(crate) fn start(options: Options) -> Result<Self> {
        let programs = programs::folder()?;
        for _ in 1..ATTEMPTS {
            match Self::start_once(&programs, options.clone()) {
                Err(error) if is_port_taken(&error) => {}
                result => return result,
            }
        }
        Self::start_once(&programs, options)
    }

    fn start_once(programs: &Path, options: Options) -> Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("slicegate-cluster-")
            .tempdir()
            .context("the temporary folder for the test cluster cannot be made")?;
        let setup = Setup::new(folder.path(), programs, options)?;
        let client = Client::new(setup.ports.apiserver, &setup.authority)?;

        let mut etcd = setup.etcd()?;
        etcd.wait_ready(START, || api::etcd_is_healthy(setup.ports.etcd_client))?;
        let mut apiserver = setup.apiserver()?;
        apiserver.wait_ready(START, || client.is_ready())?;

        let (mut controllers, mut scheduler) = (None, None);
        if !setup.options.apiserver_only {
            scheduler = Some(setup.scheduler()?);
            // They are at work when the first thing is there that only they make.
            let process = controllers.insert(setup.controllers()?);
            process.wait_ready(START, || client.has(FIRST_CONTROLLED))?;
        }
        Ok(Self { scheduler, controllers, apiserver: Mutex::new(Some(apiserver)), etcd, client, setup, folder })
    }

    /// The API server's address, without a trailing slash.
    pub(crate) fn url(&self) -> String {
        self.setup.ports.url()
    }

    /// The certificate authority of the API server and of all identities.
    pub(crate) fn ca_pem(&self) -> String {
        self.setup.authority.pem()
    }

    /// The administrator's kubeconfig.
    pub(crate) fn kubeconfig_path(&self) -> PathBuf {
        self.setup.kubeconfig("admin")
    }

    /// A folder for a test's own files, which goes when the cluster goes.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a kubeconfig for a user of the test's own, authenticated by a
    /// certificate. A service account is the user
    /// `system:serviceaccount:NAMESPACE:NAME`; RBAC cannot tell the difference.
    pub(crate) fn kubeconfig_for(&self, user: &str, group: Option<&str>) -> Result<PathBuf> {
        let file_name = user.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        self.setup.write_kubeconfig(&file_name, user, group)
    }

    /// A serving certificate by the cluster's authority, so that [`Self::ca_pem`]
    /// is its caBundle. Names are DNS names or IP addresses.
    pub(crate) fn serving_certificate(&self, names: &[&str]) -> Result<Pair> {
        self.setup.authority.serving(names)
    }

    /// Kills the API server and returns when it is gone. Its data stays.
    pub(crate) fn stop_apiserver(&self) {
        *self.apiserver() = None;
    }

    /// Starts the API server again, on the same port and with the same data,
    /// and returns when it is ready. Does nothing if it is running.
    pub(crate) fn start_apiserver(&self) -> Result<()> {
        let mut slot = self.apiserver();
        if slot.is_some() {
            return Ok(());
        }
        // The port was free for anyone to use as the local end of a connection.
        // Such a connection is short, so trying again is all that it takes.
        let end = Instant::now() + START;
        loop {
            let mut process = self.setup.apiserver()?;
            match process.wait_ready(START, || self.client.is_ready()) {
                Ok(()) => {
                    *slot = Some(process);
                    return Ok(());
                }
                Err(error) if is_port_taken(&error) && Instant::now() < end => process::pause(),
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends a request to the API server as the administrator, without kubectl
    /// in between: a hundred times as fast, and the answer is the API server's
    /// own, with its status code. PATCH is a JSON merge patch.
    pub(crate) fn api(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Reply> {
        self.client.request(method, path, &[], body)
    }

    /// As [`Self::api`], in the name of another user.
    pub(crate) fn api_as(
        &self,
        user: &str,
        groups: &[&str],
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Reply> {
        let mut headers = vec![("Impersonate-User", user)];
        headers.extend(groups.iter().map(|group| ("Impersonate-Group", *group)));
        self.client.request(method, path, &headers, body)
    }

    /// The audit events so far. Needs [`Options::audit`].
    pub(crate) fn audit_log(&self) -> Result<Vec<Value>> {
        if !self.setup.options.audit {
            bail!("this cluster writes no audit log: start it with Options {{ audit: true, .. }}");
        }
        let path = self.setup.audit_log();
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("the audit log {} cannot be read", path.display()))?;
        // The last line may still be in the writing.
        let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        lines.map(|line| serde_json::from_str(line).context("an audit event is not JSON")).collect()
    }

    /// What a program of this cluster, by its name, has logged so far.
    pub(crate) fn log(&self, program: &str) -> String {
        process::read_log(&self.setup.log(program))
    }

    fn apiserver(&self) -> std::sync::MutexGuard<'_, Option<Process>> {
        // A test that failed while it held the lock has left no half-done state.
        self.apiserver.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The first object that shows that the controllers work: each namespace's
/// service account, which one of them makes.
const FIRST_CONTROLLED: &str = "/api/v1/namespaces/default/serviceaccounts/default";

fn is_port_taken(error: &anyhow::Error) -> bool {
    format!("{error:#}").contains("address already in use")
}
