//! What manifests are judged by: the same [`App`] that serves, filled from files or from a cluster.
//!
//! Invariant: everything that was named is in force before the first object is judged; a configuration or a policy with a
//! mistake ends the program, since a verdict without it would not be the cluster's.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::args::JudgedBy;
use crate::cluster::{self, Cluster};
use crate::facts::object::Fact;
use crate::facts::{Event, Facts};
use crate::feed::configuration::default_policy;
use crate::feed::{Sink, Watched};
use crate::files;
use crate::files::policies::{self, Found};
use crate::policies::{Policies, Registry};
use crate::rego::problem::Problem;
use crate::rego::state::State;
use crate::server::following::{Following, FromCluster};
use crate::server::recent::Recent;
use crate::server::{App, Limits};
use crate::workers;
use crate::workers::child::Settings;

/// The exit code where nothing could be judged.
pub(in crate::command) const UNUSABLE: u8 = 2;

/// How often it is looked whether a cluster has answered.
const LOOK: Duration = Duration::from_millis(10);

/// What is in force.
pub(in crate::command) struct Ruled {
    pub(in crate::command) runtime: Runtime,
    pub(in crate::command) app: Arc<App>,
    pub(super) options: JudgedBy,
}

impl Ruled {
    /// Brings everything in force that is named, and the facts that the input gives.
    pub(in crate::command) fn start(options: &JudgedBy, facts: &[Fact]) -> anyhow::Result<Self> {
        let runtime = Builder::new_multi_thread().enable_all().build().context("cannot start threads")?;
        let policy = match &options.config {
            Some(path) => files::read_policy(path)?,
            None => default_policy(),
        };
        let settings = Settings { budget: options.rego_budget, ..workers::Options::default().settings };
        let workers = workers::Options { settings, ..workers::Options::default() };
        let mut app = App::with_workers(policy, Facts::default(), Limits::default(), workers);
        // Nobody tries edits on what is judged here.
        app.recent = Recent::none();
        let app = Arc::new(app);
        if let Some(path) = &options.facts {
            files::read_facts(path)?.facts.into_iter().map(Fact::present).for_each(|event| app.observe(event));
        }
        let ruled = Self { runtime, app, options: options.clone() };
        ruled.runtime.block_on(ruled.load())?;
        facts.iter().cloned().map(Fact::present).for_each(|event: Event| ruled.app.observe(event));
        Ok(ruled)
    }

    /// Loads policies, and what the cluster says.
    async fn load(&self) -> anyhow::Result<()> {
        let options = &self.options;
        if options.policies.is_none() && !options.cluster {
            return Ok(());
        }
        let cluster = if options.cluster { Some(Cluster::connect(found(options)).await?) } else { None };
        let home = cluster.as_ref().map_or(cluster::NAMESPACE, Cluster::namespace).to_owned();
        let publish = Arc::clone(&self.app);
        let (registry, offers) =
            Registry::new(self.app.workers.clone(), home, Box::new(move |sets| publish.replace_sets(sets)));
        tokio::spawn(registry.run());
        if let Some(path) = &options.policies {
            let found = policies::find(path, cluster::NAMESPACE)?;
            policies::told_apart(&found)?;
            if found.is_empty() {
                bail!("{}: no policy set in it", path.display());
            }
            let sets = found.iter().map(|found| (found.set.key.clone(), Arc::new(found.set.clone()))).collect();
            offers.offer(path.display().to_string(), sets);
            self.settled(&offers).await?;
            self.refuse_bad_sets(&found)?;
        }
        match cluster {
            Some(cluster) => self.follow(cluster, offers).await,
            None => Ok(()),
        }
    }

    async fn settled(&self, offers: &Policies) -> anyhow::Result<()> {
        let (settled, wait) = tokio::sync::oneshot::channel();
        offers.settled(Box::new(move || {
            // Who does not wait any more has ended with an error.
            let _ = settled.send(());
        }));
        wait.await.context("the policies could not be loaded")
    }

    /// A set that cannot be loaded would obey its `on-error` in the cluster; here its author is told at once.
    fn refuse_bad_sets(&self, found: &[Found]) -> anyhow::Result<()> {
        let reports = Arc::clone(&self.app.rules().sets.reports);
        let bad = reports.iter().filter(|report| matches!(report.state, State::Rejected));
        let lines = bad.flat_map(|report| {
            let found = found.iter().find(|found| found.set.key == report.key);
            report.errors.iter().map(move |error| {
                let file = found.map_or_else(|| report.key.to_string(), |found| found.shown(&error.file));
                Problem { file, ..error.clone() }.to_string()
            })
        });
        let lines: Vec<String> = lines.collect();
        if lines.is_empty() { Ok(()) } else { bail!("a policy set cannot be loaded:\n{}", lines.join("\n")) }
    }

    /// Reads a cluster until everything is there that verdicts come from. Nothing is written.
    async fn follow(&self, cluster: Cluster, offers: Policies) -> anyhow::Result<()> {
        let mut watched = vec![Watched::Namespaces, Watched::Nodes, Watched::PriorityClasses, Watched::Policies];
        let configured = self.options.config.is_some();
        if !configured {
            watched.push(Watched::Configuration);
        }
        let following = Following::new(Arc::clone(&self.app), &watched).with_policies(offers);
        let sink: Arc<dyn Sink> = Arc::new(following);
        self.app.read_namespaces_from(Arc::new(FromCluster(cluster.clone())));
        tokio::spawn(cluster.watch(!configured, sink, CancellationToken::new()));
        let deadline = Instant::now().checked_add(self.options.timeout).unwrap_or_else(Instant::now);
        let ready = async {
            while !self.app.readiness.holds() {
                sleep(LOOK).await;
            }
        };
        if timeout_at(deadline, ready).await.is_err() {
            bail!(
                "the cluster did not tell everything within --timeout:\n{}",
                self.app.readiness.describe().trim_end()
            );
        }
        Ok(())
    }
}

fn found(options: &JudgedBy) -> cluster::Options {
    cluster::Options {
        kubeconfig: options.kubeconfig.clone(),
        namespace: options.slicegate_namespace.clone(),
        policy_namespaces: options.policy_namespace.clone(),
    }
}
