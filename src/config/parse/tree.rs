//! YAML text to a tree in which every node knows its place.
//!
//! What it does: reads one YAML 1.2 document from the parser's events, resolves plain scalars by the core schema, and puts
//! aliases in by reference. It knows nothing of the configuration. Invariant: the tree is at most [`DEEPEST`] levels deep and
//! worth at most [`DEAREST`] with every alias counted in full, so that whoever walks it needs bounded stack and time.

use std::collections::HashMap;
use std::rc::Rc;

use granit_parser::{Event, Parser, ScalarStyle, Span, Tag};

use super::log::{Log, Place};
use super::words::shown;
use crate::manifest::syntax;

/// The longest text, in bytes: what fits into a `ConfigMap`.
const LONGEST: usize = 1 << 20;
/// The most levels of lists and mappings, aliases included.
const DEEPEST: usize = 32;
/// The most that a tree may be worth: its scalars' bytes and [`NODE`] for each node, aliases counted in full.
const DEAREST: usize = 4 << 20;
/// What a node is worth by itself.
const NODE: usize = 16;

/// A node and its place.
#[derive(Debug)]
pub(super) struct Node {
    /// Where it begins.
    pub(super) place: Place,
    /// What it holds.
    pub(super) content: Content,
    worth: usize,
    height: usize,
}

/// What a node holds.
#[derive(Debug)]
pub(super) enum Content {
    /// A scalar: what kind it is, and its text.
    Scalar(Scalar, String),
    /// A list.
    List(Vec<Rc<Node>>),
    /// A mapping, its keys unique and in the order of the text.
    Map(Vec<Entry>),
    /// Something that a mistake was already reported for.
    Broken,
}

/// A key and its value.
#[derive(Debug)]
pub(super) struct Entry {
    /// The key's text.
    pub(super) key: String,
    /// Where the key stands.
    pub(super) place: Place,
    /// The value.
    pub(super) value: Rc<Node>,
}

/// The kinds of scalars of YAML's core schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scalar {
    /// `null`, `~` or nothing.
    Null,
    /// `true` or `false`.
    Bool,
    /// An integer.
    Integer,
    /// Another number.
    Float,
    /// Anything else.
    Text,
}

/// Reads the text's one document. Nothing where a mistake ended the reading; it is in the log.
pub(super) fn read(text: &str, log: &Log) -> Option<Rc<Node>> {
    if text.len() > LONGEST {
        log.add(Place::START, format!("the configuration is longer than {LONGEST} bytes"));
        return None;
    }
    let options = granit_parser::options! {
        emit_unresolved_aliases: true,
        emit_comments: false,
        flow_nesting_limit: 64,
        block_nesting_limit: 64,
    };
    let mut builder = Builder { log, anchors: HashMap::new(), open: Vec::new(), root: None, worth: 0, documents: 0 };
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = match event {
            Ok(event) => event,
            Err(error) => {
                let ((line, column), message) = syntax::explain(text, &error);
                log.add(Place { line, column }, message);
                builder.abandon();
                return None;
            }
        };
        builder.take(event, span)?;
    }
    match builder.root {
        Some(root) if !matches!(root.content, Content::Scalar(Scalar::Null, _)) => Some(root),
        _ => {
            log.add(Place::START, "the configuration is empty; it begins with apiVersion and kind".to_owned());
            None
        }
    }
}

/// A list or mapping that has begun and not ended.
struct Open {
    place: Place,
    anchor: usize,
    broken: bool,
    pieces: Pieces,
}

/// What has been read of it.
enum Pieces {
    List(Vec<Rc<Node>>),
    /// The entries, and the key that waits for its value.
    Map(Vec<(Rc<Node>, Rc<Node>)>, Option<Rc<Node>>),
}

struct Builder<'l> {
    log: &'l Log,
    /// Finished nodes by the number of their anchor; none while the node is open.
    anchors: HashMap<usize, Option<Rc<Node>>>,
    open: Vec<Open>,
    root: Option<Rc<Node>>,
    worth: usize,
    documents: usize,
}

