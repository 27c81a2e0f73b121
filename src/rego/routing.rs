//! Whether what a set matches is sent to slicegate at all.
//!
//! What it does: holds the kinds and operations that a set names against the rules of the webhook configurations. Invariant: it
//! complains only where it is sure. Versions, selectors and conditions of a webhook are taken to let everything through, and a
//! kind of which nothing is known is left alone.

use std::collections::{BTreeMap, BTreeSet};

use crate::config::glob::Glob;
use crate::policy::Phase;
use crate::rego::matching::{ANNOTATION, Match};
use crate::rego::problem::Problem;
use crate::rego::program::Speaks;
use crate::review::Operation;
use crate::workload::kinds::known;

mod read;

pub use read::{configuration, served};

/// The name of both webhook configurations.
pub const CONFIGURATION: &str = "slicegate";

/// What the API server sends, and what it serves.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Routes {
    /// The rules of the validating configuration; nothing where that is not known.
    pub validating: Option<Vec<Rule>>,
    /// Those of the mutating one.
    pub mutating: Option<Vec<Rule>>,
    /// What the API server serves; nothing where that is not known.
    pub served: Option<Vec<Resource>>,
}

/// A rule of a webhook.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rule {
    groups: Vec<String>,
    operations: Vec<String>,
    resources: Vec<String>,
    /// `Namespaced` or `Cluster`; anything else is both.
    scope: String,
}

/// A resource, or a subresource of one, with the kind of its objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// The group by which a rule names it.
    group: String,
    /// Its plural name.
    name: String,
    /// The subresource; empty for the resource itself.
    sub: String,
    /// The group of the objects that are sent.
    kind_group: String,
    /// Their kind.
    kind: String,
    namespaced: bool,
    /// Whether a subresource's objects are of its resource's kind.
    of_own_kind: bool,
}

/// What is said of a set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verdict {
    /// Whether it is sure that nothing of what the set matches is sent.
    pub none: bool,
    /// What is not sent, and what to add.
    pub warnings: Vec<Problem>,
}

/// Holds a set against what is sent.
pub fn verdict(routes: &Routes, matches: &Match, speaks: Speaks) -> Verdict {
    let mut tally = Tally::default();
    let mut warnings = BTreeSet::new();
    let phases =
        [(Phase::Validate, speaks.validates, &routes.validating), (Phase::Mutate, speaks.mutates, &routes.mutating)];
    for (phase, _, rules) in phases.into_iter().filter(|(_, speaks, _)| *speaks) {
        let Some(rules) = rules else {
            tally.possible = true;
            continue;
        };
        let asked = Asked { phase, rules, served: routes.served.as_deref() };
        let operations = asked.operations(matches);
        let missing = asked.missing(matches, &operations, &mut tally);
        warnings.extend(asked.told(&missing));
        warnings.extend(tally.never.iter().map(|text| problem(text.clone())));
        tally.never.clear();
    }
    Verdict { none: tally.missing && !tally.possible, warnings: warnings.into_iter().collect() }
}

/// What was found on the way.
#[derive(Default)]
struct Tally {
    /// Something is sent, or may be.
    possible: bool,
    /// Something is not.
    missing: bool,
    /// What no rule could change.
    never: Vec<String>,
}

/// What of one group is not sent, by what to add: the group, the scope and the resource, with its kind and the operations.
type Missing = BTreeMap<(String, &'static str, String, String), BTreeSet<&'static str>>;

/// One of the two calls.
struct Asked<'r> {
    phase: Phase,
    rules: &'r [Rule],
    served: Option<&'r [Resource]>,
}

