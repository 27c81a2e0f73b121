//! Typed reading of the tree: each reader takes what it wants, or says what it wanted.
//!
//! Invariant: a reader that returns nothing has noted a mistake, unless one was noted for that node before. So the reading
//! goes on after a mistake, and an empty log means that every value is there.

use std::collections::BTreeMap;

use super::log::{Log, Place};
use super::tree::{Content, Node, Scalar};
use super::words::{listed, nearest, shown, suggestion};

/// A node of the tree with the path that led to it.
#[derive(Clone)]
pub(super) struct Value<'t> {
    node: &'t Node,
    /// Where it is reported: its own place, or its key's where it is nothing.
    place: Place,
    path: String,
    log: &'t Log,
}

/// A mapping with fixed fields.
pub(super) struct Fields<'t> {
    whole: Value<'t>,
    found: BTreeMap<&'t str, Value<'t>>,
}

/// A mapping with keys that users choose: the keys with their places, and the values.
pub(super) type Pairs<'t> = Vec<(Key<'t>, Value<'t>)>;

/// A key that a user chose.
pub(super) struct Key<'t> {
    /// Its text.
    pub(super) text: &'t str,
    place: Place,
    path: String,
    log: &'t Log,
}

impl<'t> Value<'t> {
    /// The root of a tree.
    pub(super) fn root(node: &'t Node, log: &'t Log) -> Self {
        Self { node, place: node.place, path: String::new(), log }
    }

    /// Notes a mistake at this value.
    pub(super) fn mistake(&self, message: &str) {
        self.log.add(self.place, at_path(&self.path, message));
    }

    /// The line on which it stands.
    pub(super) fn line(&self) -> usize {
        self.place.line
    }

    /// Whether it is null, or nothing at all.
    pub(super) fn is_null(&self) -> bool {
        matches!(self.node.content, Content::Scalar(Scalar::Null, _))
    }

    /// Whether it is this very text.
    pub(super) fn is_text(&self, text: &str) -> bool {
        matches!(&self.node.content, Content::Scalar(Scalar::Text, found) if found == text)
    }

    /// Whether it is a text without anything but blanks.
    pub(super) fn is_blank_text(&self) -> bool {
        matches!(&self.node.content, Content::Scalar(Scalar::Text, found) if found.trim().is_empty())
    }

    /// Whether it is a list of nothing.
    pub(super) fn is_empty_list(&self) -> bool {
        matches!(&self.node.content, Content::List(items) if items.is_empty())
    }

