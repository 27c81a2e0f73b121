//! One object, made ready for the rules: each template with its demand, class, placement and pools.
//!
//! Invariant: everything that rules ask is worked out once here, the same way for the new object and for the old one.

use std::collections::HashMap;

use crate::config::{Config, Pool};
use crate::facts::Facts;
use crate::json::Json;
use crate::policy::decision::{Action, RuleId};
use crate::review::{Operation, Request};
use crate::workload::class::{self, Class};
use crate::workload::demand::{Ask, Asker, Demand, Sum};
use crate::workload::placement::{Placement, contains};
use crate::workload::{Template, kinds};

/// What every rule may look at, beside the template itself.
#[derive(Debug)]
pub struct Scene<'s> {
    /// The configuration in force.
    pub config: &'s Config,
    /// What is known of the cluster.
    pub facts: &'s Facts,
    /// The request.
    pub request: &'s Request<'s>,
    /// The templates of the object as it is, by their identity, on UPDATE.
    pub old: HashMap<String, Judged<'s>>,
    /// Whether the requesting user is one of the controllers.
    pub by_controller: bool,
}

/// A template and all that follows from it.
#[derive(Debug)]
pub struct Judged<'s> {
    /// The template.
    pub template: Template<'s>,
    /// What it asks for.
    pub demand: Demand<'s>,
    /// What it declares.
    pub class: Class,
    /// Where it may run.
    pub placement: Placement<'s>,
    /// The pools that its demand leads to, in the order of the configuration.
    pub pools: Vec<PoolDemand<'s>>,
    /// GPU resources that lead to several pools of which nothing tells which is meant: places in the demand.
    pub ambiguous: Vec<usize>,
    /// The pools that its placement forces, as places in the configuration.
    pub placed_on: Vec<usize>,
}

/// What a template asks of one pool.
#[derive(Debug)]
pub struct PoolDemand<'s> {
    /// The pool, as its place in the configuration.
    pub pool: usize,
    /// Those who ask, in the order of the containers; one who asks for several resources of the pool is added up.
    pub asks: Vec<Ask<'s>>,
    /// Names of the resources asked for.
    pub resources: Vec<&'s str>,
    /// What the whole Pod holds at once.
    pub total: u128,
}

impl<'s> Scene<'s> {
    /// Makes a request ready. The old object is looked at on UPDATE only.
    pub fn new(config: &'s Config, facts: &'s Facts, request: &'s Request<'s>) -> Self {
        let by_controller = config.controllers.iter().any(|glob| glob.matches(&request.user.name));
        let old = match request.operation {
            Operation::Update => judge_object(config, facts, request, &request.old_object),
            _ => Vec::new(),
        };
        let old = old.into_iter().map(|judged| (judged.template.identity.clone(), judged)).collect();
        Self { config, facts, request, old, by_controller }
    }

    /// The templates of the new object.
    pub fn judge(&self) -> Vec<Judged<'s>> {
        judge_object(self.config, self.facts, self.request, &self.request.object)
    }

    /// A pool by its place.
    pub fn pool(&self, place: usize) -> Option<&'s Pool> {
        self.config.pools.get(place)
    }

    /// The old state of a template.
    pub fn old_of(&self, judged: &Judged<'_>) -> Option<&Judged<'s>> {
        self.old.get(&judged.template.identity)
    }

    /// Whether the object is a Pod itself and not something that makes Pods.
    pub fn is_pod(&self) -> bool {
        self.request.kind.group.is_empty() && self.request.kind.kind == "Pod"
    }
}

impl<'s> Judged<'s> {
    /// The names of all resources asked for that lead to a pool.
    pub fn pool_resources(&self) -> impl Iterator<Item = &'s str> + '_ {
        self.pools.iter().flat_map(|pool| pool.resources.iter().copied())
    }

    /// The pools that the template is in, else those that it is placed on: those that may refuse it for its class.
    pub fn concerned(&self) -> impl Iterator<Item = usize> + '_ {
        let within = self.pools.iter().map(|pool| pool.pool);
        let placed = self.placed_on.iter().copied().filter(|place| self.pools.iter().all(|pool| pool.pool != *place));
        within.chain(placed)
    }

    /// What a Pod of it demands of each GPU resource, as exact decimal numbers.
    pub fn demands(&self) -> impl Iterator<Item = (String, String)> + '_ {
        self.demand.resources.iter().map(|demand| (demand.resource.to_owned(), demand.total.to_string()))
    }

    /// Whether it asks for GPUs or is placed on a pool.
    pub fn is_involved(&self) -> bool {
        !self.demand.resources.is_empty() || !self.placed_on.is_empty()
    }

    /// The name of an asker, for a message.
    pub fn asker(&self, asker: Asker) -> String {
        match asker {
            Asker::Container(place) => {
                let name = self.template.containers.get(place).map_or("", |container| container.name);
                format!("container {name:?}")
            }
            Asker::Pod => "the Pod".to_owned(),
            Asker::Overhead => "the Pod's overhead".to_owned(),
        }
    }
}

fn judge_object<'s>(
    config: &'s Config,
    facts: &'s Facts,
    request: &'s Request<'s>,
    object: &'s Json<'s>,
) -> Vec<Judged<'s>> {
    let templates = kinds::templates(&request.kind.group, &request.kind.kind, object, &config.workloads);
    templates.into_iter().map(|template| judge(config, facts, &request.namespace, object, template)).collect()
}

