//! How a verdict came about, step by step: templates, demand, class, pools, rules.
//!
//! What it does: writes down what the rules were asked and what they answered. Invariant: every value comes from the same
//! functions that decide; nothing is worked out a second time in another way.

use jiff::Timestamp;
use serde::Serialize;

use super::decision::{Action, Finding, RuleId};
use super::judge::{Judged, Scene};
use super::{Examined, existing, rules};
use crate::workload::Role;
use crate::workload::class::Declared;
use crate::workload::demand::{Asker, ResourceDemand, Sum};

/// What is said of one request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// Whether rules look at such a request at all.
    pub judged: bool,
    /// Whether it involves a GPU, which is what policy sets without kinds of their own look at.
    pub involves_gpu: bool,
    /// The templates of Pods that were found.
    pub templates: Vec<Template>,
}

/// One template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Template {
    /// Where it stands; empty for a Pod itself.
    pub path: String,
    /// Who asks for GPUs.
    pub asks: Vec<Ask>,
    /// What a Pod of it holds of each resource.
    pub demand: Vec<Demand>,
    /// What it declares.
    pub latency: Declaration,
    /// What it declares.
    pub checkpoint: Declaration,
    /// The priority class that makes it latency-critical, and where it comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub critical_by: Option<String>,
    /// The pools that it is in.
    pub pools: Vec<InPool>,
    /// Resources of several pools of which nothing says which is meant.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unclear: Vec<String>,
    /// The pools that its placement leads to.
    pub placed_on: Vec<String>,
    /// What each rule says.
    pub rules: Vec<Rule>,
}

/// A container, or the Pod itself, and what it asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ask {
    /// Who asks.
    pub who: String,
    /// When it runs: `init`, `sidecar`, `main`, `ephemeral`; empty for the Pod.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub role: &'static str,
    /// The resource.
    pub resource: String,
    /// How many.
    pub count: String,
    /// As it is written.
    pub written: String,
    /// Where.
    pub field: String,
}

/// What a Pod holds of a resource at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Demand {
    /// The resource.
    pub resource: String,
    /// The number.
    pub total: String,
    /// How it comes about.
    pub arithmetic: String,
}

/// What is declared for one key, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Declaration {
    /// The label.
    pub key: String,
    /// The word; nothing where none counts.
    pub word: Option<String>,
    /// Where it stands, or what follows from there being none.
    pub source: String,
    /// Declarations that do not count, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
}

/// A pool, and what of it is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InPool {
    /// The pool.
    pub pool: String,
    /// The resources that lead there.
    pub resources: Vec<String>,
    /// What the whole Pod holds of it.
    pub total: String,
}

/// What one rule says of a template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rule {
    /// The rule.
    pub rule: &'static str,
    /// What it is set to here.
    pub action: &'static str,
    /// How far its worst finding goes; `passes` without one, `off` where the rule does not look.
    pub outcome: &'static str,
    /// Why.
    pub why: Vec<String>,
}

impl Examined<'_> {
    /// Says how the verdict of the built-in rules comes about.
    pub fn explain(&self, now: Timestamp) -> Explanation {
        let templates = self.templates.iter().map(|judged| template(&self.scene, judged, now));
        Explanation { judged: self.judged, involves_gpu: self.involves_gpu(), templates: templates.collect() }
    }
}

