//! What policy sets add to an object, before the built-in injection does.
//!
//! What it does: takes the operations of sets in a stable order, keeps those that add what is not there, and leaves out the
//! others with a word on why. Invariant: nothing that the object or an earlier set holds is changed, and what is kept applies
//! to the object.

use serde_json::{Map, Value};

use crate::policy::decision::Change;
use crate::workload::path::push_token;

/// The most levels of a pointer.
const MAX_LEVELS: usize = 32;

/// What is left of the operations.
#[derive(Debug, Clone, PartialEq)]
pub struct Patched {
    /// The object with all changes.
    pub object: Value,
    /// The changes, each with the set that it comes from.
    pub changes: Vec<(String, Change)>,
    /// Why others were left out.
    pub notes: Vec<String>,
}

impl Patched {
    /// Begins with the request's object.
    pub fn new(object: Value) -> Self {
        Self { object, changes: Vec::new(), notes: Vec::new() }
    }

    /// Takes in the operations of one set.
    pub fn take(&mut self, set: &str, operations: &[Value]) {
        for operation in operations {
            match read(operation).and_then(|(tokens, value)| self.add(&tokens, value)) {
                Ok(Some(change)) => self.changes.push((set.to_owned(), change)),
                Ok(None) => {}
                Err(why) => {
                    let path = operation.get("path").and_then(Value::as_str).unwrap_or_default();
                    self.notes.push(format!("policy {set}: its patch of {path:?} was left out: {why}"));
                }
            }
        }
    }

    /// Adds a value where nothing is; nothing to do where it is there.
    fn add(&mut self, tokens: &[String], value: &Value) -> Result<Option<Change>, String> {
        let (last, parents) = tokens.split_last().ok_or("it names no field")?;
        let mut here = &mut self.object;
        let mut pointer = String::new();
        let mut rest = parents.iter();
        while let Some(token) = rest.next() {
            let missing = here.as_object().is_some_and(|members| members.get(token).is_none_or(Value::is_null));
            push_token(&mut pointer, token);
            if missing {
                let whole = rest.rfold(leaf(last, value), |inner, token| object(token, inner));
                insert(here, token, whole.clone());
                return Ok(Some(Change { pointer, value: whole }));
            }
            here = step(here, token).ok_or_else(|| format!("there is nothing at {pointer} to add to"))?;
        }
        push_token(&mut pointer, last);
        match here {
            Value::Array(elements) if last == "-" => {
                if elements.contains(value) {
                    return Ok(None);
                }
                elements.push(value.clone());
            }
            Value::Array(_) => return Err("an element can only be appended; end the path with /-".to_owned()),
            Value::Object(members) => match members.get(last) {
                Some(present) if present == value => return Ok(None),
                Some(present) if !present.is_null() => {
                    return Err(format!("{present} is there already, and nothing is overwritten"));
                }
                _ => {
                    members.insert(last.clone(), value.clone());
                }
            },
            _ => return Err("there is a value that nothing can be added to".to_owned()),
        }
        Ok(Some(Change { pointer, value: value.clone() }))
    }
}

/// Reads an operation; only additions are made.
fn read(operation: &Value) -> Result<(Vec<String>, &Value), String> {
    let text = |key: &str| operation.get(key).and_then(Value::as_str);
    match text("op") {
        Some("add") => {}
        Some(other) => return Err(format!("{other:?} is not made, since patches of policies only add")),
        None => return Err("it has no op; write {\"op\": \"add\", \"path\": \"/…\", \"value\": …}".to_owned()),
    }
    let path =
        text("path").and_then(|path| path.strip_prefix('/')).ok_or("its path is no JSON pointer; begin it with /")?;
    let tokens: Vec<String> = path.split('/').map(|token| token.replace("~1", "/").replace("~0", "~")).collect();
    if tokens.len() > MAX_LEVELS {
        return Err(format!("its path has more than {MAX_LEVELS} levels"));
    }
    let own = match tokens.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["metadata", "labels" | "annotations", ..] => true,
        ["metadata" | "status" | "apiVersion" | "kind", ..] => false,
        _ => true,
    };
    if !own {
        return Err("of metadata only labels and annotations can be added to, and nothing to status".to_owned());
    }
    let value = operation.get("value").ok_or("it has no value")?;
    // What is no text there cannot be read by the API server, which would fail the request.
    let texts = match tokens.as_slice() {
        [first, _] if first == "metadata" => {
            value.as_object().is_some_and(|members| members.values().all(Value::is_string))
        }
        [first, _, _] if first == "metadata" => value.is_string(),
        [first, ..] => first != "metadata",
        [] => false,
    };
    if !texts {
        return Err("labels and annotations are texts; give a string".to_owned());
    }
    Ok((tokens, value))
}

