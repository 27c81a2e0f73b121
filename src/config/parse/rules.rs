//! The settings of rules.

use std::collections::BTreeMap;

use super::super::RuleSettings;
use super::super::glob::Glob;
use super::names;
use super::value::{Key, Value};
use super::words::{listed, nearest, shown};
use crate::policy::decision::{Action, RuleId};

pub(in crate::config) const FIELDS: [&str; 2] = ["action", "namespaces"];
pub(in crate::config) const ACTIONS: [Action; 4] = [Action::Deny, Action::Warn, Action::DryRun, Action::Off];

/// Reads the mapping of rule ids to their settings.
pub(super) fn read(value: &Value<'_>) -> BTreeMap<RuleId, RuleSettings> {
    let mut rules = BTreeMap::new();
    for (key, value) in
        value.entries("a mapping of rule ids, such as {share-limit: {action: warn}}").unwrap_or_default()
    {
        let rule = rule(&key);
        let settings = if value.is_null() { None } else { settings(&value) };
        if let (Some(rule), Some(settings)) = (rule, settings) {
            rules.insert(rule, settings);
        }
    }
    rules
}

/// What to say of an id that no rule has.
pub(super) fn unknown(id: &str) -> String {
    let ids = || RuleId::ALL.iter().map(|rule| rule.as_str());
    let help = match nearest(id, ids()) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("the rules are {}", listed(ids())),
    };
    format!("no rule has the id {}; {help}", shown(id))
}

fn rule(key: &Key<'_>) -> Option<RuleId> {
    let rule = RuleId::ALL.into_iter().find(|rule| rule.as_str() == key.text);
    if rule.is_none() {
        key.mistake(&unknown(key.text));
    }
    rule
}

fn settings(value: &Value<'_>) -> Option<RuleSettings> {
    let fields = value.fields(&FIELDS, "settings, such as {action: warn}")?;
    let action = fields.get("action").and_then(|value| action(&value));
    let namespaces = fields.get("namespaces").map(|value| namespaces(&value)).unwrap_or_default();
    Some(RuleSettings { action, namespaces })
}

fn action(value: &Value<'_>) -> Option<Action> {
    value.word(&ACTIONS.map(|action| (action.as_str(), action)))
}

/// Globs of namespaces and their actions, the most specific first: names, then the longer globs, then by their text.
fn namespaces(value: &Value<'_>) -> Vec<(Glob, Action)> {
    let mut found = Vec::new();
    for (key, value) in value.entries("a mapping of namespaces or globs, such as {\"dev-*\": warn}").unwrap_or_default()
    {
        if let Err(why) = names::subdomain_glob(key.text) {
            key.mistake(&format!("the key is not a namespace or a glob of some: {why}"));
        }
        if let Some(action) = action(&value) {
            found.push((Glob::new(key.text), action));
        }
    }
    let order = |glob: &Glob| (!glob.is_literal(), std::cmp::Reverse(glob.as_str().chars().count()));
    found.sort_by(|(left, _), (right, _)| order(left).cmp(&order(right)).then_with(|| left.cmp(right)));
    found
}
