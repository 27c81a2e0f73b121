//! Runs one case: posts what it describes and holds the answers against what it expects.
//!
//! Invariant: a case that posts nothing fails.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::body;
use crate::case::{Case, Endpoint, Expect, Http, Kind, Row, Scheme, Transform};
use crate::check::{Outcome, complaints};
use crate::contract;
use crate::rounds;
use crate::servers;
use crate::wire::{Reply, Send, Target};

/// Runs a case; the text says all that is wrong with it.
pub(crate) fn run(case: &Case) -> Result<(), String> {
    rounds::beside(case, || run_now(case))
}

fn run_now(case: &Case) -> Result<(), String> {
    let expects = case.decided()?;
    let (mut found, server, _kept) = if matches!(case.kind, Kind::Policy | Kind::Config) {
        let (found, target, scene) = rounds::run(case, &expects)?;
        (found, target, Some(scene))
    } else {
        let server = servers::of(case)?;
        let found = match &case.http {
            Some(http) => run_http(case, http, &server, &expects)?,
            None => run_reviews(case, &server, &expects)?,
        };
        (found, server, None)
    };
    if expects.iter().any(|expect| expect.survives == Some(true)) {
        found.extend(healthy(&server).err());
    }
    if found.is_empty() { Ok(()) } else { Err(found.join("\n")) }
}

/// One request of a case, with the outcome of its row of the matrix.
pub(crate) struct Probe {
    label: String,
    send: Send,
    request: Option<Value>,
    row_allowed: Option<bool>,
    plain: bool,
}

/// Posts all reviews of a case.
pub(crate) fn run_reviews(case: &Case, server: &Target, expects: &[&Expect]) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    for probe in probes(case)? {
        found.extend(judge(server, &probe, expects)?);
        if case.kind == Kind::Mutate && probe.send.path == "/mutate" {
            found.extend(second_round(server, &probe).err().map(|what| format!("{}: {what}", probe.label)));
        }
    }
    Ok(found)
}

/// All reviews of a case.
pub(crate) fn probes(case: &Case) -> Result<Vec<Probe>, String> {
    let request = case.request.as_ref().ok_or("no request")?;
    let paths: &[&str] = match case.endpoint {
        Endpoint::Validate => &["/validate"],
        Endpoint::Mutate => &["/mutate"],
        Endpoint::Both => &["/mutate", "/validate"],
    };
    let mut probes = Vec::new();
    for path in paths {
        for (label, bytes, row_allowed) in rows(case, request)? {
            probes.push(Probe {
                label: format!("{path}{label}"),
                request: serde_json::from_slice(&bytes).ok(),
                send: Send::review(path, bytes),
                row_allowed,
                plain: false,
            });
        }
    }
    Ok(probes)
}

/// The label, the body and the outcome of one row.
type Posted = (String, Vec<u8>, Option<bool>);

/// The request once, or once for each row, as bytes: a row's own spelling of a number would not survive a JSON tree.
fn rows(case: &Case, request: &Value) -> Result<Vec<Posted>, String> {
    const STAND_IN: &str = "stands in for the value";
    let Some(matrix) = &case.matrix else { return Ok(vec![(String::new(), request.to_string().into_bytes(), None)]) };
    let (Some(pointer), Some(rows)) = (&matrix.pointer, &matrix.rows) else {
        return Err("a matrix of reviews has rows".into());
    };
    let row = |row: &Row| {
        let value = match (&row.value, &row.value_json) {
            (Some(value), None) => value.to_string(),
            (None, Some(text)) => text.clone(),
            _ => return Err("a row has one of value and value_json".to_owned()),
        };
        let mut request = request.clone();
        *request.pointer_mut(pointer).ok_or("the pointer leads nowhere")? = json!(STAND_IN);
        let bytes = request.to_string().replace(&format!("\"{STAND_IN}\""), &value).into_bytes();
        Ok((format!(" {value}"), bytes, Some(row.allowed)))
    };
    rows.iter().map(row).collect()
}

fn run_http(case: &Case, http: &Http, server: &Target, expects: &[&Expect]) -> Result<Vec<String>, String> {
    let send = |bytes| Send {
        method: http.method.clone(),
        path: http.path.clone(),
        headers: http.headers.clone(),
        body: bytes,
    };
    let plain = http.scheme == Some(Scheme::Http);
    let bodies = match &http.body {
        Some(body) => body::variations(body, case.matrix.as_ref())?,
        None => {
            vec![body::Variation { label: String::new(), bytes: servers::healthy_review().to_string().into_bytes() }]
        }
    };
    if http.body.as_ref().is_some_and(|body| body.transform == Some(Transform::Drip)) {
        return drip(http, server, &send(bodies.into_iter().next().ok_or("no body")?.bytes), expects);
    }
    let mut found = Vec::new();
    for body::Variation { label, bytes } in bodies {
        let request = serde_json::from_slice(&bytes).ok();
        let probe =
            Probe { label: format!("{}{label}", http.path), send: send(bytes), request, row_allowed: None, plain };
        found.extend(judge(server, &probe, expects)?);
    }
    Ok(found)
}

