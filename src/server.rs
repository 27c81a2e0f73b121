//! The webhook server: what its parts share.
//!
//! What it does: holds the one [`App`] that the listener, the routes, the admin port and whoever watches the cluster have in
//! common. [`listener`] accepts, [`routes`] speaks HTTP, [`admit`] answers one review, [`mod@admin`] answers people and probes.
//!
//! Invariant: policy and facts are replaced as a whole and never changed in place, so that one request sees one of each.

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, timeout_at};

use crate::facts::{Event, Facts};
use crate::metrics::Metrics;
use crate::policies::Sets;
use crate::policy::Policy;
use crate::shutdown::Shutdown;
use crate::workers::{self, Workers};

pub mod admin;
pub mod admit;
mod body;
mod connection;
pub mod following;
pub mod guard;
pub mod listener;
pub mod readiness;
pub mod recent;
pub mod reload;
pub mod routes;
pub mod tls;
mod verdict;

use admit::NamespaceSource;
use guard::Scope;
use listener::Port;
use readiness::Readiness;
use recent::Recent;
use tls::Certificates;
use tls::clients::Clients;

/// What bounds the server. Every bound is an option of `slicegate serve`, which says what it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the options of `slicegate serve` say what each bounds")]
pub struct Limits {
    pub handshake_timeout: Duration,
    pub header_timeout: Duration,
    pub body_timeout: Duration,
    pub idle_timeout: Duration,
    pub connection_age: Duration,
    pub max_body: usize,
    pub max_body_memory: usize,
    pub max_connections: usize,
    pub max_in_flight: usize,
    pub max_streams: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            handshake_timeout: Duration::from_secs(5),
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(10),
            // Longer than the 90 seconds after which the API server's own client drops what it does not use, so that it is
            // not the server that closes under a request on its way.
            idle_timeout: Duration::from_mins(3),
            connection_age: Duration::from_mins(10),
            max_body: 8 << 20,
            max_body_memory: 64 << 20,
            max_connections: 2_000,
            max_in_flight: 1_000,
            max_streams: 250,
        }
    }
}

/// The most large reviews that are judged at a time. The tree of one of 8 MiB may take 160 MiB, and the manifests give the
/// server itself half of 1 GiB.
const MAX_LARGE: usize = 2;

/// What requests are judged by.
#[derive(Debug, Clone)]
pub struct Rules {
    /// The configuration.
    pub policy: Arc<Policy>,
    /// The policy sets.
    pub sets: Arc<Sets>,
}

/// What all parts of the server share.
#[derive(Debug)]
pub struct App {
    /// Configuration and policy sets, in one piece, so that a request sees one state of both.
    rules: ArcSwap<Rules>,
    facts: ArcSwap<Facts>,
    /// The processes that evaluate policy sets.
    pub workers: Workers,
    /// Held while the next state is made from the present one.
    changing: Mutex<()>,
    namespaces: OnceLock<Arc<dyn NamespaceSource>>,
    /// Which ConfigMaps are read.
    scope: OnceLock<Scope>,
    /// Requests on which an edit can be tried.
    pub recent: Recent,
    /// Told whenever other policy sets are in force.
    sets_changed: watch::Sender<()>,
    /// Whether all policy sets that were there at the start are in force or found bad.
    sets_read: watch::Sender<bool>,
    /// How many bytes of bodies are held or expected.
    body_memory: AtomicUsize,
    /// How many large reviews are judged at a time: half the cores, and no more than [`MAX_LARGE`].
    large: Arc<Semaphore>,
    /// What must hold before requests may come.
    pub readiness: Readiness,
    /// What is counted.
    pub metrics: Metrics,
    /// What bounds the server.
    pub limits: Limits,
    /// The way to the end.
    pub shutdown: Shutdown,
}

impl App {
    /// An app that is ready as soon as every condition holds that is registered with [`App::readiness`].
    pub fn new(policy: Policy, facts: Facts, limits: Limits) -> Self {
        Self::with_workers(policy, facts, limits, workers::Options::default())
    }

