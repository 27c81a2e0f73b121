//! Where a template's Pods may run, by nodeSelector, required node affinity and nodeName.
//!
//! What it does: answers whether labels of a node meet them, as `GetRequiredNodeAffinity` of
//! `k8s.io/component-helpers/scheduling/corev1/nodeaffinity` does, and from that, whether they force or contradict the labels
//! of a pool. Invariant: a term that Kubernetes' own parser refuses matches nothing.

use crate::facts::{Facts, Labels};
use crate::json::{Json, Object};
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
    let key = expression.text("key").filter(|key| is_label_key(key))?;
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
    let labels = expression.list("values").iter().filter_map(Json::as_str).all(is_label_value);
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

/// A qualified name of Kubernetes: an optional DNS subdomain and a slash before a name of at most 63 characters.
pub fn is_label_key(key: &str) -> bool {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    prefix.is_none_or(is_subdomain) && !name.is_empty() && is_label_value(name)
}

/// At most 63 letters, digits, `-`, `_` and `.`, with a letter or digit at both ends; or nothing.
pub fn is_label_value(value: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let ends = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = value.as_bytes();
    bytes.is_empty() || (bytes.len() <= 63 && ends(bytes.first()) && ends(bytes.last()) && value.bytes().all(inner))
}

fn is_subdomain(text: &str) -> bool {
    let label = |label: &str| {
        let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        !label.is_empty() && !label.starts_with('-') && !label.ends_with('-') && label.bytes().all(inner)
    };
    text.len() <= 253 && text.split('.').all(label)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Event;
    use crate::json;
    use crate::workload::template::pod_template;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn with<T>(spec: &str, ask: impl Fn(&Placement<'_>) -> T) -> T {
        let text = format!(r#"{{"spec":{spec}}}"#);
        let pod = json::parse(text.as_bytes()).unwrap();
        ask(&Placement::of(&pod_template(&pod, &Placed::new(Path::root(), &pod))))
    }

    fn affinity(expressions: &[&str]) -> String {
        let terms: Vec<_> = expressions.iter().map(|e| format!(r#"{{"matchExpressions":[{e}]}}"#)).collect();
        let key = "requiredDuringSchedulingIgnoredDuringExecution";
        format!(r#"{{"affinity":{{"nodeAffinity":{{"{key}":{{"nodeSelectorTerms":[{}]}}}}}}}}"#, terms.join(","))
    }

    const SHARED: &str = r#"{"key":"gpu-mode","operator":"In","values":["shared"]}"#;
    const EITHER: &str = r#"{"key":"gpu-mode","operator":"In","values":["shared","exclusive"]}"#;
    const NOT: &str = r#"{"key":"gpu-mode","operator":"NotIn","values":["shared"]}"#;
    const ZONE: &str = r#"{"key":"zone","operator":"Exists"}"#;

    #[test]
    fn what_forces_a_pool_and_what_contradicts_it() {
        let pool = labels(&[("gpu-mode", "shared")]);
        let facts = Event::Node("n1".to_owned(), labels(&[("gpu-mode", "exclusive")]));
        let facts = Facts::default().after(facts).unwrap();
        for (spec, forces, contradicts) in [
            ("{}".to_owned(), false, false),
            (r#"{"nodeSelector":{"gpu-mode":"shared"}}"#.to_owned(), true, false),
            (r#"{"nodeSelector":{"gpu-mode":"exclusive"}}"#.to_owned(), false, true),
            (r#"{"nodeName":"n1"}"#.to_owned(), false, true),
            (r#"{"nodeName":"n2"}"#.to_owned(), false, false),
            (affinity(&[SHARED]), true, false),
            (affinity(&[SHARED, ZONE]), false, false),
            (affinity(&[EITHER]), false, false),
            (affinity(&[NOT]), false, true),
            (affinity(&[NOT, ZONE]), false, false),
            (affinity(&[]), false, true),
        ] {
            assert_eq!(with(&spec, |p| p.forces(&pool, &facts)), forces, "forces {spec}");
            assert_eq!(with(&spec, |p| p.contradicts(&pool, &facts).is_some()), contradicts, "contradicts {spec}");
        }
    }

    #[test]
    fn matching_follows_kubernetes() {
        let node = labels(&[("cards", "4"), ("zone", "a")]);
        for (expression, expected) in [
            (r#"{"key":"cards","operator":"Gt","values":["3"]}"#, true),
            (r#"{"key":"cards","operator":"Gt","values":["4"]}"#, false),
            (r#"{"key":"zone","operator":"Lt","values":["4"]}"#, false),
            (r#"{"key":"none","operator":"NotIn","values":["x"]}"#, true),
            (r#"{"key":"none","operator":"DoesNotExist"}"#, true),
            (r#"{"key":"zone","operator":"In","values":[]}"#, false),
            (r#"{"key":"zone","operator":"Unheard","values":["a"]}"#, false),
            (r#"{"key":"zone","operator":"In","values":["a","-"]}"#, false),
        ] {
            assert_eq!(with(&affinity(&[expression]), |p| p.matches("n", &node)), expected, "{expression}");
        }
    }
}
