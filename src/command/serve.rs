//! `slicegate serve`: puts the server together, and takes it apart on SIGTERM.
//!
//! Invariant: both sockets and the certificate are there before anything is said to be ready, and a part that ends by
//! itself ends the process with its name.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use futures::FutureExt as _;
use jiff::Timestamp;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::task::TaskTracker;

use super::{descriptors, dev};
use crate::args::Serve;
use crate::cluster::{self, Cluster};
use crate::facts::Facts;
use crate::feed::configuration::default_policy;
use crate::feed::{Sink, Watched};
use crate::policies::Registry;
use crate::server::following::{Following, FromCluster};
use crate::server::guard::Scope;
use crate::server::listener::Port;
use crate::server::tls::clients::{Authorities, Clients};
use crate::server::tls::{Certificates, Pair};
use crate::server::{self, App, reload};
use crate::shutdown::Tasks;
use crate::{files, logging};

/// What facts are made of.
const FACTS: [Watched; 3] = [Watched::Namespaces, Watched::Nodes, Watched::PriorityClasses];

/// Serves until a signal ends it.
pub(super) fn run(options: &Serve) -> anyhow::Result<ExitCode> {
    let log = logging::start(options.log_format(), options.log_level.clone())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start threads")?;
    let code = runtime.block_on(serve(options, &log));
    // What a second signal cut off is not waited for.
    runtime.shutdown_background();
    code
}