impl Builder<'_> {
    /// Takes one event; nothing where the reading ends here.
    fn take(&mut self, event: Event<'_>, span: Span) -> Option<()> {
        let place = Place::of(&span);
        match event {
            Event::DocumentStart(..) => {
                self.documents = self.documents.saturating_add(1);
                if self.documents > 1 {
                    self.log.add(place, "a second document begins here; a configuration is one document".to_owned());
                    return None;
                }
            }
            Event::Scalar(text, style, anchor, tag) => {
                let content = self.scalar(place, &text, style, tag.as_deref());
                let worth = NODE.saturating_add(text.len());
                self.finish(Node { place, content, worth, height: 0 }, anchor, worth)?;
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.begin(place, anchor, tag.as_deref(), "seq", Pieces::List(Vec::new()))?;
            }
            Event::MappingStart(_, anchor, tag) => {
                self.begin(place, anchor, tag.as_deref(), "map", Pieces::Map(Vec::new(), None))?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.end()?,
            Event::Alias(anchor) => self.alias(place, anchor)?,
            Event::UnresolvedAlias(name) => {
                let name = shown(&format!("*{name}"));
                let help = "no anchor has that name; put a text that begins with * in quotes";
                self.log.add(place, format!("{name} is read as an alias, and {help}"));
                self.finish(Node { place, content: Content::Broken, worth: NODE, height: 0 }, 0, NODE)?;
            }
            _ => {}
        }
        Some(())
    }

    fn scalar(&self, place: Place, text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Content {
        let plain = resolve(text);
        let kind = match tag.map(|tag| (tag.core_suffix(), tag)) {
            None if style == ScalarStyle::Plain => plain,
            None | Some((Some("str"), _)) => Scalar::Text,
            Some((Some("null"), _)) if plain == Scalar::Null => plain,
            Some((Some("bool"), _)) if plain == Scalar::Bool => plain,
            Some((Some("int"), _)) if plain == Scalar::Integer => plain,
            Some((Some("float"), _)) if matches!(plain, Scalar::Integer | Scalar::Float) => Scalar::Float,
            Some((_, tag)) if tag.original() == "!" => Scalar::Text,
            Some((_, tag)) => return self.wrong_tag(place, tag),
        };
        Content::Scalar(kind, text.to_owned())
    }

    fn wrong_tag(&self, place: Place, tag: &Tag) -> Content {
        let tag = shown(&tag.original());
        self.log.add(place, format!("the tag {tag} does not fit here; leave it out"));
        Content::Broken
    }

    fn begin(&mut self, place: Place, anchor: usize, tag: Option<&Tag>, fits: &str, pieces: Pieces) -> Option<()> {
        if self.open.len() >= DEEPEST {
            self.log.add(place, format!("nested deeper than {DEEPEST} levels"));
            return None;
        }
        let wrong = tag.filter(|tag| !tag.is_yaml_core_schema_tag(fits) && tag.original() != "!");
        if let Some(tag) = wrong {
            self.wrong_tag(place, tag);
        }
        if anchor != 0 {
            self.anchors.insert(anchor, None);
        }
        self.open.push(Open { place, anchor, broken: wrong.is_some(), pieces });
        Some(())
    }

    fn end(&mut self) -> Option<()> {
        let Open { place, anchor, broken, pieces } = self.open.pop()?;
        let (worth, height) = match &pieces {
            Pieces::List(items) => measure(items),
            Pieces::Map(pairs, _) => measure(pairs.iter().flat_map(|(key, value)| [key, value])),
        };
        if height > DEEPEST {
            self.log.add(place, format!("nested deeper than {DEEPEST} levels by its aliases"));
            return None;
        }
        let content = match pieces {
            Pieces::List(items) => Content::List(items),
            Pieces::Map(pairs, _) => Content::Map(self.entries(pairs)),
        };
        let content = if broken { Content::Broken } else { content };
        // The children were paid for when they came.
        self.finish(Node { place, content, worth, height }, anchor, NODE)
    }

    /// The reading ends amid mappings: what is wrong with the keys so far can be said.
    fn abandon(&mut self) {
        for open in std::mem::take(&mut self.open) {
            if let Pieces::Map(pairs, _) = open.pieces {
                self.entries(pairs);
            }
        }
    }

    /// The pairs of a mapping with their keys as texts, without those that cannot be one or were there before.
    fn entries(&self, pairs: Vec<(Rc<Node>, Rc<Node>)>) -> Vec<Entry> {
        let mut lines: HashMap<String, usize> = HashMap::new();
        let mut entries = Vec::new();
        for (key, value) in pairs {
            let place = key.place;
            let text = match &key.content {
                Content::Scalar(kind, text) if *kind != Scalar::Null => text.clone(),
                Content::Broken => continue,
                _ => {
                    self.log.add(place, "a key must be a text".to_owned());
                    continue;
                }
            };
            if let Some(line) = lines.get(&text) {
                self.log.add(place, format!("the key {} is there twice, first on line {line}", shown(&text)));
                continue;
            }
            lines.insert(text.clone(), place.line);
            entries.push(Entry { key: text, place, value });
        }
        entries
    }

    fn alias(&mut self, place: Place, anchor: usize) -> Option<()> {
        if let Some(node) = self.anchors.get(&anchor).cloned().flatten() {
            return self.put(Rc::clone(&node), node.worth);
        }
        self.log.add(place, "an alias stands inside of what its own anchor names".to_owned());
        self.finish(Node { place, content: Content::Broken, worth: NODE, height: 0 }, 0, NODE)
    }

    /// A node is whole: it gets its anchor and goes where it belongs.
    fn finish(&mut self, node: Node, anchor: usize, price: usize) -> Option<()> {
        let node = Rc::new(node);
        if anchor != 0 {
            self.anchors.insert(anchor, Some(Rc::clone(&node)));
        }
        self.put(node, price)
    }

    fn put(&mut self, node: Rc<Node>, price: usize) -> Option<()> {
        self.worth = self.worth.saturating_add(price);
        if self.worth > DEAREST {
            self.log.add(node.place, "the configuration is too large with its aliases counted in full".to_owned());
            return None;
        }
        match self.open.last_mut().map(|open| &mut open.pieces) {
            None => self.root = Some(node),
            Some(Pieces::List(items)) => items.push(node),
            Some(Pieces::Map(pairs, key)) => match key.take() {
                None => *key = Some(node),
                Some(key) => pairs.push((key, node)),
            },
        }
        Some(())
    }
}

/// What a collection is worth, and how many levels it has.
fn measure<'n>(children: impl IntoIterator<Item = &'n Rc<Node>>) -> (usize, usize) {
    let sum = |(worth, height): (usize, usize), child: &Rc<Node>| {
        (worth.saturating_add(child.worth), height.max(child.height.saturating_add(1)))
    };
    children.into_iter().fold((NODE, 1), sum)
}

