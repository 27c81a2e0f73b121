//! Requests of late, on which an edit of a policy or of the configuration is tried before it is let through.
//!
//! What it does: keeps the bodies of reviews that involved a GPU or concerned a policy set, the last one of each object, and
//! not too many of one kind in one Namespace, so that a busy one does not push out the rest. Invariant: bounded in number and
//! bytes, in memory only, never a Secret's contents, and no request waits for it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

use crate::review::{Operation, Request};

/// The most requests that are kept, the most bytes of them, the most of one of them, and the most of one kind in one
/// Namespace.
const BOUNDS: Bounds = Bounds { requests: 500, bytes: 16 << 20, body: 256 << 10, group: 50 };

#[derive(Debug, Clone, Copy)]
struct Bounds {
    requests: usize,
    bytes: usize,
    body: usize,
    group: usize,
}

/// The requests.
#[derive(Debug)]
pub struct Recent {
    bounds: Bounds,
    kept: Mutex<Kept>,
}

/// A Namespace, and the group and kind of an object.
type Group = (String, String, String);
/// The name of an object, and what was done to it.
type Name = (String, Operation);

#[derive(Debug, Default)]
struct Kept {
    /// How many were kept so far: the age of each.
    count: u64,
    bytes: usize,
    bodies: BTreeMap<u64, (Group, Name, Bytes)>,
    ages: HashMap<Group, Ages>,
}

#[derive(Debug, Default)]
struct Ages {
    of: HashMap<Name, u64>,
    all: BTreeSet<u64>,
}

impl Default for Recent {
    fn default() -> Self {
        Self { bounds: BOUNDS, kept: Mutex::default() }
    }
}

impl Recent {
    /// Keeps nothing.
    pub fn none() -> Self {
        Self { bounds: Bounds { body: 0, ..BOUNDS }, kept: Mutex::default() }
    }

    /// Keeps a request in the place of an older one for the same object.
    pub fn keep(&self, request: &Request<'_>, body: &[u8]) {
        if body.len() > self.bounds.body || is_secret(request) {
            return;
        }
        // Whoever finds it taken goes on: there will be other requests.
        let Ok(mut kept) = self.kept.try_lock() else { return };
        let kind = &request.kind;
        let group = (request.namespace.to_string(), kind.group.to_string(), kind.kind.to_string());
        kept.keep(self.bounds, group, (request.shown_name(), request.operation), body);
    }

    /// The bodies, the newest first.
    pub fn all(&self) -> Vec<Bytes> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.bodies.values().rev().map(|(_, _, body)| body.clone()).collect()
    }
}

impl Kept {
    fn keep(&mut self, bounds: Bounds, group: Group, name: Name, body: &[u8]) {
        let ages = self.ages.entry(group.clone()).or_default();
        let same = ages.of.get(&name).copied();
        let surplus = if ages.all.len() >= bounds.group { ages.all.first().copied() } else { None };
        if let Some(age) = same.or(surplus) {
            self.forget(age);
        }
        self.count = self.count.saturating_add(1);
        self.bytes = self.bytes.saturating_add(body.len());
        let ages = self.ages.entry(group.clone()).or_default();
        ages.of.insert(name.clone(), self.count);
        ages.all.insert(self.count);
        // A copy, since the bytes at hand may be a part of a larger buffer that it would keep alive.
        self.bodies.insert(self.count, (group, name, Bytes::copy_from_slice(body)));
        while self.bodies.len() > bounds.requests || self.bytes > bounds.bytes {
            let Some(oldest) = self.bodies.keys().next().copied() else { break };
            self.forget(oldest);
        }
    }

    fn forget(&mut self, age: u64) {
        let Some((group, name, body)) = self.bodies.remove(&age) else { return };
        self.bytes = self.bytes.saturating_sub(body.len());
        if let Some(ages) = self.ages.get_mut(&group) {
            ages.of.remove(&name);
            ages.all.remove(&age);
            if ages.all.is_empty() {
                self.ages.remove(&group);
            }
        }
    }
}

/// Secrets, and requests for tokens.
fn is_secret(request: &Request<'_>) -> bool {
    let kind = &request.kind;
    (kind.group.is_empty() && kind.kind == "Secret") || kind.group == "authentication.k8s.io"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::review;

    fn body(kind: &str, namespace: &str, name: &str, text: &str) -> String {
        format!(
            r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"{text}","kind":{{"group":"","version":"v1","kind":"{kind}"}},"name":"{name}","namespace":"{namespace}","operation":"CREATE","object":{{}}}}}}"#
        )
    }

    fn keep(recent: &Recent, kind: &str, namespace: &str, name: &str, text: &str) {
        let body = body(kind, namespace, name, text);
        recent.keep(&review::decode(body.as_bytes()).unwrap(), body.as_bytes());
    }

    fn texts(recent: &Recent) -> Vec<String> {
        recent.all().iter().map(|body| review::uid(body).unwrap()).collect()
    }

    #[test]
    fn the_last_request_of_an_object_stands_for_it() {
        let recent = Recent::default();
        for text in ["a", "b", "c"] {
            keep(&recent, "Pod", "team", "web", text);
        }
        keep(&recent, "Pod", "team", "api", "d");
        assert_eq!(texts(&recent), ["d", "c"]);
    }

    #[test]
    fn a_busy_namespace_does_not_push_out_the_rest() {
        let bounds = Bounds { requests: 10, group: 3, ..BOUNDS };
        let recent = Recent { bounds, kept: Mutex::default() };
        keep(&recent, "Pod", "quiet", "only", "quiet");
        for place in 0..100 {
            keep(&recent, "Pod", "busy", &format!("web-{place}"), &format!("{place}"));
        }
        assert_eq!(texts(&recent), ["99", "98", "97", "quiet"]);
    }

    #[test]
    fn number_and_bytes_are_bounded_and_secrets_are_never_kept() {
        let bounds = Bounds { requests: 5, bytes: 1000, body: 400, group: 50 };
        let recent = Recent { bounds, kept: Mutex::default() };
        for place in 0..100 {
            keep(&recent, "Pod", &format!("team-{place}"), "web", &format!("{place}"));
        }
        let size = recent.all().iter().map(Bytes::len).sum::<usize>();
        assert!(size <= 1000 && recent.all().len() == 1000 / body("Pod", "team-99", "web", "99").len(), "{size}");
        let (bytes, groups) = {
            let kept = recent.kept.lock().unwrap();
            (kept.bytes, kept.ages.len())
        };
        assert_eq!((bytes, groups), (size, recent.all().len()));
        keep(&recent, "Secret", "team", "token", "secret");
        keep(&recent, "Pod", "team", &"x".repeat(400), "large");
        assert!(texts(&recent).iter().all(|text| text != "secret" && text != "large"));
    }
}
