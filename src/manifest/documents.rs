//! A text into its documents.
//!
//! kubectl parts YAML at lines that begin with `---` before it parses anything
//! (`k8s.io/apimachinery/pkg/util/yaml`), and takes a text that begins with a brace for a stream of JSON values. Invariant:
//! the documents lie in the text one after the other, and only separators and blanks lie between them.

use serde::de::IgnoredAny;

use super::Mistake;

/// How a document is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// YAML.
    Yaml,
    /// JSON, to be handed on as it stands.
    Json,
}

/// One document of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document<'t> {
    /// Its number, from 1.
    pub number: usize,
    /// Where it begins in the text, in bytes.
    pub offset: usize,
    /// The line on which it begins, from 1.
    pub line: usize,
    /// Its text.
    pub text: &'t str,
    /// How it is written.
    pub form: Form,
}

/// The documents of a text, and what stands where a separator is expected.
pub fn documents(text: &str) -> (Vec<Document<'_>>, Vec<Mistake>) {
    let without_mark = text.strip_prefix('\u{feff}').unwrap_or(text);
    let offset = text.len().saturating_sub(without_mark.len());
    if without_mark.trim_start().starts_with('{')
        && let Some(values) = json_values(without_mark, offset)
    {
        return (values, Vec::new());
    }
    yaml_documents(without_mark, offset)
}

/// The values of a stream of JSON; nothing where it is none, since a brace begins YAML as well.
fn json_values(text: &str, offset: usize) -> Option<Vec<Document<'_>>> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    let (mut found, mut start, mut line) = (Vec::new(), 0, 1_usize);
    while let Some(value) = values.next() {
        value.ok()?;
        let end = values.byte_offset();
        let whole = text.get(start..end)?;
        let value = whole.trim_start();
        let blanks = whole.len().saturating_sub(value.len());
        let begins = line.saturating_add(lines(whole.get(..blanks)?));
        let number = found.len().saturating_add(1);
        let offset = offset.saturating_add(start).saturating_add(blanks);
        found.push(Document { number, offset, line: begins, text: value, form: Form::Json });
        line = begins.saturating_add(lines(value));
        start = end;
    }
    Some(found)
}

fn yaml_documents(text: &str, offset: usize) -> (Vec<Document<'_>>, Vec<Mistake>) {
    let (mut found, mut mistakes) = (Vec::new(), Vec::new());
    let (mut start, mut first, mut place) = (0_usize, 1_usize, 0_usize);
    let mut take = |start: usize, end: usize, line: usize| {
        let Some(text) = text.get(start..end).filter(|text| holds_something(text)) else { return };
        let number = found.len().saturating_add(1);
        found.push(Document { number, offset: offset.saturating_add(start), line, text, form: Form::Yaml });
    };
    for (number, line) in (1_usize..).zip(text.split_inclusive('\n')) {
        let end = place.saturating_add(line.len());
        if let Some(rest) = line.strip_prefix("---") {
            take(start, place, first);
            (start, first) = (end, number.saturating_add(1));
            let rest = rest.trim();
            if !rest.is_empty() && !rest.starts_with('#') {
                let message =
                    "a document begins on the line of its ---, which kubectl does not read; put it on the next line";
                mistakes.push(Mistake { line: number, column: 4, message: message.to_owned() });
            }
        }
        place = end;
    }
    take(start, text.len(), first);
    (found, mistakes)
}

/// Whether there is more than blanks and comments.
fn holds_something(text: &str) -> bool {
    text.lines().map(str::trim).any(|line| !line.is_empty() && !line.starts_with('#'))
}

fn lines(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}
