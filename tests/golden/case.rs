//! The format of a case file, read strictly.
//!
//! Invariant: a field that this file does not name is an error, and so is a check or a transform that is not known. A case
//! can therefore never pass because nobody looked at what it asks for.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::sets::{Config, Sets, Steps, Then};

/// One case file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    pub(crate) id: String,
    #[allow(dead_code, reason = "for the reader of the file")]
    pub(crate) title: String,
    #[allow(dead_code, reason = "for the reader of the file")]
    pub(crate) source: String,
    pub(crate) kind: Kind,
    pub(crate) endpoint: Endpoint,
    #[allow(dead_code, reason = "for the reader of the file")]
    pub(crate) decision: Option<String>,
    pub(crate) decided: Option<String>,
    pub(crate) settings: Option<Settings>,
    /// The configuration in place of the harness's own, or the steps of a case that is about what is watched.
    pub(crate) config: Option<Config>,
    /// The policy sets that are in force first.
    pub(crate) before: Option<Sets>,
    /// The policy sets that are loaded then.
    pub(crate) policy: Option<Sets>,
    /// A second round.
    pub(crate) then: Option<Then>,
    #[allow(dead_code, reason = "for the reader of the file")]
    pub(crate) observed: Option<String>,
    /// Namespace, Node and PriorityClass manifests that the server knows of.
    #[serde(default)]
    pub(crate) facts: Vec<Value>,
    pub(crate) request: Option<Value>,
    pub(crate) http: Option<Http>,
    pub(crate) matrix: Option<Matrix>,
    pub(crate) expect: Expect,
}

/// What a case exercises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Validate,
    Mutate,
    Update,
    Http,
    Policy,
    Config,
}

/// Where a case is posted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Endpoint {
    Validate,
    Mutate,
    Both,
}

/// Settings that the shared cases name.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    /// The effect of the toleration of the pool that they assume.
    #[serde(rename = "TAINT_EFFECT")]
    pub(crate) taint_effect: Option<String>,
    /// Whether all sets are marked as Rego v0.
    #[serde(rename = "REGO_V0")]
    pub(crate) rego_v0: Option<bool>,
}

/// Variations of one request.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Matrix {
    /// Where `rows` or `values` go.
    pub(crate) pointer: Option<String>,
    pub(crate) rows: Option<Vec<Row>>,
    pub(crate) values: Option<Vec<Value>>,
    /// Orders of the values of a duplicated member.
    pub(crate) orders: Option<Vec<Vec<String>>>,
    /// Values of `request.dryRun`; `<absent>` removes it.
    #[serde(rename = "variants_of_dryRun")]
    pub(crate) variants_of_dry_run: Option<Vec<Value>>,
    /// Bodies that are sent as they are.
    pub(crate) body_raw: Option<Vec<String>>,
}

/// One value and its outcome.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Row {
    /// A JSON value of any type; a text is a JSON string.
    #[serde(default, deserialize_with = "present")]
    pub(crate) value: Option<Value>,
    /// JSON text that is put in place as it is, so that spellings of numbers survive.
    pub(crate) value_json: Option<String>,
    pub(crate) allowed: bool,
    #[allow(dead_code, reason = "for the reader of the file")]
    pub(crate) why: String,
}

/// An HTTP request that is more than a review.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Http {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) scheme: Option<Scheme>,
    pub(crate) body: Option<Body>,
}

/// What is spoken on the TLS port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Scheme {
    Http,
    Https,
}

/// The body, and what is done to it before it is sent.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Body {
    pub(crate) review: Option<Value>,
    pub(crate) generate: Option<String>,
    pub(crate) transform: Option<Transform>,
    pub(crate) n: Option<usize>,
    pub(crate) from: Option<String>,
    pub(crate) to_hex: Option<String>,
    pub(crate) to_text: Option<String>,
    pub(crate) at: Option<String>,
    pub(crate) members: Option<Vec<(String, String)>>,
    pub(crate) map: Option<BTreeMap<String, String>>,
    pub(crate) bytes_per_second: Option<u64>,
    pub(crate) quantity: Option<String>,
}

/// The transforms of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Transform {
    KeepFirstBytes,
    ExpandBlobs,
    ExpandStrings,
    ReplaceInString,
    DuplicateMember,
    RenameKeys,
    RepeatContainer,
    Gzip,
    Drip,
}

