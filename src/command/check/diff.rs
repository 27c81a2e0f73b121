//! A text before and after, as a unified diff.

use similar::{ChangeTag, TextDiff};

/// The diff of two texts of one name.
pub(super) fn unified(name: &str, before: &str, after: &str, colored: bool) -> String {
    let diff = TextDiff::from_lines(before, after);
    let name = name.trim_start_matches(['.', '/']);
    let (old, new) = (format!("a/{name}"), format!("b/{name}"));
    let plain = diff.unified_diff().context_radius(3).header(&old, &new).to_string();
    if colored { plain.split_inclusive('\n').map(paint).collect() } else { plain }
}

/// The lines that are new, and those that are gone, without their surroundings.
pub(super) fn changed(before: &str, after: &str, colored: bool) -> String {
    let diff = TextDiff::from_lines(before, after);
    let lines = diff.iter_all_changes().filter_map(|change| {
        let sign = match change.tag() {
            ChangeTag::Insert => '+',
            ChangeTag::Delete => '-',
            ChangeTag::Equal => return None,
        };
        let line = format!("{sign}{}\n", change.value().trim_end_matches('\n'));
        Some(format!("  {}", if colored { paint(&line) } else { line }))
    });
    lines.collect()
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
