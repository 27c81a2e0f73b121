//! The checks that look at one answer.
//!
//! Invariant: every field of [`Expect`] is read here or in `run`; a check that cannot be made, such as a patched object
//! where the reply has no object, fails.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::case::{ActiveSet, Expect, Load};
use crate::contract::Answer;
use crate::scene::{Loaded, Report};

/// What came back for one request: the HTTP status, or nothing where the connection ended, and the review if it was one.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The request's review, where the body was one.
    pub(crate) request: Option<Value>,
    pub(crate) status: Option<u16>,
    /// Why there is no status.
    pub(crate) lost: Option<String>,
    pub(crate) answer: Option<Answer>,
    /// What became of the sets that were loaded before it.
    pub(crate) loaded: Option<Arc<Loaded>>,
}

/// All complaints of the checks about one outcome; none is a pass.
pub(crate) fn complaints(expect: &Expect, outcome: &Outcome) -> Vec<String> {
    let mut found = Vec::new();
    status(expect, outcome, &mut found);
    load(expect, outcome.loaded.as_deref(), &mut found);
    if let Some(answer) = &outcome.answer {
        verdict(expect, answer, &mut found);
        message(expect, answer, &mut found);
        warnings(expect, answer, &mut found);
        patch(expect, outcome, answer, &mut found);
        reply(expect, answer, &mut found);
    } else if expects_review(expect) {
        found.push(format!("no review, but status {:?} {:?}", outcome.status, outcome.lost));
    }
    if !expect.any_of.is_empty() {
        let tried: Vec<Vec<String>> = expect.any_of.iter().map(|one| complaints(one, outcome)).collect();
        if !tried.iter().any(Vec::is_empty) {
            found.push(format!("none of the alternatives holds: {tried:?}"));
        }
    }
    found
}

/// Whether a check can only hold for a review.
fn expects_review(expect: &Expect) -> bool {
    let status_alone = expect.status_code.is_some() || expect.not_allowed == Some(true);
    let about_review = expect.allowed.is_some() || !expect.reply_has.is_empty() || expect.patch_absent.is_some();
    about_review || (!status_alone && expect.any_of.is_empty())
}

fn status(expect: &Expect, outcome: &Outcome, found: &mut Vec<String>) {
    let Some(wanted) = &expect.status_code else { return };
    let is = |wanted: &Value| match (wanted, outcome.status) {
        (Value::Null, status) => status.is_none(),
        (wanted, Some(status)) => wanted.as_u64() == Some(u64::from(status)),
        (_, None) => false,
    };
    let fits = match wanted {
        Value::Array(any) => any.iter().any(is),
        one => is(one),
    };
    if !fits {
        found.push(format!("HTTP status {:?}, expected {wanted}", outcome.status));
    }
}

/// What became of the sets.
fn load(expect: &Expect, loaded: Option<&Loaded>, found: &mut Vec<String>) {
    let nothing = Loaded::default();
    let asked = expect.policy_load.is_some()
        || expect.active_set.is_some()
        || !expect.load_error_contains.is_empty()
        || !expect.load_warning_contains.is_empty()
        || !expect.status_shows.is_empty()
        || expect.load_seconds_max.or(expect.within_seconds).is_some()
        || expect.modules_loaded.or(expect.network_calls).is_some();
    if asked && loaded.is_none_or(|loaded| loaded.reports.is_empty()) {
        found.push("there is no word on any set".into());
    }
    let loaded = loaded.unwrap_or(&nothing);
    let reports = &loaded.reports;
    let accepted = |report: &Report| report.state == "Loaded" && report.errors.is_empty();
    let is_new = |report: &Report| loaded.before.get(&report.key) != Some(&report.digest);
    let as_wanted = match expect.policy_load {
        Some(Load::Accepted) => reports.iter().all(accepted),
        Some(Load::Rejected) => reports.iter().any(|report| report.state != "Loaded" && !report.errors.is_empty()),
        None => true,
    };
    let in_force = match expect.active_set {
        Some(ActiveSet::New) => reports.iter().all(|report| report.state == "Loaded" && is_new(report)),
        Some(ActiveSet::LastGood) => reports.iter().any(|report| report.state == "LastGood" && !is_new(report)),
        None => true,
    };
    if !(as_wanted && in_force) {
        found.push(format!("load {:?}, in force {:?}: {reports:?}", expect.policy_load, expect.active_set));
    }
    let text = |problems: Vec<String>| problems.join("\n").to_lowercase();
    let all = |of: fn(&Report) -> &Vec<slicegate::rego::problem::Problem>| {
        text(reports.iter().flat_map(of).map(ToString::to_string).collect())
    };
    let texts = [
        ("error", &expect.load_error_contains, all(|report| &report.errors)),
        ("warning", &expect.load_warning_contains, all(|report| &report.warnings)),
        ("state", &expect.status_shows, loaded.text.to_lowercase()),
    ];
    for (what, wanted, text) in texts {
        for part in wanted.iter().filter(|part| !text.contains(&part.to_lowercase())) {
            found.push(format!("no {what} of the sets has {part:?}: {text}"));
        }
    }
    let most = expect.load_seconds_max.into_iter().chain(expect.within_seconds).min();
    if most.is_some_and(|most| loaded.took > Duration::from_secs(most)) {
        found.push(format!("loading took {:?}", loaded.took));
    }
    let modules: usize = reports.iter().map(|report| report.modules).sum();
    if expect.modules_loaded.is_some_and(|wanted| wanted != modules) {
        found.push(format!("{modules} modules are loaded"));
    }
    if expect.network_calls.is_some_and(|wanted| wanted != loaded.calls) {
        found.push(format!("{} connections were made", loaded.calls));
    }
}