/// The kind of a plain scalar by the core schema of YAML 1.2.
fn resolve(text: &str) -> Scalar {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Scalar::Null,
        "true" | "True" | "TRUE" | "false" | "False" | "FALSE" => return Scalar::Bool,
        ".nan" | ".NaN" | ".NAN" => return Scalar::Float,
        _ => {}
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let digits = |text: &str, radix| !text.is_empty() && text.chars().all(|character| character.is_digit(radix));
    let based =
        text.strip_prefix("0o").map(|text| digits(text, 8)).or(text.strip_prefix("0x").map(|text| digits(text, 16)));
    if digits(unsigned, 10) || based == Some(true) {
        return Scalar::Integer;
    }
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || is_float(unsigned) {
        return Scalar::Float;
    }
    Scalar::Text
}

/// Whether the text is `(.digits | digits(.digits?)?)(e sign? digits)?`.
fn is_float(unsigned: &str) -> bool {
    let digits = |text: &str| text.chars().all(|character| character.is_ascii_digit());
    let (mantissa, exponent) =
        unsigned.split_once(['e', 'E']).map_or((unsigned, None), |(left, right)| (left, Some(right)));
    let exponent = exponent.is_none_or(|text| {
        let text = text.strip_prefix(['-', '+']).unwrap_or(text);
        !text.is_empty() && digits(text)
    });
    let (whole, rest) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    exponent && digits(whole) && digits(rest) && !(whole.is_empty() && rest.is_empty())
}
