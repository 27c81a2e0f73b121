//! What is told silent, and that the engine says the same of it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::rego::engine::Budget;
use crate::rego::input::{Context, Input};
use crate::rego::outcome::Outcome;
use crate::rego::program::Program;
use crate::rego::set::{Key, Set};
use crate::rego::unit::Unit;
use crate::rego::value::Keys;

mod written;

fn program(text: &str, annotations: &[(&str, &str)]) -> Option<Program> {
    let key = Key { namespace: "n".into(), name: "p".into() };
    let annotations =
        annotations.iter().map(|(name, value)| (format!("slicegate.io/{name}"), (*value).to_owned())).collect();
    let parameters = r#"{"a": 1, "b": ["a", "ab", 1], "c": {"a": "a"}}"#;
    let files = BTreeMap::from([("p.rego", text), ("parameters.json", parameters)]);
    let files = files.into_iter().map(|(name, text)| (name.to_owned(), text.to_owned())).collect();
    Program::compile(&Unit::new(Set::of_files(key, "true", &annotations, files), &BTreeMap::new())).0
}

fn body(object: &Value) -> String {
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u", "operation": "CREATE", "kind": {"group": "", "version": "v1", "kind": "Pod"}, "object": object,
    }})
    .to_string()
}

/// Whether a program is told silent on an object; then the engine must have nothing to say, and no error.
fn is_silent(program: &mut Program, object: &Value) -> bool {
    let body = body(object);
    let request = crate::review::decode(body.as_bytes()).unwrap();
    let silent = program.screen().is_silent(Phase::Validate, &request);
    if silent {
        assert_eq!(asked(program, &body), Outcome::default(), "{object}");
    }
    silent
}

fn asked(program: &mut Program, body: &str) -> Outcome {
    let input = Input::new(body.as_bytes(), &Context::default(), &mut Keys::default()).unwrap();
    let clock = || Duration::ZERO;
    program.evaluate(Phase::Validate, &input, Budget::new(Duration::from_mins(1), &clock))
}

fn pod() -> Value {
    json!({"metadata": {"labels": {"team": "blue"}, "annotations": null}, "spec": {"containers": [
        {"name": "a", "image": "x:1", "n": 1, "ports": [{"port": 80}]}, {"name": "b", "image": "y:2", "n": 2}]}})
}

const HELPERS: &str = r#"
unknown(x) := x

labels := input.request.object.metadata.labels

max := 2

blocked if labels.team == "red"

blocked if {
    some c in input.request.object.spec.containers
    latest(c, ":broken")
}

fine if {
    some c in input.request.object.spec.containers
    c.image
}

latest(container, tag) if endswith(container.image, tag)
"#;

#[test]
fn simple_bodies_are_told_silent() {
    for statements in [
        r#"input.request.object.metadata.labels.team == "red""#,
        r#"input.review.object.metadata["labels"].team != "blue""#,
        "not input.request.object.metadata.labels.team",
        "input.request.object.metadata.annotations.team",
        r#"input.request.operation == "UPDATE""#,
        r#"input.request.kind.kind in {"Job", "Deployment"}; unknown(input.x)"#,
        r#"some c in input.request.object.spec.containers; endswith(c.image, ":latest"); m := sprintf("%s", [c.name]); m"#,
        r"c := input.request.object.spec.containers[_]; not startswith(c.name, c.name)",
        r"input.request.object.spec.containers[_].ports[_].port > 80",
        r"some i, c in input.request.object.spec.containers; i > 1; c.name",
        r"some k, v in input.request.object.metadata.labels; k == v",
        r"count(input.request.object.spec.containers) > 2",
        r"n := count(input.request.object.metadata.labels); n <= 0",
        r#"some x in ["red", "green"]; input.request.object.metadata.labels.team == x"#,
        r"some c in input.request.object.spec.initContainers; c.name == c.image",
        r#"not "blue" in input.request.object.metadata.labels"#,
        r#"labels.team in {"red", "green"}"#,
        r"count(labels) > max; unknown(1)",
        r"blocked",
        r"not fine",
        r#"some c in input.request.object.spec.containers; latest(c, ":latest")"#,
        r"some team in input.parameters.b; labels.team == team",
        r"input.request.object.metadata.labels.team == input.parameters.b[_]",
        r"input.parameters.none.x == labels.team",
        r#"some c in input.request.object.spec.containers; to_number(object.get(c, "gpus", "0")) > input.parameters.a"#,
        r"some c in input.request.object.spec.containers; not is_string(c.image)",
    ] {
        let text = format!("package p\n{HELPERS}\ndeny contains \"x\" if {{ {statements} }}\n");
        let mut program = program(&text, &[]).unwrap_or_else(|| panic!("{statements}"));
        assert!(is_silent(&mut program, &pod()), "{statements}");
    }
}

