//! `slicegate check` against what it promises to foretell: kubectl's reading of manifests, and the verdict of a cluster.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use slicegate::manifest;

use crate::cluster::{Cluster, Options, Slicegate, shipped, wait};
use crate::kinds;
use crate::workloads::{checkpointed, deployment, pod};

/// The annotation that kubectl is asked to add, which is taken off again.
const MARK: &str = "mark.example.test/read";

/// The objects of a text as kubectl reads them on its own; its complaint where it does not.
fn by_kubectl(cluster: &Cluster, text: &str) -> Result<Result<Vec<Value>, String>> {
    let mark = format!("{MARK}=x");
    let output = cluster.kubectl_stdin(&["annotate", "--local", "-f", "-", "-o", "json", &mark], text)?;
    if !output.status.success() {
        return Ok(Err(output.stderr));
    }
    let values = serde_json::Deserializer::from_str(&output.stdout).into_iter::<Value>();
    let mut objects = values.collect::<Result<Vec<_>, _>>()?;
    for object in &mut objects {
        let annotations = object["metadata"]["annotations"].as_object_mut().context("no mark")?;
        annotations.remove(MARK);
        if annotations.is_empty() {
            object["metadata"].as_object_mut().context("no metadata")?.remove("annotations");
        }
    }
    Ok(Ok(objects))
}

/// The same by the reader of `check`.
fn by_check(text: &str) -> Result<Vec<Value>, String> {
    let (documents, mistakes) = manifest::documents(text);
    if let Some(mistake) = mistakes.first() {
        return Err(mistake.to_string());
    }
    let mut all = Vec::new();
    for document in &documents {
        for object in manifest::objects(document).map_err(|mistake| mistake.to_string())? {
            all.push(serde_json::from_str(&object.json).map_err(|error| error.to_string())?);
        }
    }
    Ok(all)
}

/// An object whose field `x` is this piece of YAML.
fn thing(x: &str) -> String {
    format!("apiVersion: example.test/v1\nkind: Thing\nmetadata: {{name: a}}\nx: {x}\n")
}

const SCALARS: &[&str] = &[
    "yes",
    "Yes",
    "YES",
    "yEs",
    "y",
    "Y",
    "n",
    "no",
    "on",
    "off",
    "On",
    "oFF",
    "true",
    "TRUE",
    "tRUE",
    "~",
    "null",
    "Null",
    "nULL",
    "",
    "''",
    "\"\"",
    "0",
    "-0",
    "+0",
    "-0.0",
    "0.0",
    "010",
    "08",
    "0o10",
    "0O7",
    "0o8",
    "0x1F",
    "0X1f",
    "0xg",
    "0b101",
    "0B1",
    "0b2",
    "-0x1F",
    "-0b11",
    "-010",
    "+12",
    "1_000",
    "1__0",
    "_1",
    "1_",
    "0x_1",
    "1.5",
    "1.50",
    "1.",
    ".5",
    "-.5",
    "+.5",
    ".",
    "+",
    "-1",
    "1e3",
    "1E3",
    "1e+3",
    "1e-3",
    "1e",
    "e1",
    "1e400",
    "-1e400",
    "1e-400",
    "1.5e300",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "18446744073709551615",
    "18446744073709551616",
    "1e18",
    "1e19",
    "1e20",
    "1e21",
    "1e-6",
    "1e-7",
    "123456789.123456789",
    "0.1",
    "2001-01-01",
    "2001-01-01T00:00:00Z",
    "12:30",
    "12:30:45",
    "190:20:30",
    "1:2",
    "1Gi",
    "500m",
    "0.5Gi",
    "0777",
    "1 2",
    "a b",
    "a:b",
    "a: b",
    "a #b",
    "a#b",
    "'a''b'",
    "\"a\\nb\"",
    "\"\\u00e9\\x41\\/\"",
    "!!str 5",
    "!!str yes",
    "!!int 5",
    "!!float 5",
    "!!bool yes",
    "!!null ~",
    "! 5",
    "=",
    "<<",
    "%a",
    "@a",
    "`a`",
    "|\n  a\n  b\n",
    ">\n  a\n  b\n\n  c\n",
    "|-\n  a\n",
    "|+\n  a\n\n",
    "[1, 2]",
    "[]",
    "{}",
    "{a: b}",
    "{a}",
    "[a: b]",
    "{a: , b: }",
    "{? a : b}",
    "? a\n: b",
    "\n- 1\n- - 2\n",
    "\n  a: 1\n  b: 2\n",
    "é",
    "\"\\ud83d\\ude00\"",
    "😀",
    "a\tb",
    "'a\n  b'",
    "\"a\\\n  b\"",
    "1,000",
    "[a,b]",
    "{a:1}",
    "{\"a\":1}",
    "-",
    "- a",
    "?",
    "? a",
    ":",
    ": a",
    "*a",
    "&a",
    "&a b",
    "a'b",
    "a\"b",
    "...",
    "--- a",
    "0.",
    "00",
    "-00",
    "0_",
    "0x",
    "0b",
    "0o",
    "infinity",
    "nan",
    ".Nan",
    ".iNF",
    "1.e1",
    "1.e+1",
    "0e0",
    "0x1p4",
    "1_0.5",
    "0.1_5",
    "1e1_0",
];

