//! Updates that change nothing which anybody judges.
//!
//! Invariant: an update that this finds to change nothing differs in fields alone that the API server and controllers keep
//! for themselves, so that no policy can hold up the removal of a finalizer or the report of a status.

use crate::json::Json;

/// Fields of the object that are not its author's.
const FIELDS: [&str; 1] = ["status"];

/// Fields of its metadata that are not its author's.
const METADATA: [&str; 8] = [
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
];

/// Whether an update changes anything else.
pub(super) fn changes_more(old: &Json<'_>, new: &Json<'_>) -> bool {
    differ(old, new, &FIELDS, |key, old, new| {
        if key == "metadata" { differ(old, new, &METADATA, |_, old, new| old != new) } else { old != new }
    })
}

fn differ(old: &Json<'_>, new: &Json<'_>, but: &[&str], members: impl Fn(&str, &Json<'_>, &Json<'_>) -> bool) -> bool {
    let (Some(left), Some(right)) = (old.as_object(), new.as_object()) else { return old != new };
    let null = Json::Null;
    let keys = left.iter().chain(right.iter()).map(|(key, _)| key).filter(|key| !but.contains(key));
    let mut keys: Vec<&str> = keys.collect();
    keys.sort_unstable();
    keys.dedup();
    keys.into_iter().any(|key| members(key, left.get(key).unwrap_or(&null), right.get(key).unwrap_or(&null)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bookkeeping_is_no_change() {
        for (old, new, more) in [
            (
                r#"{"metadata":{"finalizers":["a"],"resourceVersion":"1"}}"#,
                r#"{"metadata":{"deletionTimestamp":"x"}}"#,
                false,
            ),
            (r#"{"status":{"a":1}}"#, r#"{"metadata":{}}"#, true),
            (r#"{"metadata":{},"status":{"a":1}}"#, r#"{"metadata":{}}"#, false),
            (r#"{"metadata":{"labels":{"a":"b"}}}"#, r#"{"metadata":{}}"#, true),
            (r#"{"metadata":{},"spec":{"a":1}}"#, r#"{"metadata":{},"spec":{"a":2}}"#, true),
            ("null", r#"{"spec":{}}"#, true),
        ] {
            let read = |text: &'static str| crate::json::parse(text.as_bytes()).unwrap();
            assert_eq!(changes_more(&read(old), &read(new)), more, "{old} {new}");
        }
    }
}