#[test]
fn what_has_something_to_say_is_not() {
    for statements in [
        "true",
        r#"input.request.object.metadata.labels.team == "blue""#,
        // Errors of the set.
        "startswith(input.request.object.spec, \"x\"); false",
        "some x in input.request.object.metadata.labels.team; x == 1",
        "count(input.request.object.spec.containers[0].n) == 7",
        // More than is understood.
        "helper == 1; false",
        "many; false",
        "valued(input.request.operation) == 2",
        "input.parameters; false",
        "to_number(input.request.object.metadata.labels.team) == 1",
        "object.get(input.request.operation, \"a\", 1) == 2",
        "count(input.request.object.metadata.labels) == 1.5",
        "input.request.object.spec == {}",
        "every c in input.request.object.spec.containers { c.name == \"\" }",
        "input.request.object == 1 with input as {}",
        "x := input.request.object.spec; y := x; y == 1",
        "some i; input.request.object.spec.containers[i].name == \"z\"",
    ] {
        let text = format!(
            "package p\n\nhelper := count({{1}})\n\nmany := 1 if input.x\n\nmany := 2 if input.y\n\nvalued(x) := x\n\ndeny contains \"x\" if {{ {statements} }}\n"
        );
        if let Some(mut program) = program(&text, &[]) {
            assert!(!is_silent(&mut program, &pod()), "{statements}");
        }
    }
}

#[test]
fn a_builtin_of_the_same_name_is_the_packages_own() {
    let text = "package p\n\nstartswith(a, b) := true if a != b\n\ndeny contains 1 if startswith(input.request.operation, \"x\")\n";
    if let Some(mut program) = program(text, &[]) {
        assert!(!is_silent(&mut program, &pod()));
    }
}

#[test]
fn all_rules_of_a_set_count() {
    let silent = "package p\n\ndeny contains 1 if input.request.object.x\n";
    for (more, wanted) in [
        ("", true),
        ("warn contains 2 if input.request.object.y\n", true),
        ("deny contains 3 if input.request.object.spec\n", false),
        ("warn contains 4\n", false),
        ("violation := {} if input.request.object.z\n", false),
        ("patch contains {\"op\": \"add\", \"path\": \"/x\", \"value\": 1}\n", true),
    ] {
        let mut program = program(&format!("{silent}{more}"), &[]).unwrap_or_else(|| panic!("{more}"));
        assert_eq!(is_silent(&mut program, &pod()), wanted, "{more}");
    }
}

#[test]
fn a_bare_object_and_old_syntax() {
    let text =
        "package main\n\ndeny[msg] { c := input.spec.containers[_]; endswith(c.image, \":latest\"); msg := c.name }\n";
    let mut program = program(text, &[("input", "object"), ("syntax", "v0")]).unwrap();
    assert!(is_silent(&mut program, &pod()));
    let mut latest = pod();
    latest["spec"]["containers"][1]["image"] = "y:latest".into();
    assert!(!is_silent(&mut program, &latest));
}

#[test]
fn numbers_that_no_policy_can_read_are_not_plain() {
    let plain = |text: &str| {
        let body = body(&json!({"n": "N"})).replace("\"N\"", text);
        is_plain(&crate::review::decode(body.as_bytes()).unwrap())
    };
    assert!(plain("[1, -2.5, 18446744073709551617]"));
    assert!(!plain("1e400") && !plain("[{\"a\": 1e3}]"));
}

#[test]
fn it_gives_up_before_the_engine_would() {
    let text = "package p\n\ndeny contains 1 if { some a in input.request.object.x; some b in input.request.object.x; a == -b.c }\n"
        .replace("-b.c", "b.c");
    let mut program = program(&text, &[]).unwrap();
    let numbers = |count: i64| json!({"x": (0..count).collect::<Vec<_>>()});
    assert!(is_silent(&mut program, &numbers(20)));
    assert!(!is_silent(&mut program, &numbers(200)));
}

/// How many random rules are tried.
const RULES: usize = 1_500;