const KEYS: &[&str] = &[
    "{yes: 1}",
    "{1: 1}",
    "{1.5: 1}",
    "{1e3: 1}",
    "{010: 1}",
    "{true: 1}",
    "{no: 1, \"off\": 2}",
    "{\"\": 1}",
    "{'1': 1}",
    "{0x10: 1}",
    "{1_0: 1}",
    "{9223372036854775808: 1}",
    "{2001-01-01: 1}",
    "{1e21: 1}",
    "{0.1: 1}",
    "{-1: 1}",
];

const TEXTS: &[&str] = &[
    "base: &b {a: 1, c: [1]}\nx: {<<: *b, a: 2}\n",
    "base: &b {a: 1}\nmore: &m {a: 2, b: 3}\nx: {<<: [*b, *m], z: 1}\n",
    "base: &b {a: 1}\nx:\n  z: 1\n  <<: *b\n",
    "base: &b {a: 1}\nmore: &m {<<: *b, b: 2}\nx: {<<: *m}\n",
    "base: &b [1]\nx: *b\ny: *b\n",
    "x: &a 1\ny: &a 2\nz: *a\n",
    "x: {\"<<\": {a: 1}}\n",
    "x: {!!str <<: 1}\n",
];

/// What stands between documents, and around them.
const FRAMES: &[(&str, &str)] = &[
    ("", ""),
    ("---\n", "---\n"),
    ("--- # why\n", ""),
    ("# a\n---\n# b\n---\n", "\n---\n# end\n"),
    ("\u{feff}", ""),
    ("---   \n", "--- \t\n"),
    ("%YAML 1.1\n---\n", ""),
    ("", "...\n"),
    ("---a\n", ""),
    ("--- {}\n", ""),
    ("", "----\n"),
    ("\n\n", "\r\n"),
];

const LISTS: &[&str] = &[
    "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: a.b/v1, kind: T, metadata: {name: a}}\n- {apiVersion: a.b/v1, kind: T, metadata: {name: b}, x: 010}\n",
    "apiVersion: a.b/v1\nkind: TList\nitems:\n- {metadata: {name: a}}\n- {apiVersion: a.b/v1, kind: T, metadata: {name: b}}\n",
    "{\"apiVersion\":\"a.b/v1\",\"kind\":\"T\",\"metadata\":{\"name\":\"a\"},\"x\":1.50}\n{\"apiVersion\":\"a.b/v1\",\"kind\":\"T\",\"metadata\":{\"name\":\"b\"},\"x\":-0.5}",
];

/// What kubectl's reader alone refuses, with words of its own: escapes of YAML 1.2, which JSON has too, and names of anchors.
const STRICTER: [&str; 3] = [
    "found unknown escape character",
    "found invalid Unicode character escape code",
    "did not find expected alphabetic or numeric character",
];

/// Compares one text.
fn agrees(cluster: &Cluster, text: &str, odd: &mut Vec<String>) -> Result<()> {
    match (by_kubectl(cluster, text)?, by_check(text)) {
        (Ok(theirs), Ok(ours)) if theirs != ours => {
            odd.push(format!("{text:?}\n  kubectl {}\n  check   {}", json!(theirs), json!(ours)));
        }
        (Err(theirs), Ok(ours)) if !STRICTER.iter().any(|refusal| theirs.contains(refusal)) => {
            odd.push(format!("{text:?}\n  kubectl {}\n  check   {}", theirs.trim(), json!(ours)));
        }
        // What is refused here is told with its line, which is no silent difference.
        (Ok(_) | Err(_), _) => {}
    }
    Ok(())
}

