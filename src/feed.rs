//! Where what is watched goes to, whether it comes from a cluster or from files.
//!
//! What it does: names what is watched, and the one interface by which a watch hands on what it learned. Invariant: a
//! watch only adds to what is known or replaces it by something complete; losing the source takes nothing away.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::facts::Event;
use crate::policy::Policy;
use crate::rego::routing::Routes;
use crate::rego::set::{Key, Set};
use crate::rego::unit::Unit;

pub mod configuration;
#[cfg(test)]
pub(crate) mod recorder;

/// One of the things that are watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Watched {
    /// The Namespaces of the cluster.
    Namespaces,
    /// The Nodes of the cluster.
    Nodes,
    /// The priority classes of the cluster.
    PriorityClasses,
    /// The configuration.
    Configuration,
    /// The policy sets.
    Policies,
    /// The webhook configurations, which say what is sent.
    Webhooks,
}

impl Watched {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 6] =
        [Self::Namespaces, Self::Nodes, Self::PriorityClasses, Self::Configuration, Self::Policies, Self::Webhooks];

    /// The word in logs, metrics and on the readiness page.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Namespaces => "namespaces",
            Self::Nodes => "nodes",
            Self::PriorityClasses => "priorityclasses",
            Self::Configuration => "configuration",
            Self::Policies => "policies",
            Self::Webhooks => "webhookconfigurations",
        }
    }
}

impl fmt::Display for Watched {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// Takes what watches learn. The calls come from several tasks at once and must not block.
pub trait Sink: Send + Sync + 'static {
    /// Something of the cluster changed, or is known for the first time.
    fn fact(&self, event: Event);

    /// This is in force from now on.
    fn policy(&self, policy: Policy);

    /// All policy sets of one namespace, as they are offered. Comes after each complete list, and after each change of what
    /// a set is made of.
    fn policies(&self, namespace: &str, sets: BTreeMap<Key, Arc<Set>>);

    /// The last good forms of sets, from before the process started. Comes at most once, before the first policy sets.
    fn last_good(&self, units: BTreeMap<Key, Unit>);

    /// What is sent to slicegate, as far as that is known. Where nobody can say, nobody need listen.
    fn routes(&self, _routes: Routes) {}

    /// What is known of this is complete and usable from now on. Comes again after each new list.
    fn synced(&self, what: Watched);

    /// What is wrong with the configuration that is offered, while the last good one stays in force; nothing once it is
    /// good again.
    fn configuration_problem(&self, problem: Option<String>);

    /// Why the source of this cannot be reached, while what is known stays; nothing once it is reached again.
    fn source_problem(&self, what: Watched, problem: Option<String>);
}
