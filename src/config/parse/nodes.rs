//! The nodes of a pool: their labels, and the tolerations that their taints ask for.
//!
//! Invariant: what is read here would be accepted by the API server in a Pod.

use super::super::{Pool, Toleration};
use super::globs::MOST;
use super::value::{Fields, Value};

pub(in crate::config) const FIELDS: [&str; 2] = ["selector", "tolerations"];
pub(in crate::config) const TOLERATION: [&str; 5] = ["key", "operator", "value", "effect", "tolerationSeconds"];
pub(in crate::config) const OPERATORS: [(&str, bool); 2] = [("Exists", true), ("Equal", false)];
pub(in crate::config) const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
/// What belongs to selectors of another sort.
pub(in crate::config) const NO_LABELS: [&str; 2] = ["matchLabels", "matchExpressions"];

/// Reads `nodes` into the pool.
pub(super) fn read(value: &Value<'_>, pool: &mut Pool) {
    let wanted = "a mapping such as {selector: {gpu-mode: shared}, tolerations: []}";
    let Some(fields) = value.fields(&FIELDS, wanted) else { return };
    if let Some(selector) = fields.get("selector") {
        read_selector(&selector, pool);
    }
    if let Some(list) = fields.get("tolerations") {
        read_tolerations(&list, pool);
    }
}

fn read_selector(value: &Value<'_>, pool: &mut Pool) {
    let pairs = value.entries("a mapping of node labels, such as {gpu-mode: shared}").unwrap_or_default();
    for (key, value) in pairs {
        if NO_LABELS.contains(&key.text) {
            key.mistake("the selector is a nodeSelector; write the labels themselves, such as {gpu-mode: shared}");
            continue;
        }
        if let Err(why) = crate::names::label_key(key.text) {
            key.mistake(&format!("the key is not a label key: {why}"));
        }
        if value.is_null() {
            key.mistake("the label has no value; write \"\" for the empty one");
        } else if let Some(text) = value.checked("a label value", crate::names::label_value) {
            pool.node_selector.insert(key.text.to_owned(), text.to_owned());
        }
    }
}

fn read_tolerations(list: &Value<'_>, pool: &mut Pool) {
    let items = list.items("a list of tolerations, such as [{key: nvidia.com/gpu.shared, operator: Exists}]");
    let items = items.unwrap_or_default();
    if items.len() > MOST {
        list.mistake(&format!("{} elements are more than {MOST}", items.len()));
        return;
    }
    for item in items {
        let wanted = "a toleration, such as {key: nvidia.com/gpu.shared, operator: Exists, effect: NoSchedule}";
        let Some(toleration) = item.fields(&TOLERATION, wanted).map(|fields| read_toleration(&fields)) else {
            continue;
        };
        if pool.tolerations.contains(&toleration) {
            item.mistake("the same toleration is in the list twice");
        } else {
            pool.tolerations.push(toleration);
        }
    }
}

/// Reads a toleration as Kubernetes' own validation does. What is wrong in it leaves the field empty.
fn read_toleration(fields: &Fields<'_>) -> Toleration {
    let key = fields.get("key").and_then(|key| key.checked("a taint's key", key_or_empty)).unwrap_or_default();
    let operator = fields.get("operator");
    let exists = match &operator {
        None => Some(false),
        Some(operator) => operator.word(&OPERATORS),
    };
    let value = fields.get("value").and_then(|value| {
        let text = value.checked("a taint's value", crate::names::label_value)?;
        if exists == Some(true) && !text.is_empty() {
            value.mistake("with operator Exists there is no value; leave it out, or write operator: Equal");
        }
        Some(text)
    });
    if key.is_empty() && exists == Some(false) && no_mistake_in(fields, "key") {
        let at = fields.get_or_null("key").unwrap_or_else(|| fields.whole().clone());
        at.mistake("a toleration without a key needs operator: Exists, and then tolerates every key");
    }
    Toleration {
        key: key.to_owned(),
        operator: if exists == Some(true) { "Exists" } else { "Equal" }.to_owned(),
        value: value.unwrap_or_default().to_owned(),
        effect: effect(fields).to_owned(),
        seconds: seconds(fields),
    }
}

/// Whether the field is absent, null or the empty text: what else led to an empty key has its mistake already.
fn no_mistake_in(fields: &Fields<'_>, name: &str) -> bool {
    fields.get(name).is_none_or(|value| value.is_text(""))
}

fn key_or_empty(text: &str) -> Result<(), String> {
    if text.is_empty() { Ok(()) } else { crate::names::label_key(text) }
}

fn effect(fields: &Fields<'_>) -> &'static str {
    let words = EFFECTS.map(|word| (word, word));
    let value = fields.get("effect").filter(|value| !value.is_text(""));
    value.and_then(|value| value.word(&words)).unwrap_or_default()
}

fn seconds(fields: &Fields<'_>) -> Option<i64> {
    let value = fields.get("tolerationSeconds")?;
    let seconds = value.number("a whole number of seconds")?;
    if fields.get("effect").is_none_or(|effect| !effect.is_text("NoExecute")) {
        value.mistake("tolerationSeconds needs effect: NoExecute");
    }
    Some(seconds)
}