/// Plain scalars near those with a meaning, and any others.
fn scalar() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[-+]?[0-9][0-9_.xobeE:+-]{0,7}",
        2 => "[-+]?\\.?[0-9a-fA-F_x]{1,6}",
        1 => "[yYnNoOtTfFeEsSrRuUaAlL~]{1,5}",
        2 => "[a-z0-9 .:,#'\"!&*?|>%@`{}\\[\\]-]{0,8}",
        1 => "'[a-z0-9 \"\\\\:#]{0,6}'",
        1 => "\"[a-z0-9 ':#]{0,6}\"",
    ]
}

#[test]
fn manifests_are_read_as_kubectl_reads_them() -> Result<()> {
    let cluster = Cluster::start(Options { apiserver_only: true, ..Options::default() })?;
    let mut odd = Vec::new();
    let (mut runner, strategy) = (TestRunner::deterministic(), scalar());
    let generated = (0..1500).map(|_| strategy.new_tree(&mut runner).unwrap().current());
    let scalars: Vec<String> = SCALARS.iter().chain(KEYS).map(|text| (*text).to_owned()).chain(generated).collect();
    // What both read goes to kubectl in few calls; what the reader of `check` refuses is told with its line, and no silent
    // difference.
    let readable: Vec<String> = scalars.iter().map(|x| thing(x)).filter(|text| by_check(text).is_ok()).collect();
    ensure!(readable.len() > scalars.len() / 2, "only {} of {} can be read", readable.len(), scalars.len());
    for some in readable.chunks(100) {
        together(&cluster, some, &mut odd)?;
    }
    let texts = TEXTS.iter().map(|text| format!("apiVersion: a.b/v1\nkind: T\nmetadata: {{name: a}}\n{text}"));
    let frames = FRAMES.iter().map(|(before, after)| format!("{before}{}{after}", thing("1")));
    let lists = LISTS.iter().map(|text| (*text).to_owned());
    for text in texts.chain(frames).chain(lists) {
        agrees(&cluster, &text, &mut odd)?;
    }
    for file in ["slicegate.yaml", "webhooks.yaml", "guard.yaml"] {
        agrees(&cluster, &std::fs::read_to_string(shipped(file))?, &mut odd)?;
    }
    ensure!(odd.is_empty(), "{} differ:\n{}", odd.len(), odd.join("\n"));
    Ok(())
}

/// Compares many documents by one call, and each half by its own where that fails.
fn together(cluster: &Cluster, documents: &[String], odd: &mut Vec<String>) -> Result<()> {
    if let [only] = documents {
        return agrees(cluster, only, odd);
    }
    let text = documents.join("---\n");
    if by_kubectl(cluster, &text)?.is_ok_and(|theirs| by_check(&text).is_ok_and(|ours| ours == theirs)) {
        return Ok(());
    }
    let (left, right) = documents.split_at(documents.len() / 2);
    together(cluster, left, odd)?;
    together(cluster, right, odd)
}

const CONFIG: &str = "apiVersion: slicegate.io/v1alpha1
kind: Config
latencyCritical: {priorityClasses: [\"serving-*\"]}
exemptions:
- {rules: [share-limit], namespaces: [spared], reason: \"old cards\"}
";

const RULES: &str = "package team

deny contains {\"msg\": \"team is blocked\", \"path\": \"metadata.labels.team\"} if {
    input.request.object.metadata.labels.team == \"blocked\"
}
";

const READER: &str = "system:serviceaccount:ci:checker";

/// Configuration, a policy, Namespaces with a class and without, and one who may look and nothing else.
fn furnish(cluster: &Cluster) -> Result<()> {
    cluster.apply_path(&shipped("slicegate.yaml"))?;
    let map = |name: &str, labels: &Value, data: &Value| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data,
            "metadata": {"name": name, "namespace": "slicegate-system", "labels": labels}})
    };
    cluster.apply(&map("slicegate-config", &json!({}), &json!({"config.yaml": CONFIG})))?;
    cluster.apply(&map("team", &json!({"slicegate.io/policy": "true"}), &json!({"team.rego": RULES})))?;
    cluster.create_namespace("team", &json!({}))?;
    cluster.create_namespace("spared", &json!({}))?;
    cluster.create_namespace("classed", &json!({"slicegate.io/checkpoint": "stateless"}))?;
    cluster.apply(&json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": {"name": "serving-high"}, "value": 1000}))?;
    let verbs = ["get", "list", "watch"];
    let rules = [("", ["namespaces", "nodes", "configmaps"].as_slice()), ("scheduling.k8s.io", &["priorityclasses"])]
        .map(|(group, resources)| json!({"apiGroups": [group], "resources": resources, "verbs": verbs}));
    cluster.apply(&json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "checker"}, "rules": rules}))?;
    cluster.apply(&json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "checker"}, "subjects": [{"kind": "User", "name": READER}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "checker"}}))
}

