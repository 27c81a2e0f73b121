//! What a text would cost the parser, seen before any parser runs.
//!
//! What it does: scans tokens and refuses texts that would stall the parser or end the process. The parser tries a
//! comprehension at each `[` and `{` and, when it is none, starts over with the first element, so its time doubles with each
//! level of brackets in first place (three times the work where a `|` precedes, since a query is tried too). It also recurses
//! for each bracket, and the engine recurses for each operator of a chain. Invariant: linear in the text, without recursion, and
//! nothing that passes takes the parser more than a moment or more than a part of a stack of 2 MiB.

use crate::rego::problem::Problem;

mod tokens;

use tokens::{Token, Tokens, What};

/// Brackets and signs within brackets, for each of which the parser recurses. It was seen to overflow a stack of 2 MiB at 590
/// levels, and at 112 without optimisation.
const MAX_DEPTH: usize = 64;

/// Brackets and operators on the longest way into an expression, which is how deep the engine's own walkers recurse. They were
/// seen to overflow a stack of 2 MiB at 1,900 index brackets or 3,700 operators, and at 430 without optimisation.
const MAX_HEIGHT: usize = 240;

/// Repeated work in one outermost bracket: a unit is a token that is read again, 0.4 to 0.5 µs each, so this is about 100 ms.
const MAX_WORK: u64 = 250_000;

/// Repeated work in one file, which a file with a hundred test documents stays below.
const MAX_FILE_WORK: u64 = 10 * MAX_WORK;

/// How often a token may be read before that counts as repeated work; plain code reaches six.
const FREE: u64 = 8;

/// Problems of one text: at most one, since the rest of a text like that is not worth reading.
pub fn check(file: &str, text: &str) -> Vec<Problem> {
    let mut scan = Scan::default();
    for token in Tokens::of(text) {
        if let Err(message) = scan.take(&token) {
            let (line, column) = scan.blame(&token);
            return vec![Problem { file: file.to_owned(), line, column, message }];
        }
    }
    Vec::new()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The text outside brackets.
    File,
    /// A rule's or an `every`'s body.
    Body,
    /// A literal or comprehension that begins with `[` or `{`.
    Literal,
    /// Arguments, groups and `a[…]`: read once.
    Plain,
}

/// Where in a bracket the scan is, as far as it decides how often the parser reads a token.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Before the first operator of a literal's first element.
    First,
    /// After a `|` that may begin a comprehension's query.
    Query,
    /// In the first statement after `if {`, which may turn out to be a set or an object that is the whole body.
    Either,
    /// At the beginning of a statement, which is tried as an assignment first.
    Statement,
    /// Anywhere else.
    Rest,
}

struct Frame {
    kind: Kind,
    /// Whether this is `a[…]`.
    index: bool,
    line: u32,
    column: u32,
    /// How often the parser reads this bracket as a whole.
    times: u64,
    place: Place,
    /// How often the token at hand is read within the bracket.
    factor: u64,
    /// Whether the first element of an object is still to come.
    keyed: bool,
    /// Signs in the expression at hand: what follows one belongs to it, to the expression's end.
    signs: usize,
    /// Operators in the expression at hand.
    operators: usize,
    /// Fields, indexes and brackets of the operand at hand, as deep as they go.
    operand: usize,
    /// The deepest operand in the expression at hand.
    inner: usize,
    /// The highest expression so far.
    highest: usize,
}

impl Frame {
    fn new(kind: Kind, token: &Token<'_>, times: u64, first: u64) -> Self {
        let place = match kind {
            Kind::Literal => Place::First,
            Kind::Body if first > 2 => Place::Either,
            Kind::Body => Place::Statement,
            Kind::File | Kind::Plain => Place::Rest,
        };
        let (line, column) = (token.line, token.column);
        Self {
            kind,
            index: false,
            line,
            column,
            times,
            place,
            factor: first,
            keyed: true,
            signs: 0,
            operators: 0,
            operand: 0,
            inner: 0,
            highest: 0,
        }
    }

    fn go(&mut self, place: Place, factor: u64) {
        self.place = place;
        self.factor = factor;
    }

    fn height(&self) -> usize {
        self.highest.max(self.operators.saturating_add(self.inner))
    }

    fn end_expression(&mut self) {
        self.highest = self.height();
        self.signs = 0;
        self.operators = 0;
        self.operand = 0;
        self.inner = 0;
    }

