//! A set together with the libraries that it imports: what is checked, compiled and evaluated as one.
//!
//! Invariant: the digest covers everything that a verdict depends on, so that two replicas with the same digest judge alike.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use crate::rego::set::{Key, Role, Set, Syntax};

/// A module of a library.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Library {
    /// Its file, with the ConfigMap that it comes from.
    pub file: String,
    /// Its text.
    pub text: String,
    /// Its language.
    pub syntax: Syntax,
}

/// A set with its libraries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Unit {
    /// The set.
    pub set: Set,
    /// The modules of the libraries that it imports, directly or through another one.
    pub libraries: Vec<Library>,
    /// SHA-256 of all of it, in hex.
    pub digest: String,
}

impl Unit {
    /// Brings a set together with what it imports.
    pub fn new(set: Set, libraries: &BTreeMap<Key, Set>) -> Self {
        let libraries = imported(&set, libraries);
        let digest = digest_of(&set, &libraries);
        Self { set, libraries, digest }
    }

    /// Whether a module of one of these libraries is part of it.
    pub fn imports(&self, libraries: &BTreeSet<Key>) -> bool {
        let of = |file: &str, key: &Key| file.strip_prefix(&key.to_string()).is_some_and(|rest| rest.starts_with(':'));
        self.libraries.iter().any(|library| libraries.iter().any(|key| of(&library.file, key)))
    }

    /// Every module with its file's name, language and text: the set's own, then the libraries'.
    pub fn modules(&self) -> impl Iterator<Item = (&str, Syntax, &str)> {
        let syntax = self.set.settings.syntax;
        let own = self.set.modules.iter().map(move |(file, text)| (file.as_str(), syntax, text.as_str()));
        own.chain(self.libraries.iter().map(|library| (library.file.as_str(), library.syntax, library.text.as_str())))
    }

    /// The modules that test the set.
    pub fn tests(&self) -> impl Iterator<Item = (&str, Syntax, &str)> {
        let syntax = self.set.settings.syntax;
        self.set.tests.iter().map(move |(file, text)| (file.as_str(), syntax, text.as_str()))
    }

    /// The text of a file, for an excerpt.
    pub fn text(&self, file: &str) -> Option<&str> {
        self.modules().chain(self.tests()).find(|(name, ..)| *name == file).map(|(_, _, text)| text)
    }
}

/// The modules of libraries whose packages a set names. A set names a library by its path, in an import or in a reference, so
/// that the text tells; it may name one too many, in a comment for example, which costs time and changes no verdict.
fn imported(set: &Set, libraries: &BTreeMap<Key, Set>) -> Vec<Library> {
    let modules: Vec<(Library, String)> = libraries
        .iter()
        .filter(|(key, library)| library.role == Role::Library && **key != set.key)
        .flat_map(|(key, library)| {
            library.modules.iter().filter_map(move |(file, text)| {
                let syntax = library.settings.syntax;
                let package = package(text)?.to_owned();
                Some((Library { file: format!("{key}:{file}"), text: text.clone(), syntax }, package))
            })
        })
        .collect();
    let mut texts: Vec<&str> = set.modules.values().chain(set.tests.values()).map(String::as_str).collect();
    let mut taken: BTreeSet<usize> = BTreeSet::new();
    while let Some(text) = texts.pop() {
        let wanted = mentioned(text);
        for (place, (library, package)) in modules.iter().enumerate() {
            if wanted.iter().any(|wanted| touches(wanted, package)) && taken.insert(place) {
                texts.push(&library.text);
            }
        }
    }
    taken.into_iter().filter_map(|place| modules.get(place)).map(|(library, _)| library.clone()).collect()
}

/// The paths below `data.lib` that a text names, without `data.`.
fn mentioned(text: &str) -> BTreeSet<String> {
    let is_path = |character: char| character.is_alphanumeric() || matches!(character, '_' | '.');
    let paths = text.split("data.lib").skip(1).map(|rest| {
        let end = rest.find(|character| !is_path(character)).unwrap_or(rest.len());
        let (path, _) = rest.split_at_checked(end).unwrap_or_default();
        format!("lib{}", path.trim_end_matches('.'))
    });
    paths.collect()
}

/// Whether one path is the other one or stands above it.
fn touches(wanted: &str, package: &str) -> bool {
    let below =
        |path: &str, above: &str| path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    below(wanted, package) || below(package, wanted)
}

/// The package that a module declares, by its first line that is no comment.
fn package(text: &str) -> Option<&str> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'))?;
    let name = line.strip_prefix("package")?.trim();
    Some(name.split([' ', '\t', '#', ';']).next().unwrap_or(name))
}

/// What cannot be read is part of neither settings nor data; its errors stand for it, so that a set which becomes bad or good
/// by such a change alone is another one.
fn digest_of(set: &Set, libraries: &[Library]) -> String {
    let mut whole = serde_json::json!([set.role, set.settings, set.modules, set.tests, set.data, libraries]);
    if let (false, Some(parts)) = (set.errors.is_empty(), whole.as_array_mut()) {
        parts.push(serde_json::json!(set.errors));
    }
    let mut hex = String::with_capacity(64);
    for byte in digest(&SHA256, whole.to_string().as_bytes()).as_ref() {
        // Writing into a text cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(name: &str, label: &str, file: &str, text: &str) -> Set {
        let key = Key { namespace: "n".to_owned(), name: name.to_owned() };
        Set::of_files(key, label, &BTreeMap::new(), BTreeMap::from([(file.to_owned(), text.to_owned())]))
    }

    #[test]
    fn what_cannot_be_read_changes_the_digest() {
        let plain = set("a", "true", "a.rego", "package a");
        let mut bad = plain.clone();
        bad.errors.push(crate::rego::problem::Problem::of_file("limits.json", "no JSON"));
        let digest = |set: &Set| Unit::new(set.clone(), &BTreeMap::new()).digest;
        assert_ne!(digest(&plain), digest(&bad));
        assert_eq!(digest(&plain), digest(&plain.clone()));
    }

    #[test]
    fn a_set_takes_the_libraries_that_it_names_and_what_those_name() {
        let libraries = [
            set("a", "library", "images.rego", "# text\npackage lib.images\nimport data.lib.text.cut"),
            set("b", "library", "text.rego", "package lib.text"),
            set("c", "library", "other.rego", "package lib.other"),
        ];
        let libraries: BTreeMap<Key, Set> = libraries.into_iter().map(|set| (set.key.clone(), set)).collect();
        let unit = Unit::new(set("p", "true", "p.rego", "package p\nimport data.lib.images\n"), &libraries);
        let files: Vec<&str> = unit.libraries.iter().map(|library| library.file.as_str()).collect();
        assert_eq!(files, ["n/a:images.rego", "n/b:text.rego"]);
        let all = Unit::new(set("p", "true", "p.rego", "package p\nx := data.lib[y]"), &libraries);
        assert_eq!(all.libraries.len(), 3);
        let none = Unit::new(set("p", "true", "p.rego", "package p\nx := data.library"), &libraries);
        assert_eq!(none.libraries.len(), 0);
        assert_ne!(all.digest, none.digest);
    }
}
