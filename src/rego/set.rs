//! One policy set: a ConfigMap, or a folder of files, as its author wrote it.
//!
//! What it does: sorts keys into modules, tests and data, and reads the annotations. It does not parse Rego. Invariant: a set
//! is good or bad as a whole; a bad one still says which requests it meant, so that those can obey its `on-error`.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::policy::decision::Action;
use crate::rego::matching::Match;
use crate::rego::problem::Problem;

/// The label that makes a ConfigMap a policy set, and the prefix of all annotations.
pub const LABEL: &str = "slicegate.io/policy";

/// The most bytes that a set may hold, which is what a ConfigMap can.
pub const LARGEST: usize = 1 << 20;

/// What the names of all annotations begin with.
pub const PREFIX: &str = "slicegate.io/";

/// What the annotations are called, without their prefix. `status` is slicegate's own.
pub const ANNOTATIONS: [&str; 6] = ["action", "match", "on-error", "syntax", "strict", "input"];

/// Which ConfigMap a set comes from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// What the value of the label says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// Its rules are evaluated.
    Policy,
    /// Other sets may import its modules under `data.lib`.
    Library,
}

/// What an error of the set does to a request that it matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnError {
    /// The request is refused, as far as the set's action goes.
    Deny,
    /// The request goes on, with a warning.
    Allow,
}

/// The version of the language.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Syntax {
    /// Rego v1.
    V1,
    /// Rego v0, as Gatekeeper and OPA before 1.0 read it.
    V0,
}

/// What the rules find under `input`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum InputShape {
    /// The review.
    Review,
    /// The bare object, as conftest gives it.
    Object,
}

/// What the annotations say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// How far the set's findings go.
    pub action: Action,
    /// What an error of the set does.
    pub on_error: OnError,
    /// Which requests it sees.
    pub matches: Match,
    /// The language of its modules.
    pub syntax: Syntax,
    /// Whether an error of a builtin is the set's error; undefined otherwise, as in OPA.
    pub strict: bool,
    /// What its rules find under `input`.
    pub input: InputShape,
}

/// One policy set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Set {
    /// Where it comes from.
    pub key: Key,
    /// What it is.
    pub role: Role,
    /// What its annotations say.
    pub settings: Settings,
    /// Its modules, by the name of their key.
    pub modules: BTreeMap<String, String>,
    /// The modules that test it.
    pub tests: BTreeMap<String, String>,
    /// Its data documents: what rules read as `data.<name>`.
    pub data: BTreeMap<String, Value>,
    /// What keeps it from being loaded.
    pub errors: Vec<Problem>,
    /// What its author should know.
    pub warnings: Vec<Problem>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            action: Action::Deny,
            on_error: OnError::Deny,
            matches: Match::default(),
            syntax: Syntax::V1,
            strict: true,
            input: InputShape::Review,
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.namespace, self.name)
    }
}

impl Set {
    /// Reads a ConfigMap; nothing where it does not carry the label.
    pub fn of_config_map(manifest: &Value) -> Option<Self> {
        let text = |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let label = manifest.pointer("/metadata/labels")?.get(LABEL)?.as_str().unwrap_or_default().to_owned();
        let key = Key { namespace: text("/metadata/namespace"), name: text("/metadata/name") };
        let annotations = texts(manifest.pointer("/metadata/annotations"));
        let mut set = Self::new(key, &label, &annotations);
        set.take_files(texts(manifest.get("data")));
        for name in manifest.get("binaryData").and_then(Value::as_object).into_iter().flat_map(|data| data.keys()) {
            let what = if is_module(name) { &mut set.errors } else { &mut set.warnings };
            what.push(Problem::of_file(name, "binaryData is not read; put the file into data as UTF-8 text"));
        }
        Some(set)
    }

    /// A set of files that stand in a folder.
    pub fn of_files(
        key: Key,
        label: &str,
        annotations: &BTreeMap<String, String>,
        files: BTreeMap<String, String>,
    ) -> Self {
        let mut set = Self::new(key, label, annotations);
        set.take_files(files);
        set
    }

    /// Whether there is nothing to evaluate or to import.
    pub fn is_empty(&self) -> bool {
        self.modules.is_empty()
    }

    /// The name under which its rules are shown: with its namespace where that is not slicegate's own.
    pub fn shown_name(&self, home: &str) -> String {
        if self.key.namespace == home { self.key.name.clone() } else { self.key.to_string() }
    }

    fn new(key: Key, label: &str, annotations: &BTreeMap<String, String>) -> Self {
        let mut errors = Vec::new();
        let role = match label {
            "true" => Role::Policy,
            "library" => Role::Library,
            other => {
                let message = format!("the label {LABEL} is {other:?}; write \"true\" for a policy or \"library\"");
                errors.push(Problem::of_set(message));
                Role::Policy
            }
        };
        let mut warnings = Vec::new();
        let settings = settings(annotations, &mut errors, &mut warnings);
        let (modules, tests, data) = Default::default();
        Self { key, role, settings, modules, tests, data, errors, warnings }
    }