    /// The operand at hand goes at least this deep.
    fn deepen(&mut self, depth: usize) {
        self.operand = self.operand.max(depth);
        self.inner = self.inner.max(self.operand);
    }
}

struct Scan {
    frames: Vec<Frame>,
    work: u64,
    file_work: u64,
    /// The token before: whether it can end an operand, and whether it is the word `if`, `else` or the like.
    after: After,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    Operand,
    Operator,
    If,
}

impl Default for Scan {
    fn default() -> Self {
        let start = Token { what: What::Symbol, text: "", line: 1, column: 1, glued: false, first: true };
        let root = Frame::new(Kind::File, &start, 1, 1);
        Self { frames: vec![root], work: 0, file_work: 0, after: After::Operator }
    }
}

impl Scan {
    /// Where the bracket is that is to blame: the outermost one that is open, or the token itself.
    fn blame(&self, token: &Token<'_>) -> (u32, u32) {
        let outermost = self.frames.iter().find(|frame| frame.kind == Kind::Literal);
        outermost.or(self.frames.get(1)).map_or((token.line, token.column), |frame| (frame.line, frame.column))
    }

    fn take(&mut self, token: &Token<'_>) -> Result<(), String> {
        match token.what {
            What::Open => self.open(token)?,
            What::Close => self.close()?,
            What::Word => self.word(token)?,
            What::Value => self.operand(token)?,
            What::Symbol => self.symbol(token)?,
        }
        self.count()
    }

    /// Counts the token that was just read.
    fn count(&mut self) -> Result<(), String> {
        let times = self.frames.last().map_or(1, |frame| frame.times.saturating_mul(frame.factor));
        if times > FREE {
            self.work = self.work.saturating_add(times);
            self.file_work = self.file_work.saturating_add(times);
        }
        if self.frames.len() == 1 {
            self.work = 0;
        }
        if self.work > MAX_WORK {
            return Err(
                "brackets in first place are nested so deep that the parser's time, which doubles with each level, \
                        would not end; give the inner values names of their own and use those"
                    .to_owned(),
            );
        }
        if self.file_work > MAX_FILE_WORK {
            return Err("this file has so many deeply nested literals that parsing it would take seconds; \
                        split it, or give values that occur often a name"
                .to_owned());
        }
        Ok(())
    }

    fn open(&mut self, token: &Token<'_>) -> Result<(), String> {
        self.limit_depth()?;
        let index = token.text == "[" && token.glued && self.after == After::Operand;
        if self.after == After::Operand && !index && token.text != "(" {
            self.begin_on_new_line(token);
        }
        let (kind, first) = match (token.text, self.after) {
            ("(", _) => (Kind::Plain, 1),
            ("[", _) if index => (Kind::Plain, 1),
            // A set or an object that is the whole body begins like this as well: one reading more than of a literal twice.
            ("{", After::If) => (Kind::Body, 7),
            ("{", After::Operand) if !token.first => (Kind::Body, 2),
            _ => (Kind::Literal, 2),
        };
        let times = self.frames.last().map_or(1, |frame| match kind {
            Kind::Body => frame.times,
            _ => frame.times.saturating_mul(frame.factor),
        });
        self.frames.push(Frame { index, ..Frame::new(kind, token, times, first) });
        self.after = After::Operator;
        Ok(())
    }

    fn close(&mut self) -> Result<(), String> {
        // A bracket too many is the parser's to name.
        if self.frames.len() > 1
            && let Some(closed) = self.frames.pop()
            && let Some(frame) = self.frames.last_mut()
        {
            let around = if closed.index { frame.operand.saturating_add(1) } else { 1 };
            frame.deepen(closed.height().saturating_add(1).max(around));
        }
        self.after = After::Operand;
        self.limit_height()
    }

