//! Any text as a configuration.

use std::collections::BTreeSet;

use slicegate::config::parse;

/// It is read to the same configuration each time, or each of its mistakes has a place in the text and says something.
pub fn body(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match parse(text) {
        Ok(config) => {
            assert_eq!(parse(text).as_ref(), Ok(&config));
            let names: BTreeSet<&str> = config.pools.iter().map(|pool| pool.name.as_str()).collect();
            assert_eq!(names.len(), config.pools.len(), "names of pools are unique");
            assert!(config.pools.iter().all(|pool| !pool.resources.is_empty()));
            assert_ne!(config.latency_label, config.checkpoint_label);
        }
        Err(mistakes) => {
            assert!(!mistakes.0.is_empty());
            assert!(mistakes.0.is_sorted_by_key(|mistake| (mistake.line, mistake.column)), "in the order of the text");
            // Behind the last line, where the text ends too early.
            let lines = text.split(['\n', '\r']).count() + 1;
            for mistake in &mistakes.0 {
                assert!((1..=lines).contains(&mistake.line) && mistake.column >= 1, "{mistake} in {lines} lines");
                assert!(!mistake.message.is_empty());
                assert!(!mistake.message.contains(char::is_control), "{mistake:?}");
            }
        }
    }
}
