//! A change to a document that leaves everything else as its author wrote it: comments, order, layout.
//!
//! Invariant: the text that comes out means the old object with the change, which is tried before it is handed out; where
//! that cannot be done, nothing comes out.

use std::rc::Rc;

use serde_json::Value;

use super::scalar::{Scalar, resolve};
use super::tree::{Content, Node, read};
use super::{Span, json};

/// A document with a value added at a place, in the place of the one that is there: `add` of RFC 6902. The place is given by
/// the tokens of its pointer. Nothing where the text cannot be changed so.
pub fn edit(text: &str, tokens: &[String], value: &Value) -> Option<String> {
    let wanted = {
        let tree = read(text).ok()?;
        let mut object: Value = serde_json::from_str(&json::write(&tree).ok()?).ok()?;
        put(&mut object, tokens, value.clone())?;
        object
    };
    // Values look best in blocks, and are safest in brackets and quotes.
    [Style::Block, Style::Flow].into_iter().find_map(|style| {
        let edited = splice(text, tokens, value, style)?;
        let tree = read(&edited).ok()?;
        let meant: Value = serde_json::from_str(&json::write(&tree).ok()?).ok()?;
        (meant == wanted).then_some(edited)
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Block,
    Flow,
}

/// Adds to a value, with the parents that are missing.
fn put(object: &mut Value, tokens: &[String], value: Value) -> Option<()> {
    let Some((first, rest)) = tokens.split_first() else {
        *object = value;
        return Some(());
    };
    if object.is_null() {
        *object = if first == "-" { Value::Array(Vec::new()) } else { Value::Object(serde_json::Map::new()) };
    }
    match object {
        Value::Object(members) => put(members.entry(first.clone()).or_insert(Value::Null), rest, value),
        Value::Array(items) if first == "-" => {
            // At the beginning: lists that are added to have no order that matters.
            items.insert(0, Value::Null);
            put(items.first_mut()?, rest, value)
        }
        Value::Array(items) => put(items.get_mut(first.parse::<usize>().ok()?)?, rest, value),
        _ => None,
    }
}

fn splice(text: &str, tokens: &[String], value: &Value, style: Style) -> Option<String> {
    let mut node = read(text).ok()?;
    let mut rest = tokens;
    while let Some((token, below)) = rest.split_first() {
        let Some(child) = child(&node, token) else { break };
        // What an alias brings in stands elsewhere, for others too.
        if child.span.start < node.span.start || child.span.end > node.span.end.max(child.span.start) {
            return None;
        }
        (node, rest) = (child, below);
    }
    let (at, with) = match (&node.content, rest) {
        (Content::Scalar(..), []) => (node.span.clone(), scalar(text.get(node.span.clone())?, value)?),
        (Content::Map(pairs), [key, below @ ..]) => {
            let first = pairs.first().map(|(key, _)| &**key);
            insertion(text, &node, first, Some(key), &nested(below, value), style)?
        }
        (Content::List(items), [dash, below @ ..]) if dash == "-" => {
            insertion(text, &node, items.first().map(|item| &**item), None, &nested(below, value), style)?
        }
        _ => return None,
    };
    let mut edited = text.to_owned();
    edited.replace_range(at, &with);
    Some(edited)
}

fn child<'t>(node: &Rc<Node<'t>>, token: &str) -> Option<Rc<Node<'t>>> {
    match &node.content {
        Content::Scalar(..) => None,
        Content::List(items) => items.get(token.parse::<usize>().ok()?).cloned(),
        Content::Map(pairs) => {
            let named = |key: &Node<'_>| matches!(&key.content, Content::Scalar(text, _) if text == token);
            pairs.iter().find(|(key, _)| named(key)).map(|(_, value)| Rc::clone(value))
        }
    }
}

/// A value below parents that are not there yet.
fn nested(tokens: &[String], value: &Value) -> Value {
    tokens.iter().rev().fold(value.clone(), |value, token| match token.as_str() {
        "-" => Value::Array(vec![value]),
        key => Value::Object([(key.to_owned(), value)].into_iter().collect()),
    })
}

/// A new scalar in the manner of the old one.
fn scalar(old: &str, value: &Value) -> Option<String> {
    match value {
        Value::String(text) => {
            let plain = !text.is_empty()
                && resolve(text) == Scalar::Text
                && text.chars().all(|character| character.is_ascii_alphanumeric() || "-_./".contains(character));
            match old.chars().next() {
                Some('\'') if !text.contains('\'') => Some(format!("'{text}'")),
                Some('"') => serde_json::to_string(text).ok(),
                _ if plain => Some(text.clone()),
                _ => serde_json::to_string(text).ok(),
            }
        }
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        _ => None,
    }
}

