//! A decision into the bytes of the answer.
//!
//! What it does: writes the AdmissionReview that the API server reads, with bounded and harmless texts. Invariant: the uid is
//! the request's, a refusal has code 403, reason `Forbidden` and a message, and a patch was applied to the request's own
//! object before it is sent.

use serde::Serialize;

use super::{API_VERSION, Request};
use crate::policy::Phase;
use crate::policy::decision::{Action, Decision, Finding, Spared};
use crate::review::{patch, text};

/// The most causes that a refusal lists for machines.
pub(super) const MAX_CAUSES: usize = 64;

/// The reason of a cause that carries the repair of the one before it, as a JSON patch.
pub const REPAIR: &str = "slicegate.io/repair";

/// The longest repair that is told, in bytes.
const LONGEST_REPAIR: usize = 1024;

/// An answer, ready to be sent with status 200.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoded {
    /// The AdmissionReview, as JSON.
    pub body: Vec<u8>,
    /// Why the patch was left out, where it did not apply to the request's own object. A fault of this program: log it.
    pub patch_error: Option<String>,
}

/// The answer to a request that was judged.
pub fn encode(phase: Phase, request: &Request<'_>, decision: &Decision, digest: &str) -> Encoded {
    let (patch, patch_error) = match patch::encode(&request.object, &decision.changes) {
        Ok(patch) => (patch, None),
        Err(error) => (None, Some(error)),
    };
    // The mutating call completes; refusing is the validating call's, which sees the final object.
    let allowed = phase == Phase::Mutate || decision.allowed();
    let response = Response {
        status: (!allowed).then(|| refusal(request, decision)),
        patch_type: patch.is_some().then_some("JSONPatch"),
        patch,
        warnings: warnings(decision),
        audit_annotations: Some(audit(decision, digest)),
        ..Response::new(&request.uid, allowed)
    };
    Encoded { body: write(&response), patch_error }
}

/// The denial of a request that could not be judged.
pub fn encode_unreadable(uid: &str, reason: &str) -> Vec<u8> {
    let status = status(text::lines(&[reason.to_owned()], ""));
    write(&Response { status: Some(status), ..Response::new(uid, false) })
}

/// The answer to a request for which there was no time: the mutating call adds nothing, the validating one refuses unless
/// it is told to let through.
pub fn encode_unjudged(phase: Phase, uid: &str, let_through: bool, reason: &str) -> Vec<u8> {
    if phase == Phase::Validate && !let_through {
        return encode_unreadable(uid, reason);
    }
    let warnings = text::warnings(std::iter::once(reason.to_owned()));
    write(&Response { warnings, ..Response::new(uid, true) })
}

/// One finding as its user reads it: `[rule-id] field.path: what; fix`.
pub fn line(finding: &Finding) -> String {
    let field = if finding.field.is_empty() { String::new() } else { format!(" {}:", finding.field) };
    // Before the message, since a warning may be cut behind it.
    let before = match finding.spared {
        Some(Spared::Existing) => " (was there before)",
        Some(Spared::Kept) => " (made for what exists)",
        _ => "",
    };
    format!("[{}]{field}{before} {}", finding.rule, said(finding))
}

/// What is wrong, and the remedy where there is one; a policy's author may have given none.
pub fn said(finding: &Finding) -> String {
    if finding.fix.is_empty() { finding.message.clone() } else { format!("{}; {}", finding.message, finding.fix) }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Review<'a> {
    api_version: &'static str,
    kind: &'static str,
    response: &'a Response<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Response<'a> {
    pub(super) uid: &'a str,
    pub(super) allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<Status<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) patch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) patch_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) warnings: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) audit_annotations: Option<Audit<'a>>,
}

impl<'a> Response<'a> {
    /// The bare verdict.
    pub(super) fn new(uid: &'a str, allowed: bool) -> Self {
        let (patch, warnings) = (None, Vec::new());
        Self { uid, allowed, status: None, patch, patch_type: None, warnings, audit_annotations: None }
    }
}

#[derive(Serialize)]
pub(super) struct Status<'a> {
    #[serde(rename = "status")]
    pub(super) outcome: &'static str,
    pub(super) code: u16,
    pub(super) reason: &'static str,
    pub(super) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) details: Option<Details<'a>>,
}

