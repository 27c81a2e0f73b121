//! Policy sets from folders, modules and manifests.
//!
//! What it does: finds every set below a path, for the server and for the command line alike. A folder that directly holds
//! modules is one set, and so is a mounted ConfigMap; elsewhere, manifests of labelled ConfigMaps are taken. Invariant: what is
//! wrong inside of one set is an error of that set; what keeps sets from being told apart, or from being seen at all, is an
//! error of the whole, since a set that is silently missing enforces nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::content::{Unreadable, bytes, is_hidden};
use crate::rego::problem::Problem;
use crate::rego::set::{Key, LABEL, Set, yaml};

/// The namespace of sets that name none.
pub const NAMESPACE: &str = "slicegate-system";

/// The file in a folder that holds the annotations of its set.
const ANNOTATIONS: &str = "policy.yaml";

/// Files in the folder of a set that are for other programs.
const OTHERS: [&str; 2] = ["kustomization.yaml", "kustomization.yml"];

/// The endings of data documents and of manifests.
const DOCUMENTS: [&str; 3] = ["yaml", "yml", "json"];

/// How deep folders are looked into.
const DEEPEST: usize = 16;

/// A set, and where it was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The set.
    pub set: Set,
    /// The folder that it is, or the manifest that it stands in.
    pub path: PathBuf,
    /// Whether its files are files of that folder.
    pub is_folder: bool,
}

impl Found {
    /// A file of the set, in the words of those who called the program; the set as a whole where it is empty.
    pub fn shown(&self, file: &str) -> String {
        match (self.is_folder, file) {
            // An annotation, which stands in the file of all of them.
            (true, name) if name.starts_with("slicegate.io/") => {
                format!("{} ({name})", self.path.join(ANNOTATIONS).display())
            }
            (true, file) => self.path.join(file).display().to_string().trim_end_matches('/').to_owned(),
            (false, "") => format!("{} ({})", self.path.display(), self.set.key),
            (false, file) => format!("{} ({} {file})", self.path.display(), self.set.key),
        }
    }
}

/// Every set below a path, in the order of names.
///
/// # Errors
/// Something cannot be read, or two sets have one name.
pub fn read(path: &Path) -> Result<Vec<Set>, Unreadable> {
    let found = find(path, NAMESPACE)?;
    told_apart(&found)?;
    Ok(found.into_iter().map(|found| found.set).collect())
}

/// The same with the places, and whatever the names. What stands in a folder is in this namespace.
///
/// # Errors
/// Something cannot be read.
pub fn find(path: &Path, namespace: &str) -> Result<Vec<Found>, Unreadable> {
    let mut found = Vec::new();
    if path.is_dir() {
        folder(path, namespace, &mut Vec::new(), &mut found)?;
    } else if has_ending(path, &["rego"]) {
        found.push(of_modules(&[path.to_owned()], namespace)?);
    } else {
        manifest(path, namespace, &mut found)?;
    }
    Ok(found)
}

/// One set of single modules, with the annotations that stand beside them.
///
/// # Errors
/// One cannot be read.
pub fn of_modules(paths: &[PathBuf], namespace: &str) -> Result<Found, Unreadable> {
    let mut files = BTreeMap::new();
    for path in paths {
        files.insert(path.display().to_string(), text(path)?);
    }
    let folders: Vec<&Path> = paths.iter().filter_map(|path| path.parent()).collect();
    let name = paths.first().and_then(|path| path.file_stem()).unwrap_or_default().to_string_lossy().into_owned();
    let beside = folders.first().filter(|first| folders.iter().all(|folder| folder == *first));
    let notes = match beside.map(|folder| folder.join(ANNOTATIONS)).filter(|file| file.is_file()) {
        Some(file) => Notes::of(&file.display().to_string(), &text(&file)?),
        None => Notes::default(),
    };
    let set = notes.into_set(Key { namespace: namespace.to_owned(), name }, files);
    Ok(Found { set, path: PathBuf::new(), is_folder: true })
}

/// Sets that have one name cannot be told apart in anything that is said about them.
///
/// # Errors
/// There are two such.
pub fn told_apart(found: &[Found]) -> Result<(), Unreadable> {
    let mut seen: BTreeMap<&Key, &Found> = BTreeMap::new();
    for next in found {
        if let Some(first) = seen.insert(&next.set.key, next) {
            let why = format!("the set is called {}, as the one in {}; rename it", next.set.key, first.shown(""));
            return Err(Unreadable { path: next.path.clone(), why });
        }
    }
    Ok(())
}

/// Takes the set that a folder is, or the manifests in it, and what is below. `above` are the folders on the way there, with
/// links followed, so that no circle is walked twice.
fn folder(path: &Path, namespace: &str, above: &mut Vec<PathBuf>, found: &mut Vec<Found>) -> Result<(), Unreadable> {
    let real = fs::canonicalize(path).map_err(|error| Unreadable::new(path, &error))?;
    if above.contains(&real) {
        return Ok(());
    }
    if above.len() >= DEEPEST {
        return Err(Unreadable { path: path.to_owned(), why: format!("more than {DEEPEST} folders deep") });
    }
    let (mut files, mut folders) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(path).map_err(|error| Unreadable::new(path, &error))? {
        let entry = entry.map_err(|error| Unreadable::new(path, &error))?.path();
        if is_hidden(&entry) {
            continue;
        }
        if entry.is_dir() {
            folders.push(entry);
        } else if entry.is_file() {
            files.push(entry);
        } else if fs::symlink_metadata(&entry).is_ok_and(|data| data.is_symlink()) && is_read(&entry) {
            return Err(Unreadable { path: entry, why: "a link that leads nowhere".to_owned() });
        }
    }
    files.sort();
    folders.sort();
    if files.iter().any(|file| has_ending(file, &["rego"])) {
        let name = real.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let set = of_folder(&files, Key { namespace: namespace.to_owned(), name })?;
        found.push(Found { set, path: path.to_owned(), is_folder: true });
    } else {
        for file in files.iter().filter(|file| has_ending(file, &DOCUMENTS)) {
            manifest(file, namespace, found)?;
        }
    }
    above.push(real);
    for below in folders {
        folder(&below, namespace, above, found)?;
    }
    above.pop();
    Ok(())
}