fn template(scene: &Scene<'_>, judged: &Judged<'_>, now: Timestamp) -> Template {
    let class = &judged.class;
    let pool = |place: usize| scene.pool(place).map(|pool| pool.name.clone()).unwrap_or_default();
    let [latency, checkpoint] = &class.misplaced;
    let unknown = |key: &str| {
        let wrong = class.unknown.iter().filter(|unknown| unknown.key == key);
        wrong
            .map(|unknown| format!("{:?} at {} is none of the words", unknown.found, unknown.source))
            .collect::<Vec<_>>()
    };
    let declaration = |key: &str, declared: Option<&Declared>, ignored: &[String], otherwise: &str| Declaration {
        key: key.to_owned(),
        word: declared.map(|declared| declared.word.to_owned()),
        source: declared.map_or(otherwise, |declared| declared.source.as_str()).to_owned(),
        ignored: ignored.iter().cloned().chain(unknown(key)).collect(),
    };
    let findings = existing::findings(scene, judged, now);
    Template {
        path: judged.template.path.to_string(),
        asks: judged.demand.resources.iter().flat_map(|demand| asks(judged, demand)).collect(),
        demand: judged.demand.resources.iter().map(|demand| arithmetic(judged, demand)).collect(),
        latency: declaration(
            &scene.config.latency_label,
            class.latency.as_ref(),
            latency,
            "not declared, which counts as tolerant",
        ),
        checkpoint: declaration(&scene.config.checkpoint_label, class.checkpoint.as_ref(), checkpoint, "not declared"),
        critical_by: class.critical_priority.as_ref().map(|(name, source)| format!("priority class {name} ({source})")),
        pools: judged
            .pools
            .iter()
            .map(|demand| InPool {
                pool: pool(demand.pool),
                resources: demand.resources.iter().map(|resource| (*resource).to_owned()).collect(),
                total: demand.total.to_string(),
            })
            .collect(),
        unclear: judged
            .ambiguous
            .iter()
            .filter_map(|place| Some(judged.demand.resources.get(*place)?.resource.to_owned()))
            .collect(),
        placed_on: judged.placed_on.iter().map(|place| pool(*place)).collect(),
        rules: RuleId::ALL.into_iter().map(|id| rule(scene, judged, id, &findings)).collect(),
    }
}

fn asks(judged: &Judged<'_>, demand: &ResourceDemand<'_>) -> Vec<Ask> {
    let role = |asker: Asker| match asker {
        Asker::Container(place) => match judged.template.containers.get(place).map(|container| container.role) {
            Some(Role::Init) => "init",
            Some(Role::Sidecar) => "sidecar",
            Some(Role::Ephemeral) => "ephemeral",
            Some(Role::Main) | None => "main",
        },
        Asker::Pod | Asker::Overhead => "",
    };
    let asks = demand.asks.iter().map(|ask| Ask {
        who: judged.asker(ask.asker),
        role: role(ask.asker),
        resource: demand.resource.to_owned(),
        count: ask.count.to_string(),
        written: ask.spelling(),
        field: ask.value.path.to_string(),
    });
    asks.collect()
}

fn arithmetic(judged: &Judged<'_>, demand: &ResourceDemand<'_>) -> Demand {
    let sum = Sum::of(&judged.template, &demand.asks);
    let mut steps = match (sum.init, sum.sidecars) {
        (0, 0) => format!("containers {}", sum.run),
        (init, 0) => format!("the greater of init containers {init} and containers {}", sum.run),
        (init, sidecars) => {
            format!("the greater of the init phase {init} and containers {} with sidecars {sidecars}", sum.run)
        }
    };
    if sum.pod > 0 {
        steps = format!("{steps}, at least the Pod's own {}", sum.pod);
    }
    if sum.overhead > 0 {
        steps = format!("{steps}, and overhead {} on top", sum.overhead);
    }
    Demand { resource: demand.resource.to_owned(), total: sum.total().to_string(), arithmetic: steps }
}

fn rule(scene: &Scene<'_>, judged: &Judged<'_>, id: RuleId, findings: &[Finding]) -> Rule {
    let action = scene.config.action(id, &scene.request.namespace).min(scene.config.enforcement);
    let found: Vec<&Finding> = findings.iter().filter(|finding| finding.rule.as_str() == id.as_str()).collect();
    let worst = found.iter().map(|finding| finding.action).max();
    let (outcome, why) = match (action, worst) {
        (Action::Off, _) => ("off", vec!["the configuration turns it off here".to_owned()]),
        (_, None) => ("passes", vec![rules::passes(id, scene, judged)]),
        (_, Some(worst)) => (worst.as_str(), found.iter().map(|finding| why(finding)).collect()),
    };
    Rule { rule: id.as_str(), action: action.as_str(), outcome, why }
}

fn why(finding: &Finding) -> String {
    let spared = match &finding.spared {
        Some(super::decision::Spared::Exempted(reason)) => format!(" (exempted: {reason})"),
        Some(_) => " (spared)".to_owned(),
        None => String::new(),
    };
    format!("{}: {}{spared}", finding.field, finding.message)
}
