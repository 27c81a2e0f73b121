//! Places in sets as those who called the program know them, and lines of their files.

use std::fmt::Write as _;
use std::fs;

use crate::rego::problem::Problem;

use super::Examined;

/// A place: `policies/quota/quota.rego:3:5`.
pub(super) fn place(set: &Examined, problem: &Problem) -> String {
    let file = file(set, &problem.file);
    match (problem.line, problem.column) {
        (0, _) => file,
        (line, 0) => format!("{file}:{line}"),
        (line, column) => format!("{file}:{line}:{column}"),
    }
}

/// A file of a set. What stands in a library keeps the name of its set.
pub(super) fn file(set: &Examined, file: &str) -> String {
    if set.unit.libraries.iter().any(|library| library.file == file) { file.to_owned() } else { set.found.shown(file) }
}

/// The line that a problem points to, with a mark below its column; nothing where it points to none.
pub(super) fn excerpt(set: &Examined, problem: &Problem) -> String {
    let on_disk = || set.found.is_folder.then(|| fs::read_to_string(set.found.path.join(&problem.file)).ok()).flatten();
    let text = set.unit.text(&problem.file).map(str::to_owned).or_else(on_disk).unwrap_or_default();
    let line = usize::try_from(problem.line).ok().and_then(|line| text.lines().nth(line.checked_sub(1)?));
    let Some(line) = line else { return String::new() };
    let number = problem.line.to_string();
    let mut shown = format!("  {number} | {}\n", harmless(line));
    if problem.column > 0 {
        // A tab stays a tab, so that the mark stands below what it means however wide tabs are.
        let before = usize::try_from(problem.column).unwrap_or_default().saturating_sub(1);
        let pad: String =
            line.chars().take(before).map(|character| if character == '\t' { '\t' } else { ' ' }).collect();
        let _ = writeln!(shown, "  {} | {pad}^", " ".repeat(number.len()));
    }
    shown
}

/// A text on a terminal: what would act on it is shown instead.
pub(super) fn harmless(text: &str) -> String {
    let acts = |character: char| character.is_control() && character != '\t';
    text.chars().fold(String::with_capacity(text.len()), |mut shown, character| {
        if acts(character) {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
        shown
    })
}