/// Numbers that look random and are the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap().checked_rem(bound).unwrap()
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }

    fn object(&mut self, levels: usize) -> Value {
        let kind = self.below(if levels == 0 { 8 } else { 14 });
        match kind {
            0 => Value::Null,
            1 => json!(self.below(2) == 0),
            2 | 3 => json!(self.below(3)),
            4 => json!(1.5),
            5..=7 => json!(self.of(&["a", "ab", "b", ""])),
            8 | 9 => (0..self.below(3)).map(|_| self.object(levels.saturating_sub(1))).collect(),
            _ => (0..self.below(4))
                .map(|_| (self.of(&["a", "b", "c"]).to_owned(), self.object(levels.saturating_sub(1))))
                .collect(),
        }
    }

    /// A path below the input or a variable that this body sets, mostly before.
    fn path(&mut self, set: &[String], later: &[String]) -> String {
        let mut path = match self.below(10) {
            0 => "input.request.operation".to_owned(),
            1 if !later.is_empty() => later[self.below(later.len())].clone(),
            2..=6 if !set.is_empty() => set[self.below(set.len())].clone(),
            _ => format!("input.request.object.{}", self.of(&["a", "b", "c"])),
        };
        for _ in 0..self.below(3) {
            path.push_str(self.of(&[".a", ".b", ".c", "[_]", "[\"a\"]"]));
        }
        path
    }

    fn term(&mut self, set: &[String], later: &[String], helpers: &[&str]) -> String {
        let path = self.path(set, later);
        match self.below(16) {
            0 | 1 => self.of(&["null", "true", "false", "0", "1", "\"a\"", "\"ab\"", "1.5"]).to_owned(),
            2 => format!("{}({path})", self.of(&["count", "is_string", "is_array", "is_null", "to_number"])),
            3 => format!("{}({path}, {})", self.of(&["startswith", "endswith", "contains"]), self.path(set, later)),
            4 => format!("object.get({path}, \"a\", {})", self.of(&["1", "null", "{\"a\"}", "[1]"])),
            5 => self
                .of(&["input.parameters.a", "input.parameters.b[_]", "input.parameters.c.a", "max", "al.a"])
                .to_owned(),
            6 | 7 if !helpers.is_empty() => self.of(helpers).replace('$', &path),
            _ => path,
        }
    }

    fn statement(&mut self, name: &str, set: &[String], later: &[String], helpers: &[&str]) -> String {
        let (term, path) = (self.term(set, later, helpers), self.path(set, later));
        match self.below(9) {
            0 => format!("some {name} in {path}"),
            1 => format!("some _, {name} in {path}"),
            2 | 3 => format!("{name} := {term}"),
            4 => term,
            5 => format!("not {term}"),
            6 => format!(
                "{term} in {}",
                self.of(&["{\"a\", 1}", "[true, null]", "input.request.object.a", "input.parameters.b"])
            ),
            _ => format!("{term} {} {path}", self.of(&["==", "!=", "<", ">="])),
        }
    }

    /// A body of so many statements that begins with a variable that is set, or with none.
    fn body(&mut self, first: Option<&str>, statements: usize, helpers: &[&str]) -> String {
        let names: Vec<String> = first.into_iter().chain(["z", "a", "m", "b"]).map(str::to_owned).collect();
        let outside = usize::from(first.is_some());
        let statements = (outside..).take(statements).map(|place| {
            let (set, later) = names.split_at(place);
            self.statement(&names[place], set, later, helpers)
        });
        statements.collect::<Vec<_>>().join("; ")
    }

    fn module(&mut self) -> String {
        let (f, g) = (self.body(Some("v"), 2, &[]), self.body(Some("v"), 1, &[]));
        let (h, i) = (self.body(None, 2, &["f($)"]), self.body(None, 1, &["f($)"]));
        let deny = self.body(None, 4, &["f($)", "h"]);
        format!(
            "package p\n\nmax := 1\n\nal := input.request.object.a\n\nf(v) if {{ {f} }}\n\nf(v) if {{ {g} }}\n\nh if {{ {h} }}\n\nh if {{ {i} }}\n\ndeny contains \"x\" if {{ {deny} }}\n"
        )
    }
}

#[test]
fn the_engine_is_silent_where_random_rules_are_told_so() {
    let mut random = Random(7);
    let (mut told, mut rules) = (0, 0);
    for _ in 0..RULES {
        let text = random.module();
        let Some(mut program) = program(&text, &[]).filter(|program| program.screen().validate.is_some()) else {
            continue;
        };
        rules += 1;
        for _ in 0..12 {
            let object = json!({"a": random.object(3), "b": random.object(2), "c": random.object(1)});
            told += usize::from(is_silent(&mut program, &object));
        }
    }
    // Else it would show nothing.
    assert!(rules > RULES / 20 && told > rules, "{rules} rules, {told} times silent");
}