/// Where and how a new member, or a new element, is written: before the first one that is there.
fn insertion(
    text: &str,
    node: &Node<'_>,
    first: Option<&Node<'_>>,
    key: Option<&str>,
    value: &Value,
    style: Style,
) -> Option<(Span, String)> {
    if text.get(node.span.start..)?.starts_with(if key.is_some() { '{' } else { '[' }) {
        let at = node.span.start.checked_add(1)?;
        let key = key.map(|key| serde_json::to_string(key).map(|key| format!("{key}: "))).transpose().ok()?;
        let comma = if first.is_some() { ", " } else { "" };
        return Some((at..at, format!("{}{value}{comma}", key.unwrap_or_default())));
    }
    let first = first?.span.start;
    let at = match key {
        Some(_) => first,
        // The dash before the first element.
        None => text.get(..first)?.trim_end_matches([' ', '\n']).strip_suffix('-')?.len(),
    };
    let line = text.get(..at)?.rsplit('\n').next()?;
    let indent = " ".repeat(line.chars().count());
    let lead = match key {
        Some(key) => format!("{}:", scalar("", &Value::from(key))?),
        None => "-".to_owned(),
    };
    let written = match style {
        Style::Flow => format!(" {value}"),
        Style::Block => block(value, &indent, key.is_some())?,
    };
    Some((at..at, format!("{lead}{written}\n{indent}")))
}

/// A value in a block behind a key or a dash.
fn block(value: &Value, indent: &str, behind_key: bool) -> Option<String> {
    let written = serde_saphyr::to_string(value).ok()?;
    let lines: Vec<&str> = written.trim_end().lines().collect();
    if matches!(value, Value::Array(_) | Value::Object(_))
        && !matches!(lines.as_slice(), [only] if only.starts_with(['{', '[']))
    {
        let deeper = if behind_key && value.is_object() { "  " } else { "" };
        if !behind_key {
            let between = format!("\n{indent}  ");
            return Some(format!(" {}", lines.join(&between)));
        }
        let lines = lines.iter().map(|line| format!("\n{indent}{deeper}{line}"));
        return Some(lines.collect());
    }
    Some(format!(" {}", lines.join("\n")))
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    fn edited(text: &str, pointer: &str, value: &Value) -> String {
        let tokens: Vec<String> = pointer.split('/').skip(1).map(str::to_owned).collect();
        edit(text, &tokens, value).unwrap_or_else(|| "cannot".to_owned())
    }

    const TEXT: &str = "\
# a comment
spec:
  # another
  containers:
  - name: main   # here
    resources: {limits: {gpu: \"2\"}}
    env: []
  size: '3'
";

    #[test]
    fn the_rest_stays_as_it_was_written() {
        let limit = edited(TEXT, "/spec/containers/0/resources/limits/gpu", &json!("1"));
        assert_eq!(limit, TEXT.replace("\"2\"", "\"1\""));
        assert_eq!(edited(TEXT, "/spec/size", &json!("1")), TEXT.replace("'3'", "'1'"));
        assert_eq!(edited(TEXT, "/spec/size", &json!(1)), TEXT.replace("'3'", "1"));
        assert_eq!(
            edited(TEXT, "/spec/nodeSelector", &json!({"gpu-mode": "shared"})),
            TEXT.replace("  containers:", "  nodeSelector:\n    gpu-mode: shared\n  containers:")
        );
        let tolerations = json!([{"effect": "NoSchedule", "key": "a/b"}]);
        assert_eq!(
            edited(TEXT, "/spec/tolerations", &tolerations),
            TEXT.replace("  containers:", "  tolerations:\n  - effect: NoSchedule\n    key: a/b\n  containers:")
        );
        assert_eq!(
            edited(TEXT, "/spec/containers/-", &json!({"name": "b"})),
            TEXT.replace("  - name: main", "  - name: b\n  - name: main")
        );
        assert_eq!(
            edited(TEXT, "/spec/containers/0/resources/limits/cpu", &json!("1")),
            TEXT.replace("{gpu", "{\"cpu\": \"1\", gpu")
        );
        assert_eq!(edited(TEXT, "/spec/containers/0/env/-", &json!({"a": "b"})), TEXT.replace("[]", "[{\"a\":\"b\"}]"));
        assert_eq!(
            edited(TEXT, "/metadata/labels", &json!({"a.b/c": "true"})),
            TEXT.replace("spec:\n", "metadata:\n  labels:\n    a.b/c: \"true\"\nspec:\n")
        );
    }

    #[test]
    fn what_cannot_be_changed_alone_is_left() {
        let shared = "a: &x {limit: 2}\nb: *x\n";
        assert_eq!(edited(shared, "/b/limit", &json!(1)), "cannot");
        assert_eq!(edited(shared, "/a/limit", &json!(1)), "cannot");
        assert_eq!(edited("a: b\n", "/a/c", &json!(1)), "cannot");
        assert_eq!(
            edited("base: &x {limit: 2}\nb:\n  <<: *x\n", "/b/limit", &json!(1)),
            "base: &x {limit: 2}\nb:\n  limit: 1\n  <<: *x\n"
        );
        assert_eq!(edited("{\"a\": {\"b\": \"2\"}}", "/a/b", &json!("1")), "{\"a\": {\"b\": \"1\"}}");
    }
}
