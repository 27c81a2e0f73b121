//! A file replaced as a whole.
//!
//! Invariant: whoever reads the file sees the old text or the new one, and its permissions stay.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

/// Replaces what stands in a file, through a link as well.
///
/// # Errors
/// What the system says; the file is as it was then.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let path = fs::canonicalize(path)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = path.with_file_name(format!(".{name}.{}", std::process::id()));
    let permissions = fs::metadata(&path)?.permissions();
    let written = (|| {
        let mut file = fs::OpenOptions::new().write(true).create_new(true).open(&beside)?;
        file.write_all(bytes)?;
        file.set_permissions(permissions)?;
        file.sync_all()?;
        fs::rename(&beside, &path)
    })();
    if written.is_err() {
        // What is left of the attempt; the error is that of the attempt.
        let _ = fs::remove_file(&beside);
    }
    written
}
