//! Reviews as a real API server sent them, held against what the default configuration means for them.
//!
//! Invariant: every recorded file has a line in `expected.yaml`, and every line a file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::run::ask;
use crate::servers;

/// What the validating call says of one recorded review.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expected {
    allowed: bool,
    /// The rules that refuse.
    #[serde(default)]
    denied_by: Vec<String>,
    /// The rules that warn.
    #[serde(default)]
    warned_by: Vec<String>,
    /// A text among the warnings.
    warning: Option<String>,
}

/// All recorded reviews with their lines.
pub(crate) fn all(folder: &Path) -> Result<Vec<(PathBuf, Expected)>, String> {
    let text = std::fs::read_to_string(folder.join("expected.yaml")).map_err(|error| error.to_string())?;
    let value: Value = serde_saphyr::from_str(&text).map_err(|error| error.to_string())?;
    let mut lines: BTreeMap<String, Expected> = serde_json::from_value(value).map_err(|error| error.to_string())?;
    let folder = folder.join("admission-reviews");
    let files = std::fs::read_dir(&folder).map_err(|error| error.to_string())?;
    let files = files
        .map(|file| Ok(file?.file_name().to_string_lossy().into_owned()))
        .collect::<std::io::Result<BTreeSet<_>>>();
    let mut found = Vec::new();
    for file in files.map_err(|error| error.to_string())? {
        let expected = lines.remove(&file).ok_or(format!("{file} has no line in expected.yaml"))?;
        found.push((folder.join(file), expected));
    }
    if lines.is_empty() { Ok(found) } else { Err(format!("no files for {:?}", lines.keys())) }
}

/// Posts one recorded review to both endpoints.
pub(crate) fn run(path: &Path, expected: &Expected) -> Result<(), String> {
    let text = std::fs::read(path).map_err(|error| error.to_string())?;
    let request: Value = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
    let server = servers::of_defaults()?;
    let answer = ask(&server, "/validate", &request)?;
    let sorted = |mut ids: Vec<String>| {
        ids.sort();
        ids
    };
    let is = (answer.response.allowed, sorted(answer.denied_by()), sorted(answer.warned_by()));
    let wanted = (expected.allowed, sorted(expected.denied_by.clone()), sorted(expected.warned_by.clone()));
    if is != wanted {
        let (message, warnings) = (answer.message(), &answer.response.warnings);
        return Err(format!(
            "(allowed, denied by, warned by) is {is:?}, expected {wanted:?}: {message:?} {warnings:?}"
        ));
    }
    let warnings = answer.response.warnings.join("\n");
    if let Some(part) = expected.warning.as_ref().filter(|part| !warnings.contains(part.as_str())) {
        return Err(format!("no warning has {part:?}: {warnings:?}"));
    }
    for endpoint in ["/validate", "/mutate"] {
        steady(&server, endpoint, &request)?;
    }
    mutation(&server, &request)
}

/// The same answer twice, and the same for a dry run as for the real thing.
fn steady(server: &crate::wire::Target, endpoint: &str, request: &Value) -> Result<(), String> {
    let first = ask(server, endpoint, request)?.reply;
    let mut other = request.clone();
    other["request"]["dryRun"] = json!(request.pointer("/request/dryRun") != Some(&Value::Bool(true)));
    for (what, request) in [("the second answer", request), ("the answer to the other kind of run", &other)] {
        let second = ask(server, endpoint, request)?.reply;
        if first != second {
            return Err(format!("{endpoint}: {what} differs: {first} and {second}"));
        }
    }
    Ok(())
}

/// The mutating call never refuses; what is no new Pod it leaves alone, and it has nothing to add to its own work.
fn mutation(server: &crate::wire::Target, request: &Value) -> Result<(), String> {
    let answer = ask(server, "/mutate", request)?;
    if !answer.response.allowed {
        return Err(format!("/mutate refuses: {:?}", answer.message()));
    }
    let text = |pointer: &str| request.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let new_pod = text("/request/operation") == "CREATE"
        && text("/request/kind/kind") == "Pod"
        && text("/request/subResource").is_empty();
    let Some(patched) = answer.patched else { return Ok(()) };
    if !new_pod {
        return Err("/mutate patches what is no new Pod".into());
    }
    let mut again = request.clone();
    again["request"]["object"] = patched;
    if ask(server, "/mutate", &again)?.patch.is_some() {
        return Err("/mutate has something to add to its own work".into());
    }
    if ask(server, "/validate", &again)?.response.allowed {
        Ok(())
    } else {
        Err("/mutate completes what /validate refuses".into())
    }
}