impl Asked<'_> {
    /// The operations that the set sees in this call.
    fn operations(&self, matches: &Match) -> Vec<Operation> {
        let carries = matches.kinds().is_empty();
        let all = [Operation::Create, Operation::Update, Operation::Delete, Operation::Connect];
        let seen = |operation: &Operation| match (self.phase, operation) {
            // Only what is new is completed.
            (Phase::Mutate, operation) => *operation == Operation::Create,
            // What is deleted or connected to carries no demand.
            (Phase::Validate, Operation::Delete | Operation::Connect) => !carries,
            (Phase::Validate, _) => true,
        };
        all.into_iter().filter(|operation| matches.means_operation(*operation)).filter(seen).collect()
    }

    fn missing(&self, matches: &Match, operations: &[Operation], tally: &mut Tally) -> Missing {
        let mut missing = Missing::new();
        if operations.is_empty() && self.phase == Phase::Mutate {
            tally.missing = true;
            let text =
                "its `patch` is never asked: only new objects are completed, and CREATE is not among its operations";
            tally.never.push(text.to_owned());
        }
        let kinds = matches.kinds();
        for operation in operations {
            if kinds.is_empty() {
                let sent = self.rules.iter().any(|rule| rule.sends(*operation));
                tally.possible |= sent;
                if !sent {
                    tally.missing = true;
                    let anything = ("*".to_owned(), "*", "*".to_owned(), "anything".to_owned());
                    missing.entry(anything).or_default().insert(operation.as_str());
                }
            }
            for (kind, group) in &kinds {
                let pattern = Pattern { kind: Glob::new(kind.as_str()), group: Glob::new(group.as_str()) };
                self.judge(&pattern, *operation, tally, &mut missing);
            }
        }
        missing
    }

    /// One kind and one operation.
    fn judge(&self, pattern: &Pattern, operation: Operation, tally: &mut Tally, missing: &mut Missing) {
        let fitting: Vec<&Resource> =
            self.served.unwrap_or_default().iter().filter(|resource| pattern.fits(resource)).collect();
        if fitting.is_empty() {
            return self.guess(pattern, operation, tally, missing);
        }
        let fitting: Vec<&Resource> = fitting.into_iter().filter(|resource| resource.is_judged(operation)).collect();
        if fitting.is_empty() {
            tally.missing = true;
            tally.never.push(format!("policies are never asked about {} of {}", operation.as_str(), pattern.shown()));
            return;
        }
        let mut groups: BTreeMap<&str, Vec<&Resource>> = BTreeMap::new();
        for resource in fitting {
            // A pattern says that whatever comes is welcome, a name that this very thing is.
            let group = match resource.group.as_str() {
                // The API server sends Events of both groups as those of the one that a rule names.
                "events.k8s.io" => "",
                group if pattern.is_name() => group,
                _ => "",
            };
            groups.entry(group).or_default().push(resource);
        }
        for resources in groups.values() {
            let sent = |resource: &&Resource| self.rules.iter().any(|rule| rule.sends_resource(resource, operation));
            if resources.iter().any(sent) {
                tally.possible = true;
                continue;
            }
            tally.missing = true;
            if !pattern.is_name() {
                missing.entry(pattern.rule()).or_default().insert(operation.as_str());
                continue;
            }
            let whole = resources.iter().filter(|resource| resource.sub.is_empty() || operation == Operation::Connect);
            for resource in whole {
                let key = (resource.group.clone(), resource.scope(), resource.path(), resource.kind.clone());
                missing.entry(key).or_default().insert(operation.as_str());
            }
        }
    }

    /// The same for a kind that the API server does not serve, or of which nobody knows what it serves.
    fn guess(&self, pattern: &Pattern, operation: Operation, tally: &mut Tally, missing: &mut Missing) {
        let table: Vec<(&str, &str)> = known().filter(|(group, kind)| pattern.matches(group, kind)).collect();
        let plurals_of = if pattern.is_name() { plurals(pattern.kind.as_str()) } else { vec![String::new()] };
        let sent = self.rules.iter().any(|rule| {
            let named = |name: &String| name.is_empty() || rule.names_resource(name, "");
            rule.sends(operation) && rule.may_be_of(&pattern.group) && plurals_of.iter().any(named)
        });
        if sent {
            tally.possible = true;
        } else if table.is_empty() || !pattern.is_name() {
            // A kind may come with its definition at any time.
            tally.possible = true;
            if pattern.is_name() && self.served.is_some() {
                tally.never.push(self.unknown(pattern));
            }
        } else {
            tally.missing = true;
            for (group, kind) in table {
                let plural = plurals(kind).swap_remove(0);
                let key = (group.to_owned(), "*", plural, kind.to_owned());
                missing.entry(key).or_default().insert(operation.as_str());
            }
        }
    }

    fn unknown(&self, pattern: &Pattern) -> String {
        let others = self.served.unwrap_or_default().iter().filter(|other| pattern.kind.matches(&other.kind));
        let others: BTreeSet<&str> = others.map(|other| other.kind_group.as_str()).collect();
        let others: Vec<String> = others.into_iter().map(|group| format!("{group:?}")).collect();
        let hint = if others.is_empty() { String::new() } else { format!(", but in {}", others.join(", ")) };
        format!("the cluster serves no {}{hint}; check how it is spelt, unless it comes later", pattern.shown())
    }

    /// One warning for each rule that is to be added.
    fn told(&self, missing: &Missing) -> Vec<Problem> {
        let mut rules: BTreeMap<_, (BTreeSet<&str>, BTreeSet<&str>)> = BTreeMap::new();
        for ((group, scope, resource, kind), operations) in missing {
            let rule = (group.as_str(), *scope, operations.iter().copied().collect::<Vec<_>>());
            let (resources, kinds) = rules.entry(rule).or_default();
            resources.insert(resource);
            kinds.insert(kind);
        }
        let (start, configuration) = match self.phase {
            Phase::Validate => ("", "ValidatingWebhookConfiguration"),
            Phase::Mutate => ("its `patch` is not asked for all of it: ", "MutatingWebhookConfiguration"),
        };
        let texts = rules.into_iter().map(|((group, scope, operations), (resources, kinds))| {
            let list = |items: Vec<&str>| items.join(", ");
            let kinds = list(kinds.into_iter().collect());
            let resources = list(resources.into_iter().collect());
            let (group, resources) = (quoted(group), if resources == "*" { quoted("*") } else { resources });
            problem(format!(
                "{start}no rule of the {configuration} {CONFIGURATION} sends {} of {kinds}; add {{apiGroups: [{group}], \
                 apiVersions: [\"*\"], operations: [{}], resources: [{resources}], scope: {}}} to it",
                operations.join(" and "),
                list(operations.clone()),
                if scope == "*" { quoted("*") } else { scope.to_owned() },
            ))
        });
        texts.collect()
    }
}

