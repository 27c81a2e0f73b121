//! From a field, as messages write it, to its place in the text.
//!
//! Invariant: there is always a place; where the field is not in the text, it is that of the nearest one around it.

use std::rc::Rc;

use super::Span;
use super::documents::Document;
use super::json::{is_merge, merge};
use super::tree::{Content, Node, read};

/// The places of one document.
#[derive(Debug)]
pub struct Places<'t> {
    offset: usize,
    line: usize,
    root: Option<Rc<Node<'t>>>,
}

/// A place in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    /// The line, from 1.
    pub line: usize,
    /// The column, in characters, from 1.
    pub column: usize,
    /// The bytes of the text to be marked: a scalar, or the key of what is none.
    pub span: Span,
    /// Whether it is the field itself and not something around it.
    pub exact: bool,
}

impl<'t> Places<'t> {
    /// The places of a document. One that cannot be read has one place only.
    pub fn of(document: &Document<'t>) -> Self {
        Self { offset: document.offset, line: document.line, root: read(document.text).ok() }
    }

    /// The place of a field, such as `spec.containers[0].resources.limits[nvidia.com/gpu.shared]`.
    pub fn locate(&self, field: &str) -> Located {
        let Some(root) = &self.root else {
            return Located { line: self.line, column: 1, span: self.offset..self.offset, exact: field.is_empty() };
        };
        let mut rest = field;
        let (mut key, mut value): (Option<Rc<Node<'t>>>, _) = (None, Rc::clone(root));
        while !rest.is_empty() {
            let Some((below, behind)) = step(&value, rest) else { break };
            (key, value) = below;
            rest = behind;
        }
        let marked = match (&value.content, &key) {
            (Content::Scalar(text, _), Some(key)) if text.is_empty() || value.span.is_empty() => key,
            (Content::Scalar(..), _) | (_, None) => &value,
            (_, Some(key)) => key,
        };
        // What is a whole list or mapping is marked by its beginning.
        let end = if matches!(marked.content, Content::Scalar(..)) { marked.span.end } else { marked.span.start };
        let (line, column) = marked.begins;
        Located {
            line: line.saturating_add(self.line).saturating_sub(1),
            column,
            span: self.offset.saturating_add(marked.span.start)..self.offset.saturating_add(end),
            exact: rest.is_empty(),
        }
    }
}

/// A key, where there is one, and what stands behind it.
type Member<'t> = (Option<Rc<Node<'t>>>, Rc<Node<'t>>);

/// One step down, and what is left of the field.
fn step<'t, 'f>(node: &Rc<Node<'t>>, field: &'f str) -> Option<(Member<'t>, &'f str)> {
    match &node.content {
        Content::Scalar(..) => None,
        Content::List(items) => {
            let (index, rest) = field.strip_prefix('[')?.split_once(']')?;
            let item = items.get(index.parse::<usize>().ok()?)?;
            Some(((None, Rc::clone(item)), rest.strip_prefix('.').unwrap_or(rest)))
        }
        Content::Map(pairs) => {
            let merged = pairs.iter().any(|(key, _)| is_merge(key)).then(|| merge(pairs).ok()).flatten();
            let pairs = merged.as_ref().unwrap_or(pairs);
            let fits = pairs.iter().filter_map(|(key, value)| {
                let Content::Scalar(name, _) = &key.content else { return None };
                let rest = behind(field, name)?;
                Some((name.len(), (Some(Rc::clone(key)), Rc::clone(value)), rest))
            });
            // Keys with points in them are told from two steps by taking the longest.
            let (_, member, rest) = fits.max_by_key(|(length, ..)| *length)?;
            Some((member, rest))
        }
    }
}

/// What is left of the field behind this key: `key.rest`, `key[rest`, `[key]rest` or `["key"]rest`.
fn behind<'f>(field: &'f str, key: &str) -> Option<&'f str> {
    if let Some(bracket) = field.strip_prefix('[') {
        let quoted =
            |quote: char| bracket.strip_prefix(quote)?.strip_prefix(key)?.strip_prefix(quote)?.strip_prefix(']');
        let rest = bracket.strip_prefix(key).and_then(|rest| rest.strip_prefix(']'));
        let rest = rest.or_else(|| quoted('"')).or_else(|| quoted('\''))?;
        return Some(rest.strip_prefix('.').unwrap_or(rest));
    }
    match field.strip_prefix(key)? {
        "" => Some(""),
        rest if rest.starts_with('[') => Some(rest),
        rest => rest.strip_prefix('.'),
    }
}
