//! What the server and a worker process say to each other over their socket pair.
//!
//! What it does: frames of a length in four bytes and a payload; the first byte of a request's payload is its kind. Requests
//! are answered in the order in which they came. Invariant: a frame is bounded, and one that cannot be read ends the
//! connection, never either side.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use thiserror::Error;

use crate::policy::Phase;
use crate::rego::input::Context;
use crate::rego::lint::Report;
use crate::rego::outcome::Outcome;
use crate::rego::program::Speaks;
use crate::rego::screen::Screen;
use crate::rego::testing::{self, Tests};
use crate::rego::unit::Unit;

/// The most bytes of one frame: the largest body, and room for what goes with it.
pub const MAX_FRAME: usize = 32 << 20;

/// The name of a set within a worker.
pub type Id = u32;

/// What a worker is asked.
#[derive(Debug, Serialize, Deserialize)]
pub enum Order {
    /// Compile a set and keep it.
    Load {
        /// Its name from now on.
        id: Id,
        /// The set.
        unit: Box<Unit>,
    },
    /// Forget a set.
    Unload(Id),
    /// Check a set and keep nothing.
    Check(Box<Check>),
}

/// A set to be checked.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Check {
    /// The set.
    pub unit: Unit,
    /// Run its tests, and how; nothing where they are not to be run.
    pub tests: Option<testing::Options>,
    /// Requests that it is to judge.
    pub samples: Vec<Sample>,
}

/// What became of a set that was to be kept.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Loaded {
    /// What can be told of it without asking; nothing where it was not kept.
    pub screen: Option<Screen>,
    /// Errors and warnings.
    pub report: Report,
}

/// A request that a set is tried on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Sample {
    /// Which of the two calls.
    pub phase: Phase,
    /// What is known beside the body.
    pub context: Context,
    /// The review, as JSON.
    pub body: String,
}

/// What a check found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Checked {
    /// Errors and warnings.
    pub report: Report,
    /// What the set has to say anything about, where it is good.
    pub speaks: Speaks,
    /// What its tests came to, where they were run.
    pub tests: Option<Tests>,
    /// What it said about the samples, as far as there was time for them.
    pub outcomes: Outcomes,
    /// Whether the report is about the machine and not about the set, which is to be checked again.
    #[serde(default)]
    pub lost: bool,
}

impl Check {
    /// A check of the set alone.
    pub fn of(unit: Unit) -> Self {
        Self { unit, tests: None, samples: Vec::new() }
    }
}

/// A request to be judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evaluation<'f> {
    /// Which of the two calls.
    pub phase: Phase,
    /// The sets, in the order in which they are asked.
    pub sets: Vec<Id>,
    /// What is known beside the body.
    pub context: Context,
    /// The review.
    pub body: &'f [u8],
}

/// A request's payload, read.
#[derive(Debug)]
pub enum Asked<'f> {
    /// Anything but an evaluation.
    Order(Box<Order>),
    /// A request to be judged.
    Evaluate(Evaluation<'f>),
}

/// A frame that cannot be read.
#[derive(Debug, Error)]
#[error("a frame cannot be read: {0}")]
pub struct Garbled(String);

const ORDER: u8 = b'O';
const EVALUATE: u8 = b'E';

/// The frame of an order or an answer.
pub fn frame<T: Serialize>(value: &T) -> Vec<u8> {
    let mut payload = vec![ORDER];
    // What is written here are texts, numbers and lists of them, which always serialise.
    let _ = serde_json::to_writer(&mut payload, value);
    framed(&[&payload])
}

/// The frame of a request to be judged. The context is serialised already, since it is the same for each worker that tries.
pub fn evaluation(phase: Phase, sets: &[Id], context: &[u8], body: &[u8]) -> Vec<u8> {
    let mut head = vec![EVALUATE, u8::from(phase == Phase::Mutate)];
    head.extend(length(sets.len()));
    for set in sets {
        head.extend(set.to_le_bytes());
    }
    head.extend(length(context.len()));
    framed(&[&head, context, body])
}

/// Reads a request's payload.
///
/// # Errors
/// It is none.
pub fn asked(payload: &[u8]) -> Result<Asked<'_>, Garbled> {
    match payload.split_first() {
        Some((&ORDER, rest)) => Ok(Asked::Order(Box::new(json(rest)?))),
        Some((&EVALUATE, rest)) => read_evaluation(rest).map(Asked::Evaluate),
        _ => Err(Garbled("it is of no known kind".to_owned())),
    }
}

/// Reads an answer's payload.
///
/// # Errors
/// It is none.
pub fn answer<T: DeserializeOwned>(payload: &[u8]) -> Result<T, Garbled> {
    match payload.split_first() {
        Some((&ORDER, rest)) => json(rest),
        _ => Err(Garbled("it is of no known kind".to_owned())),
    }
}

/// The outcomes of a request, one for each of its sets.
pub type Outcomes = Vec<Outcome>;

fn read_evaluation(payload: &[u8]) -> Result<Evaluation<'_>, Garbled> {
    let mut rest = payload;
    let mutates = take(&mut rest, 1)?.first() == Some(&1);
    let count = number(&mut rest)?;
    let mut sets = Vec::new();
    for _ in 0..count {
        sets.push(number(&mut rest)?);
    }
    let size = usize::try_from(number(&mut rest)?).unwrap_or(usize::MAX);
    let context = json(take(&mut rest, size)?)?;
    let phase = if mutates { Phase::Mutate } else { Phase::Validate };
    Ok(Evaluation { phase, sets, context, body: rest })
}

fn take<'f>(rest: &mut &'f [u8], size: usize) -> Result<&'f [u8], Garbled> {
    let (taken, left) = rest.split_at_checked(size).ok_or_else(|| Garbled("it is cut short".to_owned()))?;
    *rest = left;
    Ok(taken)
}

fn number(rest: &mut &[u8]) -> Result<u32, Garbled> {
    let bytes = take(rest, 4)?;
    Ok(u32::from_le_bytes(bytes.try_into().map_err(|_| Garbled("it is cut short".to_owned()))?))
}

fn json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Garbled> {
    serde_json::from_slice(bytes).map_err(|error| Garbled(error.to_string()))
}

fn length(size: usize) -> [u8; 4] {
    u32::try_from(size).unwrap_or(u32::MAX).to_le_bytes()
}

fn framed(parts: &[&[u8]]) -> Vec<u8> {
    let size = parts.iter().map(|part| part.len()).fold(0, usize::saturating_add);
    let mut frame = Vec::with_capacity(size.saturating_add(4));
    frame.extend(length(size));
    for part in parts {
        frame.extend_from_slice(part);
    }
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_comes_out_as_it_went_in() {
        let context = Context { namespace: "a".to_owned(), ..Context::default() };
        let bytes = evaluation(Phase::Mutate, &[3, 70_000], &serde_json::to_vec(&context).unwrap(), b"{}");
        let payload = bytes.get(4..).unwrap();
        assert_eq!(bytes.get(..4).unwrap(), u32::try_from(payload.len()).unwrap().to_le_bytes());
        let Asked::Evaluate(evaluation) = asked(payload).unwrap() else { panic!("no evaluation") };
        let wanted = Evaluation { phase: Phase::Mutate, sets: vec![3, 70_000], context, body: b"{}" };
        assert_eq!(evaluation, wanted);
        for cut in 0..payload.len().saturating_sub(2) {
            assert!(asked(payload.get(..cut).unwrap()).is_err(), "{cut}");
        }
    }
}
