//! Texts that leave the program: bounded, on one line each, without characters that act on a terminal.
//!
//! Invariant: nothing that a user wrote into an object can break a line, hide another text or make an answer large.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The most bytes of a refusal's message.
const MAX_MESSAGE: usize = 4096;
/// The most characters of one line, or of one text.
const MAX_LINE: usize = 1024;
/// The most characters of one warning; the API server cuts at 256.
pub(super) const MAX_WARNING: usize = 255;
/// The most characters of all warnings; the API server drops what comes after 4,096.
const MAX_WARNINGS: usize = 4096;
/// Room for the sentence that says what was left out.
const RESERVE: usize = 48;

/// One text, harmless and cut to a line's length.
pub(crate) fn item(text: &str) -> String {
    cut(&harmless(text), MAX_LINE)
}

/// Lines of a message, the most important first, and a last one that names the object. What does not fit is counted.
pub(super) fn lines(lines: &[String], last: &str) -> String {
    let last = if last.is_empty() { String::new() } else { format!("({})", cut(&harmless(last), 512)) };
    let room = MAX_MESSAGE.saturating_sub(last.len()).saturating_sub(RESERVE);
    let mut message = String::new();
    for (place, line) in lines.iter().enumerate() {
        let line = item(line);
        if place > 0 && message.len().saturating_add(line.len()) > room {
            let left = lines.len().saturating_sub(place);
            let _ = writeln!(message, "and {left} more findings");
            break;
        }
        message.push_str(&line);
        message.push('\n');
    }
    message.push_str(&last);
    message.trim_end().to_owned()
}

/// Blocks of lines, each kept whole or left out. What does not fit is counted.
pub(super) fn blocks(blocks: &[Vec<String>]) -> String {
    let room = MAX_MESSAGE.saturating_sub(RESERVE);
    let mut message = String::new();
    for (place, block) in blocks.iter().enumerate() {
        let lines: Vec<String> = block.iter().map(|line| item(line)).collect();
        let whole = lines.join("\n");
        // What would not even fit alone is kept by its first line.
        let block = if whole.len() > room { lines.into_iter().next().unwrap_or_default() } else { whole };
        if place > 0 && message.len().saturating_add(block.len()) > room {
            let left = blocks.len().saturating_sub(place);
            let _ = writeln!(message, "and {left} more problems");
            break;
        }
        message.push_str(&block);
        message.push('\n');
    }
    message.trim_end().to_owned()
}

/// Warnings within the API server's bounds; what does not fit is counted in the last one.
pub(super) fn warnings(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut kept = Vec::new();
    let (mut used, mut left) = (0_usize, 0_usize);
    for text in texts {
        let text = cut(&harmless(&text), MAX_WARNING);
        let length = text.chars().count();
        if left > 0 || used.saturating_add(length) > MAX_WARNINGS.saturating_sub(RESERVE) {
            left = left.saturating_add(1);
            continue;
        }
        used = used.saturating_add(length);
        kept.push(text);
    }
    if left > 0 {
        kept.push(format!("and {left} more warnings"));
    }
    kept
}

/// Cuts at a character and says how many were left out.
fn cut(text: &str, most: usize) -> String {
    let total = text.chars().count();
    if total <= most {
        return text.to_owned();
    }
    let keep = most.saturating_sub(RESERVE);
    let kept: String = text.chars().take(keep).collect();
    format!("{kept}… (and {} more characters)", total.saturating_sub(keep))
}

/// Escapes control characters, line separators and those that change the direction of writing.
fn harmless(text: &str) -> Cow<'_, str> {
    if !text.chars().any(acts) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if acts(character) {
            escaped.extend(character.escape_unicode());
        } else {
            escaped.push(character);
        }
    }
    Cow::Owned(escaped)
}

fn acts(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_acts_and_nothing_grows() {
        assert_eq!(item("a\nb\u{202e}c\u{1b}[31m"), "a\\u{a}b\\u{202e}c\\u{1b}[31m");
        let long = item(&"é".repeat(100_000));
        assert!(long.chars().count() <= MAX_LINE, "{}", long.len());
        assert!(long.ends_with("… (and 99024 more characters)"), "{long}");
    }

    #[test]
    fn a_message_counts_what_it_leaves_out() {
        let findings: Vec<String> = (0..500).map(|place| format!("[rule] finding {place}")).collect();
        let message = lines(&findings, "Pod x");
        assert!(message.len() <= MAX_MESSAGE && message.starts_with("[rule] finding 0\n"), "{message}");
        assert!(message.contains(" more ") && message.ends_with("(Pod x)"), "{message}");
        assert_eq!(lines(&["one".to_owned()], ""), "one");
    }

    #[test]
    fn warnings_stay_within_the_api_server_bounds() {
        let all = warnings((0..100).map(|_| "ü".repeat(1000)));
        assert!(all.iter().all(|warning| warning.chars().count() < 256));
        assert!(all.iter().map(|warning| warning.chars().count()).sum::<usize>() <= 4096);
        assert!(all.last().unwrap().ends_with("more warnings"));
    }
}
