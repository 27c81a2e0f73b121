//! Bodies of http cases: the review, and what the case does to it.
//!
//! Invariant: a transform that finds nothing to do is an error; otherwise a renamed field would quietly turn an attack into
//! a healthy request.

use serde_json::{Value, json};

use crate::case::{Body, Matrix, Transform};

/// One body, and which row of the matrix made it.
#[derive(Debug)]
pub(crate) struct Variation {
    pub(crate) label: String,
    pub(crate) bytes: Vec<u8>,
}

/// All bodies of an http case.
pub(crate) fn variations(body: &Body, matrix: Option<&Matrix>) -> Result<Vec<Variation>, String> {
    let one = |bytes: Vec<u8>| vec![Variation { label: String::new(), bytes }];
    let Some(matrix) = matrix else { return Ok(one(build(body)?)) };
    if let Some(rows) = &matrix.body_raw {
        let raw = |row: &String| Variation { label: format!(" {row:?}"), bytes: row.clone().into_bytes() };
        return Ok(rows.iter().map(raw).collect());
    }
    let review = body.review.as_ref().ok_or("a matrix needs a review")?;
    if let Some(orders) = &matrix.orders {
        let members = body.members.as_ref().ok_or("orders need members")?;
        let ordered = |order: &Vec<String>| {
            let members: Vec<_> =
                members.iter().zip(order).map(|((key, _), value)| (key.clone(), value.clone())).collect();
            let bytes = duplicate_member(review, body.at.as_deref(), &members)?;
            Ok(Variation { label: format!(" {order:?}"), bytes })
        };
        return orders.iter().map(ordered).collect();
    }
    let (pointer, values) = match (&matrix.variants_of_dry_run, &matrix.pointer, &matrix.values) {
        (Some(values), None, None) => ("/request/dryRun", values),
        (None, Some(pointer), Some(values)) => (pointer.as_str(), values),
        _ => return Err("this matrix is not known".into()),
    };
    let varied = |value: &Value| {
        let mut review = review.clone();
        if value == "<absent>" {
            remove(&mut review, pointer)?;
        } else {
            *review.pointer_mut(pointer).ok_or("the pointer leads nowhere")? = value.clone();
        }
        Ok(Variation { label: format!(" {value}"), bytes: review.to_string().into_bytes() })
    };
    values.iter().map(varied).collect()
}

fn build(body: &Body) -> Result<Vec<u8>, String> {
    if let Some(pattern) = &body.generate {
        return expand(pattern).map(String::into_bytes);
    }
    let review = body.review.as_ref().ok_or("neither a review nor a pattern")?;
    let bytes = review.to_string().into_bytes();
    match body.transform {
        None | Some(Transform::Drip) => Ok(bytes),
        Some(Transform::KeepFirstBytes) => {
            let keep = body.n.filter(|n| *n < bytes.len()).ok_or("n is not within the body")?;
            Ok(bytes[..keep].to_vec())
        }
        Some(Transform::ExpandBlobs | Transform::ExpandStrings) => {
            let mut review = review.clone();
            match expand_strings(&mut review)? {
                0 => Err("no string to expand".into()),
                _ => Ok(review.to_string().into_bytes()),
            }
        }
        Some(Transform::ReplaceInString) => replace_in_string(body, &bytes),
        Some(Transform::DuplicateMember) => {
            duplicate_member(review, body.at.as_deref(), body.members.as_ref().ok_or("no members")?)
        }
        Some(Transform::RenameKeys) => rename_keys(body, review.clone()),
        Some(Transform::RepeatContainer) => repeat_container(body, review.clone()),
        Some(Transform::Gzip) => Ok(gzip(&bytes)),
    }
}

/// `<3 x 'ab'>` stands for `ababab`; everything else for itself.
pub(crate) fn expand(pattern: &str) -> Result<String, String> {
    let mut text = String::new();
    let mut rest = pattern;
    while let Some((before, after)) = rest.split_once('<') {
        let (count, after) = after.split_once(" x '").ok_or("expected <N x 'text'>")?;
        let (piece, after) = after.split_once("'>").ok_or("expected '> after the text")?;
        let count: usize = count.parse().map_err(|_| format!("{count:?} is no count"))?;
        text.push_str(before);
        text.push_str(&piece.repeat(count));
        rest = after;
    }
    Ok(text + rest)
}

/// `<3 MiB of x>` and `<100000 x n>`, as a whole string.
fn expand_strings(value: &mut Value) -> Result<usize, String> {
    match value {
        Value::String(text) => {
            let Some(inner) = text.strip_prefix('<').and_then(|text| text.strip_suffix('>')) else { return Ok(0) };
            let (count, piece) = match (inner.split_once(" MiB of "), inner.split_once(" x ")) {
                (Some((count, piece)), _) => (count.parse::<usize>().map(|count| count << 20), piece),
                (None, Some((count, piece))) => (count.parse(), piece),
                (None, None) => return Err(format!("{text:?} is no known expansion")),
            };
            *text = piece.repeat(count.map_err(|error| error.to_string())?);
            Ok(1)
        }
        Value::Array(elements) => elements.iter_mut().map(expand_strings).sum(),
        Value::Object(members) => members.values_mut().map(expand_strings).sum(),
        _ => Ok(0),
    }
}

