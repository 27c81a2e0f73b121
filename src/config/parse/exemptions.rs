//! The exemptions of a configuration.
//!
//! Invariant: an exemption has a reason, and says whom or what it is for; none can be for everything by oversight.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::super::Exemption;
use super::super::glob::Glob;
use super::globs::{self, MOST};
use super::names;
use super::rules;
use super::value::{Fields, Value};
use super::words::{listed, shown};
use crate::policy::decision::RuleId;

/// The lists of which one at least must be there.
pub(in crate::config) const LISTS: [&str; 5] = ["rules", "namespaces", "users", "groups", "workloads"];
pub(in crate::config) const FIELDS: [&str; 7] =
    ["rules", "namespaces", "users", "groups", "workloads", "until", "reason"];

/// Reads the list of exemptions.
pub(super) fn read(list: &Value<'_>) -> Vec<Exemption> {
    let items = list.items("a list of exemptions").unwrap_or_default();
    if items.len() > MOST {
        list.mistake(&format!("{} elements are more than {MOST}", items.len()));
        return Vec::new();
    }
    let wanted = "an exemption, such as {rules: [share-limit], namespaces: [team-a], reason: why}";
    items.iter().filter_map(|item| item.fields(&FIELDS, wanted)).map(|fields| read_exemption(&fields)).collect()
}

fn read_exemption(fields: &Fields<'_>) -> Exemption {
    if LISTS.iter().all(|list| fields.get(list).is_none()) {
        let lists = listed(LISTS);
        fields
            .whole()
            .mistake(&format!("the exemption is for everything; say whom it is for with at least one of {lists}"));
    }
    Exemption {
        rules: read_list(fields, "rules", "a rule's id or a glob of some", rule_glob),
        namespaces: read_list(fields, "namespaces", "a namespace or a glob of some", names::subdomain_glob),
        users: read_list(fields, "users", "a user or a glob of some", names::any_glob),
        groups: read_list(fields, "groups", "a group or a glob of some", names::any_glob),
        workloads: read_list(fields, "workloads", "a workload or a glob of some", names::workload_glob),
        until: fields.get("until").and_then(|value| until(&value)),
        reason: reason(fields),
    }
}

fn read_list(fields: &Fields<'_>, name: &str, each: &str, check: fn(&str) -> Result<(), String>) -> Vec<Glob> {
    let Some(list) = fields.get(name) else { return Vec::new() };
    if list.is_empty_list() {
        // An empty list matches everything, which is hardly what its author means.
        list.mistake(&format!("the list is empty; leave {name} out where all of them are meant"));
        return Vec::new();
    }
    globs::plain(&list, each, check)
}

/// A rule's id, or a glob that fits one. The rules of policy sets are not known here, so that for them only the form counts.
fn rule_glob(text: &str) -> Result<(), String> {
    names::any_glob(text)?;
    if text.contains('/') {
        return names::policy_rule_glob(text);
    }
    let glob = Glob::new(text);
    if RuleId::ALL.iter().any(|rule| glob.matches(rule.as_str())) { Ok(()) } else { Err(rules::unknown(text)) }
}

fn reason(fields: &Fields<'_>) -> String {
    let needed = "say why, for whoever finds the exemption in a log";
    let Some(value) = fields.require("reason", needed) else { return String::new() };
    let text = value.text("a sentence that says why").unwrap_or_default().trim();
    if text.is_empty() && value.is_blank_text() {
        value.mistake(&format!("the reason is empty; {needed}"));
    }
    text.to_owned()
}

/// The moment from which the exemption no longer counts. A date counts to its end, in UTC.
fn until(value: &Value<'_>) -> Option<Timestamp> {
    let forms = "a date such as 2027-01-31 or a timestamp such as 2027-01-31T18:00:00Z";
    let text = value.scalar(forms)?;
    let end = match shape(text) {
        Shape::Date => text.parse().ok().and_then(end_of),
        Shape::Timestamp => text.parse().ok(),
        Shape::WithoutOffset => {
            value.mistake(&format!(
                "{} has no offset from UTC; write {text}Z, or an offset such as +01:00",
                shown(text)
            ));
            return None;
        }
        Shape::Other => {
            value.mistake(&format!("{} is not {forms}", shown(text)));
            return None;
        }
    };
    if end.is_none() {
        value.mistake(&format!("{} does not exist in the calendar or on the clock", shown(text)));
    }
    end
}

fn end_of(date: Date) -> Option<Timestamp> {
    let Ok(next) = date.tomorrow() else { return Some(Timestamp::MAX) };
    next.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
}

/// What a text looks like, its digits aside.
enum Shape {
    Date,
    Timestamp,
    WithoutOffset,
    Other,
}

fn shape(text: &str) -> Shape {
    let form: String = text.chars().map(|character| if character.is_ascii_digit() { '0' } else { character }).collect();
    let Some(rest) = form.strip_prefix("0000-00-00") else { return Shape::Other };
    if rest.is_empty() {
        return Shape::Date;
    }
    let Some(rest) = rest.strip_prefix(['T', 't', ' ']) else { return Shape::Other };
    let Some(rest) = rest.strip_prefix("00:00:00").or(rest.strip_prefix("00:00")) else { return Shape::Other };
    let fraction = rest.strip_prefix('.').map(|rest| rest.trim_start_matches('0'));
    match fraction.unwrap_or(rest) {
        "Z" | "z" | "+00:00" | "-00:00" => Shape::Timestamp,
        "" => Shape::WithoutOffset,
        _ => Shape::Other,
    }
}