    /// The text of a field, for a look ahead: no mistake is noted.
    pub(super) fn peek(&self, field: &str) -> Option<&'t str> {
        let Content::Map(entries) = &self.node.content else { return None };
        match &entries.iter().find(|entry| entry.key == field)?.value.content {
            Content::Scalar(_, text) => Some(text),
            _ => None,
        }
    }

    /// A text; `wanted` says which, such as `a label key`.
    pub(super) fn text(&self, wanted: &str) -> Option<&'t str> {
        match &self.node.content {
            Content::Scalar(Scalar::Text, text) => Some(text),
            Content::Scalar(Scalar::Bool | Scalar::Integer | Scalar::Float, _) => {
                self.wanted(wanted, "; put it in quotes")
            }
            _ => self.wanted(wanted, ""),
        }
    }

    /// The text of any scalar, as it was written.
    pub(super) fn scalar(&self, wanted: &str) -> Option<&'t str> {
        match &self.node.content {
            Content::Scalar(kind, text) if *kind != Scalar::Null => Some(text),
            _ => self.wanted(wanted, ""),
        }
    }

    /// A text that fits the check, which says what is wrong with others.
    pub(super) fn checked(&self, wanted: &str, check: impl FnOnce(&str) -> Result<(), String>) -> Option<&'t str> {
        let text = self.text(wanted)?;
        match check(text) {
            Ok(()) => Some(text),
            Err(why) => {
                self.mistake(&format!("{} is not {wanted}: {why}", shown(text)));
                None
            }
        }
    }

    /// One of some words.
    pub(super) fn word<T: Copy>(&self, words: &[(&str, T)]) -> Option<T> {
        let known = || words.iter().map(|(word, _)| *word);
        let wanted = format!("{}{}", if words.len() == 1 { "" } else { "one of " }, listed(known()));
        let Content::Scalar(Scalar::Text, text) = &self.node.content else { return self.wanted(&wanted, "") };
        let found = words.iter().find(|(word, _)| *word == text);
        if found.is_none() {
            let help = if words.len() == 1 { String::new() } else { suggestion(text, known()) };
            self.mistake(&format!("{} is not {wanted}{help}", shown(text)));
        }
        found.map(|(_, meaning)| *meaning)
    }

    /// `true` or `false`.
    pub(super) fn flag(&self) -> Option<bool> {
        match &self.node.content {
            Content::Scalar(Scalar::Bool, text) => Some(text.eq_ignore_ascii_case("true")),
            Content::Scalar(Scalar::Text, text) => {
                let lower = text.to_ascii_lowercase();
                let word = matches!(lower.as_str(), "yes" | "no" | "on" | "off" | "y" | "n");
                let quoted = matches!(lower.as_str(), "true" | "false");
                let help = "; in YAML 1.2 this word is a text";
                self.wanted(
                    "true or false",
                    if word {
                        help
                    } else if quoted {
                        "; leave out the quotes"
                    } else {
                        ""
                    },
                )
            }
            _ => self.wanted("true or false", ""),
        }
    }

    /// A whole number.
    pub(super) fn number(&self, wanted: &str) -> Option<i64> {
        match &self.node.content {
            Content::Scalar(Scalar::Integer, text) => {
                let number = match (text.strip_prefix("0x"), text.strip_prefix("0o")) {
                    (Some(digits), _) => i64::from_str_radix(digits, 16),
                    (_, Some(digits)) => i64::from_str_radix(digits, 8),
                    _ => text.parse(),
                };
                number.map_or_else(|_| self.wanted(wanted, ""), Some)
            }
            Content::Scalar(Scalar::Text, text) if text.parse::<i64>().is_ok() => {
                self.wanted(wanted, "; leave out the quotes")
            }
            _ => self.wanted(wanted, ""),
        }
    }

    /// The elements of a list.
    pub(super) fn items(&self, wanted: &str) -> Option<Vec<Self>> {
        let Content::List(items) = &self.node.content else { return self.wanted(wanted, "") };
        let item = |(place, node): (usize, &'t std::rc::Rc<Node>)| Self {
            node,
            place: node.place,
            path: format!("{}[{place}]", self.path),
            log: self.log,
        };
        Some(items.iter().enumerate().map(item).collect())
    }

    /// The entries of a mapping whose keys users choose.
    pub(super) fn entries(&self, wanted: &str) -> Option<Pairs<'t>> {
        let Content::Map(entries) = &self.node.content else { return self.wanted(wanted, "") };
        let pairs = entries.iter().filter_map(|entry| {
            if entry.key == MERGE {
                self.log.add(entry.place, at_path(&self.path, NO_MERGE));
                return None;
            }
            let path = format!("{}[{}]", self.path, shown(&entry.key).trim_matches('"'));
            let value = self.child(path.clone(), entry.place, &entry.value);
            Some((Key { text: &entry.key, place: entry.place, path, log: self.log }, value))
        });
        Some(pairs.collect())
    }

    /// The fields of a mapping that has no others than the known ones.
    pub(super) fn fields(&self, known: &[&str], wanted: &str) -> Option<Fields<'t>> {
        let Content::Map(entries) = &self.node.content else { return self.wanted(wanted, "") };
        let mut found = BTreeMap::new();
        for entry in entries {
            let name = entry.key.as_str();
            if known.contains(&name) {
                let path = if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) };
                found.insert(name, self.child(path, entry.place, &entry.value));
            } else {
                let message = || at_path(&self.path, &unknown_field(name, known));
                self.log.add_unknown_field(entry.place, message);
            }
        }
        Some(Fields { whole: self.clone(), found })
    }

    fn child(&self, path: String, key: Place, node: &'t Node) -> Self {
        let value = Self { node, place: node.place, path, log: self.log };
        if value.is_null() { Self { place: key, ..value } } else { value }
    }

    fn wanted<T>(&self, wanted: &str, help: &str) -> Option<T> {
        let found = match &self.node.content {
            Content::Broken => return None,
            Content::Scalar(Scalar::Null, _) => "nothing".to_owned(),
            Content::Scalar(Scalar::Text, text) => format!("the text {}", shown(text)),
            Content::Scalar(Scalar::Bool, text) => text.clone(),
            Content::Scalar(_, text) => format!("the number {}", shown(text).trim_matches('"')),
            Content::List(_) => "a list".to_owned(),
            Content::Map(_) => "a mapping".to_owned(),
        };
        self.mistake(&format!("wanted {wanted}, found {found}{help}"));
        None
    }
}

