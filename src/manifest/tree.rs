//! One document of YAML as a tree in which every node knows its place.
//!
//! Invariant: the tree is at most [`DEEPEST`] levels deep and worth at most [`DEAREST`] with every alias counted in full, so
//! that whoever walks it needs bounded stack and time.

use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;

use granit_parser::{Event, Parser, ScalarStyle, Span as Marked, Tag};

use super::scalar::{Scalar, resolve};
use super::{Mistake, Span, syntax};
use crate::json::MAX_DEPTH;

/// The most levels of lists and mappings, aliases included: what the review's own reader takes.
const DEEPEST: usize = MAX_DEPTH;
/// The most nodes of one document, aliases counted in full.
const DEAREST: usize = 10_000_000;

/// A node and its place.
#[derive(Debug)]
pub(super) struct Node<'t> {
    /// The bytes of the document that it is.
    pub(super) span: Span,
    /// Where it begins: line and column in the document.
    pub(super) begins: syntax::Place,
    /// What it holds.
    pub(super) content: Content<'t>,
    /// How many nodes it is with everything below it.
    worth: usize,
    /// How many levels are below it.
    height: usize,
}

/// What a node holds.
#[derive(Debug)]
pub(super) enum Content<'t> {
    /// A scalar, its text and what it means.
    Scalar(Cow<'t, str>, Scalar),
    /// A list.
    List(Vec<Rc<Node<'t>>>),
    /// A mapping, with its pairs in the order of the text.
    Map(Vec<(Rc<Node<'t>>, Rc<Node<'t>>)>),
}

/// Reads a document. Places in the mistake are those of the document.
pub(super) fn read(text: &str) -> Result<Rc<Node<'_>>, Mistake> {
    let options = granit_parser::options! {
        emit_unresolved_aliases: true,
        emit_comments: false,
        flow_nesting_limit: 200,
        block_nesting_limit: 200,
    };
    let mut builder = Builder { anchors: HashMap::new(), open: Vec::new(), root: None, worth: 0, documents: 0 };
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|error| {
            let ((line, column), message) = syntax::explain(text, &error);
            Mistake { line, column, message }
        })?;
        builder.take(event, &span)?;
    }
    builder.root.ok_or_else(|| Mistake { line: 1, column: 1, message: "the document is empty".to_owned() })
}

struct Open<'t> {
    span: Span,
    begins: syntax::Place,
    anchor: usize,
    pieces: Pieces<'t>,
}

enum Pieces<'t> {
    List(Vec<Rc<Node<'t>>>),
    /// The pairs, and the key that waits for its value.
    Map(Vec<(Rc<Node<'t>>, Rc<Node<'t>>)>, Option<Rc<Node<'t>>>),
}

struct Builder<'t> {
    /// Finished nodes by the number of their anchor.
    anchors: HashMap<usize, Rc<Node<'t>>>,
    open: Vec<Open<'t>>,
    root: Option<Rc<Node<'t>>>,
    worth: usize,
    documents: usize,
}

impl<'t> Builder<'t> {
    fn take(&mut self, event: Event<'t>, span: &Marked) -> Result<(), Mistake> {
        match event {
            Event::DocumentStart(..) => {
                self.documents = self.documents.saturating_add(1);
                if self.documents > 1 {
                    return Err(wrong(span, "a second document begins here; documents are parted by a line with ---"));
                }
                Ok(())
            }
            Event::Scalar(text, style, anchor, tag) => {
                let meaning = meaning(&text, style, tag.as_deref(), span)?;
                let content = Content::Scalar(text, meaning);
                self.finish(Node { span: bytes(span), begins: place(span), content, worth: 1, height: 0 }, anchor, span)
            }
            Event::SequenceStart(_, anchor, _) => self.begin(span, anchor, Pieces::List(Vec::new())),
            Event::MappingStart(_, anchor, _) => self.begin(span, anchor, Pieces::Map(Vec::new(), None)),
            Event::SequenceEnd | Event::MappingEnd => self.end(span),
            Event::Alias(anchor) => match self.anchors.get(&anchor).cloned() {
                Some(node) => self.put(node, span),
                None => Err(wrong(span, "an alias stands inside of what its own anchor names")),
            },
            Event::UnresolvedAlias(name) => Err(wrong(
                span,
                format!("*{name} is read as an alias, and no anchor has that name; put the text in quotes"),
            )),
            _ => Ok(()),
        }
    }