fn verdict(expect: &Expect, answer: &Answer, found: &mut Vec<String>) {
    let allowed = answer.response.allowed;
    if expect.allowed.is_some_and(|wanted| wanted != allowed) {
        found.push(format!("allowed is {allowed}: {:?} {:?}", answer.message(), answer.response.warnings));
    }
    if expect.not_allowed == Some(true) && allowed {
        found.push("allowed".into());
    }
    let code = answer.response.status.as_ref().and_then(|status| status.code);
    if expect.denial_code.is_some() && expect.denial_code != code {
        found.push(format!("the code is {code:?}, expected {:?}", expect.denial_code));
    }
    let mut rules = |what: &str, wanted: &Option<Vec<String>>, is: Vec<String>| {
        let Some(wanted) = wanted else { return };
        let sorted = |ids: &[String]| {
            let mut ids = ids.to_vec();
            ids.sort();
            ids
        };
        if sorted(wanted) != sorted(&is) {
            let (message, warnings) = (answer.message(), &answer.response.warnings);
            found.push(format!("{what} {is:?}, expected {wanted:?}: {message:?} {warnings:?}"));
        }
    };
    rules("denied by", &expect.denied_by, answer.denied_by());
    rules("warned by", &expect.warned_by, answer.warned_by());
}

fn message(expect: &Expect, answer: &Answer, found: &mut Vec<String>) {
    let message = answer.message();
    let has = |part: &String| message.to_lowercase().contains(&part.to_lowercase());
    for part in expect.message_contains.iter().filter(|part| !has(part)) {
        found.push(format!("the message lacks {part:?}: {message:?}"));
    }
    for part in expect.message_not_contains.iter().filter(|part| has(part)) {
        found.push(format!("the message has {part:?}: {message:?}"));
    }
    if !expect.message_contains_any.is_empty() && !expect.message_contains_any.iter().any(has) {
        found.push(format!("the message has none of {:?}: {message:?}", expect.message_contains_any));
    }
    if !answer.response.allowed {
        for part in expect.message_contains_when_denied.iter().filter(|part| !has(part)) {
            found.push(format!("the message lacks {part:?}: {message:?}"));
        }
    }
    if expect.message_min_chars.is_some_and(|least| message.chars().count() < least) {
        found.push(format!("the message is too short: {message:?}"));
    }
    if expect.message_max_bytes.is_some_and(|most| message.len() > most) {
        found.push(format!("the message has {} bytes", message.len()));
    }
}

