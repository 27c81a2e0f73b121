//! Any bytes as a review that is judged and answered.

use jiff::Timestamp;
use serde_json::Value;
use slicegate::policy::{Phase, decide};
use slicegate::review::response::{encode, encode_unreadable};
use slicegate::review::{Refused, decode};

use super::review::refusal;
use super::scenes;

/// The most characters of a warning, and the most bytes of all.
const MAX_WARNING: usize = 256;
const MAX_WARNINGS: usize = 4096;

/// A byte that chooses the configuration, and a review. What has a uid is answered with it, by an answer that the API server
/// can read and that says what the decision says.
pub fn body(data: &[u8]) {
    let Some((choice, data)) = data.split_first() else { return };
    match decode(data) {
        Ok(request) => {
            for phase in [Phase::Mutate, Phase::Validate] {
                let (policy, facts) = (scenes::policy(*choice), scenes::facts());
                let decision = decide(phase, &request, policy, facts, &[], Timestamp::UNIX_EPOCH);
                let encoded = encode(phase, &request, &decision, "d");
                assert_eq!(encoded.patch_error, None);
                assert!(decision.findings.is_sorted_by(|one, next| one.action >= next.action));
                assert!(decision.findings.iter().all(|finding| finding.action <= policy.config.enforcement));
                assert_eq!(decide(phase, &request, policy, facts, &[], Timestamp::UNIX_EPOCH), decision);
                let denied = phase == Phase::Validate && !decision.allowed();
                if denied {
                    refusal(&encoded.body, &request.uid);
                }
                sound(&encoded.body, &request.uid, !denied);
            }
        }
        Err(Refused::BadRequest(why)) => assert!(!why.is_empty()),
        Err(Refused::Unreadable { uid, reason }) => sound(&encode_unreadable(&uid, &reason), &uid, false),
    }
}

fn sound(bytes: &[u8], uid: &str, allowed: bool) {
    let answer: Value = serde_json::from_slice(bytes).expect("an answer is JSON");
    let response = &answer["response"];
    assert_eq!((response["uid"].as_str(), response["allowed"].as_bool()), (Some(uid), Some(allowed)));
    let warnings: Vec<&str> = response["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    assert!(warnings.iter().all(|warning| warning.chars().count() <= MAX_WARNING), "{warnings:?}");
    assert!(warnings.iter().map(|warning| warning.len()).sum::<usize>() <= MAX_WARNINGS, "{warnings:?}");
    assert!(!warnings.iter().any(|warning| warning.contains(char::is_control)), "{warnings:?}");
}
