//! The texts that are to be judged, and the objects in them.
//!
//! Invariant: what is named on the command line is read or told; a folder that holds no manifest is a mistake, and not
//! a success without anything judged.

use std::fs;
use std::io::{IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::judge::in_parallel;
use crate::facts::object::{self, Fact, Kind, Reading};
use crate::files::Unreadable;
use crate::manifest::{self, Document, Mistake, Object};

/// How deep folders are looked into.
const DEEPEST: usize = 32;

/// One text.
#[derive(Debug, Clone)]
pub(in crate::command) struct Source {
    /// What it is called: the path as given, or `-`.
    pub(in crate::command) name: String,
    /// Its file; nothing for standard input.
    pub(in crate::command) path: Option<PathBuf>,
    /// The text.
    pub(in crate::command) text: String,
}

/// What all texts hold.
pub(in crate::command) struct Objects<'t> {
    /// The documents, each with the number of its source and what is in it.
    pub(in crate::command) documents: Vec<(usize, Document<'t>, Result<Vec<Object>, Mistake>)>,
    /// What is wrong outside of documents.
    pub(in crate::command) mistakes: Vec<(usize, Mistake)>,
    /// What the objects say of the cluster.
    pub(in crate::command) facts: Vec<Fact>,
}

impl Objects<'_> {
    /// Whether there is nothing to judge and nothing to complain of.
    pub(in crate::command) fn is_empty(&self) -> bool {
        let nothing = |objects: &Result<Vec<Object>, Mistake>| objects.as_ref().is_ok_and(Vec::is_empty);
        self.mistakes.is_empty() && self.documents.iter().all(|(_, _, objects)| nothing(objects))
    }
}

/// Why nothing can be said of texts without an object: a success would hide that what writes them has failed.
pub(in crate::command) fn emptiness(sources: &[Source]) -> String {
    match sources {
        [Source { path: None, .. }] => {
            "standard input holds no object; did the command fail that writes to the pipe?".to_owned()
        }
        [only] => format!("{}: no object in it", only.name),
        all => format!("there is no object in these {} files", all.len()),
    }
}

/// Reads what is named.
///
/// # Errors
/// What cannot be read, in words for whoever called the program.
pub(in crate::command) fn read(paths: &[PathBuf]) -> Result<Vec<Source>, String> {
    if paths.is_empty() {
        if std::io::stdin().is_terminal() {
            return Err("there is nothing to read; name files or folders of manifests, or give - and a pipe".to_owned());
        }
        return Ok(vec![standard_input()?]);
    }
    let mut sources = Vec::new();
    for path in paths {
        if path.as_os_str() == "-" {
            sources.push(standard_input()?);
        } else if path.is_dir() {
            let before = sources.len();
            folder(path, 0, &mut sources)?;
            if sources.len() == before {
                return Err(format!("{}: no file below this folder ends in .yaml, .yml or .json", path.display()));
            }
        } else {
            sources.push(file(path)?);
        }
    }
    Ok(sources)
}

/// Takes the objects of all texts apart.
pub(in crate::command) fn objects(sources: &[Source]) -> Objects<'_> {
    let (mut documents, mut mistakes) = (Vec::new(), Vec::new());
    for (number, source) in sources.iter().enumerate() {
        let (found, wrong) = manifest::documents(&source.text);
        documents.extend(found.into_iter().map(|document| (number, document)));
        mistakes.extend(wrong.into_iter().map(|mistake| (number, mistake)));
    }
    let documents = in_parallel(documents, |(number, document)| {
        let objects = manifest::objects(&document);
        (number, document, objects)
    });
    let objects = documents.iter().filter_map(|(_, _, objects)| objects.as_ref().ok()).flatten();
    let facts = objects.filter_map(fact).collect();
    Objects { documents, mistakes, facts }
}

/// What an object says of the cluster. What is malformed in it is for the API server to refuse.
fn fact(object: &Object) -> Option<Fact> {
    let kind = Kind::of(&object.api_version, &object.kind)?;
    let value: Value = serde_json::from_str(&object.json).ok()?;
    object::read(kind, &value).ok().map(|Reading { fact, .. }| fact)
}

fn standard_input() -> Result<Source, String> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().read_to_end(&mut bytes);
    read.map_err(|error| format!("standard input cannot be read: {error}"))?;
    Ok(Source { name: "-".to_owned(), path: None, text: text("standard input", bytes)? })
}

fn file(path: &Path) -> Result<Source, String> {
    let bytes = fs::read(path).map_err(|error| Unreadable::new(path, &error).to_string())?;
    let name = path.display().to_string();
    Ok(Source { text: text(&name, bytes)?, name, path: Some(path.to_owned()) })
}

/// Bytes as the text that they should be.
fn text(name: &str, bytes: Vec<u8>) -> Result<String, String> {
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let lines = error.as_bytes().iter().take(valid).filter(|byte| **byte == b'\n').count();
        format!("{name}: line {} is not UTF-8, as manifests are; save it as UTF-8", lines.saturating_add(1))
    })
}

/// The manifests below a folder, in the order of names. Names that begin with a dot are left out.
fn folder(path: &Path, depth: usize, sources: &mut Vec<Source>) -> Result<(), String> {
    if depth >= DEEPEST {
        return Err(format!("{}: more than {DEEPEST} folders deep", path.display()));
    }
    let unreadable = |error: std::io::Error| Unreadable::new(path, &error).to_string();
    let entries = fs::read_dir(path).map_err(unreadable)?;
    let mut entries: Vec<PathBuf> =
        entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>().map_err(unreadable)?;
    entries.sort();
    for entry in entries {
        let hidden = entry.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
        let is_manifest =
            || entry.extension().is_some_and(|ending| ["yaml", "yml", "json"].iter().any(|known| ending == *known));
        if hidden {
            continue;
        }
        if entry.is_dir() {
            folder(&entry, depth.saturating_add(1), sources)?;
        } else if is_manifest() {
            sources.push(file(&entry)?);
        }
    }
    Ok(())
}
