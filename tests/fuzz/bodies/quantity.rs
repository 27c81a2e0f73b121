//! Any text as a quantity.

use std::borrow::Cow;

use slicegate::json::Json;
use slicegate::quantity::Quantity;

/// What is read is the same after it was written, and its counts agree with each other.
pub fn body(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let read = Quantity::parse(text);
    assert_eq!(Quantity::from_json(&Json::String(Cow::Borrowed(text))), read);
    let Ok(quantity) = read else { return };
    let written = quantity.to_string();
    assert_eq!(Quantity::parse(&written), Ok(quantity), "{text:?} was written as {written:?}");
    match (quantity.count(), quantity.ceil()) {
        (Ok(count), ceil) => {
            assert_eq!(ceil, Some(count));
            assert_eq!(count == 0, quantity.is_zero());
        }
        (Err(_), Some(ceil)) => assert!(ceil > 0, "a fraction rounds up"),
        (Err(_), None) => {
            assert_eq!(Quantity::parse(text.trim().trim_start_matches('-')).map(Quantity::is_zero), Ok(false));
        }
    }
}