fn objects() -> Vec<Value> {
    let mut all: Vec<Value> =
        ["1", "2"].iter().flat_map(|shares| kinds::objects(shares)).map(|(object, _)| object).collect();
    let undeclared = pod("undeclared", "1");
    let mut blocked = pod("blocked", "1");
    blocked["metadata"]["labels"]["team"] = "blocked".into();
    let mut serving = deployment("serving", "1", &json!({"slicegate.io/checkpoint": "true"}));
    serving["spec"]["template"]["spec"]["priorityClassName"] = "serving-high".into();
    all.extend([
        undeclared,
        blocked,
        serving,
        deployment("deployed", "1", &json!({})),
        deployment("good", "1", &checkpointed()),
    ]);
    for (place, object) in all.iter_mut().enumerate() {
        object["metadata"]["name"] = format!("work-{place}").into();
    }
    let bare = |object: &Value| {
        let mut object = object.clone();
        object["metadata"]["labels"] = json!({"app": "work"});
        object
    };
    let undeclared = bare(&pod("no-labels", "1"));
    all.push(undeclared);
    all
}

/// The outcome of `check` as the program's JSON.
fn checked(kubeconfig: &Path, namespace: &str, objects: &[Value]) -> Result<Value> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slicegate"));
    command.args(["check", "--format", "json", "--cluster", "--timeout", "1m", "--namespace", namespace]);
    command.arg("--kubeconfig").arg(kubeconfig).env("SLICEGATE_REGO_BUDGET", "2s");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let lines: Vec<String> = objects.iter().map(ToString::to_string).collect();
    let text = lines.join("\n");
    std::io::Write::write_all(&mut child.stdin.take().context("no input")?, text.as_bytes())?;
    let output = child.wait_with_output()?;
    ensure!(output.status.code() != Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).context("check wrote something else than JSON")
}

#[test]
fn check_foretells_a_dry_run_on_the_cluster() -> Result<()> {
    let cluster = Cluster::start(Options { apiserver_only: true, audit: true, ..Options::default() })?;
    kinds::define(&cluster)?;
    furnish(&cluster)?;
    let slicegate = Slicegate::start(&cluster)?;
    slicegate.register(&cluster, |_| {})?;
    wait(std::time::Duration::from_mins(1), "the policy to be loaded", || {
        slicegate.admin("/policies").ok().filter(|(_, text)| text.contains("\"Loaded\""))
    })?;
    let reader = cluster.kubeconfig_for(READER, None)?;
    let (mut denied, mut allowed) = (0, 0);
    for namespace in ["team", "spared", "classed"] {
        let objects = objects();
        let told = checked(&reader, namespace, &objects)?;
        let judged = told["objects"].as_array().context("no objects")?;
        ensure!(judged.len() == objects.len(), "{told}");
        for (object, judged) in objects.iter().zip(judged) {
            let args = ["-n", namespace, "apply", "--dry-run=server", "-f", "-"];
            let output = cluster.kubectl_stdin(&args, &object.to_string())?;
            let success = output.status.success();
            ensure!(success == (judged["verdict"] != "denied"), "{object}\n{judged}\n{}", output.stderr);
            for finding in
                judged["findings"].as_array().into_iter().flatten().filter(|finding| finding["action"] == "deny")
            {
                let [rule, field, message] =
                    ["rule", "field", "message"].map(|key| finding[key].as_str().unwrap_or_default());
                let line = format!("[{rule}] {field}: {message}");
                ensure!(output.stderr.contains(&line), "{line}\n{}", output.stderr);
            }
            let warned = output.stderr.contains("Warning: ");
            ensure!(!success || warned == (judged["verdict"] == "warned"), "{object}\n{judged}\n{}", output.stderr);
            if success { allowed += 1 } else { denied += 1 }
        }
    }
    ensure!(denied > 10 && allowed > 10, "{denied} denied, {allowed} allowed");
    let verbs = cluster.audit_log()?.into_iter().filter(|event| event["user"]["username"] == READER);
    let verbs: Vec<String> = verbs.filter_map(|event| event["verb"].as_str().map(str::to_owned)).collect();
    ensure!(
        !verbs.is_empty() && verbs.iter().all(|verb| ["get", "list", "watch"].contains(&verb.as_str())),
        "{verbs:?}"
    );
    Ok(())
}