fn replace_in_string(body: &Body, bytes: &[u8]) -> Result<Vec<u8>, String> {
    let from = body.from.as_deref().ok_or("no from")?;
    let to = match (&body.to_hex, &body.to_text) {
        (Some(hex), None) => hex
            .as_bytes()
            .chunks(2)
            .map(|pair| std::str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok()))
            .collect::<Option<Vec<u8>>>()
            .ok_or("to_hex is no hex")?,
        (None, Some(text)) => text.clone().into_bytes(),
        _ => return Err("one of to_hex and to_text is needed".into()),
    };
    let quoted = format!("\"{from}\"").into_bytes();
    let to = [b"\"", to.as_slice(), b"\""].concat();
    let place = bytes.windows(quoted.len()).position(|window| window == quoted).ok_or("nothing to replace")?;
    Ok([&bytes[..place], &to, &bytes[place + quoted.len()..]].concat())
}

/// Writes members beside each other that no JSON tree can hold: the tree carries a stand-in, the text the members.
fn duplicate_member(review: &Value, at: Option<&str>, members: &[(String, String)]) -> Result<Vec<u8>, String> {
    const STAND_IN: &str = "stands in for the members";
    let mut tree = review.clone();
    let object = tree.pointer_mut(at.ok_or("no place")?).and_then(Value::as_object_mut).ok_or("no object there")?;
    let mut text = Vec::new();
    for (key, value) in members {
        let original = object.get(key).unwrap_or(&Value::Null);
        let value = match value.as_str() {
            "<compliant pod>" => original.clone(),
            "<pod with two shares>" => with_shares(original.clone(), "2"),
            value => json!(value),
        };
        text.push(format!("{}:{value}", json!(key)));
    }
    for (key, _) in members {
        object.remove(key);
    }
    object.insert(STAND_IN.into(), Value::Null);
    Ok(tree.to_string().replace(&format!("\"{STAND_IN}\":null"), &text.join(",")).into_bytes())
}

fn with_shares(mut pod: Value, quantity: &str) -> Value {
    for of in ["limits", "requests"] {
        if let Some(place) = pod.pointer_mut(&format!("/spec/containers/0/resources/{of}/nvidia.com~1gpu.shared")) {
            *place = json!(quantity);
        }
    }
    pod
}

fn rename_keys(body: &Body, review: Value) -> Result<Vec<u8>, String> {
    fn renamed(value: Value, map: &dyn Fn(&str) -> Option<String>, done: &mut usize) -> Value {
        match value {
            Value::Object(members) => {
                let member = |(key, value): (String, Value)| {
                    let new = map(&key);
                    *done += usize::from(new.is_some());
                    (new.unwrap_or(key), renamed(value, map, done))
                };
                Value::Object(members.into_iter().map(member).collect())
            }
            Value::Array(elements) => elements.into_iter().map(|value| renamed(value, map, done)).collect(),
            other => other,
        }
    }
    let map = body.map.as_ref().ok_or("no map")?;
    let mut done = 0;
    let review = renamed(review, &|key| map.get(key).cloned(), &mut done);
    if done == 0 { Err("no key to rename".into()) } else { Ok(review.to_string().into_bytes()) }
}

fn repeat_container(body: &Body, mut review: Value) -> Result<Vec<u8>, String> {
    let (n, quantity) = (body.n.ok_or("no n")?, body.quantity.as_deref().ok_or("no quantity")?);
    let pod = review.pointer_mut("/request/object").ok_or("no object")?;
    *pod = with_shares(pod.take(), quantity);
    let containers = pod.pointer_mut("/spec/containers").and_then(Value::as_array_mut).ok_or("no containers")?;
    let first = containers.first().cloned().ok_or("no container")?;
    *containers = (0..n)
        .map(|place| {
            let mut container = first.clone();
            container["name"] = json!(format!("main-{place}"));
            container
        })
        .collect();
    Ok(review.to_string().into_bytes())
}

/// A gzip file of stored blocks, which is all that a test of refusal needs.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut file = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    let mut blocks = bytes.chunks(usize::from(u16::MAX)).peekable();
    while let Some(block) = blocks.next() {
        let length = u16::try_from(block.len()).unwrap_or(u16::MAX);
        file.push(u8::from(blocks.peek().is_none()));
        file.extend(length.to_le_bytes());
        file.extend((!length).to_le_bytes());
        file.extend(block);
    }
    let crc = bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    });
    file.extend((!crc).to_le_bytes());
    file.extend(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
    file
}

fn remove(value: &mut Value, pointer: &str) -> Result<(), String> {
    let (parent, key) = pointer.rsplit_once('/').ok_or("no pointer")?;
    let parent = value.pointer_mut(parent).and_then(Value::as_object_mut).ok_or("the pointer leads nowhere")?;
    parent.remove(key).map(|_| ()).ok_or_else(|| "nothing to remove".into())
}
