//! The rules that the product asks: which rule of which package is evaluated for a request.

use std::collections::BTreeMap;

use regorus::unstable::{Rule, RuleHead};

use super::Unit;
use super::{model, walk};

/// What an element of a rule does to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RuleKind {
    /// `deny`: refuses.
    Deny,
    /// `violation`: refuses, in Gatekeeper's words.
    Violation,
    /// `warn`: a warning.
    Warn,
    /// `patch`: an operation of RFC 6902.
    Patch,
    /// `data.system.main`: an answer as OPA gives it.
    Main,
}

/// A rule that is asked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// The package as a path: `data.gpu.admission`.
    pub package: String,
    /// The rule: `deny`, `deny_team`.
    pub rule: String,
    /// What its elements do.
    pub kind: RuleKind,
    /// The file of its first definition.
    pub file: String,
    /// The line of its first definition.
    pub line: u32,
    /// Whether it is a set; otherwise it is one value, or an object.
    pub is_set: bool,
}

impl Entry {
    /// Its whole path, as the engine is asked for it.
    pub fn path(&self) -> String {
        format!("{}.{}", self.package, self.rule)
    }
}

/// The rules of the unit's own modules that are asked: sorted, each once.
pub fn entries(unit: &Unit<'_>) -> Vec<Entry> {
    let mut found: BTreeMap<(String, String), Entry> = BTreeMap::new();
    for module in unit.modules {
        let file = module.package.span.source.file();
        if unit.tests.contains(file) || unit.libraries.contains(file) {
            continue;
        }
        let mut path = vec!["data".to_owned()];
        if let Some((root, steps)) = walk::path(&module.package.refr) {
            path.extend(walk::names(root, &steps));
        }
        let package = written(&path);
        for rule in &module.policy {
            let Some((name, _)) = walk::path(model::reference(rule)) else { continue };
            let Some(kind) = kind(&path, name, unit.suffixes_everywhere) else { continue };
            if model::arguments(rule).is_some() {
                continue;
            }
            let line = rule.span().line;
            let entry =
                Entry { package: package.clone(), rule: name.to_owned(), kind, file: file.clone(), line, is_set: true };
            let entry = found.entry((package.clone(), name.to_owned())).or_insert(entry);
            entry.is_set &= is_set(rule);
            if (file, line) < (&entry.file, entry.line) {
                (entry.file, entry.line) = (file.clone(), line);
            }
        }
    }
    found.into_values().collect()
}

/// What a rule of this name does in this package, where it is asked at all.
pub(super) fn kind(package: &[String], name: &str, suffixes_everywhere: bool) -> Option<RuleKind> {
    let known = match name {
        "deny" => Some(RuleKind::Deny),
        "violation" => Some(RuleKind::Violation),
        "warn" => Some(RuleKind::Warn),
        "patch" => Some(RuleKind::Patch),
        "main" if package == ["data", "system"] => Some(RuleKind::Main),
        _ => None,
    };
    known.or_else(|| suffixed(name).filter(|_| suffixes_everywhere || package == ["data", "main"]))
}

/// What a name with a suffix stands for where suffixes count.
pub(super) fn suffixed(name: &str) -> Option<RuleKind> {
    match name.split_once('_') {
        Some((_, "")) => None,
        Some(("deny", _)) => Some(RuleKind::Deny),
        Some(("violation", _)) => Some(RuleKind::Violation),
        Some(("warn", _)) => Some(RuleKind::Warn),
        _ => None,
    }
}

/// Whether a definition adds to a set: `deny contains x`, or `deny[x]` of v0.
pub(super) fn is_set(rule: &Rule) -> bool {
    match rule {
        Rule::Spec { head: RuleHead::Set { refr, key: Some(_), .. }, .. } => {
            walk::path(refr).is_some_and(|(_, steps)| steps.is_empty())
        }
        _ => false,
    }
}

/// A path as the engine spells it: names that are no identifiers in brackets.
pub(super) fn written(path: &[String]) -> String {
    let mut text = String::new();
    for name in path {
        let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && !name.is_empty();
        if plain {
            let dot = if text.is_empty() { "" } else { "." };
            text.extend([dot, name]);
        } else {
            text.extend(["[", &serde_json::Value::from(name.as_str()).to_string(), "]"]);
        }
    }
    text
}
