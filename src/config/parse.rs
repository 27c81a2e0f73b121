//! YAML text to a [`Config`], with every mistake of the text at once.
//!
//! What it does: `tree` reads the text into located nodes; the other modules take from them what the configuration wants
//! and note what they do not like, and go on. It reads no file and knows no clock: an exemption whose time is over is no
//! mistake. Invariant: whatever the text, the answer comes in bounded time and stack, and is a valid [`Config`] or a mistake.

use std::fmt;

use super::glob::Glob;
use super::{Config, Existing, OnDeadline};
use crate::policy::decision::Action;
use log::Log;
use value::{Fields, Value};

mod claims;
pub(crate) mod exemptions;
pub(crate) mod globs;
mod log;
pub(crate) mod names;
pub(crate) mod nodes;
pub(crate) mod pools;
pub(crate) mod rules;
#[cfg(test)]
mod tests;
mod tree;
mod value;
mod words;
pub(crate) mod workloads;

/// The one version of the configuration that is read.
pub const API_VERSION: &str = "slicegate.io/v1alpha1";
/// The kind of the configuration.
pub const KIND: &str = "Config";

/// One mistake in a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1, in characters.
    pub column: usize,
    /// What is wrong and what would be right: lower case, no full stop.
    pub message: String,
    /// Whether it is a field that this version does not know, and another one might.
    pub unknown_field: bool,
}

/// All mistakes of one configuration, in the order of the text; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistakes(pub Vec<Mistake>);

impl Mistakes {
    /// Whether nothing is wrong but fields that this version does not know.
    pub fn are_unknown_fields(&self) -> bool {
        self.0.iter().all(|mistake| mistake.unknown_field)
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "line {}, column {}: {}", self.line, self.column, self.message)
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, mistake) in self.0.iter().enumerate() {
            write!(out, "{}{mistake}", if place == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

impl std::error::Error for Mistakes {}

/// Reads a configuration.
///
/// # Errors
/// All mistakes of the text. A text that is no YAML has those before the place where it stops to be any, and that one.
pub fn parse(text: &str) -> Result<Config, Mistakes> {
    let log = Log::default();
    let root = tree::read(text, &log);
    let config = root.as_deref().and_then(|root| read(&Value::root(root, &log), &log));
    match (log.into_mistakes(), config) {
        (None, Some(config)) => Ok(config),
        (Some(mistakes), _) => Err(mistakes),
        // Not reached: whoever returns nothing has noted why. If it were, the text would be refused and not taken in part.
        (None, None) => {
            let message = "the configuration cannot be read".to_owned();
            Err(Mistakes(vec![Mistake { line: 1, column: 1, message, unknown_field: false }]))
        }
    }
}

pub(super) const FIELDS: [&str; 13] = [
    "apiVersion",
    "kind",
    "enforcement",
    "existing",
    "declarations",
    "latencyCritical",
    "pools",
    "rules",
    "exemptions",
    "workloads",
    "gpuResources",
    "controllers",
    "onDeadline",
];

pub(super) const DECLARATIONS: [&str; 2] = ["latency", "checkpoint"];
pub(super) const LATENCY_CRITICAL: [&str; 1] = ["priorityClasses"];
pub(super) const ENFORCEMENT: [Action; 3] = [Action::Deny, Action::Warn, Action::DryRun];
pub(super) const EXISTING: [(&str, Existing); 2] = [("Enforce", Existing::Enforce), ("Keep", Existing::Keep)];
pub(super) const ON_DEADLINE: [(&str, OnDeadline); 2] = [("deny", OnDeadline::Deny), ("allow", OnDeadline::Allow)];

fn read(root: &Value<'_>, log: &Log) -> Option<Config> {
    if root.peek("kind") == Some("ConfigMap") {
        root.mistake("this is a ConfigMap; the configuration is the text under its key config.yaml");
        return None;
    }
    let fields = root.fields(&FIELDS, "a mapping that begins with apiVersion and kind")?;
    for (name, word) in [("apiVersion", API_VERSION), ("kind", KIND)] {
        if let Some(value) = fields.require(name, &format!("write {name}: {word}")) {
            value.word(&[(word, ())]);
        }
    }
    let mut config = Config::default();
    words(&fields, &mut config);
    declarations(&fields, &mut config);
    lists(&fields, &mut config);
    if let Some(list) = fields.get("pools") {
        config.pools = pools::read(&list, log);
    }
    config.rules = fields.get("rules").map(|value| rules::read(&value)).unwrap_or_default();
    config.exemptions = fields.get("exemptions").map(|list| exemptions::read(&list)).unwrap_or_default();
    config.workloads = fields.get("workloads").map(|list| workloads::read(&list)).unwrap_or_default();
    Some(config)
}

fn words(fields: &Fields<'_>, config: &mut Config) {
    let enforcement = ENFORCEMENT.map(|action| (action.as_str(), action));
    if let Some(action) = fields.get("enforcement").and_then(|value| value.word(&enforcement)) {
        config.enforcement = action;
    }
    if let Some(word) = fields.get("existing").and_then(|value| value.word(&EXISTING)) {
        config.existing = word;
    }
    if let Some(word) = fields.get("onDeadline").and_then(|value| value.word(&ON_DEADLINE)) {
        config.on_deadline = word;
    }
}

fn declarations(fields: &Fields<'_>, config: &mut Config) {
    let wanted = "label keys, such as {latency: example.com/latency, checkpoint: example.com/checkpoint}";
    let Some(fields) = fields.get("declarations").and_then(|value| value.fields(&DECLARATIONS, wanted)) else {
        return;
    };
    let (latency, checkpoint) = (fields.get("latency"), fields.get("checkpoint"));
    for (value, key) in [(&latency, &mut config.latency_label), (&checkpoint, &mut config.checkpoint_label)] {
        if let Some(text) = value.as_ref().and_then(|value| value.checked("a label key", crate::names::label_key)) {
            text.clone_into(key);
        }
    }
    if config.latency_label == config.checkpoint_label
        && let Some(value) = checkpoint.or(latency)
    {
        value.mistake("latency and checkpoint need two label keys, and this is the other's");
    }
}

fn lists(fields: &Fields<'_>, config: &mut Config) {
    let read = |name: &str, each: &str, check: fn(&str) -> Result<(), String>| -> Vec<Glob> {
        fields.get(name).map(|list| globs::plain(&list, each, check)).unwrap_or_default()
    };
    let resources = read("gpuResources", "an extended resource or a glob of some", names::resource_glob);
    let controllers = read("controllers", "a user or a glob of some", names::any_glob);
    let defaults = std::mem::take(&mut config.gpu_resources);
    config.gpu_resources = globs::beside(defaults, resources);
    let defaults = std::mem::take(&mut config.controllers);
    config.controllers = globs::beside(defaults, controllers);
    let wanted = "a mapping such as {priorityClasses: [\"*-critical\"]}";
    let critical = fields.get("latencyCritical").and_then(|value| value.fields(&LATENCY_CRITICAL, wanted));
    if let Some(list) = critical.and_then(|fields| fields.get("priorityClasses")) {
        let each = "a PriorityClass or a glob of some";
        config.critical_priority_classes = globs::plain(&list, each, names::subdomain_glob);
    }
}
