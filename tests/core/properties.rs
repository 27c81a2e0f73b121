//! Properties that hold whatever the input.

use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};
use slicegate::config::Config;
use slicegate::facts::{Event, Facts, Labels};
use slicegate::policy::decision::{Action, Decision};
use slicegate::policy::{Phase, decide};
use slicegate::review::response::encode;
use slicegate::review::{Refused, decode};

use crate::generate;
use crate::judging::{Judge, review};

/// The default configuration, and two Nodes.
fn usual() -> Judge {
    let labels = |mode: &str| Labels::from([("gpu-mode".to_owned(), mode.to_owned())]);
    let nodes = vec![("n1".to_owned(), labels("shared")), ("n2".to_owned(), labels("exclusive"))];
    Judge::new(Config::default(), Facts::default().after(Event::Nodes(nodes)).unwrap())
}

fn judge(object: &Value) -> Decision {
    usual().judge(object, &Value::Null)
}

fn mutated(object: &Value) -> Value {
    usual().mutated(object)
}

/// Findings by what they are about, in an order of their own.
fn essence(decision: &Decision) -> Vec<(Action, String)> {
    let mut all: Vec<_> = decision.findings.iter().map(|finding| (finding.action, finding.identity.clone())).collect();
    all.sort();
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(matches!(decode(&bytes), Err(Refused::BadRequest(_))));
    }

    #[test]
    fn damaged_reviews_are_answered(object in generate::pod(), damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let mut body = review(&object, &Value::Null).into_bytes();
        for (place, byte) in damage {
            let place = place.index(body.len());
            body[place] = byte;
        }
        if let Ok(request) = decode(&body) {
            let Judge { policy, facts } = usual();
            for phase in [Phase::Mutate, Phase::Validate] {
                let decision = decide(phase, &request, &policy, &facts, &[], Timestamp::UNIX_EPOCH);
                let answer: Value = serde_json::from_slice(&encode(phase, &request, &decision, "d").body).unwrap();
                prop_assert_eq!(answer.pointer("/response/uid").and_then(Value::as_str), Some(request.uid.as_ref()));
            }
        }
    }

    #[test]
    fn findings_do_not_depend_on_the_order_of_containers(object in generate::pod(), turn in 0_usize..4) {
        let mut turned = object.clone();
        let list = turned["spec"]["containers"].as_array_mut().unwrap();
        let by = turn % list.len();
        list.rotate_left(by);
        prop_assert_eq!(essence(&judge(&object)), essence(&judge(&turned)));
    }

    #[test]
    fn a_patch_applies_once_and_changes_no_verdict(object in generate::pod()) {
        let patched = mutated(&object);
        prop_assert_eq!(&mutated(&patched), &patched, "a second run is empty");
        let (before, after) = (judge(&object), judge(&patched));
        prop_assert_eq!(essence(&before), essence(&after));
        prop_assert!(before.allowed() || patched == object, "what is refused is not completed");
    }

    #[test]
    fn what_asks_for_one_share_soundly_is_completed(mut object in generate::pod()) {
        object["metadata"]["labels"] = json!({"slicegate.io/checkpoint": "true"});
        object["spec"] = json!({"containers": [{"name": "m", "resources": {"limits": {"nvidia.com/gpu.shared": "1"}}}],
            "tolerations": object["spec"]["tolerations"]});
        let patched = mutated(&object);
        prop_assert_eq!(&patched["spec"]["nodeSelector"], &json!({"gpu-mode": "shared"}));
        let before = object["spec"]["tolerations"].as_array().cloned().unwrap_or_default();
        let after = patched["spec"]["tolerations"].as_array().cloned().unwrap_or_default();
        prop_assert!(after.starts_with(&before), "present tolerations stay in place");
    }
}
