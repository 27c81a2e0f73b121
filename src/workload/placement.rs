//! Where a template's Pods may run, by nodeSelector, required node affinity and nodeName.
//!
//! What it does: answers whether labels of a node meet them, as `GetRequiredNodeAffinity` of
//! `k8s.io/component-helpers/scheduling/corev1/nodeaffinity` does, and from that, whether they force or contradict the labels
//! of a pool. Invariant: a term that Kubernetes' own parser refuses matches nothing.

use crate::facts::{Facts, Labels};
use crate::json::{Json, Object};
use crate::names;
use crate::workload::path::Path;
use crate::workload::{Placed, Template};

/// The field that a requirement on fields can name.
const NODE_NAME: &str = "metadata.name";

/// The scheduling constraints of a template.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Placement<'r> {
    /// Label, value and path of each entry of the nodeSelector.
    selector: Vec<(&'r str, &'r str, Path<'r>)>,
    /// The terms of required node affinity, of which one must be met; nothing where none is required.
    terms: Option<(Path<'r>, Vec<Term<'r>>)>,
    /// The node that the Pod names, with the path.
    pub node_name: Option<(&'r str, Path<'r>)>,
}

/// A place that contradicts a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contradiction {
    /// The field.
    pub field: String,
    /// What stands there.
    pub found: String,
}

