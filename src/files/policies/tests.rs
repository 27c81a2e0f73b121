use std::os::unix::fs::symlink;

use pretty_assertions::assert_eq;
use tempfile::TempDir;

use super::*;
use crate::policy::decision::Action;
use crate::rego::set::{Role, Syntax};

const MODULE: &str = "package p\n";

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn names(sets: &[Set]) -> Vec<String> {
    sets.iter().map(|set| set.key.to_string()).collect()
}

fn config_map(name: &str, label: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  labels: {{slicegate.io/policy: \"{label}\"}}\ndata:\n  p.rego: |\n    package p\n"
    )
}

#[test]
fn a_folder_with_modules_is_one_set() {
    let root = folder(&[
        ("quota/quota.rego", MODULE),
        ("quota/quota_test.rego", "package p_test\n"),
        ("quota/parameters.yaml", "most: 3\n"),
        ("quota/policy.yaml", "metadata:\n  annotations:\n    slicegate.io/action: warn\n"),
        ("quota/kustomization.yaml", "kind: Kustomization\n"),
        ("quota/README.md", "# text\n"),
        ("quota/.quota.rego.swp", "x"),
        ("old/old.rego", MODULE),
        ("old/policy.yaml", "slicegate.io/syntax: v0\nslicegate.io/strict: false\n"),
        ("lib/text.rego", "package lib.text\n"),
        ("lib/policy.yaml", "metadata: {labels: {slicegate.io/policy: library}}\n"),
        ("kustomization.yaml", "resources: [quota]\n"),
    ]);
    let found = find(root.path(), NAMESPACE).unwrap();
    let sets: Vec<Set> = found.iter().map(|found| found.set.clone()).collect();
    assert_eq!(names(&sets), ["slicegate-system/lib", "slicegate-system/old", "slicegate-system/quota"]);
    assert_eq!((sets[0].role, sets[1].role), (Role::Library, Role::Policy));
    assert_eq!((sets[1].settings.syntax, sets[1].settings.strict), (Syntax::V0, false));
    let quota = &sets[2];
    assert_eq!(quota.settings.action, Action::Warn);
    assert_eq!((quota.modules.len(), quota.tests.len()), (1, 1));
    assert_eq!(quota.data.keys().collect::<Vec<_>>(), ["parameters"]);
    assert!(sets.iter().all(|set| set.errors.is_empty() && set.warnings.is_empty()), "{sets:?}");
    assert_eq!(found[2].shown("quota.rego"), root.path().join("quota/quota.rego").display().to_string());
    assert_eq!(read(&root.path().join("quota")).unwrap(), std::slice::from_ref(quota));
}

#[test]
fn manifests_give_their_labelled_config_maps() {
    let list = format!(
        "apiVersion: v1\nkind: List\nitems:\n- {}\n",
        config_map("c", "library").trim_end().replace('\n', "\n  ")
    );
    let two = format!("{}---\n---\nkind: ConfigMap\nmetadata: {{name: other}}\n---\n{list}", config_map("a", "true"));
    let json = r#"{"kind": "ConfigMapList", "items": [{"metadata": {"name": "j", "namespace": "n",
        "labels": {"slicegate.io/policy": "true"}}, "data": {"p.rego": "package p\n"}}]}"#;
    let root = folder(&[("two.yaml", &two), ("j.json", json), ("set/p.rego", MODULE), ("notes.txt", "{")]);
    let found = find(root.path(), NAMESPACE).unwrap();
    let sets: Vec<Set> = found.iter().map(|found| found.set.clone()).collect();
    assert_eq!(names(&sets), ["n/j", "slicegate-system/a", "slicegate-system/c", "slicegate-system/set"]);
    assert!(found[0].shown("p.rego").ends_with("j.json (n/j p.rego)"));
    assert_eq!(read(&root.path().join("two.yaml")).unwrap().len(), 2);
}

#[test]
fn a_mounted_config_map_is_read_once() {
    let root = folder(&[("..2026_11_30/p.rego", MODULE), ("..2026_11_30/parameters.json", "{\"a\": 1}")]);
    symlink("..2026_11_30", root.path().join("..data")).unwrap();
    for name in ["p.rego", "parameters.json"] {
        symlink(format!("..data/{name}"), root.path().join(name)).unwrap();
    }
    symlink(".", root.path().join("circle")).unwrap();
    let sets = read(root.path()).unwrap();
    assert_eq!(sets.len(), 1);
    assert_eq!((sets[0].modules.len(), sets[0].data.len()), (1, 1));
}

#[test]
fn what_is_wrong_in_a_set_is_its_own_error() {
    let root = folder(&[("p/p.rego", MODULE), ("p/policy.yaml", "action: warn\n"), ("q/q.rego", MODULE)]);
    fs::write(root.path().join("q/latin.rego"), b"package q\n# \xe9\n").unwrap();
    fs::write(root.path().join("q/policy.yaml"), "a: b: c\n").unwrap();
    let sets = read(root.path()).unwrap();
    let errors: Vec<String> = sets.iter().flat_map(|set| &set.errors).map(ToString::to_string).collect();
    assert!(errors[0].starts_with("policy.yaml: action is no annotation"), "{errors:?}");
    assert!(errors[1].starts_with("policy.yaml:1:"), "{errors:?}");
    assert!(errors[2].starts_with("latin.rego: it is no UTF-8"), "{errors:?}");
    assert_eq!(errors.len(), 3);
}

#[test]
fn what_hides_sets_is_an_error_of_the_whole() {
    let why = |root: &TempDir| read(root.path()).unwrap_err().to_string();
    let same = folder(&[("a/p/p.rego", MODULE), ("b/p/p.rego", MODULE)]);
    assert!(why(&same).contains("b/p: the set is called slicegate-system/p, as the one in"), "{}", why(&same));
    let broken = folder(&[("a.yaml", "kind: ConfigMap\nmetadata: {name: a\n")]);
    assert!(why(&broken).contains("a.yaml: line "), "{}", why(&broken));
    let link = folder(&[("p.rego", MODULE)]);
    symlink("none.rego", link.path().join("q.rego")).unwrap();
    assert!(why(&link).contains("q.rego: a link that leads nowhere"), "{}", why(&link));
    assert!(read(&link.path().join("none")).is_err());
}

#[test]
fn single_modules_are_one_set_with_the_annotations_beside_them() {
    let root = folder(&[("p.rego", MODULE), ("p_test.rego", MODULE), ("policy.yaml", "slicegate.io/syntax: v0\n")]);
    let found = of_modules(&["p.rego", "p_test.rego"].map(|name| root.path().join(name)), NAMESPACE).unwrap();
    assert_eq!((found.set.modules.len(), found.set.tests.len()), (1, 1));
    assert_eq!((found.set.settings.syntax, found.set.key.name.as_str()), (Syntax::V0, "p"));
    assert_eq!(found.shown("p.rego"), "p.rego");
}
