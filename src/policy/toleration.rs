//! Which tolerations cover which.
//!
//! Follows `isSuperset` of `k8s.io/kubernetes/pkg/util/tolerations`: a present toleration covers a wanted one when every
//! taint that the wanted one tolerates, for as long as it does, is tolerated by the present one.

use crate::config::Toleration;
use crate::json::Json;

/// Whether a toleration of the object makes a pool's toleration needless.
pub fn covers(present: &Json<'_>, wanted: &Toleration) -> bool {
    let text = |key| present.text(key).unwrap_or_default();
    let (key, operator, effect) = (text("key"), text("operator"), text("effect"));
    let exists = operator == "Exists";
    if key != wanted.key && !(key.is_empty() && exists) {
        return false;
    }
    if !effect.is_empty() && effect != wanted.effect {
        return false;
    }
    if effect == "NoExecute" && !lasts(present, wanted) {
        return false;
    }
    match operator {
        "Exists" => true,
        "Equal" | "" => matches!(wanted.operator.as_str(), "Equal" | "") && wanted.value == text("value"),
        _ => false,
    }
}

/// Whether a toleration of `NoExecute` lasts as long as the wanted one. The API server allows seconds with this effect
/// alone.
fn lasts(present: &Json<'_>, wanted: &Toleration) -> bool {
    match present.get("tolerationSeconds") {
        None => true,
        Some(seconds) => seconds.as_i64().zip(wanted.seconds).is_some_and(|(present, wanted)| present >= wanted),
    }
}

/// A pool's toleration as it stands in a Pod.
pub(crate) fn to_value(toleration: &Toleration) -> serde_json::Value {
    let mut value = serde_json::Map::new();
    let texts = [
        ("key", &toleration.key),
        ("operator", &toleration.operator),
        ("value", &toleration.value),
        ("effect", &toleration.effect),
    ];
    for (name, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
        value.insert(name.to_owned(), text.as_str().into());
    }
    if let Some(seconds) = toleration.seconds {
        value.insert("tolerationSeconds".to_owned(), seconds.into());
    }
    value.into()
}

/// A pool's toleration in a few words.
pub(crate) fn shown(toleration: &Toleration) -> String {
    let or_any = |text: &str| if text.is_empty() { "*".to_owned() } else { text.to_owned() };
    let value = if toleration.value.is_empty() { String::new() } else { format!("={}", toleration.value) };
    format!("{}{value}:{}", or_any(&toleration.key), or_any(&toleration.effect))
}
