//! JSON text as an exact tree.
//!
//! What it does: reads one JSON document into [`Json`], borrowing from the bytes where no escape stands in the way. What it
//! keeps that general readers lose: the literal of every number (a GPU quantity may be a JSON number, and a double would
//! round it), and the knowledge that a key stands twice in one object, which is an error, since readers disagree on its
//! meaning.
//!
//! Invariant: members of an object are sorted by key and unique, so that equality of two trees does not depend on the order
//! in which somebody wrote them.

use std::borrow::Cow;
use std::cmp::Ordering;

use jiter::{Jiter, JiterError, JiterErrorType, JsonErrorType, Peek};
use thiserror::Error;

/// How many arrays and objects may stand within each other. Kubernetes' own objects stay under 30.
pub const MAX_DEPTH: usize = 128;

/// A list of this name is not kept in the tree: bookkeeping of field owners, which is the larger half of many reviews and
/// which no rule may depend on. Anything else of the name is somebody's own, such as a group of replicas.
const BOOKKEEPING: &str = "managedFields";

/// One JSON value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Json<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, as its literal.
    Number(&'a str),
    /// A string, unescaped.
    String(Cow<'a, str>),
    /// An array.
    Array(Vec<Json<'a>>),
    /// An object.
    Object(Object<'a>),
}

/// The members of an object, sorted by key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Object<'a>(Vec<(Cow<'a, str>, Json<'a>)>);

/// Why bytes are no document that can be judged.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum JsonError {
    /// The bytes are not JSON. Holds the reader's reason and the byte offset.
    #[error("not JSON: {reason} at byte {offset}")]
    Syntax {
        /// What the reader expected or found.
        reason: String,
        /// Where, in bytes from the start of the document.
        offset: usize,
    },
    /// One object has the same key twice.
    #[error(
        "the key {key:?} stands twice in one object, and readers disagree on which of the two counts; write it once"
    )]
    Duplicate {
        /// The key.
        key: String,
    },
    /// Arrays and objects nest deeper than [`MAX_DEPTH`].
    #[error("arrays and objects nest deeper than {MAX_DEPTH} levels, which is more than is judged")]
    TooDeep,
}

impl From<JiterError> for JsonError {
    fn from(error: JiterError) -> Self {
        match error.error_type {
            JiterErrorType::JsonError(JsonErrorType::RecursionLimitExceeded) => Self::TooDeep,
            other => Self::Syntax { reason: other.to_string(), offset: error.index },
        }
    }
}

/// Reads one document and demands that nothing but blanks follows it.
///
/// # Errors
/// See [`JsonError`].
pub fn parse(bytes: &[u8]) -> Result<Json<'_>, JsonError> {
    let mut reader = Reader::new(bytes)?;
    let value = reader.value()?;
    reader.finish()?;
    Ok(value)
}

impl<'a> Json<'a> {
    /// The member `key` of an object. A null member counts as missing, as it does to Kubernetes' decoders.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Json<'a>> {
        self.as_object().and_then(|object| object.get(key))
    }

    /// The value at a path of keys, as [`Json::get`] one after the other.
    #[must_use]
    pub fn at(&self, path: &[&str]) -> Option<&Json<'a>> {
        path.iter().try_fold(self, |value, key| value.get(key))
    }

    /// The text of a string, nothing for other values.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The elements of an array, nothing for other values.
    #[must_use]
    pub fn as_array(&self) -> Option<&[Json<'a>]> {
        match self {
            Self::Array(elements) => Some(elements),
            _ => None,
        }
    }

    /// The members of an object, nothing for other values.
    #[must_use]
    pub fn as_object(&self) -> Option<&Object<'a>> {
        match self {
            Self::Object(members) => Some(members),
            _ => None,
        }
    }

    /// The elements of the array at `key`; none where it is missing, null or no array.
    #[must_use]
    pub fn list(&self, key: &str) -> &[Json<'a>] {
        self.get(key).and_then(Json::as_array).unwrap_or_default()
    }

    /// The members of the object at `key`; none where it is missing, null or no object.
    pub fn members(&self, key: &str) -> impl Iterator<Item = (&str, &Json<'a>)> {
        self.get(key).and_then(Json::as_object).into_iter().flat_map(Object::iter)
    }

    /// The text at `key`, nothing where it is missing or no string.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<&str> {
        self.get(key).and_then(Json::as_str)
    }

    /// A whole number within 64 bits, nothing for other values.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Number(literal) => literal.parse().ok(),
            _ => None,
        }
    }

    /// The value in serde's form, for the patch and for Rego. Numbers beyond 64 bits become doubles there.
    #[must_use]
    pub fn to_value(&self) -> serde_json::Value {
        match self {
            Self::Null => serde_json::Value::Null,
            Self::Bool(value) => (*value).into(),
            Self::Number(literal) => serde_json::from_str(literal).unwrap_or_default(),
            Self::String(text) => text.as_ref().into(),
            Self::Array(elements) => elements.iter().map(Json::to_value).collect(),
            Self::Object(members) => members.iter().map(|(key, value)| (key.to_owned(), value.to_value())).collect(),
        }
    }
}

