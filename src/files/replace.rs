//! Files that belong together.
//!
//! Invariant: each is written beside its place and put there by a rename, after all of them could be written. Whoever reads
//! one sees the old text or the new one, and a failure to write leaves everything as it was.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// A file to be.
#[derive(Clone, Copy)]
pub struct File<'f> {
    /// Where.
    pub path: &'f Path,
    /// Who may read it.
    pub access: Access,
    /// What is in it.
    pub text: &'f str,
}

/// Who may read a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Its owner alone.
    Owner,
    /// Everybody.
    All,
    /// Whoever may read the one that is there.
    Kept,
}

/// Writes files, over those that are there.
///
/// # Errors
/// The file that could not be written, and why.
pub fn write(files: &[File<'_>]) -> Result<(), (PathBuf, io::Error)> {
    let mut beside = Vec::new();
    let written = files.iter().try_for_each(|file| {
        let place = beside_of(file.path);
        // What an earlier run left there, of which nobody else knows.
        let _ = std::fs::remove_file(&place);
        beside.push(place.clone());
        put(&place, file).map_err(|error| (file.path.to_owned(), error))
    });
    let moved = written.and_then(|()| {
        files.iter().zip(&beside).try_for_each(|(file, place)| {
            std::fs::rename(place, file.path).map_err(|error| (file.path.to_owned(), error))
        })
    });
    if moved.is_err() {
        for place in &beside {
            let _ = std::fs::remove_file(place);
        }
    }
    moved
}

fn put(place: &Path, file: &File<'_>) -> io::Result<()> {
    let mode = if file.access == Access::All { 0o644 } else { 0o600 };
    let mut out = OpenOptions::new().write(true).create_new(true).mode(mode).open(place)?;
    out.write_all(file.text.as_bytes())?;
    if file.access == Access::Kept {
        out.set_permissions(std::fs::metadata(file.path)?.permissions())?;
    }
    out.sync_all()
}

fn beside_of(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.new", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_written_all_or_none() {
        let folder = tempfile::tempdir().unwrap();
        let [one, two] = ["one", "missing/two"].map(|name| folder.path().join(name));
        let file = |path, text| File { path, access: Access::Owner, text };
        write(&[file(&one, "first")]).unwrap();
        let (path, _) = write(&[file(&one, "second"), file(&two, "second")]).unwrap_err();
        assert_eq!((&path, std::fs::read_to_string(&one).unwrap()), (&two, "first".to_owned()));
        write(&[file(&one, "third")]).unwrap();
        assert_eq!(std::fs::read_to_string(&one).unwrap(), "third");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
    }
}
