use pretty_assertions::assert_eq;

use super::*;

fn all(text: &str) -> Result<Vec<Object>, Vec<Mistake>> {
    let (documents, mut mistakes) = documents(text);
    let mut found = Vec::new();
    for document in &documents {
        match objects(document) {
            Ok(objects) => found.extend(objects),
            Err(mistake) => mistakes.push(mistake),
        }
    }
    if mistakes.is_empty() { Ok(found) } else { Err(mistakes) }
}

fn json(text: &str) -> String {
    all(text).unwrap().remove(0).json
}

fn mistakes(text: &str) -> Vec<String> {
    all(text).unwrap_err().iter().map(ToString::to_string).collect()
}

#[test]
fn documents_and_lists_are_taken_apart() {
    let text = "\
# nothing but a comment
--- # one
apiVersion: v1
kind: Pod
metadata: {name: a, namespace: blue}
---
---
apiVersion: v1
kind: List
items:
- {apiVersion: apps/v1, kind: Deployment, metadata: {generateName: d-}}
- {apiVersion: v1, kind: PodList, items: [{metadata: {name: b}}]}
";
    let found = all(text).unwrap();
    let shown: Vec<String> = found
        .iter()
        .map(|object| {
            format!("{} {} {} {}{}", object.path, object.api_version, object.kind, object.name, object.generate_name)
        })
        .collect();
    assert_eq!(shown, [" v1 Pod a", "items[0] apps/v1 Deployment d-", "items[1].items[0] v1 Pod b"]);
    let (documents, _) = documents(text);
    let places: Vec<_> = documents.iter().map(|document| (document.number, document.line)).collect();
    assert_eq!(places, [(1, 3), (2, 8)]);
}

#[test]
fn json_is_handed_on_as_it_stands() {
    let text =
        "\n{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"x\": 1.50}\n{\"apiVersion\": \"v1\",\n\"kind\": \"Pod\"}";
    let (documents, mistakes) = documents(text);
    assert_eq!(mistakes, []);
    assert_eq!(documents.iter().map(|document| document.line).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(json(text), r#"{"apiVersion": "v1", "kind": "Pod", "x": 1.50}"#);
}

#[test]
fn yaml_means_what_it_means_to_kubectl() {
    let text = "\
apiVersion: v1
kind: &kind Pod
base: &base {a: 1, b: [x]}
merged: {<<: *base, b: 2, yes: no}
twice: *kind
text: |
  a \"quoted\"
\ttab
octal: 010
float: 1.0
date: 2020-01-01
none:
";
    assert_eq!(
        json(&text.replace("\ttab\n", "  tab\n")),
        r#"{"apiVersion":"v1","kind":"Pod","base":{"a":1,"b":["x"]},"merged":{"b":2,"true":false,"a":1},"twice":"Pod","text":"a \"quoted\"\ntab\n","octal":8,"float":1,"date":"2020-01-01","none":null}"#
    );
}

#[test]
fn items_get_what_their_list_says() {
    let text = "apiVersion: v1\nkind: PodList\nitems: [{metadata: {name: b}}, {}, {apiVersion: v1, kind: Pod}]\n";
    let found: Vec<String> = all(text).unwrap().into_iter().map(|object| object.json).collect();
    assert_eq!(
        found,
        [
            r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"b"}}"#,
            r#"{"apiVersion":"v1","kind":"Pod"}"#,
            r#"{"apiVersion":"v1","kind":"Pod"}"#
        ]
    );
}

#[test]
fn only_a_bare_key_merges() {
    let head = "apiVersion: v1\nkind: Pod\n";
    assert!(json(&format!("{head}x: {{\"<<\": {{a: 1}}, b: <<}}\n")).ends_with(r#""x":{"<<":{"a":1},"b":"<<"}}"#));
    assert!(json(&format!("{head}x: {{<<: {{a: 1}}, 1.28: 2}}\n")).ends_with(r#""x":{"1.28":2,"a":1}}"#));
    assert!(mistakes(&format!("{head}x: {{1e21: 1}}\n"))[0].contains("put it in quotes"));
}

#[test]
fn a_mistake_has_its_line() {
    let head = "apiVersion: v1\nkind: Pod\n";
    for (text, told) in [
        (format!("{head}---\nkind: Pod\nkind: Pod\n"), "line 5, column 1: the key \"kind\" stands twice"),
        ("--- {a: b}\n".to_owned(), "line 1, column 4: a document begins on the line of its ---"),
        (format!("{head}x: [1\n"), "line 3, column 4: not YAML: unclosed bracket"),
        (format!("{head}x: *nobody\n"), "line 3, column 4: *nobody is read as an alias"),
        (format!("{head}x: .nan\n"), "line 3, column 4: .nan is no number"),
        ("---\n\n# here\nmetadata: {}\n".to_owned(), "line 4, column 1: apiVersion is missing"),
        ("- a\n".to_owned(), "line 1, column 1: no Kubernetes object"),
        (format!("{head}...\n{head}"), "line 4, column 1: a second document begins here"),
        (
            "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1}\n".to_owned(),
            "line 1, column 1: items[0]: kind is missing",
        ),
    ] {
        let found = mistakes(&text);
        assert!(found.iter().any(|found| found.starts_with(told)), "{text}: {found:?}");
    }
}

#[test]
fn aliases_cannot_blow_a_document_up() {
    let mut text = "apiVersion: v1\nkind: Pod\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let before = format!("*a{}", level - 1);
        let ten = [before.as_str(); 10].join(", ");
        text = format!("{text}a{level}: &a{level} [{ten}]\n");
    }
    assert!(mistakes(&text)[0].contains("too large with its aliases"));
    assert!(
        mistakes(&format!("apiVersion: v1\nkind: Pod\na: {}x{}\n", "[".repeat(150), "]".repeat(150)))[0]
            .contains("128 levels")
    );
}

#[test]
fn fields_are_found_in_the_text() {
    let text = "\
---
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Pod
  metadata:
    labels: {a.b/c: d}
  spec:
    containers:
    - name: main
      resources:
        limits:
          nvidia.com/gpu.shared: \"2\"
";
    let (documents, _) = documents(text);
    let places = Places::of(&documents[0]);
    let at = |field: &str| {
        let Located { line, column, span, exact } = places.locate(&format!("items[0].{field}"));
        (line, column, text.get(span).unwrap().to_owned(), exact)
    };
    assert_eq!(at("spec.containers[0].resources.limits[nvidia.com/gpu.shared]"), (14, 34, "\"2\"".to_owned(), true));
    assert_eq!(at("spec.containers[0].resources.limits"), (13, 9, "limits".to_owned(), true));
    assert_eq!(at("metadata.labels.a.b/c"), (8, 21, "d".to_owned(), true));
    assert_eq!(at("metadata.labels[a.b/c]"), (8, 21, "d".to_owned(), true));
    assert_eq!(at("metadata.labels[other]"), (8, 5, "labels".to_owned(), false));
    assert_eq!(at("spec.nodeSelector"), (9, 3, "spec".to_owned(), false));
}
