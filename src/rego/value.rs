//! JSON into the engine's values.
//!
//! Invariant: nothing is lost or rounded that Kubernetes can hold: whole numbers of any length stay exact, and no key of an
//! object means anything but itself.

use std::collections::{BTreeMap, HashMap};

use regorus::Value;

use crate::json::Json;

/// The most digits that a whole number is read exactly with. Arithmetic on longer ones would take a request's time.
const MAX_DIGITS: usize = 400;

/// The most keys that are kept, and the longest.
const MAX_KEYS: usize = 4_096;
const MAX_KEY: usize = 64;

/// The keys of objects that were seen before. Most of what a request holds are the same few hundred names of fields, and each
/// would take memory of its own.
#[derive(Debug, Default)]
pub struct Keys(HashMap<Box<str>, Value>);

impl Keys {
    fn key(&mut self, name: &str) -> Value {
        if let Some(known) = self.0.get(name) {
            return known.clone();
        }
        let value = Value::from(name);
        if name.len() <= MAX_KEY && self.0.len() < MAX_KEYS {
            self.0.insert(name.into(), value.clone());
        }
        value
    }
}

/// The engine's form of a JSON value.
///
/// # Errors
/// A number that is larger than what a rule can work with.
pub fn value(json: &Json<'_>, keys: &mut Keys) -> Result<Value, String> {
    Ok(match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::from(*value),
        Json::Number(literal) => number(literal)?,
        Json::String(text) => Value::from(text.as_ref()),
        Json::Array(elements) => {
            elements.iter().map(|element| value(element, keys)).collect::<Result<Vec<_>, _>>()?.into()
        }
        Json::Object(members) => {
            let members = members.iter().map(|(key, member)| Ok((keys.key(key), value(member, keys)?)));
            Value::from(members.collect::<Result<BTreeMap<_, _>, String>>()?)
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
        Ok(serde_json::to_string(&value(&json, &mut Keys::default())?).unwrap())
    }

    #[test]
    fn values_stay_what_they_are() {
        for text in ["null", "true", "[1,-2,\"a\"]", "0.5", r#"{"$serde_json::private::Number":"1","a":{"b":[]}}"#] {
            assert_eq!(shown(text).unwrap(), text);
        }
        let json = crate::json::parse(b"18446744073709551617").unwrap();
        let exact = Value::from_numeric_string("18446744073709551617").unwrap();
        assert_eq!(value(&json, &mut Keys::default()), Ok(exact));
        assert!(shown("1e400").is_err());
        assert!(shown(&"9".repeat(500)).is_err());
    }

    #[test]
    fn pointers_lead_to_values() {
        let json = crate::json::parse(br#"{"a/b":[{"c~":1}]}"#).unwrap();
        let value = value(&json, &mut Keys::default()).unwrap();
        assert_eq!(at(&value, "/a~1b/0/c~0"), Some(&Value::from(1)));
        assert_eq!(at(&value, ""), Some(&value));
        assert_eq!(at(&value, "/a~1b/1"), None);
    }
}
