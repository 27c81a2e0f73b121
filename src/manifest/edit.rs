//! A change to a document that leaves everything else as its author wrote it: comments, order, layout.
//!
//! Invariant: the text that comes out means the old object with the change, which is tried before it is handed out; where
//! that cannot be done, nothing comes out. Lines end as those of the document do.

use std::rc::Rc;

use serde_json::Value;

use super::scalar::{Scalar, resolve};
use super::tree::{Content, Node, read};
use super::{Span, json};

/// A change: the tokens of a pointer, and the value to be added there.
pub type Edit = (Vec<String>, Value);

/// A document with as many of these changes as can be made in its text.
pub fn edit_all(text: &str, edits: &[Edit]) -> String {
    let mut text = text.to_owned();
    let mut left: Vec<&Edit> = edits.iter().collect();
    while !left.is_empty() {
        let before = left.len();
        left.retain(|(tokens, value)| {
            let edited = edit(&text, tokens, value);
            edited.is_none_or(|edited| {
                text = edited;
                false
            })
        });
        if left.len() == before {
            let Some(edited) = shared(&text, &left) else { break };
            text = edited;
        }
    }
    text
}

/// Makes a change where its text is shared by an anchor, if all who share it want the same.
fn shared(text: &str, wanted: &[&Edit]) -> Option<String> {
    if wanted.iter().any(|(tokens, _)| tokens.iter().any(|token| token == "-")) {
        return None;
    }
    let object = meaning(text)?;
    wanted.iter().find_map(|(tokens, value)| {
        let edited = splice(text, tokens, value, Style::Block)?;
        let meant = meaning(&edited)?;
        // Everything that became another is wanted so.
        let mut reached = object.clone();
        for (tokens, value) in wanted {
            let mut with = meant.clone();
            put(&mut with, tokens, value.clone())?;
            if with == meant {
                put(&mut reached, tokens, value.clone())?;
            }
        }
        (reached == meant && meant != object).then_some(edited)
    })
}

/// What a document means; nothing where it cannot be read.
fn meaning(text: &str) -> Option<Value> {
    let tree = read(text).ok()?;
    serde_json::from_str(&json::write(&tree).ok()?).ok()
}

/// A document with a value added at a place, in the place of the one that is there: `add` of RFC 6902. Nothing where the text
/// cannot be changed so.
fn edit(text: &str, tokens: &[String], value: &Value) -> Option<String> {
    let object = meaning(text)?;
    let mut wanted = object.clone();
    put(&mut wanted, tokens, value.clone())?;
    if wanted == object {
        return Some(text.to_owned());
    }
    // Values look best in blocks, and are safest in brackets and quotes.
    [Style::Block, Style::Flow].into_iter().find_map(|style| {
        let edited = splice(text, tokens, value, style)?;
        (meaning(&edited)? == wanted).then_some(edited)
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
    let with = if text.contains("\r\n") { with.replace('\n', "\r\n") } else { with };
    let mut edited = text.to_owned();
    edited.replace_range(at, &with);
    Some(edited)
}

/// A member of a mapping, or an element of a list.
pub(super) fn child<'t>(node: &Rc<Node<'t>>, token: &str) -> Option<Rc<Node<'t>>> {
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
        Some(_) => above_comments(text, first),
        // The dash before the first element.
        None => text.get(..first)?.trim_end_matches([' ', '\r', '\n']).strip_suffix('-')?.len(),
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

/// A place before the comments right above a key, since they are about that key; but not before those that begin a document.
fn above_comments(text: &str, key: usize) -> usize {
    let line_start =
        |at: usize| text.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |end| end.saturating_add(1));
    let mut start = line_start(key);
    let indent = text.get(start..key).unwrap_or_default();
    if !indent.chars().all(|blank| blank == ' ') {
        return key;
    }
    while let Some(before) = start.checked_sub(1) {
        let above = line_start(before);
        let comment = text.get(above..before).and_then(|line| line.strip_prefix(indent));
        match comment {
            Some(comment) if comment.starts_with('#') && above > 0 => start = above,
            Some(comment) if comment.starts_with('#') => return key,
            _ => break,
        }
    }
    start.saturating_add(indent.len())
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
            TEXT.replace("  # another", "  nodeSelector:\n    gpu-mode: shared\n  # another")
        );
        let tolerations = json!([{"effect": "NoSchedule", "key": "a/b"}]);
        assert_eq!(
            edited(TEXT, "/spec/tolerations", &tolerations),
            TEXT.replace("  # another", "  tolerations:\n  - effect: NoSchedule\n    key: a/b\n  # another")
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
    fn lines_end_as_before() {
        let text = TEXT.replace('\n', "\r\n");
        let wanted = TEXT.replace("  # another", "  nodeSelector:\n    gpu-mode: shared\n  # another");
        let selector = json!({"gpu-mode": "shared"});
        assert_eq!(edited(&text, "/spec/nodeSelector", &selector), wanted.replace('\n', "\r\n"));
    }

    #[test]
    fn what_is_shared_changes_for_all_or_for_none() {
        let text = "a: &x {limit: 2}\nb: *x\n";
        let edit = |name: &str, value: i64| (vec![name.to_owned(), "limit".to_owned()], json!(value));
        assert_eq!(edit_all(text, &[edit("a", 1), edit("b", 1)]), "a: &x {limit: 1}\nb: *x\n");
        assert_eq!(edit_all(text, &[edit("b", 1), edit("a", 1)]), "a: &x {limit: 1}\nb: *x\n");
        assert_eq!(edit_all(text, &[edit("a", 1)]), text);
        assert_eq!(edit_all(text, &[edit("a", 1), edit("b", 3)]), text);
        let merged = "a: &x {limit: 2}\nb:\n  <<: *x\n";
        let both = edit_all(merged, &[edit("a", 1), edit("b", 1)]);
        assert_eq!(both, "a: &x {limit: 1}\nb:\n  limit: 1\n  <<: *x\n");
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
