//! The outcome as one JSON object.

use serde::Serialize;
use serde_json::{Value, json};

use super::Source;
use super::outcome::{Judged, Outcome};
use crate::manifest::Located;
use crate::policy::decision::{Change, Spared};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'r> {
    objects: Vec<Object<'r>>,
    errors: Vec<Mistake<'r>>,
    summary: Value,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Object<'r> {
    file: &'r str,
    document: usize,
    line: usize,
    #[serde(skip_serializing_if = "str::is_empty")]
    path: &'r str,
    api_version: &'r str,
    kind: &'r str,
    namespace: &'r str,
    name: &'r str,
    verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<&'r str>,
    findings: Vec<Finding<'r>>,
    notes: Vec<Note<'r>>,
    patch: Vec<Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Finding<'r> {
    rule: &'r str,
    action: &'static str,
    field: &'r str,
    line: usize,
    column: usize,
    found: &'r str,
    wanted: Option<&'r str>,
    message: &'r str,
    fix: &'r str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    repair: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exemption: Option<&'r str>,
}

#[derive(Serialize)]
struct Note<'r> {
    field: &'r str,
    line: usize,
    column: usize,
    message: &'r str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    repair: Vec<Value>,
}

#[derive(Serialize)]
struct Mistake<'r> {
    file: &'r str,
    line: usize,
    column: usize,
    message: &'r str,
}

/// The document, with a newline.
pub(super) fn report(sources: &[Source], outcome: &Outcome) -> anyhow::Result<String> {
    let file = |number: usize| sources.get(number).map_or("", |source| source.name.as_str());
    let errors = outcome.mistakes.iter().map(|(source, mistake)| Mistake {
        file: file(*source),
        line: mistake.line,
        column: mistake.column,
        message: &mistake.message,
    });
    let count = |verdict| outcome.count(verdict);
    let report = Report {
        objects: outcome.judged.iter().map(|judged| object(file(judged.source), judged)).collect(),
        errors: errors.collect(),
        summary: json!({
            "objects": outcome.judged.len(), "denied": count("denied"), "warned": count("warned"),
            "allowed": count("allowed"), "errors": outcome.mistakes.len(),
        }),
    };
    Ok(serde_json::to_string_pretty(&report)? + "\n")
}

fn object<'r>(file: &'r str, judged: &'r Judged) -> Object<'r> {
    let findings = judged.findings.iter().map(|(finding, Located { line, column, .. })| Finding {
        rule: finding.rule.as_str(),
        action: finding.action.as_str(),
        field: &finding.field,
        line: *line,
        column: *column,
        found: &finding.found,
        wanted: finding.wanted.as_deref(),
        message: &finding.message,
        fix: &finding.fix,
        repair: patch(&finding.repair),
        exemption: match &finding.spared {
            Some(Spared::Exempted(reason)) => Some(reason),
            _ => None,
        },
    });
    let notes = judged.notes.iter().map(|(note, Located { line, column, .. })| Note {
        field: &note.field,
        line: *line,
        column: *column,
        message: &note.text,
        repair: patch(&note.repair),
    });
    Object {
        file,
        document: judged.document.number,
        line: judged.located.line,
        path: &judged.path,
        api_version: &judged.api_version,
        kind: &judged.kind,
        namespace: &judged.namespace,
        name: &judged.name,
        verdict: judged.verdict(),
        refusal: judged.refusal.as_deref(),
        findings: findings.collect(),
        notes: notes.collect(),
        patch: patch(&judged.changes),
    }
}

/// Changes as operations of RFC 6902.
pub(in crate::command) fn patch(changes: &[Change]) -> Vec<Value> {
    changes.iter().map(|change| json!({"op": "add", "path": change.pointer, "value": change.value})).collect()
}
