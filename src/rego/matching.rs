//! Which requests a set sees.
//!
//! Invariant: whether a set matches depends on the request, on what its workloads involve and on the labels of its Namespace;
//! it never needs the engine.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::config::glob::Glob;
use crate::facts::Labels;
use crate::json::Json;
use crate::rego::problem::Problem;
use crate::rego::set::yaml;
use crate::review::{Operation, Request};

/// The annotation that holds it.
pub(super) const ANNOTATION: &str = "slicegate.io/match";

/// Which requests a set sees. Everything that is given has to hold.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Match {
    /// The kinds; where none is named, whatever involves a GPU.
    #[serde(default)]
    kinds: Vec<Kinds>,
    /// Patterns of the Namespace's name.
    #[serde(default)]
    namespaces: Vec<String>,
    /// Patterns of Namespaces that it leaves alone.
    #[serde(default)]
    excluded_namespaces: Vec<String>,
    /// Labels of the Namespace.
    #[serde(default)]
    namespace_selector: Option<Selector>,
    /// Labels of the object, new or old.
    #[serde(default, alias = "labelSelector")]
    object_selector: Option<Selector>,
    /// Operations; CREATE and UPDATE where none is named.
    #[serde(default)]
    operations: Vec<Word>,
}

/// Kinds, either as `Kind` or `Kind.group`, or as Gatekeeper writes them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum Kinds {
    Short(String),
    Long {
        #[serde(rename = "apiGroups")]
        groups: Vec<String>,
        kinds: Vec<String>,
    },
}

/// An operation in the API server's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum Word {
    Create,
    Update,
    Delete,
    Connect,
    #[serde(rename = "*")]
    Any,
}

/// A label selector, as everywhere in Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Selector {
    #[serde(default)]
    match_labels: BTreeMap<String, String>,
    #[serde(default)]
    match_expressions: Vec<Expression>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expression {
    key: String,
    operator: Operator,
    #[serde(default)]
    values: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

impl Match {
    /// Reads the annotation.
    ///
    /// # Errors
    /// What is wrong with it, with its line in the annotation.
    pub fn parse(text: &str) -> Result<Self, Vec<Problem>> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let matches: Self = yaml(text)
            .map_err(|(line, column, message)| vec![Problem { file: ANNOTATION.to_owned(), line, column, message }])?;
        let selectors = matches.namespace_selector.iter().chain(&matches.object_selector);
        let wrong: Vec<Problem> = selectors.flat_map(Selector::mistakes).collect();
        if wrong.is_empty() { Ok(matches) } else { Err(wrong) }
    }

    /// Whether anything but the labels of the Namespace speaks against it.
    pub fn may_match(&self, request: &Request<'_>, involves_gpu: bool) -> bool {
        self.mismatch(request, involves_gpu).is_none()
    }

    /// What speaks against it, the labels of the Namespace left aside; a sentence without its subject.
    pub fn mismatch(&self, request: &Request<'_>, involves_gpu: bool) -> Option<&'static str> {
        let namespace = request.namespace.as_ref();
        let any = |globs: &[String]| globs.iter().any(|glob| Glob::new(glob.as_str()).matches(namespace));
        let of_kind = |kinds: &Kinds| kinds.matches(&request.kind.group, &request.kind.kind);
        if self.kinds.is_empty() && !involves_gpu {
            return Some("names no kinds and so looks at what involves a GPU, which this does not");
        }
        if !self.kinds.is_empty() && !self.kinds.iter().any(of_kind) {
            return Some("names other kinds");
        }
        if !self.matches_operation(request.operation) {
            return Some("names other operations");
        }
        if !self.namespaces.is_empty() && !any(&self.namespaces) {
            return Some("names other namespaces");
        }
        if any(&self.excluded_namespaces) {
            return Some("leaves this namespace alone");
        }
        let selected = self.object_selector.as_ref().is_none_or(|selector| {
            [&request.object, &request.old_object].into_iter().any(|object| selector.matches_object(object))
        });
        (!selected).then_some("has an objectSelector that does not fit")
    }

    /// Whether the labels of the request's Namespace fit. A Namespace that nobody knows has none; what is cluster-wide is in
    /// none, and no selector speaks of it.
    pub fn matches_namespace(&self, namespace: &str, labels: Option<&Labels>) -> bool {
        let Some(selector) = &self.namespace_selector else { return true };
        namespace.is_empty() || selector.matches(|key| labels.and_then(|labels| labels.get(key)).map(String::as_str))
    }

    /// What it can never see, whatever is sent.
    pub fn weaknesses(&self) -> Option<Problem> {
        let without_demand = |word: &Word| matches!(word, Word::Delete | Word::Connect);
        let lost: Vec<&str> =
            self.operations.iter().filter(|word| without_demand(word)).map(|word| word.as_str()).collect();
        (self.kinds.is_empty() && !lost.is_empty()).then(|| {
            let whole =
                if lost.len() == self.operations.len() { "; as it stands, the set sees nothing at all" } else { "" };
            let message = format!(
                "without kinds a set sees what asks for a GPU, which no request of {} does: name the kinds{whole}",
                lost.join(" or ")
            );
            Problem::of_file(ANNOTATION, message)
        })
    }

    /// The kinds that it names, each with its group; both may be patterns.
    pub fn kinds(&self) -> BTreeSet<(String, String)> {
        self.kinds.iter().flat_map(Kinds::pairs).collect()
    }

    /// Whether its author meant requests that do this. A star is not taken for a wish to see connections, of which no kind of
    /// workload is.
    pub fn means_operation(&self, operation: Operation) -> bool {
        let starred = self.operations.iter().all(|word| *word == Word::Any);
        self.matches_operation(operation) && (operation != Operation::Connect || !starred)
    }

    /// The names of the kinds, where all of them are spelt out.
    pub fn literal_kinds(&self) -> Option<BTreeSet<String>> {
        let kinds: BTreeSet<String> = self.kinds.iter().flat_map(Kinds::pairs).map(|(kind, _)| kind).collect();
        (!kinds.is_empty() && kinds.iter().all(|kind| Glob::new(kind.as_str()).is_literal())).then_some(kinds)
    }

    /// Whether it sees requests that do this.
    pub fn matches_operation(&self, operation: Operation) -> bool {
        let wanted = |word: &Word| match word {
            Word::Create => operation == Operation::Create,
            Word::Update => operation == Operation::Update,
            Word::Delete => operation == Operation::Delete,
            Word::Connect => operation == Operation::Connect,
            Word::Any => true,
        };
        match self.operations.as_slice() {
            [] => matches!(operation, Operation::Create | Operation::Update),
            words => words.iter().any(wanted),
        }
    }
}

impl Word {
    fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
            Self::Any => "*",
        }
    }
}

