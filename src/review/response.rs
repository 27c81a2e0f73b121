//! A decision into the bytes of the answer.

use super::Request;
use crate::policy::Phase;
use crate::policy::decision::Decision;

/// An answer, ready to be sent with status 200.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoded {
    /// The AdmissionReview, as JSON.
    pub body: Vec<u8>,
    /// Why the patch was left out, where it did not apply to the request's own object. A fault of this program: log it.
    pub patch_error: Option<String>,
}

/// The answer to a request that was judged.
pub fn encode(_phase: Phase, request: &Request<'_>, decision: &Decision, _digest: &str) -> Encoded {
    let body = serde_json::json!({"apiVersion": super::API_VERSION, "kind": "AdmissionReview",
        "response": {"uid": request.uid, "allowed": decision.allowed()}});
    Encoded { body: body.to_string().into_bytes(), patch_error: None }
}

/// The denial of a request that could not be judged.
pub fn encode_unreadable(uid: &str, reason: &str) -> Vec<u8> {
    let body = serde_json::json!({"apiVersion": super::API_VERSION, "kind": "AdmissionReview",
        "response": {"uid": uid, "allowed": false, "status": {"code": 403, "reason": "Forbidden", "message": reason}}});
    body.to_string().into_bytes()
}
