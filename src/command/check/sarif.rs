//! The outcome as SARIF 2.1.0, which code scanning reads.
//!
//! The members are those of the standard (docs.oasis-open.org/sarif/sarif/v2.1.0), of which this writes a small part.
//! Invariant: what could not be read makes the run an unsuccessful one, so that an empty list of results is no false comfort.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Source;
use super::outcome::{Judged, Outcome};
use crate::manifest::{Located, Mistake};
use crate::policy::decision::{Action, Spared};
use crate::review::response::said;

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// The rule of what is refused, or noted, by no rule.
const NONE: &str = "slicegate";

/// The document, with a newline.
pub(super) fn report(sources: &[Source], outcome: &Outcome) -> anyhow::Result<String> {
    let (mut results, mut rules) = (Vec::new(), BTreeSet::new());
    for judged in &outcome.judged {
        let Some(source) = sources.get(judged.source) else { continue };
        results.extend(of_object(source, judged, &mut rules));
    }
    let notifications = outcome.mistakes.iter().filter_map(|(source, mistake)| {
        let Mistake { line, column, message } = mistake;
        let region = json!({"startLine": line, "startColumn": column});
        let location =
            json!({"physicalLocation": {"artifactLocation": artifact(sources.get(*source)?), "region": region}});
        Some(json!({"level": "error", "message": {"text": message}, "locations": [location]}))
    });
    let notifications: Vec<Value> = notifications.collect();
    let rules: Vec<Value> = rules.into_iter().map(|rule| json!({"id": rule, "name": rule})).collect();
    let document = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "slicegate", "version": env!("CARGO_PKG_VERSION"), "rules": rules}},
            "columnKind": "unicodeCodePoints",
            "invocations": [{
                "executionSuccessful": outcome.mistakes.is_empty(),
                "toolExecutionNotifications": notifications,
            }],
            "results": results,
        }],
    });
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

fn of_object(source: &Source, judged: &Judged, rules: &mut BTreeSet<String>) -> Vec<Value> {
    let mut results = Vec::new();
    let mut result = |rule: &str, level: &str, text: &str, field: &str, located: &Located| {
        rules.insert(rule.to_owned());
        let name = format!("{} {field}", judged.subject());
        results.push(json!({
            "ruleId": rule,
            "level": level,
            "message": {"text": text},
            "locations": [{
                "physicalLocation": {"artifactLocation": artifact(source), "region": region(source, located)},
                "logicalLocations": [{"fullyQualifiedName": name.trim_end(), "kind": "object"}],
            }],
        }));
        results.len()
    };
    if let Some(reason) = &judged.refusal {
        result(NONE, "error", reason, "", &judged.located);
    }
    for (note, located) in &judged.notes {
        result(NONE, "warning", &note.text, &note.field, located);
    }
    let mut exempted = Vec::new();
    for (finding, located) in &judged.findings {
        let place = result(finding.rule.as_str(), level(finding.action), &said(finding), &finding.field, located);
        if let Some(Spared::Exempted(reason)) = &finding.spared {
            exempted.push((place.saturating_sub(1), reason));
        }
    }
    for (place, reason) in exempted {
        if let Some(result) = results.get_mut(place).and_then(Value::as_object_mut) {
            result.insert("suppressions".to_owned(), json!([{"kind": "external", "justification": reason}]));
        }
    }
    results
}

fn level(action: Action) -> &'static str {
    match action {
        Action::Deny => "error",
        Action::Warn => "warning",
        Action::DryRun | Action::Off => "note",
    }
}

fn artifact(source: &Source) -> Value {
    let uri =
        if source.path.is_some() { source.name.replace('%', "%25").replace(' ', "%20") } else { "stdin".to_owned() };
    json!({"uri": uri.trim_start_matches("./")})
}

fn region(source: &Source, located: &Located) -> Value {
    let marked = source.text.get(located.span.clone()).unwrap_or_default();
    let mut region = json!({"startLine": located.line, "startColumn": located.column});
    if let (false, Some(region)) = (marked.is_empty() || marked.contains('\n'), region.as_object_mut()) {
        region.insert("endColumn".to_owned(), located.column.saturating_add(marked.chars().count()).into());
    }
    region
}
