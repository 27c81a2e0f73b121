//! Good edits, tried on the requests of late: whom they would hit.

use pretty_assertions::assert_eq;
use serde_json::json;

use super::*;

#[test]
fn a_good_edit_says_whom_it_would_hit() {
    let guarded = Guarded::start();
    let first = policy("cap", &refusing("a"));
    let quiet = guarded.create(&first);
    assert_eq!(quiet.warnings, Vec::<String>::new());
    for name in ["a-1", "a-2", "b-1", "b-2", "b-3", "a-1"] {
        guarded.pod(name);
    }
    // Nothing that slicegate has no reason to look at.
    let plain = reviews::plain_pod("plain");
    assert_eq!(guarded.server.post("/validate", &[], plain).status, 200);
    let new = guarded.create(&first);
    assert_eq!(
        new.warnings,
        [
            "replayed on 5 recent requests: would newly deny 2",
            "would newly deny Pod team-blue/a-1: [cap/deny] no a-1 here",
            "would newly deny Pod team-blue/a-2: [cap/deny] no a-2 here",
        ]
    );
    guarded.load(&[&first]);
    assert_eq!(
        guarded.ask("/guard", &policy("cap", &format!("{}\n# more\n", refusing("a"))), &first).warnings,
        ["replayed on 5 recent requests: nothing changes"]
    );
    let answer = guarded.ask("/guard", &policy("cap", &refusing("b")), &first);
    assert_eq!(answer.warnings[0], "replayed on 5 recent requests: would newly deny 3, would no longer deny 2");
    // The set's action counts, and its match: what it does not see any more is not judged by it.
    let mut warning = first.clone();
    warning["metadata"]["annotations"] = json!({"slicegate.io/action": "warn"});
    assert_eq!(
        guarded.ask("/guard", &warning, &first).warnings[0],
        "replayed on 5 recent requests: would no longer deny 2"
    );
    assert_eq!(
        guarded
            .create(&{
                let mut other = warning.clone();
                other["metadata"]["name"] = json!("other");
                other
            })
            .warnings[0],
        "replayed on 5 recent requests: would newly warn about 2"
    );
    let mut narrow = first.clone();
    narrow["metadata"]["annotations"] = json!({"slicegate.io/match": "namespaces: [team-red]"});
    assert_eq!(
        guarded.ask("/guard", &narrow, &first).warnings[0],
        "replayed on 5 recent requests: would no longer deny 2"
    );
}

#[test]
fn many_hits_are_counted_within_the_bounds_of_warnings() {
    let guarded = Guarded::start();
    let long = "x".repeat(60);
    for place in 0..40 {
        guarded.pod(&format!("a-{place}-{long}"));
    }
    let module = refusing("a").replace("no %v here", &format!("no %v here {}", "é".repeat(400)));
    let answer = guarded.create(&policy("cap", &module));
    assert_eq!(answer.warnings[0], "replayed on 40 recent requests: would newly deny 40");
    assert_eq!(answer.warnings.last().unwrap(), "would newly deny 32 more");
    assert!(answer.warnings.iter().all(|warning| warning.chars().count() < 256), "{answer:?}");
    assert!(answer.warnings.iter().map(String::len).sum::<usize>() < 4096 * 2, "{answer:?}");
}

#[test]
fn a_request_that_it_cannot_judge_is_told_and_the_others_are_judged() {
    let guarded = Guarded::start();
    for name in ["a-1", "endless", "b-1", "a-2"] {
        guarded.pod(name);
    }
    let loops = "\tsome a in numbers.range(1, 2000)\n\tsome b in numbers.range(1, 2000)\n\tcount([c | some c in numbers.range(1, 2000)]) + a + b == 0\n";
    let endless =
        format!("deny contains \"never\" if {{\n\tinput.request.object.metadata.name == \"endless\"\n{loops}}}\n");
    let answer = guarded.create(&policy("cap", &format!("{}\n{endless}", refusing("a"))));
    assert!(answer.allowed, "{answer:?}");
    assert_eq!(answer.warnings[0], "replayed on 4 recent requests: would newly deny 3", "{answer:?}");
    let told = "would newly deny Pod team-blue/endless: [cap/error] the policy ";
    assert!(answer.warnings.iter().any(|warning| warning.starts_with(told)), "{answer:?}");
}
