//! What a workload declares of itself: latency and checkpoint, and where.
//!
//! What it does: reads the class from the labels of the template, from the restrictive words on the object that carries it,
//! from the Namespace's labels where both are silent, and from the priority class. Invariant: a permissive word counts only
//! where the Pods will carry it or the Namespace gives it; the most restrictive one wins.

use crate::config::Config;
use crate::facts::{Facts, Labels};
use crate::json::Json;
use crate::workload::demand::spelling;
use crate::workload::path::Path;
use crate::workload::{Placed, Template};

/// The words for latency.
pub const LATENCY_WORDS: [&str; 2] = ["critical", "tolerant"];
/// The words for checkpoints.
pub const CHECKPOINT_WORDS: [&str; 3] = ["true", "stateless", "false"];

/// A declaration of one key: the word in force and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    /// The word, one of the allowed ones.
    pub word: &'static str,
    /// The field, or a sentence where it is no field of the object.
    pub source: String,
    /// Whether it stands in the object, and not on its Namespace.
    pub in_object: bool,
}

/// A declaration whose value is none of the words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// The label key.
    pub key: String,
    /// The field, or a sentence where it is no field of the object.
    pub source: String,
    /// The value found.
    pub found: String,
    /// Whether it is a string, as a label's value has to be.
    pub is_text: bool,
    /// Where it stands in the object, as a JSON pointer; nothing where it stands on its Namespace.
    pub pointer: Option<String>,
    /// The words that are allowed.
    pub words: &'static [&'static str],
}

/// The class of a template.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Class {
    /// Latency, nothing where nothing is declared, which counts as tolerant.
    pub latency: Option<Declared>,
    /// Checkpoint, nothing where nothing is declared.
    pub checkpoint: Option<Declared>,
    /// The priority class that makes the workload critical, with where it comes from.
    pub critical_priority: Option<(String, String)>,
    /// Declarations that cannot be understood.
    pub unknown: Vec<Unknown>,
    /// Sentences on declarations that stand where they do not count, for latency and for checkpoint.
    pub misplaced: [Vec<String>; 2],
}

impl Class {
    /// Whether the workload itself leaves something undeclared.
    pub fn is_open(&self) -> bool {
        self.latency.is_none() || self.checkpoint.is_none()
    }

    /// Whether anything is declared, be it not understood.
    pub fn is_declared(&self) -> bool {
        self.latency.is_some() || self.checkpoint.is_some() || !self.unknown.is_empty()
    }

    /// Whether the workload is latency-critical, and what says so.
    pub fn critical(&self) -> Option<String> {
        let declared = self.latency.as_ref().filter(|declared| declared.word == "critical");
        let by_priority =
            || self.critical_priority.as_ref().map(|(name, source)| format!("priority class {name} ({source})"));
        declared.map(|declared| declared.source.clone()).or_else(by_priority)
    }
}

/// Reads the class of a template of an object.
pub fn class(config: &Config, facts: &Facts, namespace: &str, object: &Json<'_>, template: &Template<'_>) -> Class {
    let mut class = Class::default();
    let reader = Reader { object, template, namespace: facts.namespace(namespace).map(|labels| (namespace, labels)) };
    class.latency = reader.read(&config.latency_label, &LATENCY_WORDS, "critical", 0, &mut class);
    class.checkpoint = reader.read(&config.checkpoint_label, &CHECKPOINT_WORDS, "false", 1, &mut class);
    class.critical_priority = critical_priority(config, facts, template);
    class
}

struct Reader<'c, 'r> {
    object: &'c Json<'r>,
    template: &'c Template<'r>,
    namespace: Option<(&'c str, &'c Labels)>,
}

