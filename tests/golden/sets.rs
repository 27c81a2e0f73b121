//! The policy sets of a case, as its file brings them.
//!
//! Invariant: a description that is not understood is an error, and so is a step that is not known.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::case::Expect;

/// ConfigMaps that are there together.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sets {
    pub(crate) configmaps: Vec<Value>,
}

/// A second round: what is loaded, and what holds then.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Then {
    pub(crate) policy: Sets,
    pub(crate) expect: Option<Expect>,
}

/// The configuration of the server, or what happens to what it watches.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Config {
    Text(String),
    Steps(Steps),
}

/// What happens to the sets, in this order.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Steps {
    #[serde(default)]
    pub(crate) steps: Vec<Step>,
    /// A mounted ConfigMap: files, and links that are written as `-> target`.
    pub(crate) files: Option<BTreeMap<String, String>>,
}

/// One step.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Step {
    /// This ConfigMap, in place of the one of its name.
    Apply(Value),
    /// The ConfigMap of the shared cases with data that are described.
    Generate(String),
    /// Away with the ConfigMap of this name.
    Delete(String),
}

/// The ConfigMap that a description means. `base` is the one that it is made from.
pub(crate) fn generate(words: &str, base: &Value) -> Result<Value, String> {
    let data = many_keys(words).or_else(|| long_module(words, base)).ok_or(format!("{words:?} is not understood"))?;
    let mut manifest = base.clone();
    manifest["data"] = json!(data);
    Ok(manifest)
}

/// `500 keys m001.rego..m500.rego, each: package gpu.admission; deny …`, where `<n>` is the number.
fn many_keys(words: &str) -> Option<BTreeMap<String, String>> {
    let (names, text) = words.split_once(", each: ")?;
    let (count, names) = names.split_once(" keys ")?;
    let (first, last) = names.split_once("..")?;
    let count: usize = count.parse().ok()?;
    let (stem, width) = (first.strip_suffix("001.rego")?, 3);
    let name = |number: usize| format!("{stem}{number:0width$}.rego");
    let module = |number: usize| text.replace("; ", "\n\n").replace("<n>", &number.to_string()) + "\n";
    (name(count) == last && text.contains("<n>"))
        .then(|| (1..=count).map(|number| (name(number), module(number))).collect())
}

/// `key big.rego: package line, 19000 comment lines of 50 characters, then the base policy`.
fn long_module(words: &str, base: &Value) -> Option<BTreeMap<String, String>> {
    let (key, rest) = words.strip_prefix("key ")?.split_once(": package line, ")?;
    let (lines, rest) = rest.split_once(" comment lines of ")?;
    let (length, rest) = rest.split_once(" characters, ")?;
    let (lines, length): (usize, usize) = (lines.parse().ok()?, length.parse().ok()?);
    let module = base.pointer("/data")?.as_object()?.values().next()?.as_str()?;
    let (package, rules) = module.split_once('\n')?;
    // The line's end is one of the characters.
    let comment = format!("#{}\n", "x".repeat(length.checked_sub(2)?));
    (rest == "then the base policy")
        .then(|| BTreeMap::from([(key.to_owned(), format!("{package}\n{}{rules}", comment.repeat(lines)))]))
}

/// The name of a manifest's object.
pub(crate) fn name(manifest: &Value) -> Result<String, String> {
    let name = manifest.pointer("/metadata/name").and_then(Value::as_str);
    name.map(str::to_owned).ok_or_else(|| "a ConfigMap without a name".into())
}

/// The same manifests, marked as Rego v0.
pub(crate) fn marked_v0(sets: &Sets) -> Sets {
    let marked = |manifest: &Value| {
        let mut manifest = manifest.clone();
        manifest["metadata"]["annotations"]["slicegate.io/syntax"] = json!("v0");
        manifest
    };
    Sets { configmaps: sets.configmaps.iter().map(marked).collect() }
}
