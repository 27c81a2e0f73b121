//! JSON into the engine's values.
//!
//! Invariant: nothing is lost or rounded that Kubernetes can hold: whole numbers of any length stay exact, and no key of an
//! object means anything but itself.

use regorus::Value;

use crate::json::Json;

/// The most digits that a whole number is read exactly with. Arithmetic on longer ones would take a request's time.
const MAX_DIGITS: usize = 400;

/// The engine's form of a JSON value.
///
/// # Errors
/// A number that is larger than what a rule can work with.
pub fn value(json: &Json<'_>) -> Result<Value, String> {
    Ok(match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::from(*value),
        Json::Number(literal) => number(literal)?,
        Json::String(text) => Value::from(text.as_ref()),
        Json::Array(elements) => elements.iter().map(value).collect::<Result<Vec<_>, _>>()?.into(),
        Json::Object(members) => {
            let members = members.iter().map(|(key, member)| Ok((Value::from(key), value(member)?)));
            Value::from(members.collect::<Result<std::collections::BTreeMap<_, _>, String>>()?)
        }
    })
}

/// The value at a JSON pointer.
pub fn at<'v>(value: &'v Value, pointer: &str) -> Option<&'v Value> {
    let mut here = value;
    for token in pointer.split('/').skip(1) {
        let token = token.replace("~1", "/").replace("~0", "~");
        here = match here {
            Value::Object(members) => members.get(&Value::from(token))?,
            Value::Array(elements) => elements.iter().nth(token.parse().ok()?)?,
            _ => return None,
        };
    }
    Some(here)
}

/// The member of an object by its name.
pub fn member<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    match value {
        Value::Object(members) => members.get(&Value::from(name)),
        _ => None,
    }
}

/// The text of a string.
pub fn text(value: &Value) -> Option<&str> {
    match value {
        Value::String(text) => Some(text),
        _ => None,
    }
}

fn number(literal: &str) -> Result<Value, String> {
    if let Ok(number) = literal.parse::<i64>() {
        return Ok(Value::from(number));
    }
    let whole = literal.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    if whole && literal.len() <= MAX_DIGITS {
        return Value::from_numeric_string(literal).map_err(|error| error.to_string());
    }
    match literal.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(Value::from(number)),
        _ => Err("it holds a number that is larger than policies can work with".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Result<String, String> {
        let json = crate::json::parse(text.as_bytes()).unwrap();
        Ok(value(&json)?.to_json_str().unwrap())
    }

    #[test]
    fn values_stay_what_they_are() {
        for text in [
            "null",
            "true",
            "[1,-2,\"a\"]",
            "18446744073709551616",
            "-18446744073709551617",
            "0.5",
            r#"{"$serde_json::private::Number":"1","a":{"b":[]}}"#,
        ] {
            assert_eq!(shown(text).unwrap(), text);
        }
        assert!(shown("1e400").is_err());
        assert!(shown(&"9".repeat(500)).is_err());
    }

    #[test]
    fn pointers_lead_to_values() {
        let json = crate::json::parse(br#"{"a/b":[{"c~":1}]}"#).unwrap();
        let value = value(&json).unwrap();
        assert_eq!(at(&value, "/a~1b/0/c~0"), Some(&Value::from(1)));
        assert_eq!(at(&value, ""), Some(&value));
        assert_eq!(at(&value, "/a~1b/1"), None);
    }
}