async fn serve(options: &Serve, log: &logging::Log) -> anyhow::Result<ExitCode> {
    // Signals first, so that one that comes early ends the process as one that comes late does.
    let mut signals = Signals::new()?;
    let pair = if options.dev { dev::pair(options.listen().ip())? } else { pair(options)? };
    let clients = clients(options)?;
    let limits = descriptors::enough_for(options.limits());
    let mut app = App::with_workers(default_policy(), Facts::default(), limits, options.workers());
    app.metrics.add_counter("log_lines_dropped", "Lines that were not logged since nobody read them", log.dropped());
    let app = Arc::new(app);
    let condition = app.readiness.condition(reload::CONDITION, "there is no certificate yet");
    let served = Arc::new(Certificates::default());
    reload::serve(&app, &served, pair);
    condition.fulfil();
    let webhook = bind(options.listen(), "--listen").await?;
    let admin = bind(options.admin(), "--admin").await?;
    let addresses = (webhook.local_addr()?, admin.local_addr()?);

    let mut tasks = Tasks::default();
    let connections = TaskTracker::new();
    let reviews = server::webhook(&app, Arc::clone(&served), clients.clone())?;
    start(&mut tasks, &app, (reviews, webhook), admin, &connections);
    follow(&mut tasks, &app, options, &connections).await?;
    follow_certificates(&mut tasks, &app, &served, clients, options);
    tracing::info!(listen = %addresses.0, admin = %addresses.1, config = app.rules().policy.digest, "serving");
    if options.dev {
        dev::explain(addresses.0, addresses.1)?;
    }
    tokio::select! {
        error = tasks.first_end() => {
            tracing::error!(error = format!("{error:#}"), "ending: a part of the program ended by itself");
            return Err(error);
        }
        () = signals.next() => {}
    }
    tracing::info!("ending: finishing what is in flight");
    tokio::select! {
        finished = app.shutdown.run(options.drain_delay(), options.drain_timeout, &connections) => {
            tracing::info!(finished, "ended");
            Ok(ExitCode::SUCCESS)
        }
        () = signals.next() => {
            tracing::warn!("ended at once by a second signal");
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Starts both ports.
fn start(
    tasks: &mut Tasks,
    app: &Arc<App>,
    (reviews, webhook): (Port, TcpListener),
    admin: TcpListener,
    connections: &TaskTracker,
) {
    // Not waited for at the end: who watches the drain does not hold it up.
    let watchers = TaskTracker::new();
    for (name, port, socket, tracker) in
        [("the webhook port", reviews, webhook, connections), ("the admin port", server::admin(app), admin, &watchers)]
    {
        let run = port.run(socket, Arc::clone(app), tracker.clone());
        tasks.spawn(name, async move {
            run.await;
            Ok(())
        });
    }
}

fn pair(options: &Serve) -> anyhow::Result<Pair> {
    let files = options.tls_cert.as_ref().zip(options.tls_key.as_ref());
    let (certificate, key) = files.context("there is no certificate to serve; give --tls-cert and --tls-key")?;
    Ok(Pair::from_files(certificate, key)?.valid_at(Timestamp::now(), &certificate.display().to_string())?)
}

/// Who may ask; nothing where everybody may.
fn clients(options: &Serve) -> anyhow::Result<Option<Arc<Clients>>> {
    let Some(file) = &options.client_ca else { return Ok(None) };
    let authorities = Authorities::from_file(file).context("--client-ca")?;
    Ok(Some(Arc::new(Clients::new(authorities, options.client_name.clone()))))
}

/// Starts to watch whatever the options name: files, a cluster, or both. A file that is wrong at the start is told at once;
/// later its last good state stays. What has something to finish at the end of the process is tracked.
async fn follow(tasks: &mut Tasks, app: &Arc<App>, options: &Serve, finishing: &TaskTracker) -> anyhow::Result<()> {
    let alone = options.dev || options.offline;
    let facts = if alone && options.facts.is_none() { &[][..] } else { &FACTS[..] };
    let configuration = if alone && options.config.is_none() { &[][..] } else { &[Watched::Configuration][..] };
    let policies = if alone && options.policies.is_none() { &[][..] } else { &[Watched::Policies][..] };
    let cluster = if alone { None } else { Some(Cluster::connect(found(options)).await?) };
    let home = cluster.as_ref().map(|cluster| cluster.namespace().to_owned()).or_else(|| options.namespace.clone());
    let home = home.unwrap_or_else(|| cluster::NAMESPACE.to_owned());
    app.guard(Scope {
        namespaces: cluster.as_ref().map_or_else(|| vec![home.clone()], |cluster| cluster.policy_namespaces().to_vec()),
        home: home.clone(),
        configuration: options.config.is_none(),
    });
    let publish = Arc::clone(app);
    let (registry, offers) = Registry::new(app.workers.clone(), home, Box::new(move |sets| publish.replace_sets(sets)));
    tasks.spawn("the registry of policies", registry.run().map(Ok));
    let reports = offers.reports.clone();
    if cluster.is_some() {
        offers.expect_routes();
    }
    if !policies.is_empty() {
        app.expect_sets();
    }
    let following = Following::new(Arc::clone(app), &[facts, configuration, policies].concat());
    let sink: Arc<dyn Sink> = Arc::new(following.with_policies(offers));
    let stop = app.shutdown.aborting();
    if let Some(path) = options.config.clone() {
        let first = files::read_policy(&path)?;
        app.replace_policy(first.clone());
        let watch = files::watch_policy(path, Some(first), files::INTERVAL, Arc::clone(&sink), stop.clone());
        tasks.spawn("the watch of --config", watch.map(Ok));
    }
    if let Some(path) = options.facts.clone() {
        files::read_facts(&path)?;
        let watch = files::watch_facts(path, files::INTERVAL, Arc::clone(&sink), stop.clone());
        tasks.spawn("the watch of --facts", watch.map(Ok));
    }
    if let Some(path) = options.policies.clone() {
        files::policies::read(&path)?;
        // Beside a cluster, it is the cluster's sets that are waited for; they come later than files do.
        let watch = files::watch_policies(path, files::INTERVAL, alone, Arc::clone(&sink), stop.clone());
        tasks.spawn("the watch of --policies", watch.map(Ok));
    }
    if let Some(cluster) = cluster {
        app.read_namespaces_from(Arc::new(FromCluster(cluster.clone())));
        // It gives its lease back before the process ends, so that another replica need not wait for that to run out.
        let writing = finishing.track_future(cluster.clone().lead(reports, app.shutdown.stopping()));
        tasks.spawn("the writer of status", writing.map(Ok));
        tasks.spawn("the watch of the cluster", cluster.watch(options.config.is_none(), sink, stop).map(Ok));
    }
    Ok(())
}

fn found(options: &Serve) -> cluster::Options {
    cluster::Options {
        kubeconfig: options.kubeconfig.clone(),
        namespace: options.namespace.clone(),
        policy_namespaces: options.policy_namespace.clone(),
    }
}

/// Follows the files of the certificate and of the clients' authorities, where there are any.
fn follow_certificates(
    tasks: &mut Tasks,
    app: &Arc<App>,
    served: &Arc<Certificates>,
    clients: Option<Arc<Clients>>,
    options: &Serve,
) {
    let stop = || app.shutdown.aborting();
    if let (Some(certificate), Some(key)) = (options.tls_cert.clone(), options.tls_key.clone()) {
        let served = Arc::clone(served);
        let watch = reload::follow(Arc::clone(app), served, (certificate, key), files::INTERVAL, stop());
        tasks.spawn("the watch of the certificate", watch.map(Ok));
    }
    if let (Some(file), Some(clients)) = (options.client_ca.clone(), clients) {
        let watch = reload::follow_clients(Arc::clone(app), clients, file, files::INTERVAL, stop());
        tasks.spawn("the watch of --client-ca", watch.map(Ok));
    }
}

async fn bind(address: SocketAddr, flag: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address} ({flag})"))
}

/// SIGTERM, as Kubernetes sends it, and SIGINT, as a terminal does.
struct Signals(Signal, Signal);

impl Signals {
    fn new() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen to signals");
        Ok(Self(listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?))
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.0.recv() => {}
            _ = self.1.recv() => {}
        }
    }
}