    fn begin(&mut self, span: &Marked, anchor: usize, pieces: Pieces<'t>) -> Result<(), Mistake> {
        if self.open.len() >= DEEPEST {
            return Err(wrong(span, format!("nested deeper than {DEEPEST} levels, which is more than is judged")));
        }
        self.open.push(Open { span: bytes(span), begins: place(span), anchor, pieces });
        Ok(())
    }

    fn end(&mut self, span: &Marked) -> Result<(), Mistake> {
        let Some(Open { span: from, begins, anchor, pieces }) = self.open.pop() else { return Ok(()) };
        let (content, (worth, height)) = match pieces {
            Pieces::List(items) => {
                let size = measure(items.iter());
                (Content::List(items), size)
            }
            Pieces::Map(pairs, _) => {
                let size = measure(pairs.iter().flat_map(|(key, value)| [key, value]));
                (Content::Map(pairs), size)
            }
        };
        if height > DEEPEST {
            return Err(wrong(span, format!("nested deeper than {DEEPEST} levels by its aliases")));
        }
        let span_of_all = from.start..bytes(span).end.max(from.end);
        self.finish(Node { span: span_of_all, begins, content, worth, height }, anchor, span)
    }

    /// A node is whole: it gets its anchor and goes where it belongs.
    fn finish(&mut self, node: Node<'t>, anchor: usize, span: &Marked) -> Result<(), Mistake> {
        let node = Rc::new(node);
        if anchor != 0 {
            self.anchors.insert(anchor, Rc::clone(&node));
        }
        // What is below it was counted when it came.
        self.place(node, 1, span)
    }

    fn put(&mut self, node: Rc<Node<'t>>, span: &Marked) -> Result<(), Mistake> {
        let worth = node.worth;
        self.place(node, worth, span)
    }

    fn place(&mut self, node: Rc<Node<'t>>, worth: usize, span: &Marked) -> Result<(), Mistake> {
        self.worth = self.worth.saturating_add(worth);
        if self.worth > DEAREST {
            return Err(wrong(span, "the document is too large with its aliases counted in full"));
        }
        match self.open.last_mut().map(|open| &mut open.pieces) {
            None => self.root = Some(node),
            Some(Pieces::List(items)) => items.push(node),
            Some(Pieces::Map(pairs, key)) => match key.take() {
                None => *key = Some(node),
                Some(key) => pairs.push((key, node)),
            },
        }
        Ok(())
    }
}

/// How many nodes something is with what is below it, and how many levels.
fn measure<'n, 't: 'n>(children: impl Iterator<Item = &'n Rc<Node<'t>>>) -> (usize, usize) {
    children.fold((1, 1), |(worth, height), child| {
        (worth.saturating_add(child.worth), height.max(child.height.saturating_add(1)))
    })
}

fn meaning(text: &str, style: ScalarStyle, tag: Option<&Tag>, span: &Marked) -> Result<Scalar, Mistake> {
    let Some(tag) = tag else {
        return Ok(match (style, text) {
            (ScalarStyle::Plain, "<<") => Scalar::Merge,
            (ScalarStyle::Plain, _) => resolve(text),
            _ => Scalar::Text,
        });
    };
    match (tag.core_suffix(), resolve(text)) {
        (Some("str"), _) => Ok(Scalar::Text),
        (Some("null"), Scalar::Null) => Ok(Scalar::Null),
        (Some("bool"), meaning @ Scalar::Bool(_)) | (Some("int" | "float"), meaning @ Scalar::Number(_)) => Ok(meaning),
        _ if tag.original() == "!" => Ok(Scalar::Text),
        _ => Err(wrong(span, format!("the tag {} does not fit here; leave it out", tag.original()))),
    }
}

pub(super) fn wrong(span: &Marked, message: impl Into<String>) -> Mistake {
    let (line, column) = place(span);
    Mistake { line, column, message: message.into() }
}

fn place(span: &Marked) -> syntax::Place {
    (span.start.line().max(1), span.start.col().saturating_add(1))
}

fn bytes(span: &Marked) -> Span {
    span.byte_range().unwrap_or_default()
}