fn problem(text: String) -> Problem {
    Problem::of_file(ANNOTATION, text)
}

/// A kind as a set names it.
struct Pattern {
    kind: Glob,
    group: Glob,
}

impl Pattern {
    fn matches(&self, group: &str, kind: &str) -> bool {
        self.kind.matches(kind) && self.group.matches(group)
    }

    fn fits(&self, resource: &Resource) -> bool {
        self.matches(&resource.kind_group, &resource.kind)
    }

    /// Whether it names one kind, of whichever groups.
    fn is_name(&self) -> bool {
        self.kind.is_literal()
    }

    fn shown(&self) -> String {
        match (self.kind.as_str(), self.group.as_str()) {
            (kind, "*") => format!("kind {kind}"),
            (kind, group) => format!("kind {kind} of group {group:?}"),
        }
    }

    /// The rule that would send all of it.
    fn rule(&self) -> (String, &'static str, String, String) {
        let group = if self.group.is_literal() { self.group.as_str() } else { "*" };
        (group.to_owned(), "*", "*".to_owned(), self.shown())
    }
}

impl Rule {
    fn sends(&self, operation: Operation) -> bool {
        self.operations.iter().any(|known| known == "*" || known == operation.as_str())
    }

    fn sends_resource(&self, resource: &Resource, operation: Operation) -> bool {
        let group = self.groups.iter().any(|group| group == "*" || *group == resource.group);
        let scope = match self.scope.as_str() {
            "Namespaced" => resource.namespaced,
            "Cluster" => !resource.namespaced,
            _ => true,
        };
        group && scope && self.sends(operation) && self.names_resource(&resource.name, &resource.sub)
    }

    fn names_resource(&self, name: &str, sub: &str) -> bool {
        self.resources.iter().any(|known| {
            let (known, known_sub) = known.split_once('/').unwrap_or((known, ""));
            (known == "*" || known == name) && (known_sub == "*" || known_sub == sub)
        })
    }

    fn may_be_of(&self, group: &Glob) -> bool {
        self.groups.iter().any(|known| known == "*" || group.matches(known))
    }
}

impl Resource {
    /// Whether policies are asked about requests on it that do this.
    fn is_judged(&self, operation: Operation) -> bool {
        match operation {
            Operation::Create | Operation::Update => matches!(self.sub.as_str(), "" | "ephemeralcontainers" | "resize"),
            Operation::Delete => self.sub.is_empty(),
            Operation::Connect => !self.sub.is_empty() && !self.of_own_kind,
        }
    }

    fn path(&self) -> String {
        if self.sub.is_empty() { self.name.clone() } else { format!("{}/{}", self.name, self.sub) }
    }

    fn scope(&self) -> &'static str {
        if self.namespaced { "Namespaced" } else { "Cluster" }
    }
}

/// What the resource of a kind is probably called, the likeliest first.
fn plurals(kind: &str) -> Vec<String> {
    let name = kind.to_lowercase();
    let mut names = vec![format!("{name}s"), format!("{name}es"), name.clone()];
    names.extend(name.strip_suffix('y').map(|stem| format!("{stem}ies")));
    names
}

fn quoted(text: &str) -> String {
    if text.is_empty() || text == "*" { format!("{text:?}") } else { text.to_owned() }
}

#[cfg(test)]
mod tests;
