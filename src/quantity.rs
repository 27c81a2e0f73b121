//! Kubernetes quantities, exactly.
//!
//! What it does: reads the whole grammar of `k8s.io/apimachinery/pkg/api/resource/quantity.go` (signs, decimal points, the
//! suffixes `n u m k M G T P E` and `Ki` to `Ei`, decimal exponents) into an exact decimal value. What it does not: round to
//! the nano unit or cap at 2^63-1 as Kubernetes' own reader does after parsing, since both change what the author wrote.
//!
//! Invariant: no floats and no wrapping. What cannot be held exactly is an error, and an error is never zero.

use std::fmt;

use thiserror::Error;

use crate::json::Json;

/// How many significant decimal digits a quantity may have. 38 is what 128 bits hold; Kubernetes itself counts to 19.
pub const MAX_DIGITS: usize = 38;
/// The largest number of so many digits.
const MAX_COEFFICIENT: u128 = 99_999_999_999_999_999_999_999_999_999_999_999_999;

/// An exact decimal value: `coefficient` times ten to the power of `exponent`, negated where `negative`.
///
/// The form is normal (the coefficient ends in no zero, zero is positive with exponent 0), so that two spellings of one
/// value are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Quantity {
    negative: bool,
    coefficient: u128,
    exponent: i64,
}

/// Why a value is no quantity.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum QuantityError {
    /// The JSON value is no string and no number.
    #[error("is {0}, not a quantity")]
    Type(&'static str),
    /// The text is empty.
    #[error("is empty, not a quantity")]
    Empty,
    /// The text does not follow the grammar.
    #[error("is no quantity that Kubernetes can read")]
    Grammar,
    /// More significant digits than [`MAX_DIGITS`], or an exponent beyond 64 bits.
    #[error("has more digits than can be held exactly")]
    TooLong,
}

/// Why a quantity does not count whole devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum CountError {
    /// Below zero.
    #[error("is negative")]
    Negative,
    /// Not a whole number.
    #[error("is not a whole number")]
    Fractional,
}

impl Quantity {
    /// No units at all.
    pub const ZERO: Self = Self { negative: false, coefficient: 0, exponent: 0 };

    /// Reads a quantity, blanks around it trimmed as Kubernetes' JSON decoder does.
    ///
    /// # Errors
    /// See [`QuantityError`].
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(QuantityError::Empty);
        }
        let (negative, unsigned) = sign(text);
        let (whole, rest) = digits(unsigned);
        let (fraction, suffix) = match rest.strip_prefix('.') {
            Some(rest) => digits(rest),
            None => ("", rest),
        };
        let suffix = Suffix::read(suffix)?;
        // Kubernetes takes a number without any digit for zero, save before the two suffixes for which its fast path is too
        // narrow.
        if whole.is_empty() && fraction.is_empty() && suffix.binary_power >= 50 {
            return Err(QuantityError::Grammar);
        }
        let (coefficient, exponent) = significant(whole, fraction)?;
        let scale = 1_u128.checked_shl(suffix.binary_power).ok_or(QuantityError::TooLong)?;
        let coefficient = coefficient.checked_mul(scale).ok_or(QuantityError::TooLong)?;
        let exponent = exponent.checked_add(suffix.decimal_power).ok_or(QuantityError::TooLong)?;
        let quantity = Self::normal(negative, coefficient, exponent);
        // A power of two adds digits, and what is written has to be one that can be read.
        if quantity.coefficient > MAX_COEFFICIENT { Err(QuantityError::TooLong) } else { Ok(quantity) }
    }

    /// Reads a quantity from a JSON value: a string or a number, by its literal. Null is zero, as it is to Kubernetes.
    ///
    /// # Errors
    /// See [`QuantityError`].
    pub fn from_json(value: &Json<'_>) -> Result<Self, QuantityError> {
        match value {
            Json::Null => Ok(Self::ZERO),
            Json::String(text) => Self::parse(text),
            Json::Number(literal) => Self::parse(literal),
            Json::Bool(_) => Err(QuantityError::Type("a boolean")),
            Json::Array(_) => Err(QuantityError::Type("an array")),
            Json::Object(_) => Err(QuantityError::Type("an object")),
        }
    }

    /// The number of whole devices that the quantity stands for. A count beyond 128 bits answers with the largest one,
    /// which no limit allows.
    ///
    /// # Errors
    /// Where the value is negative or not whole.
    pub fn count(self) -> Result<u128, CountError> {
        if self.negative {
            return Err(CountError::Negative);
        }
        if self.exponent < 0 {
            return Err(CountError::Fractional);
        }
        let power = u32::try_from(self.exponent).ok().and_then(|exponent| 10_u128.checked_pow(exponent));
        Ok(power.map_or(u128::MAX, |power| self.coefficient.saturating_mul(power)))
    }

    /// The least whole number that is not below the value, as Kubernetes' scheduler rounds; nothing for a negative value.
    pub fn ceil(self) -> Option<u128> {
        match self.count() {
            Ok(count) => Some(count),
            Err(CountError::Negative) => None,
            Err(CountError::Fractional) => {
                let places = u32::try_from(self.exponent.unsigned_abs()).unwrap_or(u32::MAX);
                let unit = 10_u128.checked_pow(places);
                Some(unit.map_or(1, |unit| self.coefficient.div_ceil(unit)))
            }
        }
    }

    /// Whether the value is zero.
    pub fn is_zero(self) -> bool {
        self.coefficient == 0
    }

    fn normal(negative: bool, mut coefficient: u128, mut exponent: i64) -> Self {
        if coefficient == 0 {
            return Self::ZERO;
        }
        while coefficient.is_multiple_of(10) {
            coefficient = coefficient.wrapping_div(10);
            exponent = exponent.saturating_add(1);
        }
        Self { negative, coefficient, exponent }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.negative { "-" } else { "" };
        match (self.exponent, self.count()) {
            (0..=18, Ok(count)) if count < u128::MAX => write!(out, "{count}"),
            (0, _) => write!(out, "{sign}{}", self.coefficient),
            (exponent, _) => write!(out, "{sign}{}e{exponent}", self.coefficient),
        }
    }
}

