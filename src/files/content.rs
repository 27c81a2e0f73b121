//! What stands in a file, or in the manifests of a folder.
//!
//! Invariant: two contents are equal exactly when nobody could tell them apart, however the files are linked and whenever
//! they were written.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// The bytes of files, by their paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content(BTreeMap<PathBuf, Vec<u8>>);

/// A file or folder that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}: {why}", path.display())]
pub struct Unreadable {
    /// What cannot be read.
    pub path: PathBuf,
    /// Why: lower case, no full stop.
    pub why: String,
}

/// No file of manifests is larger, and a device or a pipe that was named by mistake has no end.
const LARGEST: u64 = 256 << 20;

/// The endings of the files of a folder that are read.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

impl Content {
    /// What stands in a file.
    ///
    /// # Errors
    /// It is none, or cannot be read.
    pub fn of_file(path: &Path) -> Result<Self, Unreadable> {
        Ok(Self(BTreeMap::from([(path.to_owned(), bytes(path)?)])))
    }

    /// What stands in a file, or in the manifests that lie directly in a folder. Names that begin with a dot are left out:
    /// the two dots of the folders behind a mounted ConfigMap, and the one dot of an editor's own files.
    ///
    /// # Errors
    /// Something cannot be read, or the folder holds no manifest.
    pub fn of(path: &Path) -> Result<Self, Unreadable> {
        if !path.is_dir() {
            return Self::of_file(path);
        }
        let mut found = BTreeMap::new();
        for entry in fs::read_dir(path).map_err(|error| Unreadable::new(path, &error))? {
            let file = entry.map_err(|error| Unreadable::new(path, &error))?.path();
            if is_manifest(&file) && file.is_file() {
                let bytes = bytes(&file)?;
                found.insert(file, bytes);
            }
        }
        if found.is_empty() {
            let why = "no file in this folder ends in .yaml, .yml or .json";
            return Err(Unreadable { path: path.to_owned(), why: why.to_owned() });
        }
        Ok(Self(found))
    }

    /// Each file's text.
    ///
    /// # Errors
    /// The first that is none.
    pub fn texts(&self) -> Result<Vec<(&Path, &str)>, Unreadable> {
        let texts = self.0.iter().map(|(path, bytes)| {
            let text = std::str::from_utf8(bytes).map_err(|error| Unreadable::new(path, &error))?;
            Ok((path.as_path(), text))
        });
        texts.collect()
    }

    /// The text of all files together, which is that of the one that there is.
    ///
    /// # Errors
    /// It is no text.
    pub fn into_text(self) -> Result<String, Unreadable> {
        Ok(self.texts()?.into_iter().map(|(_, text)| text).collect())
    }
}

impl Unreadable {
    /// For this reason.
    pub fn new(path: &Path, why: &dyn fmt::Display) -> Self {
        Self { path: path.to_owned(), why: format!("cannot be read: {why}") }
    }
}

fn is_manifest(path: &Path) -> bool {
    !is_hidden(path) && path.extension().is_some_and(|ending| ENDINGS.iter().any(|known| ending == *known))
}

/// Whether a name begins with a dot.
pub(super) fn is_hidden(path: &Path) -> bool {
    path.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."))
}

/// The bytes of a file.
pub(super) fn bytes(path: &Path) -> Result<Vec<u8>, Unreadable> {
    let unreadable = |error: std::io::Error| Unreadable::new(path, &error);
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    let size = file.take(LARGEST).read_to_end(&mut bytes).map_err(unreadable)?;
    if u64::try_from(size).is_ok_and(|size| size < LARGEST) {
        Ok(bytes)
    } else {
        Err(Unreadable { path: path.to_owned(), why: format!("it is larger than {} MiB", LARGEST >> 20) })
    }
}