/// The set that the files of one folder are.
fn of_folder(paths: &[PathBuf], key: Key) -> Result<Set, Unreadable> {
    let (mut files, mut notes, mut no_texts) = (BTreeMap::new(), Notes::default(), Vec::new());
    for path in paths.iter().filter(|path| is_read(path)) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match String::from_utf8(bytes(path)?) {
            Ok(text) if name == ANNOTATIONS => notes = Notes::of(&name, &text),
            Ok(text) => drop(files.insert(name, text)),
            Err(error) => no_texts.push(Problem::of_file(&name, format!("it is no UTF-8: {error}"))),
        }
    }
    let mut set = notes.into_set(key, files);
    set.errors.extend(no_texts);
    Ok(set)
}

/// Takes the labelled ConfigMaps from a file of manifests.
fn manifest(path: &Path, namespace: &str, found: &mut Vec<Found>) -> Result<(), Unreadable> {
    let options = serde_saphyr::options! {
        with_snippet: false,
        budget: serde_saphyr::budget! {
            max_documents: 100_000,
            max_nodes: 20_000_000,
            max_events: 40_000_000,
        },
    };
    let documents: Vec<Value> = serde_saphyr::from_multiple_with_options(&text(path)?, options).map_err(|error| {
        let line = error.location().map_or(1, |place| place.line());
        Unreadable { path: path.to_owned(), why: format!("line {line}: {error}") }
    })?;
    for document in &documents {
        take(document, path, namespace, found);
    }
    Ok(())
}

fn take(object: &Value, path: &Path, namespace: &str, found: &mut Vec<Found>) {
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
    if let (true, Some(items)) = (kind.ends_with("List"), object.get("items").and_then(Value::as_array)) {
        // The items of a ConfigMapList need not repeat their kind.
        return items.iter().for_each(|item| match kind {
            "ConfigMapList" => config_map(item, path, namespace, found),
            _ => take(item, path, namespace, found),
        });
    }
    if kind == "ConfigMap" {
        config_map(object, path, namespace, found);
    }
}

fn config_map(object: &Value, path: &Path, namespace: &str, found: &mut Vec<Found>) {
    if let Some(mut set) = Set::of_config_map(object) {
        if set.key.namespace.is_empty() {
            namespace.clone_into(&mut set.key.namespace);
        }
        found.push(Found { set, path: path.to_owned(), is_folder: false });
    }
}

/// What `policy.yaml` says.
struct Notes {
    label: String,
    annotations: BTreeMap<String, String>,
    errors: Vec<Problem>,
}

impl Default for Notes {
    fn default() -> Self {
        Self { label: "true".to_owned(), annotations: BTreeMap::new(), errors: Vec::new() }
    }
}

impl Notes {
    /// Reads labels and annotations, as they stand in a ConfigMap or as one plain map.
    fn of(file: &str, text: &str) -> Self {
        let mut notes = Self::default();
        let document: Value = match yaml(text) {
            Ok(document) => document,
            Err((line, column, message)) => {
                notes.errors.push(Problem { file: file.to_owned(), line, column, message });
                return notes;
            }
        };
        let texts = |map: Option<&Value>| -> BTreeMap<String, String> {
            let members = map.and_then(Value::as_object).into_iter().flatten();
            // What is written without quotes, or as the YAML that an annotation holds, means the same here.
            members
                .map(|(key, value)| (key.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
                .collect()
        };
        let (mut labels, annotations) = match document.get("metadata") {
            Some(metadata) => (texts(metadata.get("labels")), texts(metadata.get("annotations"))),
            None => (BTreeMap::new(), texts(Some(&document))),
        };
        notes.annotations = annotations;
        if document.get("metadata").is_none() {
            if !(document.is_object() || document.is_null()) {
                notes
                    .errors
                    .push(Problem::of_file(file, "it is no map of annotations, such as `slicegate.io/action: warn`"));
            }
            for key in notes.annotations.keys().filter(|key| !key.contains('/')) {
                let message = format!(
                    "{key} is no annotation; those of slicegate begin with slicegate.io/, such as slicegate.io/action"
                );
                notes.errors.push(Problem::of_file(file, message));
            }
            labels.extend(notes.annotations.remove_entry(LABEL));
        }
        if let Some(label) = labels.remove(LABEL) {
            notes.label = label;
        }
        notes
    }

    fn into_set(self, key: Key, files: BTreeMap<String, String>) -> Set {
        let mut set = Set::of_files(key, &self.label, &self.annotations, files);
        set.errors.extend(self.errors);
        set
    }
}

/// Whether a file in the folder of a set belongs to it.
fn is_read(path: &Path) -> bool {
    let is_other = path.file_name().is_some_and(|name| OTHERS.iter().any(|other| name == *other));
    !is_other && (has_ending(path, &["rego"]) || has_ending(path, &DOCUMENTS))
}

fn has_ending(path: &Path, endings: &[&str]) -> bool {
    path.extension().is_some_and(|ending| endings.iter().any(|known| ending == *known))
}

fn text(path: &Path) -> Result<String, Unreadable> {
    String::from_utf8(bytes(path)?).map_err(|error| Unreadable::new(path, &error))
}

#[cfg(test)]
mod tests;
