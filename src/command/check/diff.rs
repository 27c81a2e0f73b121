//! A text before and after, as a unified diff.

use std::fmt::Write as _;

use serde_json::Value;
use similar::TextDiff;

use crate::policy::decision::Change;
use crate::review::text::item;

/// The diff of two texts of one name.
pub(super) fn unified(name: &str, before: &str, after: &str, colored: bool) -> String {
    let diff = TextDiff::from_lines(before, after);
    let name = name.trim_start_matches(['.', '/']);
    let (old, new) = (format!("a/{name}"), format!("b/{name}"));
    let plain = diff.unified_diff().context_radius(3).header(&old, &new).to_string();
    if colored { plain.split_inclusive('\n').map(paint).collect() } else { plain }
}

/// What changes add to an object, as the lines of a diff: the way there, then the new lines.
pub(super) fn added(changes: &[Change], colored: bool) -> String {
    let mut text = String::new();
    let mut way: Vec<&str> = Vec::new();
    for change in changes {
        let mut tokens: Vec<&str> = change.pointer.split('/').skip(1).collect();
        let last = tokens.pop().unwrap_or_default();
        let known = way.iter().zip(&tokens).take_while(|(one, other)| one == other).count();
        for (depth, token) in tokens.iter().enumerate().skip(known) {
            let _ = writeln!(text, "   {:width$}{}:", "", shown(token), width = depth.saturating_mul(2));
        }
        let indent = tokens.len().saturating_mul(2);
        let lead = if last == "-" { "-".to_owned() } else { format!("{}:", shown(last)) };
        for line in lines(&lead, &change.value) {
            let line = format!("+{:indent$}{}\n", "", item(&line));
            let _ = write!(text, "  {}", if colored { paint(&line) } else { line });
        }
        way = tokens;
    }
    text
}

/// A value behind its key or its dash, in lines.
fn lines(lead: &str, value: &Value) -> Vec<String> {
    let written = serde_saphyr::to_string(value).unwrap_or_else(|_| value.to_string());
    let inner: Vec<&str> = written.trim_end().lines().collect();
    let is_block = (value.is_array() || value.is_object()) && lead != "-";
    match inner.as_slice() {
        [only] if !is_block || only.starts_with(['[', '{']) => vec![format!("{lead} {only}")],
        [first, rest @ ..] if lead == "-" => {
            std::iter::once(format!("- {first}")).chain(rest.iter().map(|line| format!("  {line}"))).collect()
        }
        lines => std::iter::once(lead.to_owned()).chain(lines.iter().map(|line| format!("  {line}"))).collect(),
    }
}

fn shown(token: &str) -> String {
    item(&token.replace("~1", "/").replace("~0", "~"))
}

fn paint(line: &str) -> String {
    let color = match line.bytes().next() {
        Some(b'+') => 32,
        Some(b'-') => 31,
        Some(b'@') => 36,
        _ => return line.to_owned(),
    };
    format!("\x1b[{color}m{}\x1b[0m\n", line.trim_end_matches('\n'))
}