    fn word(&mut self, token: &Token<'_>) -> Result<(), String> {
        let place = match token.text {
            "in" => return self.operator(),
            "if" => Some(After::If),
            "else" | "contains" | "default" | "with" | "as" | "some" | "every" | "not" | "import" | "package" => {
                Some(After::Operator)
            }
            _ => None,
        };
        let Some(after) = place else { return self.operand(token) };
        // `contains` is a function too.
        if token.text == "contains" && self.frames.len() > 1 {
            return self.operand(token);
        }
        self.begin_on_new_line(token);
        if let Some(frame) = self.frames.last_mut() {
            if matches!(token.text, "if" | "else" | "with" | "as") {
                frame.end_expression();
            }
            // What has a `with` is a statement for certain.
            if frame.place == Place::Either && token.text == "with" {
                frame.go(Place::Rest, 1);
            }
            if frame.kind == Kind::File {
                frame.go(Place::Statement, if after == After::If { 2 } else { 1 });
            }
        }
        // `else {` of v0 begins a body.
        self.after = if token.text == "else" { After::If } else { after };
        Ok(())
    }

    fn operand(&mut self, token: &Token<'_>) -> Result<(), String> {
        self.begin_on_new_line(token);
        self.after = After::Operand;
        self.limit_height()
    }

    fn symbol(&mut self, token: &Token<'_>) -> Result<(), String> {
        let Some(frame) = self.frames.last_mut() else { return Ok(()) };
        match token.text {
            "," => {
                frame.end_expression();
                match (frame.kind, frame.place) {
                    // In a body a comma belongs to `a, b in c` or to a set that was taken for a body.
                    (Kind::Body, _) => {}
                    // `a, b in c` is tried as a query first.
                    (_, Place::Query) => frame.factor = 2,
                    _ => frame.go(Place::Rest, 1),
                }
                frame.keyed = false;
            }
            ";" => {
                frame.end_expression();
                frame.go(Place::Statement, 2);
            }
            ":=" | "=" => {
                frame.end_expression();
                let factor = if frame.place == Place::Query { 2 } else { 1 };
                frame.go(if factor == 2 { Place::Query } else { Place::Rest }, factor);
            }
            ":" if frame.place == Place::Either => frame.end_expression(),
            ":" => {
                frame.end_expression();
                let first = frame.kind == Kind::Literal && frame.keyed;
                frame.keyed = false;
                frame.go(if first { Place::First } else { Place::Rest }, if first { 2 } else { 1 });
            }
            "|" if frame.place == Place::First && frame.kind == Kind::Literal => {
                frame.end_expression();
                frame.go(Place::Query, 3);
            }
            "." => frame.deepen(frame.operand.saturating_add(1)),
            "-" if self.after == After::Operator => {
                frame.signs = frame.signs.saturating_add(1);
                self.limit_depth()?;
                return self.operator();
            }
            _ => return self.operator(),
        }
        self.after = After::Operator;
        self.limit_height()
    }

    /// An operator: what follows is one level deeper and is not what the parser tried first.
    fn operator(&mut self) -> Result<(), String> {
        if let Some(frame) = self.frames.last_mut() {
            frame.operators = frame.operators.saturating_add(1);
            frame.operand = 0;
            match frame.place {
                // A sign belongs to what was tried first, and takes all operators after it with it.
                Place::First | Place::Statement if frame.signs == 0 => frame.go(Place::Rest, 1),
                Place::Query if frame.signs == 0 => frame.factor = 2,
                _ => {}
            }
        }
        self.after = After::Operator;
        self.limit_height()
    }

    /// An operand on a new line after another operand begins a statement.
    fn begin_on_new_line(&mut self, token: &Token<'_>) {
        if !token.first || self.after != After::Operand {
            return;
        }
        let Some(frame) = self.frames.last_mut() else { return };
        frame.end_expression();
        match frame.kind {
            Kind::File => frame.go(Place::Rest, 1),
            Kind::Body | Kind::Literal => frame.go(Place::Statement, 2),
            Kind::Plain => {}
        }
    }

    /// Whether one more level is too many.
    fn limit_depth(&self) -> Result<(), String> {
        let signs = self.frames.iter().map(|frame| frame.signs).fold(0, usize::saturating_add);
        if self.frames.len().saturating_add(signs) > MAX_DEPTH {
            return Err(format!(
                "brackets are nested more than {MAX_DEPTH} deep; give the inner values names of their own and use those"
            ));
        }
        Ok(())
    }

    fn limit_height(&self) -> Result<(), String> {
        let high = self.frames.last().is_some_and(|frame| frame.height() > MAX_HEIGHT);
        if high {
            return Err(format!(
                "an expression has more than {MAX_HEIGHT} operators and brackets one within the other; \
                 give its parts names of their own, or use `sum`, `union` or `concat`"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
