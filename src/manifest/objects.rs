//! The objects of a document, lists taken apart.
//!
//! Invariant: every object has a kind and an apiVersion; a document that has none is a mistake and not passed over.

use std::borrow::Cow;
use std::rc::Rc;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;

use super::documents::{Document, Form};
use super::edit::child;
use super::tree::Node;
use super::{Mistake, json, tree};

/// How deep lists may stand in lists.
const DEEPEST: usize = 8;

/// One object of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// Where it stands in the document: empty, or such as `items[3]`.
    pub path: String,
    /// The object, as JSON.
    pub json: String,
    /// Its API group and version, such as `apps/v1`.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace; empty where it names none.
    pub namespace: String,
    /// Its name; empty where it names none.
    pub name: String,
    /// The line of its name in the whole text; nothing where finding that takes another look at the document.
    pub line: Option<usize>,
    /// The beginning of the name that is to be made; empty where it names none.
    pub generate_name: String,
}

/// What is read of every object, however wrong the rest of it is.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head<'j> {
    #[serde(default)]
    api_version: Value,
    #[serde(default)]
    kind: Value,
    #[serde(borrow, default)]
    metadata: Option<&'j RawValue>,
    #[serde(borrow, default)]
    items: Option<&'j RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Names<'j> {
    #[serde(borrow, default)]
    namespace: Option<&'j RawValue>,
    #[serde(borrow, default)]
    name: Option<&'j RawValue>,
    #[serde(borrow, default)]
    generate_name: Option<&'j RawValue>,
}

struct Metadata {
    namespace: String,
    name: String,
    generate_name: String,
}

impl Metadata {
    /// Reads the names, and leaves out what is no text.
    fn of(json: Option<&RawValue>) -> Self {
        let members: Names<'_> = json.and_then(|json| serde_json::from_str(json.get()).ok()).unwrap_or_default();
        let text =
            |name: Option<&RawValue>| name.and_then(|name| serde_json::from_str(name.get()).ok()).unwrap_or_default();
        Self {
            namespace: text(members.namespace),
            name: text(members.name),
            generate_name: text(members.generate_name),
        }
    }
}

/// What the items of a list need not repeat.
#[derive(Clone, Copy)]
struct Inherited<'i> {
    api_version: &'i str,
    kind: &'i str,
}

/// The objects of a document, in their order.
///
/// # Errors
/// The document cannot be read, or is no object.
pub fn objects(document: &Document<'_>) -> Result<Vec<Object>, Mistake> {
    let (json, name) = match document.form {
        Form::Json => (Cow::Borrowed(document.text), None),
        Form::Yaml => {
            let written = tree::read(document.text).and_then(|tree| Ok((json::write(&tree)?, name(&tree))));
            let of_json = |mistake| wrong_json(document.text).unwrap_or(mistake);
            let (json, name) = written.map_err(|mistake| document.absolute(of_json(mistake)))?;
            (Cow::Owned(json), name)
        }
    };
    let mut found = Vec::new();
    if json.trim() != "null" {
        take(&json, String::new(), None, 0, &mut found).map_err(|message| document.mistake(message))?;
    }
    if let [Object { path, line, .. }] = found.as_mut_slice()
        && path.is_empty()
    {
        *line = name.map(|line| line.saturating_add(document.line).saturating_sub(1));
    }
    Ok(found)
}

/// The line of `metadata.name` in the document.
fn name(root: &Rc<Node<'_>>) -> Option<usize> {
    let name = child(&child(root, "metadata")?, "name")?;
    Some(name.begins.0)
}

/// What is wrong with a text that was meant to be JSON, in the words of a reader of JSON.
fn wrong_json(text: &str) -> Option<Mistake> {
    if !text.trim_start().strip_prefix('{')?.trim_start().starts_with('"') {
        return None;
    }
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    let error = values.find_map(Result::err)?;
    let (line, column) = (error.line().max(1), error.column().max(1));
    let what = error.to_string();
    let what = what.split(" at line ").next().unwrap_or_default();
    Some(Mistake { line, column, message: format!("neither JSON nor YAML: {what}") })
}

fn take(
    json: &str,
    path: String,
    inherited: Option<Inherited<'_>>,
    depth: usize,
    found: &mut Vec<Object>,
) -> Result<(), String> {
    let place = if path.is_empty() { String::new() } else { format!("{path}: ") };
    if !json.trim_start().starts_with('{') {
        return Err(format!("{place}no Kubernetes object; it is a mapping that begins with apiVersion and kind"));
    }
    let head: Head<'_> = serde_json::from_str(json).map_err(|error| format!("{place}{error}"))?;
    let inherit = |own: &Value, inherited: Option<&str>, name: &str| match (own.as_str(), inherited) {
        (Some(own), _) if !own.is_empty() => Ok(own.to_owned()),
        (None, Some(inherited)) if own.is_null() => Ok(inherited.to_owned()),
        _ => Err(format!("{place}{name} is missing or not a text")),
    };
    let api_version = inherit(&head.api_version, inherited.map(|inherited| inherited.api_version), "apiVersion")?;
    let kind = inherit(&head.kind, inherited.map(|inherited| inherited.kind), "kind")?;
    let (Some(of_list), Some(items)) = (kind.strip_suffix("List"), head.items) else {
        let Metadata { namespace, name, generate_name } = Metadata::of(head.metadata);
        let json = completed(json, &[("kind", &head.kind, &kind), ("apiVersion", &head.api_version, &api_version)]);
        found.push(Object { path, json, api_version, kind, namespace, name, line: None, generate_name });
        return Ok(());
    };
    if depth >= DEEPEST {
        return Err(format!("{place}more than {DEEPEST} lists within each other"));
    }
    let items: Option<Vec<&RawValue>> =
        serde_json::from_str(items.get()).map_err(|_| format!("{place}items is not a list"))?;
    let inherited = Inherited { api_version: &api_version, kind: of_list };
    let inherited = (!of_list.is_empty()).then_some(inherited);
    let before = if path.is_empty() { String::new() } else { format!("{path}.") };
    for (number, item) in items.unwrap_or_default().into_iter().enumerate() {
        take(item.get(), format!("{before}items[{number}]"), inherited, depth.saturating_add(1), found)?;
    }
    Ok(())
}

/// An object's JSON with what it has from its list, as kubectl writes it into the object.
fn completed(json: &str, members: &[(&str, &Value, &str)]) -> String {
    members.iter().filter(|(_, own, _)| own.is_null()).fold(json.to_owned(), |json, (name, _, inherited)| {
        let rest = json.trim_start().trim_start_matches('{');
        let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
        format!("{{{}:{}{comma}{rest}", Value::from(*name), Value::from(*inherited))
    })
}

impl Document<'_> {
    /// A mistake of the document as a whole.
    pub(super) fn mistake(&self, message: String) -> Mistake {
        let blank = |line: &&str| line.trim().is_empty() || line.trim_start().starts_with('#');
        let above = self.text.lines().take_while(blank).count();
        Mistake { line: self.line.saturating_add(above), column: 1, message }
    }

    /// A mistake whose place is within the document.
    pub(super) fn absolute(&self, mistake: Mistake) -> Mistake {
        Mistake { line: mistake.line.saturating_add(self.line).saturating_sub(1), ..mistake }
    }
}
