//! Whether an update makes new Pods of a template.
//!
//! What it does: compares a template with the one of the same identity in the old object: its pieces, the counts on the way
//! to it (`replicas`, `parallelism` and their like) and the flags that suspend it. Invariant: it reads by the names of
//! fields, not by kind, so that a kind that nobody listed grows like the others.

use crate::json::Json;
use crate::workload::Template;
use crate::workload::path::Path;

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
    old.is_none_or(|old| old.parts != new.parts)
}

/// Whether a count was raised, or a suspension lifted, that concerns the template.
pub fn raised(new_root: &Json<'_>, new: &Template<'_>, old_root: &Json<'_>, old: &Template<'_>) -> bool {
    let stopped = |root: &Json<'_>, key| root.at(&["metadata", "annotations", key]).is_some();
    if STOPS.iter().any(|key| stopped(old_root, key) && !stopped(new_root, key)) {
        return true;
    }
    let mut pairs = ancestors(new_root, &new.path).into_iter().zip(ancestors(old_root, &old.path));
    pairs.any(|(new, old)| {
        COUNTS.iter().any(|(path, absent)| count(new, path, *absent) > count(old, path, *absent))
            || SUSPENSIONS.iter().any(|path| suspended(old, path) && !suspended(new, path))
    })
}

/// The values on the way to a place, the object first, the place itself left out: what stands within a template is part of
/// it.
fn ancestors<'j>(root: &'j Json<'j>, path: &Path<'j>) -> Vec<&'j Json<'j>> {
    let mut values = Vec::new();
    let mut here = Some(root);
    for step in path.steps() {
        let Some(value) = here else { break };
        values.push(value);
        here = step.of(value);
    }
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
        raised(&new, &templates(&new)[0], &old, &templates(&old)[0])
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