/// What follows the digits: a power of two and a power of ten.
struct Suffix {
    binary_power: u32,
    decimal_power: i64,
}

impl Suffix {
    fn read(text: &str) -> Result<Self, QuantityError> {
        let decimal = |decimal_power| Ok(Self { binary_power: 0, decimal_power });
        let binary = |binary_power| Ok(Self { binary_power, decimal_power: 0 });
        match text {
            "n" => decimal(-9),
            "u" => decimal(-6),
            "m" => decimal(-3),
            "" => decimal(0),
            "k" => decimal(3),
            "M" => decimal(6),
            "G" => decimal(9),
            "T" => decimal(12),
            "P" => decimal(15),
            "E" => decimal(18),
            "Ki" => binary(10),
            "Mi" => binary(20),
            "Gi" => binary(30),
            "Ti" => binary(40),
            "Pi" => binary(50),
            "Ei" => binary(60),
            _ => decimal(exponent(text)?),
        }
    }
}

/// `e5`, `E+5`, `e-5`.
fn exponent(text: &str) -> Result<i64, QuantityError> {
    let signed = text.strip_prefix(['e', 'E']).ok_or(QuantityError::Grammar)?;
    let (_, unsigned) = sign(signed);
    let (number, rest) = digits(unsigned);
    if number.is_empty() || !rest.is_empty() {
        return Err(QuantityError::Grammar);
    }
    signed.parse().map_err(|_| QuantityError::TooLong)
}

fn sign(text: &str) -> (bool, &str) {
    match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

/// The ASCII digits at the start of a text, and what follows them.
fn digits(text: &str) -> (&str, &str) {
    let end = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

/// The digits on both sides of the point as one whole number and the power of ten that scales it, without the zeros at
/// either end, which would use up room for nothing.
fn significant(whole: &str, fraction: &str) -> Result<(u128, i64), QuantityError> {
    let fraction = fraction.trim_end_matches('0');
    let places = i64::try_from(fraction.len()).map_err(|_| QuantityError::TooLong)?;
    let (whole, zeros) = if fraction.is_empty() {
        let trimmed = whole.trim_end_matches('0');
        (trimmed, whole.len().saturating_sub(trimmed.len()))
    } else {
        (whole, 0)
    };
    let zeros = i64::try_from(zeros).map_err(|_| QuantityError::TooLong)?;
    let mut coefficient = 0_u128;
    let leading = |digit: &u8| *digit == b'0';
    for (count, digit) in whole.bytes().chain(fraction.bytes()).skip_while(leading).enumerate() {
        if count >= MAX_DIGITS {
            return Err(QuantityError::TooLong);
        }
        let digit = u128::from(digit.wrapping_sub(b'0'));
        coefficient = coefficient.checked_mul(10).and_then(|c| c.checked_add(digit)).ok_or(QuantityError::TooLong)?;
    }
    Ok((coefficient, zeros.saturating_sub(places)))
}

#[cfg(test)]
mod tests;
