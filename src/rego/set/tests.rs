use pretty_assertions::assert_eq;
use serde_json::json;

use super::*;

fn set(label: &str, annotations: &Value, data: &Value) -> Set {
    let metadata = json!({"name": "p", "namespace": "n", "labels": {LABEL: label}, "annotations": annotations});
    Set::of_config_map(&json!({"kind": "ConfigMap", "metadata": metadata, "data": data})).unwrap()
}

fn shown(problems: &[Problem]) -> Vec<String> {
    problems.iter().map(Problem::to_string).collect()
}

#[test]
fn keys_become_modules_tests_and_data() {
    let data = json!({
        "a.rego": "\u{feff}package a", "a_test.rego": "package a", "parameters.yaml": "most: 3", "b.json": "[1]",
        "README.md": "#", "c.rego.bak": "x",
    });
    let set = set("true", &json!({}), &data);
    assert_eq!(set.modules, BTreeMap::from([("a.rego".to_owned(), "package a".to_owned())]));
    assert_eq!(set.tests.len(), 1);
    assert_eq!(set.data, BTreeMap::from([("b".to_owned(), json!([1])), ("parameters".to_owned(), json!({"most": 3}))]));
    assert_eq!(set.errors, []);
    assert_eq!(shown(&set.warnings).len(), 2);
}

#[test]
fn what_is_wrong_is_told_all_at_once_with_its_place() {
    let annotations = json!({
        "slicegate.io/action": "block", "slicegate.io/syntax": "v2", "slicegate.io/match": "kinds: [Pod]\noperation: [CREATE]",
        "slicegate.io/strickt": "true", "slicegate.io/status": "{}",
    });
    let set = set("yes", &annotations, &json!({"a.rego": "package a", "x.json": "{", "y.yaml": "a: [", "y.json": "1"}));
    let errors = shown(&set.errors);
    assert_eq!(errors.len(), 6, "{errors:#?}");
    assert!(errors[0].contains("\"yes\""), "{errors:#?}");
    assert_eq!(errors[1], "slicegate.io/action: \"block\" is none of off, dryrun, warn, deny");
    assert!(errors[3].starts_with("slicegate.io/match:2:"), "{errors:#?}");
    assert!(errors[4].starts_with("x.json:1:"), "{errors:#?}");
    assert!(errors[5].starts_with("y.yaml:1:"), "{errors:#?}");
    assert!(shown(&set.warnings)[0].contains("strickt"));
}

#[test]
fn errors_refuse_only_where_the_set_does() {
    for (annotations, on_error) in [
        (json!({}), OnError::Deny),
        (json!({"slicegate.io/action": "warn"}), OnError::Allow),
        (json!({"slicegate.io/action": "warn", "slicegate.io/on-error": "deny"}), OnError::Deny),
        (json!({"slicegate.io/on-error": "allow"}), OnError::Allow),
    ] {
        assert_eq!(set("true", &annotations, &json!({})).settings.on_error, on_error, "{annotations}");
    }
}

#[test]
fn without_the_label_it_is_no_set() {
    assert_eq!(Set::of_config_map(&json!({"metadata": {"name": "p", "labels": {"app": "x"}}})), None);
    assert_eq!(Set::of_config_map(&json!({"metadata": {"name": "p"}})), None);
}

#[test]
fn two_documents_of_one_name_and_binary_modules_are_errors() {
    let set = set("true", &json!({}), &json!({"x.json": "1", "x.yaml": "2"}));
    assert_eq!(set.errors.len(), 1);
    let metadata = json!({"name": "p", "labels": {LABEL: "true"}});
    let binary = Set::of_config_map(&json!({"metadata": metadata, "binaryData": {"a.rego": "eA==", "b.png": "eA=="}}));
    let binary = binary.unwrap();
    assert_eq!((binary.errors.len(), binary.warnings.len()), (1, 2), "and it holds no module");
}