impl Reader<'_, '_> {
    fn read(
        &self,
        key: &str,
        words: &'static [&'static str],
        restrictive: &str,
        which: usize,
        class: &mut Class,
    ) -> Option<Declared> {
        let inner = self.template.labels.iter().rev().find_map(|labels| found(labels, key));
        let mut understand = |value: &Json<'_>, source: Path<'_>| {
            understand(key, words, value, (source.to_string(), Some(source.pointer())), class)
        };
        let inner = inner.map(|(value, source)| understand(value, source));
        let outer = self.outer(key).map(|(value, source)| understand(value, source));
        let outer = outer.flatten();
        if outer.as_ref().is_some_and(|outer| outer.word == restrictive) {
            return outer;
        }
        let mut misplaced = Vec::new();
        if let Some(outer) = outer {
            misplaced.push(format!("{} is declared at {}, which the Pods do not carry", outer.word, outer.source));
        }
        misplaced.extend(self.annotated(key));
        if let Some(place) = class.misplaced.get_mut(which) {
            *place = misplaced;
        }
        match inner {
            Some(declared) => declared,
            None => self.namespaced(key, words, class),
        }
    }

    /// The label of the object itself, where its Pods do not carry it anyway.
    fn outer<'k>(&self, key: &'k str) -> Option<(&Json<'_>, Path<'k>)> {
        let labels = self.object.at(&["metadata", "labels"])?;
        let carried = self.template.labels.iter().any(|carried| std::ptr::eq(carried.value, labels));
        let value = labels.get(key).filter(|_| !carried)?;
        Some((value, Path::root().key("metadata").key("labels").key(key)))
    }

    fn annotated(&self, key: &str) -> Option<String> {
        let source = self
            .template
            .annotations
            .iter()
            .find_map(|annotations| found(annotations, key))
            .map(|(_, source)| source.to_string());
        let outer =
            || self.object.at(&["metadata", "annotations", key]).map(|_| format!("metadata.annotations[{key}]"));
        source.or_else(outer).map(|source| format!("{source} is an annotation, and only labels declare"))
    }

    fn namespaced(&self, key: &str, words: &'static [&'static str], class: &mut Class) -> Option<Declared> {
        let (namespace, labels) = self.namespace?;
        let value = labels.get(key)?;
        let source = format!("label {key} of Namespace {namespace}");
        understand(key, words, &Json::String(value.as_str().into()), (source, None), class)
    }
}

fn found<'r: 'k, 'k>(labels: &Placed<'r>, key: &'k str) -> Option<(&'r Json<'r>, Path<'k>)> {
    labels.value.get(key).map(|value| (value, labels.path.key(key)))
}

fn understand(
    key: &str,
    words: &'static [&'static str],
    value: &Json<'_>,
    (source, pointer): (String, Option<String>),
    class: &mut Class,
) -> Option<Declared> {
    let word = value.as_str().and_then(|text| words.iter().find(|word| **word == text));
    if let Some(word) = word {
        return Some(Declared { word, source, in_object: pointer.is_some() });
    }
    // A parameter, as Argo's templates hold them: what it stands for shows on the Pod.
    if value.as_str().is_some_and(|text| text.contains("{{")) {
        return None;
    }
    let found = match value {
        Json::String(text) => text.to_string(),
        other => spelling(other),
    };
    let is_text = value.as_str().is_some();
    class.unknown.push(Unknown { key: key.to_owned(), source, found, is_text, pointer, words });
    None
}

/// The API server gives the cluster's default class to Pods before webhooks run, and never to templates: for a template
/// without a class it is looked up.
fn critical_priority(config: &Config, facts: &Facts, template: &Template<'_>) -> Option<(String, String)> {
    if config.critical_priority_classes.is_empty() {
        return None;
    }
    let own = template.field("priorityClassName");
    let own = own
        .as_ref()
        .and_then(|field| Some((field.value.as_str().filter(|name| !name.is_empty())?, field.path.to_string())));
    let is_template = !template.path.steps().is_empty();
    let default = || {
        facts.default_priority_class().filter(|_| is_template).map(|name| (name, "the cluster's default".to_owned()))
    };
    let (name, source) = own.or_else(default)?;
    let critical = config.critical_priority_classes.iter().any(|glob| glob.matches(name));
    critical.then(|| (name.to_owned(), source))
}