/// One term: all of its requirements must be met. Nothing where it can be met by no node.
type Term<'r> = Option<Vec<Requirement<'r>>>;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement<'r> {
    on: On<'r>,
    test: Test<'r>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum On<'r> {
    Label(&'r str),
    /// A field of the Node. Kubernetes knows its name, and takes every other one for empty.
    Field(&'r str),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Test<'r> {
    In(Vec<&'r str>),
    NotIn(Vec<&'r str>),
    Exists,
    Missing,
    Above(i64),
    Below(i64),
}

impl<'r> Placement<'r> {
    /// Reads the constraints of a template.
    pub fn of(template: &Template<'r>) -> Self {
        let selector = template.field("nodeSelector").map(|piece| {
            let path = &piece.path;
            // A parameter, as Argo's templates hold them, says nothing yet.
            let members = piece.value.as_object().into_iter().flat_map(Object::iter);
            let texts = members.filter_map(|(key, value)| Some((key, value.as_str()?, path.key(key))));
            texts.filter(|(_, value, _)| !value.contains("{{")).collect()
        });
        let required = template
            .field("affinity")
            .and_then(|piece| piece.descend(&["nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"]));
        let terms = required.map(|required| {
            let terms = required.elements("nodeSelectorTerms").map(|term| read_term(&term)).collect();
            (required.path.key("nodeSelectorTerms"), terms)
        });
        let name = template.field("nodeName");
        let node_name =
            name.and_then(|piece| Some((piece.value.as_str().filter(|name| !name.is_empty())?, piece.path)));
        Self { selector: selector.unwrap_or_default(), terms, node_name }
    }

    /// Whether a node with these labels meets nodeSelector and required affinity. nodeName is no part of it, as it is none
    /// of the scheduler's question.
    pub fn matches(&self, node: &str, labels: &Labels) -> bool {
        self.selector.iter().all(|(key, value, _)| labels.get(*key).is_some_and(|label| label == value))
            && self.terms.as_ref().is_none_or(|(_, terms)| {
                terms.iter().flatten().any(|term| term.iter().all(|requirement| requirement.met(node, labels)))
            })
    }

    /// Whether only nodes with these labels can meet the constraints.
    pub fn forces(&self, pool: &Labels, facts: &Facts) -> bool {
        if pool.is_empty() {
            return false;
        }
        let named = |name: &str| facts.node(name).is_some_and(|labels| contains(labels, pool));
        if self.node_name.as_ref().is_some_and(|(name, _)| named(name)) {
            return true;
        }
        let open: Vec<(&String, &String)> =
            pool.iter().filter(|(key, value)| !self.selector.iter().any(|(k, v, _)| k == key && v == value)).collect();
        if open.is_empty() {
            return true;
        }
        let Some((_, terms)) = &self.terms else { return false };
        let mut live = terms.iter().flatten().peekable();
        live.peek().is_some()
            && live.all(|term| {
                open.iter().all(|(key, value)| term.iter().any(|requirement| requirement.forces(key, value)))
                    || term.iter().any(|requirement| requirement.forced_node().is_some_and(named))
            })
    }

    /// What keeps the Pods from every node of a pool, where something does.
    pub fn contradicts(&self, pool: &Labels, facts: &Facts) -> Option<Contradiction> {
        let outside = |name: &str| facts.node(name).is_some_and(|labels| !contains(labels, pool));
        for (key, value, path) in &self.selector {
            if pool.get(*key).is_some_and(|wanted| wanted != value) {
                return Some(Contradiction { field: path.to_string(), found: (*value).to_owned() });
            }
        }
        if let Some((name, path)) = &self.node_name
            && outside(name)
        {
            return Some(Contradiction { field: path.to_string(), found: (*name).to_owned() });
        }
        let (path, terms) = self.terms.as_ref()?;
        let excludes = |term: &Term<'_>| match term {
            None => true,
            Some(requirements) => requirements
                .iter()
                .any(|requirement| requirement.excludes(pool) || requirement.forced_node().is_some_and(outside)),
        };
        terms.iter().all(excludes).then(|| Contradiction {
            field: path.to_string(),
            found: terms.iter().flatten().flatten().map(Requirement::to_string).collect::<Vec<_>>().join(", "),
        })
    }
}

/// Whether the labels hold all of the wanted ones.
pub(crate) fn contains(labels: &Labels, wanted: &Labels) -> bool {
    wanted.iter().all(|(key, value)| labels.get(key) == Some(value))
}

impl Requirement<'_> {
    fn met(&self, node: &str, labels: &Labels) -> bool {
        let value = match self.on {
            On::Field(NODE_NAME) => Some(node),
            On::Field(_) => Some(""),
            On::Label(key) => labels.get(key).map(String::as_str),
        };
        self.test.met(value)
    }

    fn forces(&self, key: &str, value: &str) -> bool {
        let On::Label(label) = self.on else { return false };
        label == key && matches!(&self.test, Test::In(values) if values.iter().all(|allowed| *allowed == value))
    }

    fn forced_node(&self) -> Option<&str> {
        match (&self.on, &self.test) {
            (On::Field(NODE_NAME), Test::In(names)) => names.first().copied(),
            _ => None,
        }
    }

    fn excludes(&self, pool: &Labels) -> bool {
        let On::Label(key) = self.on else { return false };
        pool.get(key).is_some_and(|value| !self.test.met(Some(value)))
    }
}

impl std::fmt::Display for Requirement<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let key = match self.on {
            On::Field(key) | On::Label(key) => key,
        };
        match &self.test {
            Test::In(values) => write!(out, "{key} in ({})", values.join(", ")),
            Test::NotIn(values) => write!(out, "{key} not in ({})", values.join(", ")),
            Test::Exists => write!(out, "{key} exists"),
            Test::Missing => write!(out, "{key} does not exist"),
            Test::Above(bound) => write!(out, "{key} > {bound}"),
            Test::Below(bound) => write!(out, "{key} < {bound}"),
        }
    }
}

impl Test<'_> {
    fn met(&self, value: Option<&str>) -> bool {
        let number = || value.and_then(parse_int);
        match self {
            Self::In(values) => value.is_some_and(|value| values.contains(&value)),
            Self::NotIn(values) => value.is_none_or(|value| !values.contains(&value)),
            Self::Exists => value.is_some(),
            Self::Missing => value.is_none(),
            Self::Above(bound) => number().is_some_and(|number| number > *bound),
            Self::Below(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

/// A term without any requirement matches nothing, and so does one with a requirement that cannot be read.
fn read_term<'r>(term: &Placed<'r>) -> Term<'r> {
    let expressions = term.value.list("matchExpressions").iter().map(read_expression);
    let fields = term.value.list("matchFields").iter().map(read_field);
    let requirements: Option<Vec<_>> = expressions.chain(fields).collect();
    requirements.filter(|requirements| !requirements.is_empty())
}

fn read_expression<'r>(expression: &'r Json<'r>) -> Option<Requirement<'r>> {
    let key = expression.text("key").filter(|key| names::label_key(key).is_ok())?;
    let values = values(expression)?;
    let test = match (expression.text("operator")?, values.as_slice()) {
        ("In", [_, ..]) => Test::In(values),
        ("NotIn", [_, ..]) => Test::NotIn(values),
        ("Exists", []) => Test::Exists,
        ("DoesNotExist", []) => Test::Missing,
        ("Gt", [bound]) => Test::Above(parse_int(bound)?),
        ("Lt", [bound]) => Test::Below(parse_int(bound)?),
        _ => return None,
    };
    let labels =
        expression.list("values").iter().filter_map(Json::as_str).all(|value| names::label_value(value).is_ok());
    labels.then_some(Requirement { on: On::Label(key), test })
}

/// A requirement on a field has exactly one value.
fn read_field<'r>(field: &'r Json<'r>) -> Option<Requirement<'r>> {
    let values = values(field)?;
    let test = match (field.text("operator")?, values.len()) {
        ("In", 1) => Test::In(values),
        ("NotIn", 1) => Test::NotIn(values),
        _ => return None,
    };
    Some(Requirement { on: On::Field(field.text("key")?), test })
}

fn values<'r>(requirement: &'r Json<'r>) -> Option<Vec<&'r str>> {
    requirement.list("values").iter().map(Json::as_str).collect()
}

/// Go's `strconv.ParseInt` with base 10.
fn parse_int(text: &str) -> Option<i64> {
    text.parse().ok()
}

#[cfg(test)]
mod tests;