impl<'a> Object<'a> {
    /// The member `key`; a null one counts as missing.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Json<'a>> {
        self.get_entry(key).map(|(_, value)| value)
    }

    /// The member `key` with the object's own copy of the key, which lives as long as the object.
    #[must_use]
    pub fn get_entry(&self, key: &str) -> Option<(&str, &Json<'a>)> {
        self.entry(key).filter(|(_, value)| *value != Json::Null).map(|(name, value)| (name.as_ref(), value))
    }

    /// The member `key` as it stands there, a null one too.
    pub(crate) fn member(&self, key: &str) -> Option<&Json<'a>> {
        self.entry(key).map(|(_, value)| value)
    }

    fn entry(&self, key: &str) -> Option<&(Cow<'a, str>, Json<'a>)> {
        let place = self.0.binary_search_by(|(name, _)| name.as_ref().cmp(key)).ok()?;
        self.0.get(place)
    }

    /// All members in the order of their keys, null ones included.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Json<'a>)> {
        self.0.iter().map(|(key, value)| (key.as_ref(), value))
    }

    /// The members themselves.
    pub(crate) fn into_members(self) -> impl Iterator<Item = (Cow<'a, str>, Json<'a>)> {
        self.0.into_iter()
    }

    /// Whether there is no member.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A reader over one document, which the review decoder drives member by member.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    text: &'a str,
    jiter: Jiter<'a>,
    depth: usize,
}

impl<'a> Reader<'a> {
    /// A reader at the start of a document, whose bytes are checked for UTF-8 here, once.
    pub(crate) fn new(bytes: &'a [u8]) -> Result<Self, JsonError> {
        let text = std::str::from_utf8(bytes)
            .map_err(|error| JsonError::Syntax { reason: "invalid UTF-8".to_owned(), offset: error.valid_up_to() })?;
        Ok(Self { text, jiter: Jiter::new(bytes), depth: 0 })
    }

    /// Reads an object and hands each key to `member`, which must read exactly one value. Says false, and has read
    /// nothing, where the next value is no object.
    pub(crate) fn each_member<E: From<JsonError>>(
        &mut self,
        mut member: impl FnMut(&mut Self, Cow<'a, str>) -> Result<(), E>,
    ) -> Result<bool, E> {
        if self.peek()? != Peek::Object {
            return Ok(false);
        }
        self.enter()?;
        let mut key = keep(self.text, self.jiter.known_object().map_err(JsonError::from)?);
        while let Some(name) = key {
            member(self, name)?;
            key = keep(self.text, self.jiter.next_key().map_err(JsonError::from)?);
        }
        self.leave();
        Ok(true)
    }

    pub(crate) fn finish(&mut self) -> Result<(), JsonError> {
        Ok(self.jiter.finish()?)
    }

    /// Reads a value and forgets it.
    pub(crate) fn skip(&mut self) -> Result<(), JsonError> {
        Ok(self.jiter.next_skip()?)
    }

    pub(crate) fn value(&mut self) -> Result<Json<'a>, JsonError> {
        let peek = self.peek()?;
        self.known(peek)
    }

    fn known(&mut self, peek: Peek) -> Result<Json<'a>, JsonError> {
        match peek {
            Peek::Null => self.jiter.known_null().map(|()| Json::Null).map_err(Into::into),
            Peek::True | Peek::False => Ok(Json::Bool(self.jiter.known_bool(peek)?)),
            Peek::String => {
                let text = self.jiter.known_str()?;
                Ok(Json::String(borrow(self.text, text)))
            }
            Peek::Array => self.array(),
            Peek::Object => self.object(),
            _ => self.number(peek),
        }
    }

    fn number(&mut self, peek: Peek) -> Result<Json<'a>, JsonError> {
        let start = self.jiter.current_index();
        self.jiter.known_number_bytes(peek)?;
        let literal = self.text.get(start..self.jiter.current_index()).unwrap_or_default();
        Ok(Json::Number(literal))
    }

    fn array(&mut self) -> Result<Json<'a>, JsonError> {
        self.enter()?;
        let mut elements = Vec::new();
        let mut next = self.jiter.known_array()?;
        while let Some(peek) = next {
            elements.push(self.known(peek)?);
            next = self.jiter.array_step()?;
        }
        self.leave();
        Ok(Json::Array(elements))
    }

    fn object(&mut self) -> Result<Json<'a>, JsonError> {
        let mut members: Vec<(Cow<'a, str>, Json<'a>)> = Vec::with_capacity(4);
        self.each_member(|reader, key| {
            if key == BOOKKEEPING && reader.peek()? == Peek::Array {
                return reader.skip();
            }
            let value = reader.value()?;
            members.push((key, value));
            Ok(())
        })?;
        if !members.is_sorted_by(|(left, _), (right, _)| left < right) {
            members.sort_by(|(left, _), (right, _)| left.cmp(right));
            let twice = members.windows(2).find_map(|pair| match pair {
                [(left, _), (right, _)] if left.cmp(right) == Ordering::Equal => Some(left.to_string()),
                _ => None,
            });
            if let Some(key) = twice {
                return Err(JsonError::Duplicate { key });
            }
        }
        Ok(Json::Object(Object(members)))
    }

    fn peek(&mut self) -> Result<Peek, JsonError> {
        Ok(self.jiter.peek()?)
    }

    fn enter(&mut self) -> Result<(), JsonError> {
        self.depth = self.depth.saturating_add(1);
        if self.depth > MAX_DEPTH { Err(JsonError::TooDeep) } else { Ok(()) }
    }

    fn leave(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }
}

fn keep<'a>(document: &'a str, text: Option<&str>) -> Option<Cow<'a, str>> {
    text.map(|text| borrow(document, text))
}

/// The same text as a slice of the document where it is one: the reader hands out strings without escapes as slices of its
/// input, but with the lifetime of its own borrow.
fn borrow<'a>(document: &'a str, text: &str) -> Cow<'a, str> {
    let start = text.as_ptr().addr().wrapping_sub(document.as_ptr().addr());
    match document.get(start..start.wrapping_add(text.len())) {
        Some(slice) if slice.as_ptr() == text.as_ptr() => Cow::Borrowed(slice),
        _ => Cow::Owned(text.to_owned()),
    }
}

#[cfg(test)]
mod tests;
