//! What watches learn, into the [`App`].
//!
//! What it does: takes the events of a cluster or of files and turns them into facts, policy, readiness and metrics.
//! Invariant: readiness waits for the first complete list of everything watched and for a first good configuration; what
//! goes wrong after that is told, and takes nothing away.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::App;
use super::admit::NamespaceSource;
use super::readiness::Condition;
use crate::cluster::Cluster;
use crate::facts::{Event, Labels};
use crate::feed::{Sink, Watched};
use crate::policies::Policies;
use crate::policy::Policy;
use crate::rego::routing::Routes;
use crate::rego::set::{Key, Set};
use crate::rego::unit::Unit;

/// Hands on what watches learn.
#[derive(Debug)]
pub struct Following {
    app: Arc<App>,
    waiting: Vec<(Watched, Condition)>,
    policies: Option<Policies>,
}

impl Following {
    /// Waits for everything that will be watched.
    pub fn new(app: Arc<App>, watched: &[Watched]) -> Self {
        let condition = |what: &Watched| (*what, app.readiness.condition(what.as_str(), "not read yet"));
        let waiting = watched.iter().map(condition).collect();
        Self { app, waiting, policies: None }
    }

    /// Hands policy sets on to here.
    #[must_use]
    pub fn with_policies(mut self, policies: Policies) -> Self {
        self.policies = Some(policies);
        self
    }

    fn condition(&self, what: Watched) -> Option<&Condition> {
        self.waiting.iter().find(|(waiting, _)| *waiting == what).map(|(_, condition)| condition)
    }

    /// A problem keeps the server from being ready only before there was anything good.
    fn problem(&self, what: Watched, problem: Option<String>) {
        self.app.metrics.set_problem(what.as_str(), problem.is_some());
        if let (Some(condition), Some(problem)) = (self.condition(what), problem) {
            condition.explain(problem.replace('\n', "; "));
        }
    }
}

impl Sink for Following {
    fn fact(&self, event: Event) {
        self.app.observe(event);
    }

    fn policy(&self, policy: Policy) {
        self.app.replace_policy(policy);
    }

    fn policies(&self, namespace: &str, sets: BTreeMap<Key, Arc<Set>>) {
        if let Some(policies) = &self.policies {
            policies.offer(namespace, sets);
        }
    }

    fn last_good(&self, units: BTreeMap<Key, Unit>) {
        if let Some(policies) = &self.policies {
            policies.keep(units);
        }
    }

    fn routes(&self, routes: Routes) {
        if let Some(policies) = &self.policies {
            policies.route(routes);
        }
    }

    fn synced(&self, what: Watched) {
        if let (Watched::Policies, Some(policies)) = (what, &self.policies) {
            // What was read is to be loaded or found bad before requests may come.
            let (condition, app) = (self.condition(what).cloned(), Arc::clone(&self.app));
            policies.settled(Box::new(move || {
                app.sets_are_read();
                condition.iter().for_each(Condition::fulfil);
            }));
        } else if let Some(condition) = self.condition(what) {
            condition.fulfil();
        }
    }

    fn configuration_problem(&self, problem: Option<String>) {
        self.problem(Watched::Configuration, problem);
    }

    fn source_problem(&self, what: Watched, problem: Option<String>) {
        self.problem(what, problem);
    }
}

/// Reads Namespaces from a cluster.
pub struct FromCluster(pub Cluster);

impl NamespaceSource for FromCluster {
    fn read<'a>(&'a self, name: &'a str) -> BoxFuture<'a, anyhow::Result<Option<Labels>>> {
        async move { Ok(self.0.namespace_labels(name).await?) }.boxed()
    }
}

impl fmt::Debug for FromCluster {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("FromCluster").field(&self.0).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Facts;
    use crate::feed::configuration::default_policy;
    use crate::server::Limits;

    #[test]
    fn a_problem_counts_only_before_there_was_anything_good() {
        let app = Arc::new(App::new(default_policy(), Facts::default(), Limits::default()));
        let following = Following::new(Arc::clone(&app), &[Watched::Configuration]);
        following.configuration_problem(Some("line 3, column 1: wrong\nthere is no last good one".to_owned()));
        assert_eq!(app.readiness.describe(), "[-]configuration line 3, column 1: wrong; there is no last good one\n");
        following.synced(Watched::Configuration);
        following.configuration_problem(Some("worse".to_owned()));
        assert!(app.readiness.holds());
        assert!(app.metrics.encode().unwrap().contains(r#"slicegate_source_problem{source="configuration"} 1"#));
    }
}
