//! `slicegate explain`: tells step by step how a verdict comes about.
//!
//! What it does: judges objects as `check` does, and writes down every step of it. Invariant: the steps are those of the
//! verdict that is shown; nothing is decided here.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::check::input::{self, Source};
use super::check::json::patch;
use super::check::judge::{Judge, Verdict};
use super::check::refuse;
use super::check::rules::{Ruled, UNUSABLE};
use super::check::subject::{self, Subject};
use crate::args::{Explain, ExplainFormat};
use crate::manifest::{Object, Places};
use crate::policy::explain::Explanation;
use crate::policy::{Examined, Phase};
use crate::review::{self, Request};

mod policies;
mod text;

use policies::Policy;

/// One object, explained.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Explained {
    file: String,
    line: usize,
    kind: String,
    namespace: String,
    name: String,
    verdict: &'static str,
    /// Why it is refused whatever rules say.
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<String>,
    #[serde(flatten)]
    rules: Option<Explanation>,
    policies: Vec<Policy>,
    /// What its author should know beside findings.
    notes: Vec<String>,
    /// What would be added to it.
    patch: Vec<Value>,
    /// What would be added to Pods of its templates, by the template.
    pods: Vec<OfPods>,
}

/// What Pods of a template would get.
#[derive(Serialize)]
struct OfPods {
    template: String,
    patch: Vec<Value>,
}

/// Explains what the paths hold.
pub(super) fn run(options: &Explain) -> anyhow::Result<ExitCode> {
    let sources = match input::read(&options.paths) {
        Ok(sources) => sources,
        Err(why) => return refuse(&why),
    };
    let objects = input::objects(&sources);
    if objects.is_empty() {
        return refuse(&input::emptiness(&sources));
    }
    let in_force = match Ruled::start(&options.judged_by, &objects.facts) {
        Ok(in_force) => in_force,
        Err(error) => return refuse(&format!("{error:#}")),
    };
    let (mut explained, mut wrong) = (Vec::new(), Vec::new());
    let name = |number: usize| sources.get(number).map_or("", |source: &Source| source.name.as_str());
    for (source, mistake) in objects.mistakes {
        wrong.push(format!("{}: {mistake}", name(source)));
    }
    for (source, document, objects) in &objects.documents {
        match objects {
            Ok(objects) => {
                let places = Places::of(document);
                let line = |object: &Object| places.locate(&super::check::judge::below(object, "metadata.name")).line;
                explained.extend(objects.iter().map(|object| explain(&in_force, name(*source), line(object), object)));
            }
            Err(mistake) => wrong.push(format!("{}: {mistake}", name(*source))),
        }
    }
    let written = match options.format {
        ExplainFormat::Text => text::shown(&explained),
        ExplainFormat::Json => serde_json::to_string_pretty(&explained)? + "\n",
    };
    let mut out = std::io::stdout().lock();
    out.write_all(written.as_bytes()).and_then(|()| out.flush()).context("cannot write to standard output")?;
    for mistake in &wrong {
        writeln!(std::io::stderr(), "slicegate: {mistake}").context("cannot write to standard error")?;
    }
    Ok(if wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(UNUSABLE) })
}

fn explain(in_force: &Ruled, file: &str, line: usize, object: &Object) -> Explained {
    let judge = Judge(in_force);
    let Subject { kind, namespace, name, .. } = subject::of(object, judge.namespace(object));
    let mut explained = Explained {
        file: file.to_owned(),
        line,
        kind,
        namespace,
        name,
        verdict: "denied",
        refusal: None,
        rules: None,
        policies: Vec::new(),
        notes: Vec::new(),
        patch: Vec::new(),
        pods: Vec::new(),
    };
    let Verdict { decision, changes, body } = match judge.judge(object) {
        Ok(verdict) => verdict,
        Err(refusal) => {
            explained.refusal = Some(refusal);
            return explained;
        }
    };
    explained.verdict = decision.verdict();
    explained.refusal.clone_from(&decision.refusal);
    explained.patch = patch(&changes);
    explained.notes = decision.notes.iter().map(|note| note.text.clone()).collect();
    // It was decoded to be judged.
    let Ok(request) = review::decode(&body) else { return explained };
    let (rules, facts) = (in_force.app.rules(), in_force.app.facts());
    let examined = Examined::new(Phase::Validate, &request, &rules.policy, &facts);
    let steps = examined.explain(Timestamp::now());
    if explained.patch.is_empty() && decision.allowed() {
        explained.pods =
            steps.templates.iter().filter_map(|template| of_pods(&judge, &request, &template.path)).collect();
    }
    explained.policies = policies::asked(in_force, &request, &body, &examined, &decision);
    explained.rules = Some(steps);
    explained
}

/// What mutation would add to a Pod of a template, where that is a whole template of Pods.
fn of_pods(judge: &Judge<'_>, request: &Request<'_>, path: &str) -> Option<OfPods> {
    let keys: Vec<&str> = path.split('.').filter(|key| !key.is_empty()).collect();
    let template = request.object.at(&keys).filter(|_| !keys.is_empty())?;
    let spec = template.get("spec")?.to_value();
    let labels = template.at(&["metadata", "labels"]).map_or(Value::Null, crate::json::Json::to_value);
    let pod = serde_json::json!({
        "apiVersion": "v1", "kind": "Pod", "spec": spec,
        "metadata": {"generateName": "x-", "namespace": request.namespace, "labels": labels},
    });
    let object = Object {
        path: String::new(),
        json: pod.to_string(),
        api_version: "v1".to_owned(),
        kind: "Pod".to_owned(),
        namespace: request.namespace.to_string(),
        name: String::new(),
        line: None,
        generate_name: "x-".to_owned(),
    };
    let verdict = judge.judge(&object).ok()?;
    let added = patch(&verdict.changes);
    (!added.is_empty()).then(|| OfPods { template: path.to_owned(), patch: added })
}