fn warnings(expect: &Expect, answer: &Answer, found: &mut Vec<String>) {
    let warnings = &answer.response.warnings;
    let has = |part: &String| warnings.iter().any(|one| one.to_lowercase().contains(&part.to_lowercase()));
    for part in expect.warnings_contain.iter().filter(|part| !has(part)) {
        found.push(format!("no warning has {part:?}: {warnings:?}"));
    }
    for part in expect.warnings_not_contain.iter().filter(|part| has(part)) {
        found.push(format!("a warning has {part:?}: {warnings:?}"));
    }
    if expect.warnings_absent == Some(true) && !warnings.is_empty() {
        found.push(format!("there are warnings: {warnings:?}"));
    }
    let lengths = warnings.iter().map(|one| one.chars().count());
    if expect.warnings_max_chars_each.is_some_and(|most| lengths.clone().any(|length| length > most)) {
        found.push(format!("a warning is too long: {warnings:?}"));
    }
    if expect.warnings_max_chars_total.is_some_and(|most| lengths.sum::<usize>() > most) {
        found.push("the warnings are too long".into());
    }
    let audit = format!("{:?}", answer.response.audit_annotations);
    for part in expect.audit_contains.iter().filter(|part| !audit.contains(part.as_str())) {
        found.push(format!("no audit annotation has {part:?}: {audit}"));
    }
}

fn patch(expect: &Expect, outcome: &Outcome, answer: &Answer, found: &mut Vec<String>) {
    let operations = answer.patch.as_ref().map_or(&[] as &[_], |patch| &patch.0);
    if expect.patch_absent == Some(true) && answer.patch.is_some() {
        found.push(format!("there is a patch: {operations:?}"));
    }
    for operation in operations {
        let (word, path) = (word(operation), operation.path().to_string());
        if expect.patch_ops.as_ref().is_some_and(|words| !words.iter().any(|known| known == word)) {
            found.push(format!("the patch has the operation {word} {path}"));
        }
        let within = |prefix: &String| {
            path.strip_prefix(prefix.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if expect.patch_touches_only.as_ref().is_some_and(|prefixes| !prefixes.iter().any(within)) {
            found.push(format!("the patch touches {path}"));
        }
    }
    let object =
        answer.patched.as_ref().or_else(|| outcome.request.as_ref().and_then(|all| all.pointer("/request/object")));
    let object = object.unwrap_or(&Value::Null);
    has(&expect.patched_object_has, object, "the patched object", found);
    for pointer in expect.patched_object_lacks.iter().filter(|pointer| object.pointer(pointer).is_some()) {
        found.push(format!("the patched object has {pointer}"));
    }
    for (pointer, part) in &expect.patched_object_contains {
        let text = object.pointer(pointer).and_then(Value::as_str);
        if !text.is_some_and(|text| text.contains(part.as_str())) {
            found.push(format!("the patched object has {text:?} at {pointer}, expected {part:?} in it"));
        }
    }
    let tolerations = object.pointer("/spec/tolerations").and_then(Value::as_array).map_or(&[] as &[_], Vec::as_slice);
    for wanted in expect.tolerations_contain.iter().filter(|wanted| !tolerations.contains(wanted)) {
        found.push(format!("the toleration {wanted} is missing among {tolerations:?}"));
    }
    if expect.toleration_count.is_some_and(|count| count != tolerations.len()) {
        found.push(format!("there are {} tolerations: {tolerations:?}", tolerations.len()));
    }
}

fn reply(expect: &Expect, answer: &Answer, found: &mut Vec<String>) {
    has(&expect.reply_has, &answer.reply, "the reply", found);
    let version = answer.reply.pointer("/apiVersion").and_then(Value::as_str);
    if expect.reply_api_version.is_some() && expect.reply_api_version.as_deref() != version {
        found.push(format!("the reply's apiVersion is {version:?}"));
    }
}

fn has<'a>(
    wanted: impl IntoIterator<Item = (&'a String, &'a Value)>,
    value: &Value,
    what: &str,
    found: &mut Vec<String>,
) {
    for (pointer, wanted) in wanted {
        let is = value.pointer(pointer);
        if is != Some(wanted) {
            found.push(format!("{what} has {is:?} at {pointer}, expected {wanted}"));
        }
    }
}

fn word(operation: &json_patch::PatchOperation) -> &'static str {
    use json_patch::PatchOperation::{Add, Copy, Move, Remove, Replace, Test};
    match operation {
        Add(_) => "add",
        Remove(_) => "remove",
        Replace(_) => "replace",
        Move(_) => "move",
        Copy(_) => "copy",
        Test(_) => "test",
    }
}
