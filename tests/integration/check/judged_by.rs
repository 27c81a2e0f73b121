//! What manifests are judged by: configuration, facts, users, policy sets.

use pretty_assertions::assert_eq;

use super::{folder, pod, run};

/// A Pod of the shared pool that declares nothing, in a Namespace.
fn undeclared(namespace: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: a, namespace: {namespace}}}\nspec:\n  containers:\n  - {{name: main, image: i, resources: {{limits: {{nvidia.com/gpu.shared: 1}}}}}}\n"
    )
}

#[test]
fn a_namespace_gives_the_class_wherever_it_is_named() {
    let blue =
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: blue, labels: {slicegate.io/checkpoint: stateless}}\n";
    let pods = format!("{}---\n{}", undeclared("blue"), undeclared("green"));
    let root = folder(&[("in/a.yaml", &pods), ("in/z.yaml", blue), ("pods.yaml", &pods), ("facts/ns.yaml", blue)]);
    // Behind what it counts for, and in another file.
    let beside = run(root.path(), &["--format", "json", "in"]);
    let expected = ["allowed Pod blue a", "denied Pod green a", "allowed Namespace  blue"];
    assert_eq!(beside.verdicts(), expected, "{}", beside.told);
    let named = run(root.path(), &["--format", "json", "--facts", "facts", "pods.yaml"]);
    assert_eq!(named.verdicts(), expected[..2], "{}", named.told);
    let alone = run(root.path(), &["--format", "json", "pods.yaml"]);
    assert_eq!(alone.verdicts(), ["denied Pod blue a", "denied Pod green a"]);
}

#[test]
fn the_clusters_default_class_counts() {
    let config =
        "apiVersion: slicegate.io/v1alpha1\nkind: Config\nlatencyCritical: {priorityClasses: [\"serving-*\"]}\n";
    let class = "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: serving-default}\nvalue: 7\nglobalDefault: true\n";
    let root = folder(&[("config.yaml", config), ("class.yaml", class), ("pod.yaml", &pod("name: a", 1))]);
    let without = run(root.path(), &["--config", "config.yaml", "pod.yaml"]);
    assert_eq!(without.code, Some(0), "{}{}", without.out, without.told);
    let with = run(root.path(), &["--config", "config.yaml", "--facts", "class.yaml", "pod.yaml"]);
    assert_eq!(with.code, Some(1), "{}{}", with.out, with.told);
    assert!(with.out.contains("error[no-latency-critical]") && with.out.contains("serving-default"), "{}", with.out);
}

#[test]
fn an_exemption_by_user_or_group_needs_who_asks() {
    let config = "apiVersion: slicegate.io/v1alpha1
kind: Config
exemptions:
- {rules: [share-limit], users: [kim], reason: \"until the new cards are there\"}
- {rules: [share-limit], groups: [admins], reason: \"they know\"}
";
    let root = folder(&[("config.yaml", config), ("pod.yaml", &pod("name: a", 2))]);
    for (flags, code, words) in [
        (&[][..], 1, "error[share-limit]"),
        (&["--as", "robin"], 1, "error[share-limit]"),
        (&["--as", "kim"], 0, "(exempted: until the new cards are there)"),
        (&["--as", "robin", "--as-group", "devs", "--as-group", "admins"], 0, "(exempted: they know)"),
    ] {
        let ended = run(root.path(), &[&["--config", "config.yaml", "pod.yaml"], flags].concat());
        assert_eq!(ended.code, Some(code), "{flags:?}: {}{}", ended.out, ended.told);
        assert!(ended.out.contains(words), "{flags:?}: {}", ended.out);
    }
}

const RULES: &str = "package team

deny contains {\"msg\": \"team is missing\", \"path\": \"metadata.labels\", \"fix\": \"set the label team\"} if {
	not input.request.object.metadata.labels.team
}

warn contains \"no owner\" if not input.request.object.metadata.annotations.owner

patch contains {\"op\": \"add\", \"path\": \"/metadata/labels/seen\", \"value\": \"yes\"}
";

#[test]
fn policy_sets_refuse_warn_and_complete() {
    let teamed = pod("name: b", 1).replace("labels: {", "labels: {team: blue, ");
    let root =
        folder(&[("policies/team/team.rego", RULES), ("pods.yaml", &format!("{}---\n{teamed}", pod("name: a", 1)))]);
    let flags = ["--policies", "policies", "pods.yaml"];
    let ended = run(root.path(), &flags);
    assert_eq!(ended.code, Some(1), "{}{}", ended.out, ended.told);
    for words in [
        "denied Pod default/a (pods.yaml:4)",
        "error[team/deny]: team is missing\n --> pods.yaml:5:3\n",
        "= help: set the label team",
        "warned Pod default/b (pods.yaml:17)",
        "warning[team/warn]: no owner",
        "would be completed when it is created:\n",
        "   metadata:\n     labels:\n  +    seen: \"yes\"\n",
    ] {
        assert!(ended.out.contains(words), "{words}\n{}", ended.out);
    }
    let strict = run(root.path(), &[&flags[..], &["--fail-on", "warn", "--format", "json"]].concat());
    assert_eq!(strict.code, Some(1));
    assert_eq!(strict.json()["objects"][1]["patch"][0]["path"], "/metadata/labels/seen");
}

#[test]
fn what_it_should_be_judged_by_and_cannot_says_where() {
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m, namespace: slicegate-system, labels: {slicegate.io/policy: \"true\"}}\ndata:\n  m.rego: |\n    package m\n    deny contains \"x\" if {\n";
    let root = folder(&[
        ("pod.yaml", &pod("name: a", 1)),
        ("config.yaml", "apiVersion: slicegate.io/v1alpha1\nkind: Config\nenforcment: warn\npools: 3\n"),
        ("bad/team/team.rego", "package team\n\ndeny contains \"x\" if {\n\tinput.a ==\n}\n"),
        ("map/m.yaml", map),
        ("none/notes.txt", ""),
        ("facts.yaml", "apiVersion: v1\nkind: [\n"),
    ]);
    for (flags, words) in [
        (
            &["--config", "config.yaml"][..],
            &[
                "config.yaml: line 3, column 1: unknown field \"enforcment\"; did you mean enforcement?",
                "line 4, column 8",
            ][..],
        ),
        (&["--config", "none.yaml"], &["none.yaml: cannot be read"]),
        (&["--policies", "bad"], &["a policy set cannot be loaded:\nbad/team/team.rego:5:1: "]),
        (&["--policies", "map"], &["map/m.yaml (slicegate-system/m m.rego):"]),
        (&["--policies", "none"], &["none: no policy set in it"]),
        (&["--policies", "missing"], &["missing: cannot be read"]),
        (&["--facts", "missing"], &["missing: cannot be read"]),
        (&["--facts", "facts.yaml"], &["facts.yaml"]),
        (&["--cluster", "--kubeconfig", "missing"], &["kubeconfig missing cannot be used"]),
    ] {
        let ended = run(root.path(), &[flags, &["pod.yaml"]].concat());
        assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "{flags:?}: {}", ended.told);
        for words in words {
            assert!(ended.told.contains(words), "{flags:?}: {}", ended.told);
        }
    }
}
