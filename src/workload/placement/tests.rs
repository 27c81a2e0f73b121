use super::*;
use crate::facts::Event;
use crate::json;
use crate::workload::template::pod_template;

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn with<T>(spec: &str, ask: impl Fn(&Placement<'_>) -> T) -> T {
    let text = format!(r#"{{"spec":{spec}}}"#);
    let pod = json::parse(text.as_bytes()).unwrap();
    ask(&Placement::of(&pod_template(&pod, &Placed::new(Path::root(), &pod))))
}

fn affinity(expressions: &[&str]) -> String {
    let terms: Vec<_> = expressions.iter().map(|e| format!(r#"{{"matchExpressions":[{e}]}}"#)).collect();
    let key = "requiredDuringSchedulingIgnoredDuringExecution";
    format!(r#"{{"affinity":{{"nodeAffinity":{{"{key}":{{"nodeSelectorTerms":[{}]}}}}}}}}"#, terms.join(","))
}

const SHARED: &str = r#"{"key":"gpu-mode","operator":"In","values":["shared"]}"#;
const EITHER: &str = r#"{"key":"gpu-mode","operator":"In","values":["shared","exclusive"]}"#;
const NOT: &str = r#"{"key":"gpu-mode","operator":"NotIn","values":["shared"]}"#;
const ZONE: &str = r#"{"key":"zone","operator":"Exists"}"#;

#[test]
fn what_forces_a_pool_and_what_contradicts_it() {
    let pool = labels(&[("gpu-mode", "shared")]);
    let facts = Event::Node("n1".to_owned(), labels(&[("gpu-mode", "exclusive")]));
    let facts = Facts::default().after(facts).unwrap();
    for (spec, forces, contradicts) in [
        ("{}".to_owned(), false, false),
        (r#"{"nodeSelector":{"gpu-mode":"shared"}}"#.to_owned(), true, false),
        (r#"{"nodeSelector":{"gpu-mode":"exclusive"}}"#.to_owned(), false, true),
        (r#"{"nodeName":"n1"}"#.to_owned(), false, true),
        (r#"{"nodeName":"n2"}"#.to_owned(), false, false),
        (affinity(&[SHARED]), true, false),
        (affinity(&[SHARED, ZONE]), false, false),
        (affinity(&[EITHER]), false, false),
        (affinity(&[NOT]), false, true),
        (affinity(&[NOT, ZONE]), false, false),
        (affinity(&[]), false, true),
    ] {
        assert_eq!(with(&spec, |p| p.forces(&pool, &facts)), forces, "forces {spec}");
        assert_eq!(with(&spec, |p| p.contradicts(&pool, &facts).is_some()), contradicts, "contradicts {spec}");
    }
}

#[test]
fn matching_follows_kubernetes() {
    let node = labels(&[("cards", "4"), ("zone", "a")]);
    for (expression, expected) in [
        (r#"{"key":"cards","operator":"Gt","values":["3"]}"#, true),
        (r#"{"key":"cards","operator":"Gt","values":["4"]}"#, false),
        (r#"{"key":"zone","operator":"Lt","values":["4"]}"#, false),
        (r#"{"key":"none","operator":"NotIn","values":["x"]}"#, true),
        (r#"{"key":"none","operator":"DoesNotExist"}"#, true),
        (r#"{"key":"zone","operator":"In","values":[]}"#, false),
        (r#"{"key":"zone","operator":"Unheard","values":["a"]}"#, false),
        (r#"{"key":"zone","operator":"In","values":["a","-"]}"#, false),
    ] {
        assert_eq!(with(&affinity(&[expression]), |p| p.matches("n", &node)), expected, "{expression}");
    }
}