    /// Likewise, with worker processes that are set up in a way of their own.
    pub fn with_workers(policy: Policy, facts: Facts, limits: Limits, options: workers::Options) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let large = cores.div_ceil(2).min(MAX_LARGE);
        let policy = Arc::new(policy);
        let metrics = Metrics::new();
        metrics.set_digest(&policy.digest);
        Self {
            rules: ArcSwap::from_pointee(Rules { policy, sets: Arc::default() }),
            workers: Workers::new(options, metrics.policies.clone()),
            facts: ArcSwap::from_pointee(facts),
            changing: Mutex::new(()),
            namespaces: OnceLock::new(),
            scope: OnceLock::new(),
            recent: Recent::default(),
            sets_changed: watch::Sender::new(()),
            sets_read: watch::Sender::new(true),
            body_memory: AtomicUsize::new(0),
            large: Arc::new(Semaphore::new(large)),
            readiness: Readiness::default(),
            metrics,
            limits,
            shutdown: Shutdown::default(),
        }
    }

    /// What is in force.
    pub fn rules(&self) -> Arc<Rules> {
        self.rules.load_full()
    }

    /// Puts another configuration in force.
    pub fn replace_policy(&self, policy: Policy) {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        self.metrics.set_digest(&policy.digest);
        let sets = Arc::clone(&self.rules.load().sets);
        self.rules.store(Arc::new(Rules { policy: Arc::new(policy), sets }));
    }

    /// Policy sets will be read: until [`App::sets_are_read`] is called, requests wait for them.
    pub fn expect_sets(&self) {
        self.sets_read.send_replace(false);
    }

    /// All policy sets that were there at the start are in force or found bad.
    pub fn sets_are_read(&self) {
        self.sets_read.send_replace(true);
    }

    /// Waits until the policy sets are read; says whether they are.
    pub(crate) async fn wait_for_sets(&self, deadline: Instant) -> bool {
        if *self.sets_read.borrow() {
            return true;
        }
        let mut read = self.sets_read.subscribe();
        let waited = timeout_at(deadline, read.wait_for(|read| *read)).await;
        waited.is_ok_and(|read| read.is_ok())
    }

    /// Puts other policy sets in force.
    pub fn replace_sets(&self, sets: Arc<Sets>) {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        self.metrics.set_sets(&sets.reports);
        let policy = Arc::clone(&self.rules.load().policy);
        self.rules.store(Arc::new(Rules { policy, sets }));
        self.sets_changed.send_replace(());
    }

    /// What is known of the cluster.
    pub fn facts(&self) -> Arc<Facts> {
        self.facts.load_full()
    }

    /// Takes in what a watch saw.
    pub fn observe(&self, event: Event) {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(next) = self.facts.load().after(event) {
            self.facts.store(Arc::new(next));
        }
    }

    /// Says where the labels of a Namespace can be read that the watch does not know yet. Counts once.
    pub fn read_namespaces_from(&self, source: Arc<dyn NamespaceSource>) {
        // A second source would mean two clusters; the first one stays.
        let _ = self.namespaces.set(source);
    }

    /// Says which ConfigMaps are read, and so guarded. Counts once.
    pub fn guard(&self, scope: Scope) {
        // As above.
        let _ = self.scope.set(scope);
    }
}

/// The port on which reviews are answered, to whoever asks or to these clients alone.
///
/// # Errors
/// See [`tls::server_config`].
pub fn webhook(
    app: &Arc<App>,
    certificates: Arc<Certificates>,
    clients: Option<Arc<Clients>>,
) -> Result<Port, rustls::Error> {
    Ok(Port {
        name: "webhook",
        tls: Some(Arc::new(tls::server_config(certificates, clients.clone())?)),
        router: routes::router(Arc::clone(app)),
        clients: clients.map(|clients| (clients, routes::strangers(Arc::clone(app)))),
        limits: app.limits.clone(),
        until: app.shutdown.stopping(),
    })
}

/// The admin port. It answers until the very end, so that the drain can be watched.
pub fn admin(app: &Arc<App>) -> Port {
    Port {
        name: "admin",
        tls: None,
        clients: None,
        router: admin::router(Arc::clone(app)),
        limits: Limits { max_connections: 100, max_streams: 10, ..app.limits.clone() },
        until: app.shutdown.aborting(),
    }
}
