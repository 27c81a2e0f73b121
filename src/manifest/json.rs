//! A tree as the JSON text that the API server would be sent.
//!
//! Invariant: a mapping's keys are unique; what merge keys bring in gives way to what the mapping says itself.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::rc::Rc;

use super::Mistake;
use super::scalar::{Scalar, as_key};
use super::tree::{Content, Node};

/// Writes a tree as JSON. Places in the mistake are those of the document.
pub(super) fn write(node: &Node<'_>) -> Result<String, Mistake> {
    let mut json = String::with_capacity(node.span.len());
    value(node, &mut json)?;
    Ok(json)
}

fn value(node: &Node<'_>, json: &mut String) -> Result<(), Mistake> {
    match &node.content {
        Content::Scalar(text, meaning) => scalar(node, text, meaning, json),
        Content::List(items) => {
            json.push('[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    json.push(',');
                }
                value(item, json)?;
            }
            json.push(']');
            Ok(())
        }
        Content::Map(pairs) => {
            let merged;
            let pairs = if pairs.iter().any(|(key, _)| is_merge(key)) {
                merged = merge(pairs)?;
                &merged
            } else {
                unique(pairs)?;
                pairs
            };
            json.push('{');
            for (place, (key, member)) in pairs.iter().enumerate() {
                if place > 0 {
                    json.push(',');
                }
                text(self::key(key)?, json);
                json.push(':');
                value(member, json)?;
            }
            json.push('}');
            Ok(())
        }
    }
}

fn scalar(node: &Node<'_>, written: &str, meaning: &Scalar, json: &mut String) -> Result<(), Mistake> {
    match meaning {
        Scalar::Null => json.push_str("null"),
        Scalar::Bool(true) => json.push_str("true"),
        Scalar::Bool(false) => json.push_str("false"),
        Scalar::Number(literal) => json.push_str(literal),
        Scalar::Text | Scalar::Merge => text(written, json),
        Scalar::NotFinite => {
            return Err(mistake(
                node,
                format!("{written} is no number that JSON has a word for; put a text in quotes"),
            ));
        }
    }
    Ok(())
}

/// Writes a text in quotes.
fn text(text: &str, json: &mut String) {
    json.push('"');
    let mut clean = 0;
    for (place, byte) in text.bytes().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        json.push_str(text.get(clean..place).unwrap_or_default());
        match byte {
            b'"' => json.push_str("\\\""),
            b'\\' => json.push_str("\\\\"),
            b'\n' => json.push_str("\\n"),
            b'\t' => json.push_str("\\t"),
            other => {
                // Writing to a String cannot fail.
                let _ = write!(json, "\\u{other:04x}");
            }
        }
        clean = place.saturating_add(1);
    }
    json.push_str(text.get(clean..).unwrap_or_default());
    json.push('"');
}

/// The text of a key. Keys that are words or numbers are written as such by kubectl's reader too.
fn key<'n>(node: &'n Node<'_>) -> Result<&'n str, Mistake> {
    match &node.content {
        Content::Scalar(text, Scalar::Text) => Ok(text),
        Content::Scalar(_, Scalar::Bool(true)) => Ok("true"),
        Content::Scalar(_, Scalar::Bool(false)) => Ok("false"),
        Content::Scalar(written, Scalar::Number(literal)) => as_key(written, literal).ok_or_else(|| {
            mistake(node, format!("the key {literal} is a number that kubectl rewrites; put it in quotes"))
        }),
        _ => Err(mistake(node, "a key must be a text; a template of Helm is to be rendered first, by helm template")),
    }
}

type Pairs<'t> = Vec<(Rc<Node<'t>>, Rc<Node<'t>>)>;

fn unique(pairs: &[(Rc<Node<'_>>, Rc<Node<'_>>)]) -> Result<(), Mistake> {
    // Most mappings have few keys, which are compared faster than they are hashed.
    if pairs.len() <= 12 {
        for (place, (later, _)) in pairs.iter().enumerate() {
            for (earlier, _) in pairs.iter().take(place) {
                if key(earlier)? == key(later)? {
                    return Err(twice(later));
                }
            }
        }
        return Ok(());
    }
    let mut seen: HashSet<&str> = HashSet::with_capacity(pairs.len());
    for (later, _) in pairs {
        if !seen.insert(key(later)?) {
            return Err(twice(later));
        }
    }
    Ok(())
}

fn twice(later: &Node<'_>) -> Mistake {
    let name = key(later).unwrap_or_default();
    mistake(
        later,
        format!(
            "the key {name:?} stands twice in one object, and kubectl silently drops one of the two; write it once"
        ),
    )
}

pub(super) fn is_merge(node: &Node<'_>) -> bool {
    matches!(&node.content, Content::Scalar(_, Scalar::Merge))
}

/// The pairs of a mapping with what its merge keys bring in: what stands in it wins, then what is merged first.
pub(super) fn merge<'t>(pairs: &[(Rc<Node<'t>>, Rc<Node<'t>>)]) -> Result<Pairs<'t>, Mistake> {
    let mut own: Pairs<'t> = pairs.iter().filter(|(key, _)| !is_merge(key)).cloned().collect();
    unique(&own)?;
    let mut known = HashSet::with_capacity(own.len());
    for (name, _) in &own {
        known.insert(key(name)?.to_owned());
    }
    for (_, merged) in pairs.iter().filter(|(key, _)| is_merge(key)) {
        let sources = match &merged.content {
            Content::Map(_) => std::slice::from_ref(merged),
            Content::List(sources) => sources,
            Content::Scalar(..) => return Err(mistake(merged, "<< takes a mapping, or a list of mappings")),
        };
        for source in sources {
            let Content::Map(pairs) = &source.content else {
                return Err(mistake(source, "<< takes a mapping, or a list of mappings"));
            };
            for pair in merge(pairs)? {
                if known.insert(key(&pair.0)?.to_owned()) {
                    own.push(pair);
                }
            }
        }
    }
    Ok(own)
}

fn mistake(node: &Node<'_>, message: impl Into<String>) -> Mistake {
    let (line, column) = node.begins;
    Mistake { line, column, message: message.into() }
}