fn judge<'s>(
    config: &'s Config,
    facts: &'s Facts,
    namespace: &str,
    object: &'s Json<'s>,
    template: Template<'s>,
) -> Judged<'s> {
    let demand = Demand::of(&template, |resource| config.is_gpu(resource));
    let class = class::class(config, facts, namespace, object, &template);
    let placement = Placement::of(&template);
    let places = config.pools.iter().enumerate();
    let placed_on: Vec<usize> =
        places.filter(|(_, pool)| placement.forces(&pool.node_selector, facts)).map(|(place, _)| place).collect();
    let mut judged = Judged { template, demand, class, placement, pools: Vec::new(), ambiguous: Vec::new(), placed_on };
    judged.find_pools(config, facts, namespace);
    judged.settle_placement(config);
    judged
}

impl<'s> Judged<'s> {
    fn find_pools(&mut self, config: &'s Config, facts: &Facts, namespace: &str) {
        let action = config.action(RuleId::PlacementMatchesPool, namespace).min(config.enforcement);
        let doubt_is_refused = action == Action::Deny;
        for (place, demand) in self.demand.resources.iter().enumerate() {
            let candidates: Vec<usize> = config.pools_of_resource(demand.resource).collect();
            let pool = match candidates.as_slice() {
                [] => continue,
                [pool] => *pool,
                several => {
                    let meant = self.meant(config, facts, several);
                    if meant.is_none() {
                        self.ambiguous.push(place);
                    }
                    // Where the doubt itself is not refused, it is no way around the rules of the strictest pool.
                    let Some(pool) = meant.or_else(|| strictest(config, several).filter(|_| !doubt_is_refused)) else {
                        continue;
                    };
                    pool
                }
            };
            let known = self.pools.iter().position(|known| known.pool == pool);
            let known = known.unwrap_or_else(|| {
                self.pools.push(PoolDemand { pool, asks: Vec::new(), resources: Vec::new(), total: 0 });
                self.pools.len().saturating_sub(1)
            });
            if let Some(known) = self.pools.get_mut(known) {
                known.resources.push(demand.resource);
                known.asks.extend(demand.asks.iter().cloned());
            }
        }
        for pool in &mut self.pools {
            pool.merge();
            pool.total = Sum::of(&self.template, &pool.asks).total();
        }
        self.pools.sort_by_key(|pool| pool.pool);
    }

    /// Leaves out of the pools that placement forces those that say less than another one: the nodes of a pool with
    /// `{accelerator: nvidia, gpu-mode: shared}` are all nodes of one with `{accelerator: nvidia}` too, so that being there
    /// is no sign of the wider pool.
    fn settle_placement(&mut self, config: &Config) {
        let labels = |place: usize| config.pools.get(place).map(|pool| &pool.node_selector);
        let holds = |wide: usize, narrow: usize| {
            labels(wide).zip(labels(narrow)).is_some_and(|(wide, narrow)| contains(narrow, wide))
        };
        let within: Vec<usize> = self.pools.iter().map(|pool| pool.pool).collect();
        let all = std::mem::take(&mut self.placed_on);
        let narrower = |place: usize| all.iter().any(|other| holds(place, *other) && !holds(*other, place));
        let of_demand = |place: usize| !within.contains(&place) && within.iter().any(|pool| holds(place, *pool));
        self.placed_on = all.iter().copied().filter(|place| !narrower(*place) && !of_demand(*place)).collect();
    }

    /// Which of several pools with the same resource is meant: the one that placement forces, else the only one that it does
    /// not keep the Pods from, else the one that takes demand without placement.
    fn meant(&self, config: &Config, facts: &Facts, candidates: &[usize]) -> Option<usize> {
        if let Some(forced) = candidates.iter().find(|place| self.placed_on.contains(place)) {
            return Some(*forced);
        }
        let fits = |pool: &Pool| self.placement.contradicts(&pool.node_selector, facts).is_none();
        let pools = candidates.iter().filter_map(|place| Some((*place, config.pools.get(*place)?)));
        let fitting: Vec<(usize, &Pool)> = pools.filter(|(_, pool)| fits(pool)).collect();
        let meant = match fitting.as_slice() {
            [only] => Some(only),
            several => several.iter().find(|(_, pool)| pool.default),
        };
        meant.map(|(place, _)| *place)
    }
}

/// The pool with the tightest limits and the most demands.
fn strictest(config: &Config, candidates: &[usize]) -> Option<usize> {
    let limit = |limit: Option<u64>| limit.unwrap_or(u64::MAX);
    let pools = candidates.iter().filter_map(|place| Some((*place, config.pools.get(*place)?)));
    let strictest = pools.min_by_key(|(_, pool)| {
        (limit(pool.per_container), limit(pool.per_pod), !pool.requires_checkpoint, pool.admits_latency_critical)
    });
    strictest.map(|(place, _)| place)
}

impl PoolDemand<'_> {
    /// Brings the asks in order, containers first, and adds up those of one asker.
    fn merge(&mut self) {
        self.asks.sort_by_key(|ask| ask.asker);
        self.asks.dedup_by(|next, first| {
            let same = next.asker == first.asker;
            if same {
                first.count = first.count.saturating_add(next.count);
            }
            same
        });
    }
}
