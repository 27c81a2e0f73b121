//! Bytes in, [`Request`] out; and, in [`response`], a decision back into bytes.
//!
//! What it does: decodes an `admission.k8s.io/v1` AdmissionReview in two steps, the envelope first and the object second, so
//! that an object that cannot be judged is still answered with the request's uid. An answer without it is a failed call to
//! the API server, and a failed call is an admission under `failurePolicy: Ignore`.
//!
//! Invariant: what is not JSON, or no review, is [`Refused`]; everything with a uid gets a response that carries it.

use std::borrow::Cow;

use thiserror::Error;

use crate::json::Json;

pub use decode::{decode, uid};
pub use patch::apply;

mod decode;
pub mod guard;
mod patch;
pub mod response;
pub(crate) mod text;

/// The one version of the review that is spoken.
pub const API_VERSION: &str = "admission.k8s.io/v1";

/// Group, version and kind of an object, or group, version and resource.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GroupVersionKind<'a> {
    /// The API group, empty for the core group.
    pub group: Cow<'a, str>,
    /// The version.
    pub version: Cow<'a, str>,
    /// The kind.
    pub kind: Cow<'a, str>,
}

/// What the request does to the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// The object is new.
    Create,
    /// The object exists and changes.
    Update,
    /// The object goes; there is no new one.
    Delete,
    /// A connection, such as `exec`; the object holds its options.
    Connect,
}

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct User<'a> {
    /// The user's name, such as `system:serviceaccount:kube-system:job-controller`.
    pub name: Cow<'a, str>,
    /// The groups that the API server found the user in.
    pub groups: Vec<Cow<'a, str>>,
}

/// The request of an AdmissionReview, as far as anything reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request<'a> {
    /// The identity that the answer must carry.
    pub uid: Cow<'a, str>,
    /// The kind of `object`, which may differ from what the user sent where the API server converted it.
    pub kind: GroupVersionKind<'a>,
    /// The subresource, empty for the object itself.
    pub sub_resource: Cow<'a, str>,
    /// The object's name; empty while a generated name is not made yet.
    pub name: Cow<'a, str>,
    /// The namespace; empty for cluster-scoped objects.
    pub namespace: Cow<'a, str>,
    /// What the request does.
    pub operation: Operation,
    /// Who asks.
    pub user: User<'a>,
    /// The new object; null on DELETE.
    pub object: Json<'a>,
    /// The object as it is; null on CREATE.
    pub old_object: Json<'a>,
    /// Whether nothing will be stored.
    pub dry_run: bool,
}

/// Why a body got no decision.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refused {
    /// The body is answered with HTTP 400 and this sentence.
    #[error("{0}")]
    BadRequest(String),
    /// The review could be told from its uid, but not judged: the answer is a denial.
    #[error("{reason}")]
    Unreadable {
        /// The uid that the answer carries.
        uid: String,
        /// What cannot be judged and why.
        reason: String,
    },
}

/// A review with another object in the place of its own, for who judges bytes.
pub fn replaced(body: &[u8], object: &serde_json::Value) -> Option<Vec<u8>> {
    let mut review: serde_json::Value = serde_json::from_slice(body).ok()?;
    *review.get_mut("request")?.get_mut("object")? = object.clone();
    serde_json::to_vec(&review).ok()
}

impl Operation {
    fn read(text: &str) -> Option<Self> {
        match text {
            "CREATE" => Some(Self::Create),
            "UPDATE" => Some(Self::Update),
            "DELETE" => Some(Self::Delete),
            "CONNECT" => Some(Self::Connect),
            _ => None,
        }
    }

    /// The word of the review.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

impl Request<'_> {
    /// The object's name as its author knows it: `metadata.name`, else the prefix of a generated one with a star.
    pub fn shown_name(&self) -> String {
        if !self.name.is_empty() {
            return self.name.to_string();
        }
        let metadata = self.object.get("metadata");
        let text = |key| metadata.and_then(|metadata| metadata.text(key)).filter(|name| !name.is_empty());
        text("name")
            .map(str::to_owned)
            .or_else(|| text("generateName").map(|prefix| format!("{prefix}*")))
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
