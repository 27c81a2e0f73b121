//! Tokens of a Rego text, as far as brackets and operators go.
//!
//! Invariant: strings, raw strings and comments hide what is in them exactly as the parser's own lexer sees it; a text that
//! this lexer does not understand is cut short, since the parser refuses it there.

use std::iter::Peekable;
use std::str::CharIndices;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Open,
    Close,
    Word,
    Value,
    Symbol,
}

/// A token and where it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token<'a> {
    pub(super) what: What,
    pub(super) text: &'a str,
    pub(super) line: u32,
    pub(super) column: u32,
    /// Whether no space precedes it.
    pub(super) glued: bool,
    /// Whether it is the first of its line.
    pub(super) first: bool,
}

/// The tokens of a text.
pub(super) struct Tokens<'a> {
    text: &'a str,
    chars: Peekable<CharIndices<'a>>,
    line: u32,
    column: u32,
    glued: bool,
    first: bool,
}

impl<'a> Tokens<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        Self { text, chars: text.char_indices().peekable(), line: 1, column: 1, glued: false, first: true }
    }

    fn step(&mut self) -> Option<char> {
        let (_, c) = self.chars.next()?;
        if c == '\n' {
            self.line = self.line.saturating_add(1);
            self.column = 1;
            self.first = true;
        } else {
            self.column = self.column.saturating_add(1);
        }
        Some(c)
    }

    fn peek(&mut self) -> Option<char> {
        self.chars.peek().map(|&(_, c)| c)
    }

    fn skip_while(&mut self, mut wanted: impl FnMut(char) -> bool) {
        while self.peek().is_some_and(&mut wanted) {
            self.step();
        }
    }

    fn skip_blank(&mut self) {
        while let Some(c) = self.peek() {
            match c {
                '#' => self.skip_while(|c| c != '\n'),
                ' ' | '\t' | '\r' | '\n' | '\u{feff}' => {
                    self.step();
                }
                _ => return,
            }
            self.glued = false;
        }
    }

    /// Skips a string of one line, whose opening quote was read.
    fn skip_string(&mut self) {
        while let Some(c) = self.peek() {
            if c == '\n' {
                return;
            }
            self.step();
            match c {
                '"' => return,
                '\\' => {
                    self.step();
                }
                _ => {}
            }
        }
    }

    fn skip_symbol(&mut self, c: char) {
        if matches!(c, ':' | '<' | '>' | '=' | '!') && self.peek() == Some('=') {
            self.step();
        }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        self.skip_blank();
        let (line, column, glued, first) = (self.line, self.column, self.glued, self.first);
        let &(start, c) = self.chars.peek()?;
        self.step();
        self.glued = true;
        self.first = false;
        let what = match c {
            '(' | '[' | '{' => What::Open,
            ')' | ']' | '}' => What::Close,
            '"' => {
                self.skip_string();
                What::Value
            }
            '`' => {
                self.skip_while(|c| c != '`');
                self.step();
                self.first = false;
                What::Value
            }
            c if c.is_ascii_digit() => {
                self.skip_while(|c| c.is_ascii_alphanumeric() || c == '_');
                What::Value
            }
            c if c.is_alphabetic() || c == '_' => {
                self.skip_while(|c| c.is_alphanumeric() || c == '_');
                What::Word
            }
            c => {
                self.skip_symbol(c);
                What::Symbol
            }
        };
        let end = self.chars.peek().map_or(self.text.len(), |&(at, _)| at);
        let text = self.text.get(start..end)?;
        Some(Token { what, text, line, column, glued, first })
    }
}
