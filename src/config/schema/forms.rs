//! The forms that schemas are made of.

use serde_json::{Map, Value, json};

use crate::config::parse::globs::MOST;
use crate::config::parse::names::MOST_STARS;

const SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const LABEL_NAME: &str = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?";
const CONTROL: &str = r"\u0000-\u001f\u007f-\u009f";

/// What a text names.
#[derive(Debug, Clone, Copy)]
pub(super) enum Names {
    LabelKey,
    LabelKeyOrNone,
    LabelValue,
    DnsLabel,
    SubdomainGlob,
    ResourceGlob,
    AnyGlob,
    PolicyRuleGlob,
    WorkloadGlob,
    Kind,
    Group,
    Pointer,
    Moment,
}

/// A text of one form.
pub(super) fn text(names: Names) -> Value {
    let glob = |pattern: &str| pattern.replace("0-9", "0-9*");
    let key = format!("({SUBDOMAIN}/)?{LABEL_NAME}");
    let pattern = match names {
        Names::LabelKey => format!("^{key}$"),
        Names::LabelKeyOrNone => format!("^({key})?$"),
        Names::LabelValue => format!("^({LABEL_NAME})?$"),
        Names::DnsLabel => "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$".to_owned(),
        Names::SubdomainGlob => format!("^{}$", glob(SUBDOMAIN)),
        Names::ResourceGlob => format!("^{}/{}$", glob(SUBDOMAIN), glob(LABEL_NAME)),
        Names::AnyGlob => format!(r"^[^\s{CONTROL}]([^{CONTROL}]*[^\s{CONTROL}])?$"),
        Names::PolicyRuleGlob => format!("^({}/){{1,2}}[A-Za-z0-9_*]{{1,253}}$", glob(SUBDOMAIN)),
        Names::WorkloadGlob => {
            format!(r"^([A-Z][A-Za-z0-9*]{{0,62}}|\*[A-Za-z0-9*]{{0,61}})/{}$", glob(SUBDOMAIN))
        }
        Names::Kind => "^[A-Z][A-Za-z0-9]{0,62}$".to_owned(),
        Names::Group => format!("^({SUBDOMAIN})?$"),
        Names::Pointer => "^(/([^/~]|~[01])+)+$".to_owned(),
        Names::Moment => {
            let clock = r"[Tt ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?([Zz]|[-+][0-9]{2}:[0-9]{2})";
            format!("^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}({clock})?$")
        }
    };
    let mut schema = json!({"type": "string", "pattern": pattern});
    let more = match names {
        Names::ResourceGlob => {
            let stars = format!(r"^[^*]*(\*[^*]*){{0,{MOST_STARS}}}$");
            json!({"allOf": [
                {"pattern": stars},
                {"not": {"pattern": r"^([^/]*\.)?kubernetes\.io/"}},
                {"not": {"pattern": r"(^|/)requests\."}},
            ]})
        }
        Names::AnyGlob => json!({"maxLength": 1024}),
        Names::Group => json!({"not": {"enum": ["v1", "core"]}}),
        Names::Pointer => json!({"maxLength": 1025}),
        _ => json!({}),
    };
    if let (Some(schema), Value::Object(more)) = (schema.as_object_mut(), more) {
        schema.extend(more);
    }
    schema
}

/// One of some words.
pub(super) fn words(words: &[&str]) -> Value {
    json!({"type": "string", "enum": words})
}

/// `true` or `false`.
pub(super) fn flag() -> Value {
    json!({"type": "boolean"})
}

/// A list in which nothing stands twice.
pub(super) fn list(items: &Value) -> Value {
    json!({"type": "array", "maxItems": MOST, "uniqueItems": true, "items": items})
}

/// A list that is not empty.
pub(super) fn some(mut list: Value) -> Value {
    put(&mut list, "minItems", 1.into());
    list
}

/// One of several forms.
pub(super) fn either(forms: &[Value]) -> Value {
    json!({"anyOf": forms})
}

/// A mapping with these fields and no others. The names are the parser's own.
pub(super) fn object(fields: &[&str], required: &[&str], schema: impl Fn(&str) -> Value) -> Value {
    let properties: Map<String, Value> = fields.iter().map(|name| ((*name).to_owned(), schema(name))).collect();
    let mut object = json!({"type": "object", "additionalProperties": false, "properties": properties});
    if !required.is_empty() {
        put(&mut object, "required", required.into());
    }
    object
}

/// At least one of these lists has to be there.
pub(super) fn any_list(mut object: Value, lists: &[&str]) -> Value {
    let there = |name: &&str| json!({"required": [name], "properties": {*name: {"type": "array"}}});
    put(&mut object, "anyOf", lists.iter().map(there).collect());
    object
}

/// The same, or nothing.
pub(super) fn or_null(mut schema: Value) -> Value {
    if let Some(kind) = schema.get("type").cloned() {
        put(&mut schema, "type", json!([kind, "null"]));
    }
    if let Some(words) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        words.push(Value::Null);
    }
    schema
}

pub(super) fn described(mut schema: Value, about: &str) -> Value {
    put(&mut schema, "description", about.into());
    schema
}

pub(super) fn with_default(mut schema: Value, default: Value) -> Value {
    put(&mut schema, "default", default);
    schema
}

fn put(schema: &mut Value, name: &str, value: Value) {
    if let Some(members) = schema.as_object_mut() {
        members.insert(name.to_owned(), value);
    }
}
