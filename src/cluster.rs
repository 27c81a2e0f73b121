//! The cluster that slicegate guards: credentials, watches, and the one read while a request waits.
//!
//! What it does: finds the API server, keeps Namespaces, Nodes, PriorityClasses, policies, the configuration and the webhook
//! configurations watched for as long as the process runs, and hands all of it to a [`Sink`]. Of the replicas the one that
//! leads also writes what is in force. What it does not: decide. Invariant: losing the API server changes nothing that is known.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use http::header::USER_AGENT;
use k8s_openapi::api::core::v1::Namespace;
use kube::config::{InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::core::PartialObjectMeta;
use kube::{Api, Client, Config};
use thiserror::Error;
use tokio::sync::watch as watch_channel;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::facts::Labels;
use crate::feed::{Sink, Watched};
use crate::rego::state::SetReport;
use watch::Pace;

mod lastgood;
mod lead;
mod leader;
mod policies;
mod read;
mod routes;
mod status;
mod watch;

pub use lastgood::{LastGood, LastGoodError};

#[cfg(test)]
mod tests;

/// The namespace that is slicegate's own where nothing else is said.
pub const NAMESPACE: &str = "slicegate-system";

/// The ConfigMap that holds the configuration.
pub const CONFIG_MAP: &str = "slicegate-config";

/// How slicegate is called among those who write an object.
const MANAGER: &str = "slicegate";

/// The key of that ConfigMap.
pub const CONFIG_KEY: &str = "config.yaml";

/// How the cluster is found.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// A kubeconfig that goes before everything else.
    pub kubeconfig: Option<PathBuf>,
    /// slicegate's own namespace; none is that of its service account, else [`NAMESPACE`].
    pub namespace: Option<String>,
    /// Where policies may stand beside that.
    pub policy_namespaces: Vec<String>,
}

/// Why no client could be made. Whether the API server answers shows later, and is never an end.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// The process runs in a Pod whose service account cannot be used.
    #[error("service account cannot be used: {0}; set automountServiceAccountToken to true, or give --kubeconfig")]
    InCluster(InClusterError),
    /// The file that was named cannot be used.
    #[error("kubeconfig {0} cannot be used: {1}")]
    Kubeconfig(PathBuf, KubeconfigError),
    /// No cluster was named, and none is found.
    #[error(
        "no cluster found: {0}; run in a Pod with a service account, give --kubeconfig, set KUBECONFIG, or use --offline"
    )]
    NoCluster(KubeconfigError),
    /// The credentials are there and no client comes of them.
    #[error("credentials for {0} cannot be used: {1}")]
    Client(http::Uri, kube::Error),
}

/// A Namespace could not be read: the API server refused, or cannot be reached.
#[derive(Debug, Error)]
#[error("namespace {0} cannot be read: {explained}", explained = watch::explained(.1))]
pub struct ReadError(String, kube::Error);

/// A cluster, and who slicegate is in it.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
    namespace: String,
    /// Where policies may stand, without repetition, slicegate's own first.
    policy_namespaces: Vec<String>,
    /// The text of the configuration that is in force, where it came from the ConfigMap.
    configuration: watch_channel::Sender<Option<Arc<str>>>,
}

impl Cluster {
    /// Finds the cluster: the kubeconfig that was named, else the Pod's service account, else `KUBECONFIG` or the user's
    /// default kubeconfig. Does not call the API server.
    ///
    /// # Errors
    /// There are no credentials, or they cannot be used.
    pub async fn connect(options: Options) -> Result<Self, ConnectError> {
        let (mut config, own) = credentials(options.kubeconfig).await?;
        config.connect_timeout = Some(CONNECT);
        config.headers.push((USER_AGENT, HeaderValue::from_static(concat!("slicegate/", env!("CARGO_PKG_VERSION")))));
        let url = config.cluster_url.clone();
        let client = Client::try_from(config).map_err(|error| ConnectError::Client(url.clone(), error))?;
        let namespace = options.namespace.or(own).unwrap_or_else(|| NAMESPACE.to_owned());
        info!(%url, namespace, "Cluster found");
        Ok(Self::new(client, namespace).with_policies_in(options.policy_namespaces))
    }

    /// A cluster behind a client that is there already.
    pub fn new(client: Client, namespace: String) -> Self {
        let policy_namespaces = vec![namespace.clone()];
        Self { client, namespace, policy_namespaces, configuration: watch_channel::Sender::default() }
    }

    /// Policies may also stand in these.
    #[must_use]
    pub fn with_policies_in(mut self, namespaces: Vec<String>) -> Self {
        for namespace in namespaces {
            if !self.policy_namespaces.contains(&namespace) {
                self.policy_namespaces.push(namespace);
            }
        }
        self
    }

    /// slicegate's own namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Where policies may stand, slicegate's own namespace first.
    pub fn policy_namespaces(&self) -> &[String] {
        &self.policy_namespaces
    }