    fn take_files(&mut self, files: BTreeMap<String, String>) {
        let size: usize = files.values().map(String::len).fold(0, usize::saturating_add);
        if size > LARGEST {
            self.errors.push(Problem::of_set(format!(
                "it holds {size} bytes, and more than {LARGEST} are not read; split it"
            )));
            return;
        }
        for (name, text) in files {
            // Editors of one family begin their files with a mark that is no part of the text.
            let text = text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
            if name.ends_with("_test.rego") {
                self.tests.insert(name, text);
            } else if is_module(&name) {
                self.modules.insert(name, text);
            } else if let Some(stem) = stem(&name, &[".json"]) {
                self.take_data(&name, stem, json(&text));
            } else if let Some(stem) = stem(&name, &[".yaml", ".yml"]) {
                self.take_data(&name, stem, yaml(&text));
            } else {
                let message = "not read, since its name does not end in .rego, .json or .yaml";
                self.warnings.push(Problem::of_file(&name, message));
            }
        }
        if self.modules.is_empty() {
            self.warnings.push(Problem::of_set("it holds no module; a module is a key that ends in .rego"));
        }
    }

    fn take_data(&mut self, name: &str, stem: &str, document: Result<Value, Misread>) {
        match document {
            Ok(value) => {
                if self.data.insert(stem.to_owned(), value).is_some() {
                    let message = format!("two documents are called data.{stem}; rename one of them");
                    self.errors.push(Problem::of_file(name, message));
                }
            }
            Err((line, column, message)) => {
                self.errors.push(Problem { file: name.to_owned(), line, column, message });
            }
        }
    }
}

/// Why a document cannot be read: line, column, reason.
pub type Misread = (u32, u32, String);

/// Reads YAML, one document.
///
/// # Errors
/// It is none, or not of this shape.
pub fn yaml<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, Misread> {
    serde_saphyr::from_str(text).map_err(|error| {
        let narrow = |number| u32::try_from(number).unwrap_or(u32::MAX);
        let (line, column) = error.location().map_or((0, 0), |place| (narrow(place.line()), narrow(place.column())));
        let message = error.to_string().lines().next().unwrap_or_default().to_owned();
        (line, column, message)
    })
}

fn json(text: &str) -> Result<Value, Misread> {
    let narrow = |number| u32::try_from(number).unwrap_or(u32::MAX);
    serde_json::from_str(text).map_err(|error| (narrow(error.line()), narrow(error.column()), error.to_string()))
}

fn texts(object: Option<&Value>) -> BTreeMap<String, String> {
    let members = object.and_then(Value::as_object).into_iter().flatten();
    members.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// Whether a key is a module. The case of the letters counts, as in everything that Kubernetes names.
fn is_module(name: &str) -> bool {
    name.strip_suffix(".rego").is_some()
}

fn stem<'n>(name: &'n str, endings: &[&str]) -> Option<&'n str> {
    endings.iter().find_map(|ending| name.strip_suffix(ending)).filter(|stem| !stem.is_empty())
}

/// Reads the annotations; a wrong one is an error, and its default holds.
fn settings(
    annotations: &BTreeMap<String, String>,
    errors: &mut Vec<Problem>,
    warnings: &mut Vec<Problem>,
) -> Settings {
    let mut settings = Settings::default();
    let get = |name: &str| annotations.get(&format!("{PREFIX}{name}")).map(String::as_str);
    choose(get("action"), "action", &Action::ALL.map(|action| (action.as_str(), action)), errors, &mut settings.action);
    // A set that refuses nothing should not begin to do so when it breaks.
    settings.on_error = if settings.action == Action::Deny { OnError::Deny } else { OnError::Allow };
    choose(
        get("on-error"),
        "on-error",
        &[("deny", OnError::Deny), ("allow", OnError::Allow)],
        errors,
        &mut settings.on_error,
    );
    choose(get("syntax"), "syntax", &[("v1", Syntax::V1), ("v0", Syntax::V0)], errors, &mut settings.syntax);
    choose(get("strict"), "strict", &[("true", true), ("false", false)], errors, &mut settings.strict);
    let shapes = [("review", InputShape::Review), ("object", InputShape::Object)];
    choose(get("input"), "input", &shapes, errors, &mut settings.input);
    if let Some(text) = get("match") {
        match Match::parse(text) {
            Ok(matches) => {
                warnings.extend(matches.weaknesses());
                settings.matches = matches;
            }
            Err(problems) => errors.extend(problems),
        }
    }
    for name in annotations.keys().filter_map(|name| name.strip_prefix(PREFIX)) {
        if !ANNOTATIONS.contains(&name) && name != "status" {
            let message =
                format!("the annotation {PREFIX}{name} means nothing; those that do are {}", ANNOTATIONS.join(", "));
            warnings.push(Problem::of_set(message));
        }
    }
    settings
}

fn choose<T: Copy>(text: Option<&str>, name: &str, words: &[(&str, T)], errors: &mut Vec<Problem>, chosen: &mut T) {
    let Some(text) = text else { return };
    if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
        *chosen = *value;
    } else {
        let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let message = format!("{text:?} is none of {}", words.join(", "));
        errors.push(Problem::of_file(&format!("{PREFIX}{name}"), message));
    }
}

#[cfg(test)]
mod tests;