/// The checks of a case, of a variant or of an alternative.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Expect {
    #[allow(dead_code, reason = "for the reader of the file")]
    pub(crate) words: Option<String>,
    pub(crate) allowed: Option<bool>,
    pub(crate) not_allowed: Option<bool>,
    pub(crate) denial_code: Option<u64>,
    #[serde(deserialize_with = "present")]
    pub(crate) status_code: Option<Value>,
    pub(crate) message_contains: Vec<String>,
    pub(crate) message_contains_any: Vec<String>,
    pub(crate) message_not_contains: Vec<String>,
    pub(crate) message_contains_when_denied: Vec<String>,
    pub(crate) message_min_chars: Option<usize>,
    pub(crate) message_max_bytes: Option<usize>,
    pub(crate) warnings_contain: Vec<String>,
    pub(crate) warnings_not_contain: Vec<String>,
    pub(crate) warnings_absent: Option<bool>,
    pub(crate) warnings_max_chars_each: Option<usize>,
    pub(crate) warnings_max_chars_total: Option<usize>,
    /// The ids of the rules that refuse, all of them and no other.
    pub(crate) denied_by: Option<Vec<String>>,
    /// The ids of the rules that warn, all of them and no other.
    pub(crate) warned_by: Option<Vec<String>>,
    /// Texts among the keys and values of the audit annotations.
    pub(crate) audit_contains: Vec<String>,
    pub(crate) patch_absent: Option<bool>,
    pub(crate) patched_object_has: BTreeMap<String, Value>,
    pub(crate) patched_object_lacks: Vec<String>,
    /// Texts within the strings at the pointers.
    pub(crate) patched_object_contains: BTreeMap<String, String>,
    pub(crate) tolerations_contain: Vec<Value>,
    pub(crate) toleration_count: Option<usize>,
    pub(crate) patch_ops: Option<Vec<String>>,
    pub(crate) patch_touches_only: Option<Vec<String>>,
    pub(crate) reply_has: BTreeMap<String, Value>,
    pub(crate) reply_api_version: Option<String>,
    pub(crate) idempotent: Option<bool>,
    pub(crate) deterministic: Option<bool>,
    pub(crate) same_as_not_dry_run: Option<bool>,
    pub(crate) max_seconds: Option<u64>,
    pub(crate) survives: Option<bool>,
    pub(crate) connection_closed_within_seconds: Option<u64>,
    pub(crate) policy_load: Option<Load>,
    pub(crate) active_set: Option<ActiveSet>,
    pub(crate) load_error_contains: Vec<String>,
    pub(crate) load_warning_contains: Vec<String>,
    pub(crate) load_seconds_max: Option<u64>,
    /// Until when what a round loads has to be in force.
    pub(crate) within_seconds: Option<u64>,
    pub(crate) modules_loaded: Option<usize>,
    /// Texts in what `/policies` says of the sets.
    pub(crate) status_shows: Vec<String>,
    /// How many connections are made to the hosts that the policy names.
    pub(crate) network_calls: Option<usize>,
    /// Of the server and its workers together.
    pub(crate) max_rss_growth_mib: Option<u64>,
    /// The checks hold for requests that are sent all the while that sets are loaded.
    pub(crate) at_every_moment: Option<bool>,
    pub(crate) concurrent: Option<Concurrent>,
    pub(crate) any_of: Vec<Expect>,
    pub(crate) variants: BTreeMap<String, Expect>,
}

/// What became of what was loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Load {
    Accepted,
    Rejected,
}

/// Which form of the sets is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ActiveSet {
    LastGood,
    New,
}

/// Requests while sets are replaced.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Concurrent {
    pub(crate) requests: usize,
    pub(crate) replacements: usize,
    pub(crate) every_reply_is_one_of: Vec<String>,
}

/// Reads a case file.
pub(crate) fn read(path: &Path) -> Result<Case, String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let value: Value = serde_saphyr::from_str(&text).map_err(|error| error.to_string())?;
    let case: Case = serde_json::from_value(value).map_err(|error| error.to_string())?;
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    if case.id != stem {
        return Err(format!("the id {:?} is not the file's name", case.id));
    }
    if (case.kind == Kind::Http) == case.http.is_none() || case.http.is_none() == case.request.is_none() {
        return Err("a case has a request, or, if its kind is http, an http part".into());
    }
    let brings_sets = case.before.is_some() || case.policy.is_some() || case.steps().is_some();
    if brings_sets != matches!(case.kind, Kind::Policy | Kind::Config) {
        return Err("a case has policy sets if its kind is policy or config, and only then".into());
    }
    Ok(case)
}

impl Case {
    /// The steps of a case that is about what is watched.
    pub(crate) fn steps(&self) -> Option<&Steps> {
        match &self.config {
            Some(Config::Steps(steps)) => Some(steps),
            _ => None,
        }
    }

    /// The text of the configuration in place of the harness's own.
    pub(crate) fn configuration(&self) -> Option<&str> {
        match &self.config {
            Some(Config::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// The checks that hold: those beside the variants, and those of the variant that was decided for.
    pub(crate) fn decided(&self) -> Result<Vec<&Expect>, String> {
        let mut all = vec![&self.expect];
        if self.expect.variants.is_empty() {
            return Ok(all);
        }
        let decided = self.decided.as_deref().ok_or("variants without a decision")?;
        let fits = |name: &&String| decided.strip_prefix(name.as_str()).is_some_and(|rest| !is_word(rest));
        let name = self.expect.variants.keys().find(fits).ok_or(format!("no variant is named as in {decided:?}"))?;
        all.extend(self.expect.variants.get(name));
        Ok(all)
    }
}

/// Whether a text goes on with the word before it.
fn is_word(rest: &str) -> bool {
    rest.starts_with(|next: char| next.is_alphanumeric() || next == '_')
}

/// A field that is there, be it null.
fn present<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(input).map(Some)
}