impl Kinds {
    fn pairs(&self) -> Vec<(String, String)> {
        match self {
            Self::Short(text) => {
                let (kind, group) = text.split_once('.').unwrap_or((text, "*"));
                vec![(kind.to_owned(), group.to_owned())]
            }
            Self::Long { groups, kinds } => {
                kinds.iter().flat_map(|kind| groups.iter().map(|group| (kind.clone(), group.clone()))).collect()
            }
        }
    }

    fn matches(&self, group: &str, kind: &str) -> bool {
        let fits =
            |(kinds, groups): (String, String)| Glob::new(kinds).matches(kind) && Glob::new(groups).matches(group);
        self.pairs().into_iter().any(fits)
    }
}

impl Selector {
    fn mistakes(&self) -> Vec<Problem> {
        let wrong = self.match_expressions.iter().filter_map(|expression| {
            let needs = matches!(expression.operator, Operator::In | Operator::NotIn);
            let (key, operator) = (&expression.key, expression.operator);
            (needs == expression.values.is_empty()).then(|| {
                let what = if needs { "needs values" } else { "takes no values" };
                Problem::of_file(ANNOTATION, format!("the expression on {key}: {operator:?} {what}"))
            })
        });
        wrong.collect()
    }

    fn matches<'l>(&self, label: impl Fn(&str) -> Option<&'l str>) -> bool {
        let expression = |expression: &Expression| {
            let value = label(&expression.key);
            let among = value.is_some_and(|value| expression.values.iter().any(|wanted| wanted == value));
            match expression.operator {
                Operator::In => among,
                Operator::NotIn => !among,
                Operator::Exists => value.is_some(),
                Operator::DoesNotExist => value.is_none(),
            }
        };
        self.match_labels.iter().all(|(key, value)| label(key) == Some(value.as_str()))
            && self.match_expressions.iter().all(expression)
    }

    fn matches_object(&self, object: &Json<'_>) -> bool {
        *object != Json::Null
            && self.matches(|key| object.at(&["metadata", "labels"]).and_then(|labels| labels.text(key)))
    }
}

#[cfg(test)]
mod tests;
