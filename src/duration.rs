//! Durations as Go writes them: `10s`, `1m30s`, `500ms`.
//!
//! What it does: reads the `timeout` that API servers send and the values of options, and writes them back. Invariant: what
//! is negative, has no unit or does not fit is no duration.

use std::fmt::Write as _;
use std::time::Duration;

/// Units with their length in nanoseconds, those first that another one begins with.
const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Reads a duration.
///
/// # Errors
/// A sentence for people, where the text is none.
pub fn parse(text: &str) -> Result<Duration, String> {
    read(text).ok_or_else(|| format!("{text:?} is no duration; write it like 10s, 1m30s or 500ms"))
}

/// Writes a duration with the units that [`parse`] reads, the largest first.
pub fn show(duration: Duration) -> String {
    let mut rest = duration.as_nanos();
    let mut text = String::new();
    for (unit, length) in
        [("h", 3_600_000_000_000), ("m", 60_000_000_000), ("s", 1_000_000_000), ("ms", 1_000_000), ("ns", 1)]
    {
        let count = rest.checked_div(length).unwrap_or_default();
        rest = rest.checked_rem(length).unwrap_or_default();
        if count > 0 {
            // Writing to a String cannot fail.
            let _ = write!(text, "{count}{unit}");
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

fn read(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let mut rest = text;
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (whole, after) = digits(rest);
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => digits(after),
            None => ("", after),
        };
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let (after, unit) = UNITS.iter().find_map(|(name, unit)| unit_of(after, name).map(|after| (after, *unit)))?;
        let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        total = total.checked_add(whole.checked_mul(unit)?)?.checked_add(part(fraction, unit))?;
        rest = after;
    }
    (!text.is_empty()).then(|| Duration::from_nanos(total))
}

/// What follows the unit, where the text begins with that one and no longer one.
fn unit_of<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.strip_prefix(name).filter(|after| !after.starts_with(|next: char| next.is_alphabetic()))
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len()))
}

/// A decimal fraction of a unit in nanoseconds; what is below one is cut off.
fn part(fraction: &str, unit: u64) -> u64 {
    let mut value: u64 = 0;
    let mut place = unit;
    for digit in fraction.bytes() {
        place = place.checked_div(10).unwrap_or_default();
        value = value.saturating_add(place.saturating_mul(u64::from(digit.saturating_sub(b'0'))));
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_go_writes() {
        for (text, millis) in [
            ("10s", 10_000),
            ("1m30s", 90_000),
            ("500ms", 500),
            ("1.5s", 1_500),
            ("2h", 7_200_000),
            ("0", 0),
            ("0s", 0),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        assert_eq!(parse("1.000001s"), Ok(Duration::from_micros(1_000_001)));
    }

    #[test]
    fn refuses_what_is_no_duration() {
        for text in ["", "10", "s", "-1s", "10 s", "1d", "10sx", ".s", "99999999999h", "1s1"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn writes_what_it_reads() {
        for text in ["10s", "1m30s", "500ms", "0s", "2h1s"] {
            assert_eq!(show(parse(text).unwrap()), text);
        }
    }
}