fn step<'v>(value: &'v mut Value, token: &str) -> Option<&'v mut Value> {
    match value {
        Value::Object(members) => members.get_mut(token),
        // Other readers of the pointer take no other spelling of a number.
        Value::Array(elements) => {
            let place = token.parse::<usize>().ok().filter(|place| place.to_string() == token)?;
            elements.get_mut(place)
        }
        _ => None,
    }
}

fn insert(parent: &mut Value, token: &str, value: Value) {
    if let Value::Object(members) = parent {
        members.insert(token.to_owned(), value);
    }
}

/// What stands at the end of a path whose parents have to be made.
fn leaf(token: &str, value: &Value) -> Value {
    if token == "-" { Value::Array(vec![value.clone()]) } else { object(token, value.clone()) }
}

fn object(token: &str, value: Value) -> Value {
    Value::Object(Map::from_iter([(token.to_owned(), value)]))
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    fn patched(object: &Value, operations: &Value) -> (Vec<(String, Value)>, usize) {
        let mut patched = Patched::new(object.clone());
        patched.take("p", operations.as_array().unwrap());
        let mut applied = object.clone();
        for (_, Change { pointer, value }) in &patched.changes {
            let patch = json!([{"op": "add", "path": pointer, "value": value}]);
            json_patch::patch(&mut applied, &serde_json::from_value::<json_patch::Patch>(patch).unwrap()).unwrap();
        }
        assert_eq!(applied, patched.object, "what is kept applies");
        let changes = patched.changes.into_iter().map(|(_, change)| (change.pointer, change.value)).collect();
        (changes, patched.notes.len())
    }

    #[test]
    fn it_adds_and_never_overwrites() {
        let add = |path: &str, value: Value| json!([{"op": "add", "path": path, "value": value}]);
        let object = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"tolerations": [1], "nodeName": null}});
        for (operations, changes, notes) in [
            (add("/metadata/labels/c", json!("d")), vec![("/metadata/labels/c", json!("d"))], 0),
            (add("/metadata/labels/a", json!("b")), vec![], 0),
            (add("/metadata/labels/a", json!("c")), vec![], 1),
            (add("/metadata/annotations/x~1y", json!("z")), vec![("/metadata/annotations", json!({"x/y": "z"}))], 0),
            (add("/spec/tolerations/-", json!(2)), vec![("/spec/tolerations/-", json!(2))], 0),
            (add("/spec/tolerations/-", json!(1)), vec![], 0),
            (add("/spec/tolerations/0", json!(2)), vec![], 1),
            (add("/spec/volumes/-", json!(1)), vec![("/spec/volumes", json!([1]))], 0),
            (add("/spec/nodeName", json!("n")), vec![("/spec/nodeName", json!("n"))], 0),
            (add("/spec/tolerations/0/a/b", json!(2)), vec![], 1),
            (add("/spec/tolerations/00/a", json!(2)), vec![], 1),
            (add("/metadata/labels/n", json!(7)), vec![], 1),
            (add("/metadata/annotations", json!({"a": null})), vec![], 1),
            (add("/metadata/name", json!("n")), vec![], 1),
            (add("spec", json!(1)), vec![], 1),
            (json!([{"op": "remove", "path": "/spec"}, {"op": "add", "path": "/spec/x"}, 7]), vec![], 3),
        ] {
            let changes: Vec<(String, Value)> =
                changes.into_iter().map(|(pointer, value)| (pointer.to_owned(), value)).collect();
            assert_eq!(patched(&object, &operations), (changes, notes), "{operations}");
        }
    }

    #[test]
    fn the_first_set_wins_and_the_second_is_told() {
        let mut patched = Patched::new(json!({"spec": {}}));
        patched.take("a", &[json!({"op": "add", "path": "/spec/x", "value": 1})]);
        patched.take("b", &[json!({"op": "add", "path": "/spec/x", "value": 2})]);
        assert_eq!(patched.object, json!({"spec": {"x": 1}}));
        assert!(patched.notes[0].starts_with("policy b: its patch of \"/spec/x\""), "{:?}", patched.notes);
    }
}
