//! What holds for every answer, whatever the case: the wire contract of admission webhooks.
//!
//! Invariant: an [`Answer`] that exists is a review that an API server accepts and that answers its request.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use json_patch::Patch;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The reply, as far as an API server reads it; it knows no other fields.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Review {
    api_version: String,
    kind: String,
    response: Response,
}

/// The response of a review.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Response {
    uid: String,
    pub(crate) allowed: bool,
    pub(crate) status: Option<Status>,
    patch: Option<String>,
    patch_type: Option<String>,
    #[serde(default)]
    pub(crate) audit_annotations: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) warnings: Vec<String>,
}

/// The `metav1.Status` of a refusal.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Status {
    #[serde(default)]
    pub(crate) message: String,
    pub(crate) code: Option<u64>,
    #[serde(default)]
    reason: String,
    #[serde(rename = "status")]
    word: Option<String>,
    #[serde(default)]
    details: Option<Details>,
    #[allow(dead_code, reason = "part of the type, and of no use here")]
    metadata: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[allow(dead_code, reason = "what counts is that nothing else is there")]
struct Details {
    name: Option<String>,
    group: Option<String>,
    kind: Option<String>,
    uid: Option<String>,
    retry_after_seconds: Option<u64>,
    #[serde(default)]
    causes: Vec<Cause>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "what counts is that nothing else is there")]
struct Cause {
    reason: Option<String>,
    message: Option<String>,
    field: Option<String>,
}

/// An answer that keeps the contract.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The whole reply.
    pub(crate) reply: Value,
    pub(crate) response: Response,
    pub(crate) patch: Option<Patch>,
    /// The request's object after the patch, where there is one.
    pub(crate) patched: Option<Value>,
}

impl Answer {
    /// The message of a refusal, empty for an admission.
    pub(crate) fn message(&self) -> &str {
        self.response.status.as_ref().map_or("", |status| &status.message)
    }

    /// The rules that refuse, in the order of the message.
    pub(crate) fn denied_by(&self) -> Vec<String> {
        rules(self.message().lines())
    }

    /// The rules that warn, in the order of the warnings.
    pub(crate) fn warned_by(&self) -> Vec<String> {
        rules(self.response.warnings.iter().flat_map(|warning| warning.lines()))
    }
}

/// Holds a reply with status 200 against the contract. `request` is nothing where the body was no JSON.
pub(crate) fn check(endpoint: &str, request: Option<&Value>, body: &[u8]) -> Result<Answer, String> {
    let reply: Value = serde_json::from_slice(body).map_err(|error| format!("the reply is no JSON: {error}"))?;
    let review: Review =
        serde_json::from_value(reply.clone()).map_err(|error| format!("no review: {error}: {reply}"))?;
    let response = review.response;
    same("kind", &review.kind, "AdmissionReview")?;
    if let Some(request) = request {
        let text = |pointer: &str| request.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        same("apiVersion", &review.api_version, text("/apiVersion"))?;
        same("uid", &response.uid, text("/request/uid"))?;
    }
    let (patch, patched) = match (&response.patch, response.patch_type.as_deref()) {
        (None, None) => (None, None),
        (Some(patch), Some("JSONPatch")) if endpoint.starts_with("/mutate") && response.allowed => {
            let patch = decode(patch)?;
            let object =
                request.and_then(|request| request.pointer("/request/object")).ok_or("a patch for no object")?;
            let mut patched = object.clone();
            json_patch::patch(&mut patched, &patch).map_err(|error| format!("the patch does not apply: {error}"))?;
            (Some(patch), Some(patched))
        }
        other => return Err(format!("patch and patchType do not fit each other or {endpoint}: {other:?}")),
    };
    refusal(&response)?;
    let total: usize = response.warnings.iter().map(|warning| warning.chars().count()).sum();
    if total > 4096 || response.warnings.iter().any(|warning| warning.is_empty() || warning.chars().count() > 256) {
        return Err(format!("a warning is empty or too long, or all are: {:?}", response.warnings));
    }
    // The API server puts the webhook's name and a slash before the key, and a second slash would void it.
    if let Some(key) = response.audit_annotations.keys().find(|key| key.is_empty() || key.contains('/')) {
        return Err(format!("{key:?} is no key for an audit annotation"));
    }
    Ok(Answer { reply, response, patch, patched })
}

fn refusal(response: &Response) -> Result<(), String> {
    match &response.status {
        _ if response.allowed => Ok(()),
        Some(status) if status.message.trim().is_empty() => Err("a refusal without a message".into()),
        Some(status) if status.code != Some(403) => Err(format!("a refusal with code {:?}", status.code)),
        Some(status) if status.reason != "Forbidden" => Err(format!("a refusal with reason {:?}", status.reason)),
        Some(Status { word: Some(word), .. }) if word != "Failure" => Err(format!("a refusal with status {word:?}")),
        Some(status) if status.details.as_ref().is_some_and(|details| details.causes.len() > 1_000) => {
            Err("causes without bound".into())
        }
        Some(_) => Ok(()),
        None => Err("a refusal without a status".into()),
    }
}

fn decode(patch: &str) -> Result<Patch, String> {
    let bytes = STANDARD.decode(patch).map_err(|error| format!("the patch is no base64: {error}"))?;
    let patch: Patch = serde_json::from_slice(&bytes).map_err(|error| format!("no JSON patch: {error}"))?;
    if patch.0.is_empty() { Err("an empty patch".into()) } else { Ok(patch) }
}

fn same(what: &str, found: &str, wanted: &str) -> Result<(), String> {
    if found == wanted { Ok(()) } else { Err(format!("the reply's {what} is {found:?}, the request's {wanted:?}")) }
}

/// The ids in brackets with which lines begin, each once.
fn rules<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    for line in lines {
        let id = line.strip_prefix('[').and_then(|line| line.split_once(']')).map(|(id, _)| id);
        if let Some(id) = id.filter(|id| !ids.iter().any(|known| known == id)) {
            ids.push(id.to_owned());
        }
    }
    ids
}
