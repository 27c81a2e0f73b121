//! The text of Kubernetes manifests to facts.
//!
//! What it does: reads YAML or JSON, one or many documents, lists included, and takes Namespaces, Nodes and
//! PriorityClasses from it. Invariant: all or nothing; a text with one mistake gives its mistakes, each with its document
//! and line, and no facts.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;
use serde_saphyr::Spanned;

use super::object::{self, Fact, Kind, Reading};

/// What one text holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Manifests {
    /// The facts, in the order of the text.
    pub facts: Vec<Fact>,
    /// Kinds that are there and that no facts come from.
    pub ignored: BTreeSet<String>,
}

/// One mistake in a text of manifests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The document that it is in, from 1; none where the text as a whole cannot be read.
    pub document: Option<usize>,
    /// Its line, from 1, or that on which its document begins.
    pub line: u64,
    /// What is wrong: lower case, no full stop.
    pub message: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(document) = self.document {
            write!(out, "document {document}, ")?;
        }
        write!(out, "line {}: {}", self.line, self.message)
    }
}

/// Reads the text of a file of manifests. JSON is read as the YAML that it is.
///
/// # Errors
/// Every mistake of the text.
pub fn parse(text: &str) -> Result<Manifests, Vec<Mistake>> {
    let documents: Vec<Spanned<Value>> =
        serde_saphyr::from_multiple_with_options(text, options()).map_err(unreadable)?;
    let (mut manifests, mut mistakes) = (Manifests::default(), Vec::new());
    for (place, document) in (1..).zip(&documents) {
        let mut wrong = Vec::new();
        take(&document.value, None, "", &mut manifests, &mut wrong);
        let line = document.referenced.line();
        mistakes.extend(wrong.into_iter().map(|message| Mistake { document: Some(place), line, message }));
    }
    if mistakes.is_empty() { Ok(manifests) } else { Err(mistakes) }
}

/// Far above what the API server's own list of some thousand nodes needs, and still an end.
fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        with_snippet: false,
        budget: serde_saphyr::budget! {
            max_documents: 100_000,
            max_nodes: 20_000_000,
            max_events: 40_000_000,
        },
    }
}

#[allow(clippy::needless_pass_by_value, reason = "it stands in map_err")]
fn unreadable(error: serde_saphyr::Error) -> Vec<Mistake> {
    let line = error.location().map_or(1, |location| location.line());
    vec![Mistake { document: None, line, message: error.to_string() }]
}

/// Takes what one object, or each object of a list, says. The items of a `NodeList` need not repeat their kind.
fn take(object: &Value, kind: Option<Kind>, path: &str, into: &mut Manifests, wrong: &mut Vec<String>) {
    if object.is_null() {
        return;
    }
    let text = |field| object.get(field).and_then(Value::as_str);
    let (version, name) = (text("apiVersion"), text("kind"));
    let items = object.get("items").and_then(Value::as_array);
    if name == Some("List") && items.is_none() {
        return wrong.push(format!("{path}items is missing or not a list"));
    }
    if let (Some(of_list), Some(items)) = (name.and_then(|name| name.strip_suffix("List")), items) {
        let kind = version.and_then(|version| Kind::of(version, of_list));
        for (place, item) in items.iter().enumerate() {
            take(item, kind, &format!("{path}items[{place}]."), into, wrong);
        }
        return;
    }
    let kind = match (version, name) {
        (Some(version), Some(name)) => Kind::of(version, name),
        _ if kind.is_some() => kind,
        _ => return wrong.push(format!("{path}apiVersion or {path}kind is missing or not a text")),
    };
    match kind.map(|kind| object::read(kind, object)) {
        None => drop(name.map(|name| into.ignored.insert(name.to_owned()))),
        Some(Err(problem)) => wrong.push(format!("{path}{problem}")),
        Some(Ok(Reading { fact, problems })) => {
            into.facts.push(fact);
            wrong.extend(problems.into_iter().map(|problem| format!("{path}{problem}")));
        }
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::super::Labels;
    use super::*;

    fn labels(key: &str, value: &str) -> Labels {
        Labels::from([(key.to_owned(), value.to_owned())])
    }

    fn mistakes(text: &str) -> Vec<String> {
        parse(text).unwrap_err().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn reads_documents_and_lists() {
        let text = "\
# two documents and an empty one
apiVersion: v1
kind: Namespace
metadata: {name: blue, labels: {slicegate.io/checkpoint: \"true\"}}
---
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: n1, labels: {gpu-mode: shared}}}
- {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: batch}, globalDefault: true, value: 1}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: other}, data: {a: b}}
";
        let manifests = parse(text).unwrap();
        assert_eq!(
            manifests.facts,
            [
                Fact::Namespace("blue".into(), labels("slicegate.io/checkpoint", "true")),
                Fact::Node("n1".into(), labels("gpu-mode", "shared")),
                Fact::PriorityClass("batch".into(), true),
            ]
        );
        assert_eq!(manifests.ignored, BTreeSet::from(["ConfigMap".to_owned()]));
    }

    #[test]
    fn reads_what_the_api_server_lists_as_json() {
        let text = r#"{"kind": "NodeList", "apiVersion": "v1", "metadata": {"resourceVersion": "7"},
	"items": [{"metadata": {"name": "n1", "labels": {"gpu-mode": "shared"}}}]}"#;
        assert_eq!(parse(text).unwrap().facts, [Fact::Node("n1".into(), labels("gpu-mode", "shared"))]);
    }

    #[test]
    fn nothing_is_no_mistake() {
        for text in ["", "# nothing\n", "---\n---\n"] {
            assert_eq!(parse(text), Ok(Manifests::default()), "{text:?}");
        }
    }

    #[test]
    fn each_mistake_has_its_document_and_line() {
        let text = "\
apiVersion: v1
kind: Namespace
metadata: {name: blue, labels: {team: 7}}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {}}
- {metadata: {name: n}}
";
        assert_eq!(
            mistakes(text),
            [
                "document 1, line 1: metadata.labels[team]: 7 is not a text; write it in quotes",
                "document 2, line 5: items[0].metadata.name is missing or not a text",
                "document 2, line 5: items[1].apiVersion or items[1].kind is missing or not a text",
            ]
        );
    }

    #[test]
    fn broken_text_is_told_with_its_line() {
        let told = mistakes("apiVersion: v1\nkind: Namespace\nmetadata: {name: blue\n");
        assert!(told[0].starts_with("line "), "{told:?}");
        let told = mistakes("apiVersion: v1\nkind: Node\nkind: Node\nmetadata: {name: n}\n");
        assert!(told[0].starts_with("line 3") && told[0].contains("kind"), "{told:?}");
    }
}
