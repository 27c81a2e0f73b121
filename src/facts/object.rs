//! A Kubernetes object, as JSON, to a [`Fact`].
//!
//! What it does: reads the few fields of a Namespace, Node or PriorityClass that rules ask for. Invariant: whatever stands
//! in the object, its name is enough for a fact; what is malformed beside it is left out and named, so that who watches a
//! cluster can go on and who reads a file can refuse it.

use serde_json::Value;

use super::{Event, Labels};

/// The kinds of objects that facts come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A Namespace: its labels are known.
    Namespace,
    /// A Node: its labels are known.
    Node,
    /// A `PriorityClass`: known is whether it is the cluster's default.
    PriorityClass,
}

/// What is known of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fact {
    /// A namespace's name and labels.
    Namespace(String, Labels),
    /// A node's name and labels.
    Node(String, Labels),
    /// A priority class's name, and whether it is the cluster's default.
    PriorityClass(String, bool),
}

/// What an object says, and what in it could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// The readable part.
    pub fact: Fact,
    /// Each malformed field that was left out: its path, what is wrong, and what would be right.
    pub problems: Vec<String>,
}

impl Kind {
    /// The kind of an object by its `apiVersion` and `kind`; nothing where no facts come from it.
    pub fn of(api_version: &str, kind: &str) -> Option<Self> {
        match (api_version.rsplit_once('/').map_or("", |(group, _)| group), kind) {
            ("", "Namespace") => Some(Self::Namespace),
            ("", "Node") => Some(Self::Node),
            ("scheduling.k8s.io", "PriorityClass") => Some(Self::PriorityClass),
            _ => None,
        }
    }
}

impl Fact {
    /// The event that makes this known.
    pub fn present(self) -> Event {
        match self {
            Self::Namespace(name, labels) => Event::Namespace(name, labels),
            Self::Node(name, labels) => Event::Node(name, labels),
            Self::PriorityClass(name, default) => Event::PriorityClass(name, default),
        }
    }

    /// The event that makes the object forgotten.
    pub fn gone(self) -> Event {
        match self {
            Self::Namespace(name, _) => Event::NamespaceGone(name),
            Self::Node(name, _) => Event::NodeGone(name),
            Self::PriorityClass(name, _) => Event::PriorityClassGone(name),
        }
    }
}

/// Reads an object of a known kind.
///
/// # Errors
/// An object without a name says nothing; the error says so.
pub fn read(kind: Kind, object: &Value) -> Result<Reading, String> {
    let name = object.pointer("/metadata/name").and_then(Value::as_str).filter(|name| !name.is_empty());
    let name = name.ok_or("metadata.name is missing or not a text")?.to_owned();
    let mut problems = Vec::new();
    let fact = match kind {
        Kind::Namespace => Fact::Namespace(name, labels(object, &mut problems)),
        Kind::Node => Fact::Node(name, labels(object, &mut problems)),
        Kind::PriorityClass => Fact::PriorityClass(name, global_default(object, &mut problems)),
    };
    Ok(Reading { fact, problems })
}

/// The events by which these facts, all that there are, replace what was known.
pub fn replace(facts: impl IntoIterator<Item = Fact>) -> [Event; 3] {
    let (mut namespaces, mut nodes, mut classes) = (Vec::new(), Vec::new(), Vec::new());
    for fact in facts {
        match fact {
            Fact::Namespace(name, labels) => namespaces.push((name, labels)),
            Fact::Node(name, labels) => nodes.push((name, labels)),
            Fact::PriorityClass(name, default) => classes.push((name, default)),
        }
    }
    [Event::Namespaces(namespaces), Event::Nodes(nodes), Event::PriorityClasses(classes)]
}

fn labels(object: &Value, problems: &mut Vec<String>) -> Labels {
    let found = match object.pointer("/metadata/labels") {
        None | Some(Value::Null) => return Labels::new(),
        Some(Value::Object(found)) => found,
        Some(_) => {
            problems.push("metadata.labels is not a map of texts".to_owned());
            return Labels::new();
        }
    };
    let mut labels = Labels::new();
    for (key, value) in found {
        match value {
            Value::String(text) => drop(labels.insert(key.clone(), text.clone())),
            Value::Null => drop(labels.insert(key.clone(), String::new())),
            other => problems.push(format!("metadata.labels[{key}]: {other} is not a text; write it in quotes")),
        }
    }
    labels
}

fn global_default(object: &Value, problems: &mut Vec<String>) -> bool {
    match object.get("globalDefault") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(default)) => *default,
        Some(other) => {
            problems.push(format!("globalDefault: {other} is neither true nor false"));
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    #[test]
    fn reads_labels_and_defaults() {
        let node = json!({"metadata": {"name": "n1", "labels": {"gpu-mode": "shared", "empty": null}}});
        let labels = Labels::from([("gpu-mode".into(), "shared".into()), ("empty".into(), String::new())]);
        let reading = Reading { fact: Fact::Node("n1".into(), labels), problems: vec![] };
        assert_eq!(read(Kind::Node, &node), Ok(reading));
        let class = json!({"metadata": {"name": "batch"}, "globalDefault": true, "value": 7});
        let reading = Reading { fact: Fact::PriorityClass("batch".into(), true), problems: vec![] };
        assert_eq!(read(Kind::PriorityClass, &class), Ok(reading));
        let bare = json!({"metadata": {"name": "blue", "labels": null}});
        assert_eq!(read(Kind::Namespace, &bare).unwrap().fact, Fact::Namespace("blue".into(), Labels::new()));
    }

    #[test]
    fn what_is_malformed_is_left_out_and_named() {
        let node = json!({"metadata": {"name": "n1", "labels": {"a": true, "b": "kept"}}});
        let reading = read(Kind::Node, &node).unwrap();
        assert_eq!(reading.fact, Fact::Node("n1".into(), Labels::from([("b".into(), "kept".into())])));
        assert_eq!(reading.problems, ["metadata.labels[a]: true is not a text; write it in quotes"]);
        for (kind, object, problem) in [
            (
                Kind::Namespace,
                json!({"metadata": {"name": "n", "labels": []}}),
                "metadata.labels is not a map of texts",
            ),
            (
                Kind::PriorityClass,
                json!({"metadata": {"name": "n"}, "globalDefault": "yes"}),
                "globalDefault: \"yes\" is neither true nor false",
            ),
        ] {
            assert_eq!(read(kind, &object).unwrap().problems, [problem]);
        }
    }

    #[test]
    fn an_object_without_a_name_says_nothing() {
        for object in [json!({}), json!({"metadata": {"name": 7}}), json!({"metadata": {"name": ""}}), json!(3)] {
            read(Kind::Namespace, &object).unwrap_err();
        }
    }

    #[test]
    fn knows_its_kinds_by_group() {
        assert_eq!(Kind::of("v1", "Node"), Some(Kind::Node));
        assert_eq!(Kind::of("scheduling.k8s.io/v1", "PriorityClass"), Some(Kind::PriorityClass));
        assert_eq!(Kind::of("v1", "PriorityClass"), None);
        assert_eq!(Kind::of("metrics.example.com/v1", "Node"), None);
    }

    #[test]
    fn all_that_there_is_replaces_each_kind() {
        let [namespaces, nodes, classes] = replace([Fact::Node("n".into(), Labels::new())]);
        assert_eq!(namespaces, Event::Namespaces(vec![]));
        assert_eq!(nodes, Event::Nodes(vec![("n".into(), Labels::new())]));
        assert_eq!(classes, Event::PriorityClasses(vec![]));
    }
}
