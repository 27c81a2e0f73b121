//! An event as a line.
//!
//! Invariant: one event is one line, whatever its fields hold: control characters are escaped, and long values are cut, so
//! that nobody writes log lines by choosing the name of an object.

use std::fmt;
use std::io::Write as _;

use jiff::Timestamp;
use tracing::Event;
use tracing::field::{Field, Visit};

/// The longest value of a field, in bytes.
const LONGEST: usize = 1_024;

/// One JSON object with the fields beside time, level and target.
pub(super) fn json(event: &Event<'_>, line: &mut Vec<u8>) {
    let metadata = event.metadata();
    let _ = write!(line, "{{\"timestamp\":\"{:.6}\",\"level\":\"{}\",\"target\":", Timestamp::now(), metadata.level());
    quote(metadata.target(), line);
    event.record(&mut Json(line));
    line.extend_from_slice(b"}\n");
}

/// Time, level, message, and fields as `name=value`.
pub(super) fn text(event: &Event<'_>, line: &mut Vec<u8>) {
    let metadata = event.metadata();
    let _ = write!(line, "{:.3} {:>5} {}:", Timestamp::now(), metadata.level(), metadata.target());
    event.record(&mut Text(line));
    line.push(b'\n');
}

struct Json<'l>(&'l mut Vec<u8>);

impl Json<'_> {
    fn key(&mut self, field: &Field) {
        self.0.push(b',');
        quote(field.name(), self.0);
        self.0.push(b':');
    }
}

// Writing to a Vec cannot fail, so the results below say nothing.
impl Visit for Json<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.key(field);
        quote(cut(value), self.0);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.key(field);
        let _ = if value.is_finite() { write!(self.0, "{value}") } else { write!(self.0, "null") };
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.key(field);
        let _ = write!(self.0, "{value}");
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.key(field);
        let _ = write!(self.0, "{value}");
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.key(field);
        let _ = write!(self.0, "{value}");
    }
}

struct Text<'l>(&'l mut Vec<u8>);

impl Visit for Text<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        let value = cut(value);
        let plain =
            |text: &str| !text.is_empty() && !text.contains([' ', '"', '=', '\\']) && !text.contains(char::is_control);
        self.0.push(b' ');
        if field.name() != "message" {
            let _ = write!(self.0, "{}=", field.name());
        }
        match value {
            _ if field.name() == "message" && !value.contains(char::is_control) => {
                self.0.extend_from_slice(value.as_bytes());
            }
            _ if plain(value) => self.0.extend_from_slice(value.as_bytes()),
            _ => quote(value, self.0),
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

fn cut(value: &str) -> &str {
    value.get(..value.floor_char_boundary(LONGEST)).unwrap_or(value)
}

/// A JSON string. Beside what JSON asks for, the characters that change the direction or the line of a terminal are escaped.
fn quote(text: &str, line: &mut Vec<u8>) {
    line.push(b'"');
    if text.bytes().all(|byte| (0x20..0x7f).contains(&byte) && byte != b'"' && byte != b'\\') {
        line.extend_from_slice(text.as_bytes());
    } else {
        text.chars().for_each(|letter| quote_letter(letter, line));
    }
    line.push(b'"');
}

fn quote_letter(letter: char, line: &mut Vec<u8>) {
    let odd = matches!(letter, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let _ = match letter {
        '"' => line.write_all(b"\\\""),
        '\\' => line.write_all(b"\\\\"),
        '\n' => line.write_all(b"\\n"),
        _ if letter.is_control() || odd => write!(line, "\\u{:04x}", u32::from(letter)),
        _ => write!(line, "{letter}"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_stays_on_its_line() {
        let mut line = Vec::new();
        quote("a\"b\\c\nd\u{202e}e\u{7f}ü", &mut line);
        let text = String::from_utf8(line).unwrap();
        assert_eq!(text, r#""a\"b\\c\nd\u202ee\u007fü""#);
        assert_eq!(serde_json::from_str::<String>(&text).unwrap(), "a\"b\\c\nd\u{202e}e\u{7f}ü");
    }

    #[test]
    fn long_values_are_cut_at_a_letter() {
        assert_eq!(cut(&"ü".repeat(600)).len(), LONGEST);
        assert_eq!(cut(&format!("x{}", "ü".repeat(600))).len(), LONGEST - 1);
    }
}
