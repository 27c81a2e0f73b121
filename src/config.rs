//! The configuration: what its words mean, checked and ready to be asked.
//!
//! What it does: holds one configuration in the form in which rules read it. [`parse()`] makes it from YAML and reports every
//! mistake at once. Invariant: a [`Config`] that exists is valid; nothing that reads it has to check it again.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::config::glob::Glob;
use crate::policy::decision::{Action, RuleId};

mod defaults;
pub mod glob;
pub mod parse;
pub mod schema;

pub use parse::{Mistake, Mistakes, parse};

/// One configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// No finding goes further than this, whatever its own action.
    pub enforcement: Action,
    /// How objects that were there before the rules are treated.
    pub existing: Existing,
    /// Label key that declares the latency class.
    pub latency_label: String,
    /// Label key that declares checkpointing.
    pub checkpoint_label: String,
    /// Priority classes that make a workload latency-critical.
    pub critical_priority_classes: Vec<Glob>,
    /// The pools, in the order of the file.
    pub pools: Vec<Pool>,
    /// Settings of rules that have any.
    pub rules: BTreeMap<RuleId, RuleSettings>,
    /// Exemptions, in the order of the file.
    pub exemptions: Vec<Exemption>,
    /// Further kinds that carry templates.
    pub workloads: Vec<ExtraKind>,
    /// What is a GPU resource beside the pools' own resources, the built-in globs included.
    pub gpu_resources: Vec<Glob>,
    /// Users whose objects count as made by a controller, the built-in ones included.
    pub controllers: Vec<Glob>,
    /// What is answered when the deadline comes before the verdict.
    pub on_deadline: OnDeadline,
}

/// How objects that were there before the rules are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// What makes new Pods is judged as if it were new.
    Enforce,
    /// What was there before is only warned of.
    Keep,
}

/// What is answered when the deadline comes before the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDeadline {
    /// The request is refused.
    Deny,
    /// The request is let through with a warning.
    Allow,
}

/// A set of nodes that advertise GPUs in one way.
#[derive(Debug, Clone, PartialEq)]
pub struct Pool {
    /// Its name in messages, unique.
    pub name: String,
    /// How its GPUs are shared.
    pub sharing: Sharing,
    /// Whether new workloads may enter.
    pub state: PoolState,
    /// Extended resources that lead to it.
    pub resources: Vec<Glob>,
    /// Labels of its nodes; empty where placement cannot tell.
    pub node_selector: BTreeMap<String, String>,
    /// Tolerations that its nodes' taints ask for.
    pub tolerations: Vec<Toleration>,
    /// The most units that one container may ask for; none is no limit.
    pub per_container: Option<u64>,
    /// The most units that one Pod may ask for; none is no limit.
    pub per_pod: Option<u64>,
    /// What mutation adds.
    pub inject: Inject,
    /// Whether latency-critical workloads may enter.
    pub admits_latency_critical: bool,
    /// Whether workloads must declare checkpoints (or that they need none).
    pub requires_checkpoint: bool,
    /// Whether it takes demand without placement where several pools share a resource.
    pub default: bool,
}

/// How the GPUs of a pool are shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the words are NVIDIA's own")]
pub enum Sharing {
    TimeSlicing,
    Mps,
    Mig,
    Exclusive,
}

/// Whether new workloads may enter a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolState {
    /// Anyone may enter.
    Open,
    /// Nothing new enters and nothing grows; controllers may replace Pods.
    Draining,
    /// No new Pods at all.
    Closed,
}

/// What mutation adds to the workloads of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inject {
    /// Add the pool's tolerations.
    pub tolerations: bool,
    /// Add the pool's node labels to the nodeSelector.
    pub node_selector: bool,
    /// Which objects are completed.
    pub into: InjectInto,
}

/// Which objects mutation completes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum InjectInto {
    /// Pods only.
    Pods,
    /// Pods, and Jobs that are created suspended.
    SuspendedJobs,
    /// Pods and every template.
    Templates,
}

/// A toleration as a Pod holds it. Empty texts stand for absent fields, as in Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Toleration {
    /// The taint's key; empty with `Exists` is every key.
    pub key: String,
    /// `Exists`, `Equal`, or empty, which means `Equal`.
    pub operator: String,
    /// The taint's value.
    pub value: String,
    /// The taint's effect; empty is every effect.
    pub effect: String,
    /// How long a `NoExecute` taint is tolerated, in seconds; none is for ever.
    pub seconds: Option<i64>,
}

/// Settings of one rule.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RuleSettings {
    /// Its action in place of the default one.
    pub action: Option<Action>,
    /// Its action in namespaces that match, the most specific glob first.
    pub namespaces: Vec<(Glob, Action)>,
}

/// Findings that do not refuse. All that is given must match; an empty list matches everything.
#[derive(Debug, Clone, PartialEq)]
pub struct Exemption {
    /// Rule ids.
    pub rules: Vec<Glob>,
    /// Namespaces.
    pub namespaces: Vec<Glob>,
    /// Names of the requesting user.
    pub users: Vec<Glob>,
    /// Groups of the requesting user.
    pub groups: Vec<Glob>,
    /// Objects, as `Kind/name`.
    pub workloads: Vec<Glob>,
    /// The moment from which it no longer counts.
    pub until: Option<Timestamp>,
    /// Why it was given; shown wherever it counts.
    pub reason: String,
}

/// A further kind that carries Pod templates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtraKind {
    /// The API group; empty is the core group.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// JSON pointers to PodTemplateSpecs, as tokens; `*` stands for every element or key.
    pub templates: Vec<Vec<String>>,
    /// JSON pointers to bare PodSpecs, likewise.
    pub pod_specs: Vec<Vec<String>>,
}

impl Config {
    /// The pools that a resource name leads to, as places in [`Config::pools`]: those that name it exactly, else those whose
    /// glob matches it. Several only where pools share a resource and placement tells them apart.
    pub fn pools_of_resource<'c>(&'c self, resource: &'c str) -> impl Iterator<Item = usize> + 'c {
        let exact = self.pools.iter().any(|pool| pool.resources.iter().any(|glob| glob.is_exact(resource)));
        let fits = move |glob: &Glob| if exact { glob.is_exact(resource) } else { glob.matches(resource) };
        let places = self.pools.iter().enumerate();
        places.filter(move |(_, pool)| pool.resources.iter().any(fits)).map(|(place, _)| place)
    }

    /// Whether the resource stands for GPUs: a pool names it, or one of the globs does.
    pub fn is_gpu(&self, resource: &str) -> bool {
        let pools = self.pools.iter().flat_map(|pool| &pool.resources);
        pools.chain(&self.gpu_resources).any(|glob| glob.matches(resource))
    }

    /// What is answered when the deadline comes before the verdict. Where nothing is refused for a finding, nothing is for the
    /// lack of one either.
    pub fn at_deadline(&self) -> OnDeadline {
        if self.enforcement == Action::Deny { self.on_deadline } else { OnDeadline::Allow }
    }

    /// The action of a rule in a namespace, before `enforcement` caps it.
    pub fn action(&self, rule: RuleId, namespace: &str) -> Action {
        let settings = self.rules.get(&rule);
        let here = settings.and_then(|settings| settings.namespaces.iter().find(|(glob, _)| glob.matches(namespace)));
        here.map(|(_, action)| *action)
            .or(settings.and_then(|settings| settings.action))
            .unwrap_or(rule.default_action())
    }
}
