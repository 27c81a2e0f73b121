//! Whether an update makes new Pods of a template.
//!
//! What it does: compares a template with the one of the same identity in the old object: its pieces, the counts on the way
//! to it (`replicas`, `parallelism` and their like) and the flags that suspend it. Invariant: it reads by the names of
//! fields, not by kind, so that a kind that nobody listed grows like the others.

use crate::json::Json;
use crate::workload::path::Path;
use crate::workload::{Placed, Template};

/// Counts of Pods, or of groups of them, each with the value that its absence stands for.
const COUNTS: [(&[&str], i64); 14] = [
    (&["replicas"], 1),
    (&["parallelism"], 1),
    (&["completions"], 1),
    (&["size"], 1),
    (&["slices"], 1),
    (&["instances"], 1),
    (&["numNodes"], 1),
    (&["numOfHosts"], 1),
    (&["minReplicas"], 0),
    (&["maxReplicas"], i64::MAX),
    (&["elasticPolicy", "minReplicas"], 0),
    (&["elasticPolicy", "maxReplicas"], i64::MAX),
    (&["dynamicAllocation", "maxExecutors"], i64::MAX),
    (&["trainer", "numNodes"], 1),
];

/// Flags that hold back all Pods while they are true.
const SUSPENSIONS: [&[&str]; 2] = [&["suspend"], &["runPolicy", "suspend"]];

/// Annotations of the object whose presence holds back all Pods: of Kubeflow's notebooks and of KServe.
const STOPS: [&str; 2] = ["kubeflow-resource-stopped", "serving.kserve.io/stop"];

/// Whether the template is new or has changed in any way.
pub fn changed(new: &Template<'_>, old: Option<&Template<'_>>) -> bool {
    old.is_none_or(|old| {
        old.parts.len() != new.parts.len() || !old.parts.iter().zip(&new.parts).all(|(old, new)| same(old, new))
    })
}

/// Whether two pieces make the same Pods. Some kinds keep the count within the piece (`executor.instances` of Spark), and
/// how many there are is no change of what they are.
fn same(old: &Json<'_>, new: &Json<'_>) -> bool {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else { return old == new };
    let count = |key: &str| COUNTS.iter().any(|(path, _)| *path == [key]);
    old.iter().filter(|(key, _)| !count(key)).eq(new.iter().filter(|(key, _)| !count(key)))
}

/// The field by which new Pods of the template are made: a count that was raised, or a suspension that was lifted.
pub fn raised<'r>(
    new_root: &'r Json<'r>,
    new: &Template<'r>,
    old_root: &'r Json<'r>,
    old: &Template<'r>,
) -> Option<String> {
    let annotations = Path::root().key("metadata").key("annotations");
    let stopped = |root: &Json<'_>, key| root.at(&["metadata", "annotations", key]).is_some();
    if let Some(key) = STOPS.iter().find(|key| stopped(old_root, key) && !stopped(new_root, key)) {
        return Some(annotations.key(key).to_string());
    }
    let pairs = ancestors(new_root, &new.path).into_iter().zip(ancestors(old_root, &old.path));
    pairs.into_iter().find_map(|(new, old)| {
        let counts =
            COUNTS.iter().filter(|(path, absent)| count(new.value, path, *absent) > count(old.value, path, *absent));
        let lifted = SUSPENSIONS.iter().filter(|path| suspended(old.value, path) && !suspended(new.value, path));
        let field = counts.map(|(path, _)| *path).chain(lifted.copied()).next()?;
        Some(field.iter().fold(new.path, |path, key| path.key(key)).to_string())
    })
}

/// The values on the way to a place, the object first, the place itself last.
fn ancestors<'r>(root: &'r Json<'r>, path: &Path<'r>) -> Vec<Placed<'r>> {
    let mut values = Vec::new();
    let mut here = Some(Placed::new(Path::root(), root));
    for step in path.steps() {
        let Some(value) = here else { return values };
        here = step.of(value.value).map(|below| Placed::new(value.path.step(*step), below));
        values.push(value);
    }
    values.extend(here);
    values
}

fn count(value: &Json<'_>, path: &[&str], absent: i64) -> i64 {
    value.at(path).and_then(Json::as_i64).unwrap_or(absent)
}

fn suspended(value: &Json<'_>, path: &[&str]) -> bool {
    value.at(path) == Some(&Json::Bool(true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;
    use crate::workload::kinds;

    fn grown(old: &str, new: &str) -> bool {
        let object = |spec: &str| format!(r#"{{"spec":{spec}}}"#);
        let (old, new) = (object(old), object(new));
        let (old, new) = (json::parse(old.as_bytes()).unwrap(), json::parse(new.as_bytes()).unwrap());
        let templates = |object| kinds::templates("apps", "Deployment", object, &[]);
        raised(&new, &templates(&new)[0], &old, &templates(&old)[0]).is_some()
    }

    #[test]
    fn counts_and_suspensions() {
        let template = r#""template":{"spec":{"containers":[]}}"#;
        for (old, new, expected) in [
            (r#""replicas":1"#, r#""replicas":2"#, true),
            (r#""replicas":2"#, r#""replicas":1"#, false),
            (r#""replicas":null"#, r#""replicas":1"#, false),
            (r#""replicas":0"#, r#""x":1"#, true),
            (r#""suspend":true"#, r#""suspend":false"#, true),
            (r#""suspend":true"#, r#""x":1"#, true),
            (r#""suspend":false"#, r#""suspend":true"#, false),
            (r#""runPolicy":{"suspend":true}"#, r#""runPolicy":{}"#, true),
            (r#""maxReplicas":3"#, r#""x":1"#, true),
            (r#""x":1"#, r#""maxReplicas":3"#, false),
        ] {
            let spec = |text: &str| format!("{{{text},{template}}}");
            assert_eq!(grown(&spec(old), &spec(new)), expected, "{old} -> {new}");
        }
    }
}
