//! Any bytes as the body of a request.

use serde_json::Value;
use slicegate::json::{self, Json};
use slicegate::review::response::encode_unreadable;
use slicegate::review::{Refused, decode, uid};

/// A review is decoded or refused with a reason; what has a uid keeps it; and a tree of JSON survives being written.
pub fn body(data: &[u8]) {
    match decode(data) {
        Ok(request) => assert_eq!(uid(data).as_deref(), Some(request.uid.as_ref()), "one uid, whoever reads it"),
        Err(Refused::BadRequest(why)) => assert!(!why.is_empty()),
        Err(Refused::Unreadable { uid, reason }) => refusal(&encode_unreadable(&uid, &reason), &uid),
    }
    if let Ok(tree) = json::parse(data)
        && !has_fraction(&tree)
    {
        let written = serde_json::to_vec(&tree.to_value()).expect("a tree can be written");
        let again = json::parse(&written).expect("what was written can be read");
        assert_eq!(again.to_value(), tree.to_value());
    }
}

/// A denial that the API server can read.
pub fn refusal(bytes: &[u8], uid: &str) {
    let answer: Value = serde_json::from_slice(bytes).expect("an answer is JSON");
    let response = &answer["response"];
    assert_eq!(response["uid"].as_str(), Some(uid));
    assert_eq!(response["allowed"], false);
    assert_eq!((&response["status"]["code"], &response["status"]["reason"]), (&403.into(), &"Forbidden".into()));
    let message = response["status"]["message"].as_str().expect("a refusal says why");
    assert!(!message.is_empty() && message.len() <= 4096, "{} bytes", message.len());
    assert!(!message.contains(|character: char| character != '\n' && character.is_control()), "{message:?}");
}

/// Whether a number is in it that a double may change when it is written.
fn has_fraction(tree: &Json<'_>) -> bool {
    match tree {
        Json::Number(literal) => literal.parse::<i64>().is_err() && literal.parse::<u64>().is_err(),
        Json::Array(elements) => elements.iter().any(has_fraction),
        Json::Object(members) => members.iter().any(|(_, value)| has_fraction(value)),
        _ => false,
    }
}
