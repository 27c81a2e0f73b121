//! What is wrong with a text that is no YAML, in words that help whoever wrote it.

use granit_parser::{ErrorKind, ScanError};

/// A line and a column, both from 1.
pub type Place = (usize, usize);

/// The place and the message of a parser's error.
pub fn explain(text: &str, error: &ScanError) -> (Place, String) {
    let marker = error.marker();
    let place = (marker.line().max(1), marker.col().saturating_add(1));
    if let Some(place) = tab_in_indentation(text, place.0) {
        return (place, "a tab in the indentation; YAML indents with spaces only".to_owned());
    }
    let help = match error.kind() {
        ErrorKind::RecursionLimitExceeded => return (place, "nested too deep".to_owned()),
        ErrorKind::MissingAnchorOrAliasName => "put a text that begins with * or & in quotes",
        ErrorKind::MappingValueNotAllowed => "is the indentation right? a text that holds `: ` needs quotes",
        ErrorKind::UnexpectedCharacter { .. } => "put a text that begins with this character in quotes",
        ErrorKind::ExpectedBlockMappingKey | ErrorKind::InvalidIndentation | ErrorKind::SimpleKeyExpected => {
            "is the indentation right, and does every field have a colon and a space behind it?"
        }
        ErrorKind::UnclosedFlowCollection { .. }
        | ErrorKind::ExpectedFlowSequenceSeparator
        | ErrorKind::ExpectedFlowMappingSeparator
        | ErrorKind::InvalidColonPlacement => "is a bracket, a brace or a comma missing?",
        _ => return (place, format!("not YAML: {}", error.kind())),
    };
    (place, format!("not YAML: {}; {help}", error.kind()))
}

/// A tab among the blanks that begin the line or the one behind it, where a text that goes on would be noticed.
fn tab_in_indentation(text: &str, line: usize) -> Option<Place> {
    let mut lines = text.lines().enumerate().skip(line.saturating_sub(1)).take(2);
    lines.find_map(|(place, line)| Some((place.saturating_add(1), leading_tab(line)?)))
}

/// The column of a tab among the blanks that begin a line.
fn leading_tab(line: &str) -> Option<usize> {
    let blanks = line.chars().take_while(|character| matches!(character, ' ' | '\t'));
    blanks.enumerate().find(|(_, character)| *character == '\t').map(|(place, _)| place.saturating_add(1))
}