fn drip(http: &Http, server: &Target, send: &Send, expects: &[&Expect]) -> Result<Vec<String>, String> {
    let bytes = http.body.as_ref().and_then(|body| body.bytes_per_second).ok_or("no speed")?;
    let limit = expects.iter().find_map(|expect| expect.connection_closed_within_seconds).ok_or("no limit")?;
    let mut others = Ok(());
    let closed = server.drip(send, bytes, Duration::from_secs(limit), || others = healthy(server));
    Ok([closed.err(), others.err().map(|what| format!("meanwhile: {what}"))].into_iter().flatten().collect())
}

/// Posts a request and makes every check that it is part of.
fn judge(server: &Target, probe: &Probe, expects: &[&Expect]) -> Result<Vec<String>, String> {
    let begin = Instant::now();
    let outcome = post(server, probe)?;
    let took = begin.elapsed();
    let mut found = Vec::new();
    for expect in expects {
        found.extend(complaints(expect, &outcome));
        if expect.max_seconds.is_some_and(|most| took > Duration::from_secs(most)) {
            found.push(format!("it took {took:?}"));
        }
        found.extend(repeated(server, probe, &outcome, expect)?);
    }
    if let Some(wanted) = probe.row_allowed {
        let row = Expect { allowed: Some(wanted), ..Expect::default() };
        found.extend(complaints(&row, &outcome));
    }
    Ok(found.into_iter().map(|what| format!("{}: {what}", probe.label)).collect())
}

/// The checks that need a second request.
fn repeated(server: &Target, probe: &Probe, outcome: &Outcome, expect: &Expect) -> Result<Option<String>, String> {
    if expect.deterministic == Some(true) {
        compare("the second answer", outcome, &post(server, probe)?)?;
    }
    if expect.same_as_not_dry_run == Some(true) {
        let mut request = probe.request.clone().ok_or("no review")?;
        if request.pointer("/request/dryRun") != Some(&Value::Bool(true)) {
            return Err("the case is no dry run".into());
        }
        request["request"]["dryRun"] = json!(false);
        let send = Send { body: request.to_string().into_bytes(), ..probe.send.clone() };
        let real = Probe { label: String::new(), send, request: Some(request), row_allowed: None, plain: false };
        compare("the answer to the real request", outcome, &post(server, &real)?)?;
    }
    if expect.idempotent == Some(true) {
        return Ok(second_round(server, probe).err());
    }
    Ok(None)
}

fn compare(what: &str, one: &Outcome, other: &Outcome) -> Result<(), String> {
    let reply = |outcome: &Outcome| outcome.answer.as_ref().map(|answer| answer.reply.clone());
    if reply(one) == reply(other) && one.status == other.status {
        return Ok(());
    }
    Err(format!("{what} differs: {:?} and {:?}", reply(one), reply(other)))
}

/// What holds after every mutation: the patched object gets no further patch, and the validating call lets it pass, since
/// nothing is added to what a rule would refuse.
fn second_round(server: &Target, probe: &Probe) -> Result<(), String> {
    let first = post(server, probe)?;
    let Some(patched) = first.answer.and_then(|answer| answer.patched) else { return Ok(()) };
    let mut request = probe.request.clone().ok_or("no review")?;
    request["request"]["object"] = patched;
    for path in ["/mutate", "/validate"] {
        let send = Send::review(path, request.to_string().into_bytes());
        let again =
            Probe { label: String::new(), send, request: Some(request.clone()), row_allowed: None, plain: false };
        let expect = Expect { allowed: Some(true), patch_absent: Some(true), ..Expect::default() };
        let found = complaints(&expect, &post(server, &again)?);
        if !found.is_empty() {
            return Err(format!("the patched object at {path}: {}", found.join("; ")));
        }
    }
    Ok(())
}

/// Posts one request.
pub(crate) fn post(server: &Target, probe: &Probe) -> Result<Outcome, String> {
    let loaded = server.loaded.clone();
    let reply = if probe.plain { server.post_plain(&probe.send) } else { server.post(&probe.send) };
    let request = probe.request.clone();
    match reply {
        Reply::Nothing(why) => Ok(Outcome { request, status: None, lost: Some(why), answer: None, loaded }),
        Reply::Answer { status: 200, body } => {
            let answer = contract::check(&probe.send.path, request.as_ref(), &body);
            let answer = answer.map_err(|what| format!("{}: {what}", probe.label))?;
            Ok(Outcome { request, status: Some(200), lost: None, answer: Some(answer), loaded })
        }
        Reply::Answer { status, .. } => Ok(Outcome { request, status: Some(status), lost: None, answer: None, loaded }),
    }
}

/// Whether the server still answers as it should.
fn healthy(server: &Target) -> Result<(), String> {
    let request = servers::healthy_review();
    let send = Send::review("/validate", request.to_string().into_bytes());
    let probe = Probe { label: String::new(), send, request: Some(request), row_allowed: None, plain: false };
    let expect = Expect { allowed: Some(true), ..Expect::default() };
    let found = complaints(&expect, &post(server, &probe)?);
    if found.is_empty() { Ok(()) } else { Err(format!("a healthy request: {}", found.join("; "))) }
}

/// One review for the recorded ones: posted, and held against the contract.
pub(crate) fn ask(server: &Target, path: &str, request: &Value) -> Result<contract::Answer, String> {
    let send = Send::review(path, request.to_string().into_bytes());
    let probe = Probe { label: path.into(), send, request: Some(request.clone()), row_allowed: None, plain: false };
    post(server, &probe)?.answer.ok_or(format!("{path}: no answer"))
}
