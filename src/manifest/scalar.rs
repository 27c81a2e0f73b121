//! What a plain scalar of YAML means to kubectl.
//!
//! kubectl reads YAML 1.1 (`sigs.k8s.io/yaml`): `yes` and `on` are true, `010` is eight, `1_000` is a thousand. A reader of
//! YAML 1.2 would see other objects than the API server gets. Invariant: the words are those of that reader's `resolve.go`.

/// What a scalar is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Scalar {
    /// Nothing.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, as a literal of JSON.
    Number(String),
    /// A number that JSON has no word for.
    NotFinite,
    /// A text.
    Text,
    /// `<<`, bare: as a key it merges other mappings in, as a value it is a text.
    Merge,
}

/// The meaning of a plain scalar without a tag.
pub(super) fn resolve(text: &str) -> Scalar {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Scalar::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Scalar::Bool(true),
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => Scalar::Bool(false),
        ".nan" | ".NaN" | ".NAN" | ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" | "-.inf" | "-.Inf"
        | "-.INF" => Scalar::NotFinite,
        _ => match text.bytes().next() {
            Some(b'0'..=b'9' | b'+' | b'-' | b'.') => number(text),
            _ => Scalar::Text,
        },
    }
}

/// A number as the text of a key, where kubectl's reader writes it as it writes the value.
pub(super) fn as_key<'l>(written: &str, literal: &'l str) -> Option<&'l str> {
    let is_fraction = written.contains(['.', 'e', 'E']) && !written.contains(['x', 'X']);
    let size = literal.parse::<f64>().ok()?.abs();
    let is_same = if is_fraction { size == 0.0 || (1e-4..1e6).contains(&size) } else { literal.parse::<i64>().is_ok() };
    is_same.then_some(literal)
}

/// A text that begins as numbers do.
fn number(text: &str) -> Scalar {
    // Where a number begins with a point, underscores make a text of it.
    let begins_with_point = text.starts_with('.');
    let plain: String = text.chars().filter(|character| begins_with_point || *character != '_').collect();
    if let Some(integer) = (!begins_with_point).then(|| integer(&plain)).flatten() {
        return Scalar::Number(match i64::try_from(integer) {
            Ok(integer) => integer.to_string(),
            Err(_) => beyond(integer),
        });
    }
    let float = is_float(&plain).then(|| plain.parse::<f64>().ok()).flatten();
    match float {
        Some(float) if float.is_finite() => Scalar::Number(literal(float)),
        // Go's reader takes a number beyond all bounds for a text.
        _ => Scalar::Text,
    }
}

/// A whole number within 64 bits: decimal, `0x`, `0o`, `0b`, and octal by a leading zero.
fn integer(text: &str) -> Option<i128> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, text.get(1..)?),
        b'+' => (false, text.get(1..)?),
        _ => (false, text),
    };
    let based = |prefixes: [&str; 2]| prefixes.iter().find_map(|prefix| digits.strip_prefix(prefix));
    let (digits, radix) = if let Some(digits) = based(["0x", "0X"]) {
        (digits, 16)
    } else if let Some(digits) = based(["0o", "0O"]) {
        (digits, 8)
    } else if let Some(digits) = based(["0b", "0B"]) {
        (digits, 2)
    } else if let Some(octal) = digits.strip_prefix('0').filter(|octal| !octal.is_empty()) {
        (octal, 8)
    } else {
        (digits, 10)
    };
    if !digits.starts_with(|first: char| first.is_digit(radix)) {
        return None;
    }
    let magnitude = i128::from(u64::from_str_radix(digits, radix).ok()?);
    let value = if negative { magnitude.checked_neg()? } else { magnitude };
    (value >= i128::from(i64::MIN)).then_some(value)
}

/// Whether the text is `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`.
fn is_float(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (mantissa, exponent) =
        unsigned.split_once(['e', 'E']).map_or((unsigned, None), |(left, right)| (left, Some(right)));
    let exponent = exponent.is_none_or(|text| {
        let text = text.strip_prefix(['-', '+']).unwrap_or(text);
        !text.is_empty() && digits(text)
    });
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    exponent && digits(whole) && digits(fraction) && !(whole.is_empty() && fraction.is_empty())
}

/// A whole number that kubectl can only hold as a double, and sends as such.
#[allow(clippy::cast_precision_loss, reason = "kubectl loses it in the same way")]
fn beyond(integer: i128) -> String {
    literal(integer as f64)
}

/// A double as Go's `encoding/json` writes it, but for a zero below zero, which is read as a whole number on the way.
fn literal(float: f64) -> String {
    let size = float.abs();
    if size == 0.0 {
        return "0".to_owned();
    }
    if (1e-6..1e21).contains(&size) { format!("{float}") } else { format!("{float:e}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_numbers_mean_what_they_mean_to_kubectl() {
        let number = |literal: &str| Scalar::Number(literal.to_owned());
        for (text, meaning) in [
            ("yes", Scalar::Bool(true)),
            ("n", Scalar::Bool(false)),
            ("yep", Scalar::Text),
            ("~", Scalar::Null),
            ("010", number("8")),
            ("08", number("8")),
            ("0o10", number("8")),
            ("0x_1F", number("31")),
            ("-0b11", number("-3")),
            ("1_000", number("1000")),
            ("1e3", number("1000")),
            ("1.50", number("1.5")),
            (".5", number("0.5")),
            (".5_", Scalar::Text),
            ("-.5_", number("-0.5")),
            ("1.", number("1")),
            ("9223372036854775807", number("9223372036854775807")),
            ("18446744073709551615", number("18446744073709552000")),
            ("-0.0", number("0")),
            ("18446744073709551616", number("18446744073709552000")),
            ("1e400", Scalar::Text),
            ("1e21", number("1e21")),
            ("2001-01-01", Scalar::Text),
            ("1Gi", Scalar::Text),
            ("+", Scalar::Text),
            (".", Scalar::Text),
            ("-.inf", Scalar::NotFinite),
        ] {
            assert_eq!(resolve(text), meaning, "{text}");
        }
    }
}