#[derive(Serialize)]
pub(super) struct Details<'a> {
    pub(super) name: String,
    pub(super) group: &'a str,
    pub(super) kind: &'a str,
    pub(super) causes: Vec<Cause>,
}

#[derive(Serialize)]
pub(super) struct Cause {
    pub(super) reason: String,
    pub(super) message: String,
    pub(super) field: String,
}

/// What the audit log keeps.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Audit<'a> {
    /// Of a verdict.
    Verdict {
        configuration: &'a str,
        #[serde(skip_serializing_if = "String::is_empty")]
        policies: String,
        #[serde(skip_serializing_if = "String::is_empty")]
        rules: String,
        #[serde(skip_serializing_if = "String::is_empty")]
        exemption: String,
    },
    /// Of a write of what verdicts are made by.
    Guard { digest: &'a str },
}

pub(super) fn write(response: &Response<'_>) -> Vec<u8> {
    let review = Review { api_version: API_VERSION, kind: "AdmissionReview", response };
    // Strings, numbers and lists of them always serialise; an empty body would be a failed call and no admission.
    serde_json::to_vec(&review).unwrap_or_default()
}

pub(super) fn status<'a>(message: String) -> Status<'a> {
    Status { outcome: "Failure", code: 403, reason: "Forbidden", message, details: None }
}

fn refusal<'a>(request: &'a Request<'_>, decision: &Decision) -> Status<'a> {
    let refused = decision.refusal.iter().cloned();
    let lines: Vec<String> = refused.chain(decision.of(Action::Deny).map(line)).collect();
    let causes = decision.of(Action::Deny).take(MAX_CAUSES).flat_map(|finding| {
        let field = text::item(&finding.field);
        let fault =
            Cause { reason: finding.rule.to_string(), message: text::item(&said(finding)), field: field.clone() };
        let repair = repair(finding).map(|message| Cause { reason: REPAIR.to_owned(), message, field });
        std::iter::once(fault).chain(repair)
    });
    let details = Details {
        name: text::item(&request.shown_name()),
        group: &request.kind.group,
        kind: &request.kind.kind,
        causes: causes.collect(),
    };
    Status { details: Some(details), ..status(text::lines(&lines, &decision.subject)) }
}

/// The repair as a JSON patch of RFC 6902 on the object of the request, where there is exactly one right one.
fn repair(finding: &Finding) -> Option<String> {
    let patch = patch::patch(&finding.repair).ok().filter(|patch| !patch.0.is_empty())?;
    serde_json::to_string(&patch).ok().filter(|text| text.len() <= LONGEST_REPAIR)
}

fn warnings(decision: &Decision) -> Vec<String> {
    let findings = decision.of(Action::Warn).flat_map(|finding| {
        let whole = line(finding);
        // What does not fit into one warning is cut, and the remedy stands at its end: it gets one of its own then.
        let remedy = (whole.chars().count() > text::MAX_WARNING && !finding.fix.is_empty())
            .then(|| format!("[{}] {}", finding.rule, finding.fix));
        std::iter::once(whole).chain(remedy)
    });
    text::warnings(findings.chain(decision.notes.iter().map(|note| note.text.clone())))
}

/// What the audit log keeps: the policy sets that were asked, every rule that found something with what it led to, and why one was exempted.
fn audit<'a>(decision: &Decision, digest: &'a str) -> Audit<'a> {
    let mut rules: Vec<String> = Vec::new();
    let mut exemptions: Vec<String> = Vec::new();
    for finding in &decision.findings {
        let rule = format!("{}={}", finding.rule, finding.action);
        if !rules.contains(&rule) {
            rules.push(rule);
        }
        if let Some(Spared::Exempted(reason)) = &finding.spared {
            let exemption = format!("{}: {reason}", finding.rule);
            if !exemptions.contains(&exemption) {
                exemptions.push(exemption);
            }
        }
    }
    let sets = decision.policies.iter().map(|(set, digest)| format!("{set}=sha256:{digest}"));
    let policies = text::item(&sets.collect::<Vec<_>>().join(","));
    Audit::Verdict {
        configuration: digest,
        policies,
        rules: rules.join(","),
        exemption: text::item(&exemptions.join("; ")),
    }
}

#[cfg(test)]
mod tests;
