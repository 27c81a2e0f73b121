//! Pairs of rule and input, each with what the real OPA says of it: the files in tests/fixtures/rego/differential.
//!
//! A file has defaults and a list of `pairs`. A pair names its `query`, and its input in one of these ways:
//!
//! - `named`: one of the file's `inputs`; `input`: written out; `text`: JSON text, where the spelling of numbers matters.
//! - `review`: a recorded review, as `request` and `review`, with its normal form of forms.yaml as `slicegate` and with the
//!   pair's `parameters`; then `overlay` puts values at JSON pointers.
//! - `object`: the bare object of a recorded review. None of them: no input at all.
//!
//! The modules are those of the file, or the pair's one `module`, with those of the starter that `policy` names.
//!
//! The outcome stands in the line behind the name: `want`, the value as JSON text, sets as lists; `undefined: true`; or
//! `error`, the code of OPA's error with errors of builtins as errors. `differs` says why slicegate's engine says otherwise.
//! Invariant: a field that this file does not name is an error.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

/// One pair, with everything that its evaluation depends on.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) name: String,
    /// The modules' texts by the names of their files.
    pub(crate) modules: BTreeMap<String, String>,
    pub(crate) v0: bool,
    pub(crate) data: Value,
    pub(crate) query: String,
    /// JSON text.
    pub(crate) input: Option<String>,
    /// What is recorded; nothing in a pair that is new.
    pub(crate) outcome: Option<Outcome>,
    pub(crate) differs: Option<String>,
}

/// What an engine says of a pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// A value, as JSON text.
    Value(String),
    Undefined,
    /// The code of an error.
    Error(String),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[allow(dead_code, reason = "for the reader of the file")]
    about: String,
    policy: Option<String>,
    #[serde(default)]
    modules: BTreeMap<String, String>,
    #[serde(default)]
    v0: bool,
    data: Option<Value>,
    query: Option<String>,
    #[serde(default)]
    inputs: BTreeMap<String, Value>,
    pairs: Vec<Written>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    want: Option<String>,
    #[serde(default)]
    undefined: bool,
    error: Option<String>,
    differs: Option<String>,
    query: Option<String>,
    module: Option<String>,
    v0: Option<bool>,
    data: Option<Value>,
    named: Option<String>,
    input: Option<Value>,
    text: Option<String>,
    object: Option<String>,
    review: Option<String>,
    #[serde(default, deserialize_with = "present")]
    parameters: Option<Value>,
    #[serde(default)]
    overlay: BTreeMap<String, Value>,
}

/// All files, sorted by their names.
pub(crate) fn files() -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(tests().join("fixtures/rego/differential"))?;
    let mut files = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    files.sort();
    Ok(files)
}

/// The pairs of one file, in its order.
pub(crate) fn pairs(path: &Path) -> Result<Vec<Pair>> {
    let file: File = yaml(path)?;
    file.pairs.iter().map(|written| pair(&file, written).with_context(|| written.name.clone())).collect()
}

/// The folders of the starters, sorted by their names.
pub(crate) fn starters() -> Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for entry in fs::read_dir(policies())? {
        let path = entry?.path();
        if path.is_dir() {
            folders.push(path);
        }
    }
    folders.sort();
    Ok(folders)
}

fn pair(file: &File, written: &Written) -> Result<Pair> {
    let mut modules = match &written.module {
        Some(module) => BTreeMap::from([("pair.rego".to_owned(), module.clone())]),
        None => file.modules.clone(),
    };
    if let Some(policy) = &file.policy {
        let name = format!("{policy}.rego");
        modules.insert(name.clone(), fs::read_to_string(policies().join(policy).join(name))?);
    }
    let outcome = match (&written.want, written.undefined, &written.error) {
        (Some(text), false, None) => Some(Outcome::Value(text.clone())),
        (None, true, None) => Some(Outcome::Undefined),
        (None, false, Some(code)) => Some(Outcome::Error(code.clone())),
        (None, false, None) => None,
        _ => bail!("it has several outcomes"),
    };
    Ok(Pair {
        name: written.name.clone(),
        modules,
        v0: written.v0.unwrap_or(file.v0),
        data: written.data.as_ref().or(file.data.as_ref()).cloned().unwrap_or_else(|| json!({})),
        query: written.query.clone().or_else(|| file.query.clone()).context("it has no query")?,
        input: input(file, written)?,
        outcome,
        differs: written.differs.clone(),
    })
}

fn input(file: &File, written: &Written) -> Result<Option<String>> {
    let mut inputs = Vec::new();
    inputs.extend(written.text.clone());
    inputs.extend(written.input.as_ref().map(Value::to_string));
    if let Some(name) = &written.named {
        inputs.push(file.inputs.get(name).context("no input has this name")?.to_string());
    }
    if let Some(name) = &written.object {
        inputs.push(recorded(name)?["object"].to_string());
    }
    if let Some(name) = &written.review {
        inputs.push(reviewed(name, written)?.to_string());
    }
    if inputs.len() > 1 {
        bail!("it has several inputs");
    }
    Ok(inputs.pop())
}

/// What slicegate gives to rules for a recorded review.
fn reviewed(name: &str, written: &Written) -> Result<Value> {
    let request = recorded(name)?;
    let forms: BTreeMap<String, Value> = yaml(&tests().join("fixtures/rego/forms.yaml"))?;
    let mut form = forms.get(name).context("forms.yaml has no form of it")?.clone();
    for workload in form["workloads"].as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        let pointer = workload.remove("template").context("a workload without a template")?;
        let template = pointer.as_str().and_then(|pointer| request["object"].pointer(pointer));
        let template = template.context("no template is there")?;
        workload.insert("metadata".to_owned(), template["metadata"].clone());
        workload.insert("spec".to_owned(), template["spec"].clone());
    }
    let mut input = json!({"request": request, "review": request, "slicegate": form});
    if let Some(parameters) = &written.parameters {
        input["parameters"] = parameters.clone();
    }
    for (pointer, value) in &written.overlay {
        put(&mut input, pointer, value.clone()).with_context(|| pointer.clone())?;
    }
    Ok(input)
}

fn put(root: &mut Value, pointer: &str, value: Value) -> Result<()> {
    let (parent, token) = pointer.rsplit_once('/').context("no pointer")?;
    let token = token.replace("~1", "/").replace("~0", "~");
    match root.pointer_mut(parent).context("nothing is there")? {
        Value::Object(members) => {
            members.insert(token, value);
        }
        Value::Array(elements) => *elements.get_mut(token.parse::<usize>()?).context("no such element")? = value,
        _ => bail!("it has no members"),
    }
    Ok(())
}

fn recorded(name: &str) -> Result<Value> {
    let path = tests().join("fixtures/admission-reviews").join(format!("{name}.json"));
    let review: Value = serde_json::from_slice(&fs::read(&path).with_context(|| path.display().to_string())?)?;
    Ok(review["request"].clone())
}

fn yaml<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T> {
    let text = fs::read_to_string(path)?;
    serde_saphyr::from_str(&text).with_context(|| path.display().to_string())
}

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

fn policies() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("policies")
}

/// A null that is written is a value, unlike one that is not.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}
