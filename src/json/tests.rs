use super::*;

#[test]
fn keeps_literals_and_borrows() {
    let json = parse(br#"{"b": 18446744073709551617, "a": ["x", "\u0041", -1.50e3, true, null]}"#).unwrap();
    assert_eq!(json.get("b"), Some(&Json::Number("18446744073709551617")));
    let list = json.list("a");
    assert!(matches!(&list[0], Json::String(Cow::Borrowed("x"))));
    assert!(matches!(&list[1], Json::String(Cow::Owned(text)) if text == "A"));
    assert_eq!(list[2], Json::Number("-1.50e3"));
}

#[test]
fn order_of_keys_does_not_matter() {
    assert_eq!(parse(br#"{"a":1,"b":2}"#), parse(br#"{"b":2,"a":1}"#));
}

#[test]
fn refuses_a_key_that_stands_twice() {
    for text in [r#"{"a":1,"a":1}"#, r#"{"b":1,"a":1,"b":2}"#, r#"{"a":1,"\u0061":2}"#] {
        assert!(matches!(parse(text.as_bytes()), Err(JsonError::Duplicate { .. })), "{text}");
    }
}

#[test]
fn forgets_bookkeeping_and_nothing_else() {
    let json = parse(br#"{"managedFields":[{"a":1,"a":2}],"b":{"managedFields":{"c":1}}}"#).unwrap();
    assert_eq!(json.get("managedFields"), None);
    assert_eq!(json.at(&["b", "managedFields", "c"]), Some(&Json::Number("1")));
}

#[test]
fn refuses_hostile_depth_without_recursion_to_it() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(parse(deep.as_bytes()), Err(JsonError::TooDeep));
    let skipped = format!("{{\"managedFields\":{deep}}}");
    assert_eq!(parse(skipped.as_bytes()), Err(JsonError::TooDeep));
    let fine = format!("{}{}", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH));
    assert!(parse(fine.as_bytes()).is_ok());
}

#[test]
fn refuses_what_is_not_json() {
    for bytes in [&b"{"[..], b"", b"{}x", b"\"\xff\"", br#""\ud800n""#, b"01", b"NaN", b"\"a\tb\"", b"[1,]"] {
        assert!(matches!(parse(bytes), Err(JsonError::Syntax { .. })), "{bytes:?}");
    }
}