    /// Watches until told to stop. The ConfigMap is left alone where the configuration comes from elsewhere.
    ///
    /// Policies and configuration are followed once their last good forms are read, since those decide what a bad one leaves
    /// in force.
    pub async fn watch(self, configuration: bool, sink: Arc<dyn Sink>, stop: CancellationToken) {
        let facts = [read::NAMESPACES, read::NODES, read::PRIORITY_CLASSES];
        let facts = facts.map(|facts| read::Facts::follow(facts, &self.client, &sink));
        let kept = async {
            let last_good = self.remembered(&sink).await;
            sink.last_good(last_good.units);
            let policies = policies::follow_all(&self.policy_namespaces, &self.client, Pace::default(), &sink);
            let configuration = async {
                if configuration {
                    let (text, kept) = (last_good.config.as_deref(), self.configuration.clone());
                    read::ConfigMap::follow(&self.namespace, &self.client, &sink, text, kept).await;
                }
            };
            futures::future::join(configuration, policies).await;
        };
        let routes = routes::follow_all(&self.client, Pace::default(), &sink);
        let all = futures::future::join3(futures::future::join_all(facts), kept, routes);
        stop.run_until_cancelled(all).await;
    }

    /// Stands for election until told to stop, and writes what is in force while it leads: status and Events of the policies
    /// that are reported, and the last good forms of those and of the configuration that this same cluster watches.
    pub async fn lead(self, reports: watch_channel::Receiver<Arc<Vec<SetReport>>>, stop: CancellationToken) {
        let identity = leader::identity();
        let (leading, leads) = watch_channel::channel(false);
        let pace = leader::Pace::default();
        let election = leader::Election::new(self.client.clone(), &self.namespace, identity.clone(), pace);
        let told = lead::Told { reports, configuration: self.configuration.subscribe(), leads };
        let writer = lead::Writer::new(self.client.clone(), self.store(), identity, lead::Pace::default());
        let writing = stop.clone().run_until_cancelled_owned(writer.run(told));
        Box::pin(futures::future::join(election.run(leading, stop), writing)).await;
    }

    /// What was in force before, as the leader kept it. Bounded in time and in size.
    ///
    /// # Errors
    /// The API server refused, or cannot be reached.
    pub async fn last_good(&self) -> Result<LastGood, LastGoodError> {
        self.store().read().await
    }

    /// What was in force before, as soon as the API server says so. Nothing that follows from it could be learned sooner.
    async fn remembered(&self, sink: &Arc<dyn Sink>) -> LastGood {
        let (mut told, mut refused) = (None, None::<Instant>);
        loop {
            let problem = match self.last_good().await {
                Ok(found) => {
                    if told.is_some() {
                        sink.source_problem(Watched::Policies, None);
                    }
                    return found;
                }
                // An API server that starts refuses everybody until it has read who may do what.
                Err(error) if error.is_refusal() && refused.get_or_insert_with(Instant::now).elapsed() > REFUSED => {
                    warn!(problem = %error, "Nothing is known of the last good policies and configuration");
                    if told.is_some() {
                        sink.source_problem(Watched::Policies, None);
                    }
                    return LastGood::default();
                }
                Err(error) => {
                    refused = refused.filter(|_| error.is_refusal());
                    error.to_string()
                }
            };
            if told.as_ref() != Some(&problem) {
                warn!(problem, "Waiting for the last good policies and configuration");
                sink.source_problem(Watched::Policies, Some(problem.clone()));
                told = Some(problem);
            }
            tokio::time::sleep(watch::between_half_and_whole(AGAIN)).await;
        }
    }

    fn store(&self) -> lastgood::Store {
        lastgood::Store::new(self.client.clone(), &self.namespace, &self.policy_namespaces)
    }

    /// The labels of a Namespace that no watch told of yet; nothing where there is none of that name. How long that may
    /// take is the caller's to say.
    ///
    /// # Errors
    /// The API server refused, or cannot be reached.
    pub async fn namespace_labels(&self, name: &str) -> Result<Option<Labels>, ReadError> {
        let namespaces: Api<PartialObjectMeta<Namespace>> = Api::all(self.client.clone());
        let found = namespaces.get_opt(name).await.map_err(|error| ReadError(name.to_owned(), error))?;
        Ok(found.map(|found| found.metadata.labels.unwrap_or_default()))
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Cluster").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

/// An API server that does not even accept a connection in this time is tried again.
const CONNECT: Duration = Duration::from_secs(5);

/// The pause between two attempts to read the last good forms.
const AGAIN: Duration = Duration::from_secs(2);

/// How long a refusal is taken for that of an API server which does not know the roles yet.
const REFUSED: Duration = Duration::from_secs(10);

/// The credentials, and the namespace of the service account where they are one's.
async fn credentials(kubeconfig: Option<PathBuf>) -> Result<(Config, Option<String>), ConnectError> {
    let options = KubeConfigOptions::default();
    if let Some(path) = kubeconfig {
        let config = match Kubeconfig::read_from(&path) {
            Ok(kubeconfig) => Config::from_custom_kubeconfig(kubeconfig, &options).await,
            Err(error) => Err(error),
        };
        return config.map(|config| (config, None)).map_err(|error| ConnectError::Kubeconfig(path, error));
    }
    match Config::incluster() {
        Ok(config) => {
            let own = config.default_namespace.trim().to_owned();
            Ok((config, Some(own).filter(|own| !own.is_empty())))
        }
        // Not in a Pod. Any other trouble is that of a Pod, and no file on its disk would be a better answer.
        Err(InClusterError::ReadEnvironmentVariable(_)) => {
            Config::from_kubeconfig(&options).await.map(|config| (config, None)).map_err(ConnectError::NoCluster)
        }
        Err(error) => Err(ConnectError::InCluster(error)),
    }
}