impl<'t> Fields<'t> {
    /// A field that is there and not null.
    pub(super) fn get(&self, name: &str) -> Option<Value<'t>> {
        self.get_or_null(name).filter(|value| !value.is_null())
    }

    /// A field that is there, null or not.
    pub(super) fn get_or_null(&self, name: &str) -> Option<Value<'t>> {
        self.found.get(name).cloned()
    }

    /// A field that must be there and not null; `wanted` says what would be right.
    pub(super) fn require(&self, name: &str, wanted: &str) -> Option<Value<'t>> {
        let value = self.get(name);
        if value.is_none() {
            let at = self.found.get(name).unwrap_or(&self.whole);
            self.whole.log.add(at.place, at_path(&self.whole.path, &format!("{name} is missing: {wanted}")));
        }
        value
    }

    /// The mapping itself.
    pub(super) fn whole(&self) -> &Value<'t> {
        &self.whole
    }
}

impl Key<'_> {
    /// Notes a mistake at this key.
    pub(super) fn mistake(&self, message: &str) {
        self.log.add(self.place, at_path(&self.path, message));
    }
}

fn at_path(path: &str, message: &str) -> String {
    if path.is_empty() { message.to_owned() } else { format!("{path}: {message}") }
}

/// The key that merges mappings in YAML 1.1.
const MERGE: &str = "<<";
const NO_MERGE: &str = "YAML 1.2 has no merge keys; write the fields out";

/// Fields that are often looked for in the wrong mapping, and where they stand.
const ELSEWHERE: &[(&str, &str)] = &[
    ("selector", "it stands in pools[].nodes"),
    ("nodeSelector", "the labels of a pool's nodes stand in pools[].nodes.selector"),
    ("tolerations", "it stands in pools[].nodes"),
    ("perContainer", "it stands in pools[].limits"),
    ("perPod", "it stands in pools[].limits"),
    ("into", "it stands in pools[].inject"),
    ("requireCheckpoint", "it stands in pools[].admit"),
    ("latencyCritical", "it stands in pools[].admit, and at the top for priorityClasses"),
    ("priorityClasses", "it stands in latencyCritical"),
    ("latency", "it stands in declarations"),
    ("checkpoint", "the label key stands in declarations, and a pool's demand is admit.requireCheckpoint"),
    ("resources", "it stands in pools[]"),
    ("sharing", "it stands in pools[]"),
    ("state", "it stands in pools[]"),
    ("nodes", "it stands in pools[]"),
    ("limits", "it stands in pools[]"),
    ("inject", "it stands in pools[]"),
    ("admit", "it stands in pools[]"),
    ("metadata", "a configuration is no object of the cluster and has none"),
    ("spec", "the fields stand at the top"),
    (MERGE, NO_MERGE),
];

fn unknown_field(name: &str, known: &[&str]) -> String {
    let elsewhere = ELSEWHERE.iter().find(|(field, _)| *field == name).map(|(_, place)| *place);
    let help = match (elsewhere, nearest(name, known.iter().copied())) {
        (Some(place), _) => place.to_owned(),
        (None, Some(near)) => format!("did you mean {near}?"),
        (None, None) => format!("the fields here are {}", listed(known.iter().copied())),
    };
    format!("unknown field {}; {help}", shown(name))
}
