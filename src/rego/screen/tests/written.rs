//! Rules that are written by hand, each at an edge of what is told silent: names that hide others, what is undefined, errors that
//! another statement hides, functions that are asked in odd ways.

use super::{is_silent, program};

/// A name, a module, the object as JSON, and whether the module is one of v0.
type Case = (&'static str, &'static str, &'static str, bool);

#[rustfmt::skip]
const CASES: [Case; 91] = [
    ("shadow-later", "package p\nx := \"a\"\ndeny contains 1 if { input.request.object.a == x; x := \"b\" }", r#"{"a": "b"}"#, false),
    ("shadow-later-some", "package p\nx := \"a\"\ndeny contains 1 if { input.request.object.a == x; some x in [\"b\"] }", r#"{"a": "b"}"#, false),
    ("shadow-later-somevar", "package p\nx := \"a\"\ndeny contains 1 if { input.request.object.a == x; some x; x = \"b\" }", r#"{"a": "b"}"#, false),
    ("shadow-eq", "package p\nx := \"a\"\ndeny contains 1 if { input.request.object.a == x; [x] := [\"b\"] }", r#"{"a": "b"}"#, false),
    ("shadow-rule", "package p\nx if input.request.object.zz\ndeny contains 1 if { x; x := input.request.object.a }", r#"{"a": "b"}"#, false),
    ("shadow-helper", "package p\nx := \"a\"\nh if { input.request.object.a == x; x := \"b\" }\ndeny contains 1 if { not h }", r#"{"a": "a"}"#, false),
    ("shadow-head", "package p\nx := \"a\"\ndeny contains x if { input.request.object.a == x; some y, x in {\"k\": \"b\"} }", r#"{"a": "b"}"#, false),
    ("own-builtin", "package p\nstartswith(a, b) if a == b\ndeny contains 1 if startswith(input.request.operation, \"C\")", "{}", false),
    ("own-count", "package p\ncount(a) if a == 7\ndeny contains 1 if count(input.request.object)", "{}", false),
    ("fn-as-value", "package p\nf(_) if input.request.object.a\ndeny contains 1 if { f(1); input.request.object.q }\ndeny contains 2 if { not f }", r#"{"a": 1}"#, false),
    ("arity", "package p\nf(a) if a == 1\nh if f(2)\ndeny contains 1 if { not f(1, 2) }", r#"{"a": 1}"#, false),
    ("undef-in-let", "package p\nh if { y := input.request.object.zz in {\"a\"}; y == false }\ndeny contains 1 if not h", r#"{"a": 1}"#, false),
    ("undef-in-cmp", "package p\nh if { (input.request.object.zz in {\"a\"}) == false }\ndeny contains 1 if not h", r#"{"a": 1}"#, false),
    ("in-undef-cmp", "package p\nh if { (\"a\" in input.request.object.zz) == false }\ndeny contains 1 if not h", r#"{"a": 1}"#, false),
    ("in-str", "package p\nh if { (\"a\" in input.request.object.a) == false }\ndeny contains 1 if not h", r#"{"a": "a"}"#, false),
    ("let-false", "package p\nh if { y := input.request.object.a; y == false }\ndeny contains 1 if not h", r#"{"a": false}"#, false),
    ("cmp-undef-ne", "package p\nh if { input.request.object.zz != 1 }\ndeny contains 1 if not h", r#"{"a": false}"#, false),
    ("float-eq", "package p\ndeny contains 1 if { input.request.object.a == 1 }", r#"{"a": 1.0}"#, false),
    ("neg0", "package p\ndeny contains 1 if { input.request.object.a == 0 }", r#"{"a": -0.0}"#, false),
    ("count-loop-err", "package p\ndeny contains 1 if { count(input.request.object.a) == input.request.object.b[_] }", r#"{"a": "x", "b": []}"#, false),
    ("count-loop-err2", "package p\ndeny contains 1 if { startswith(input.request.object.a, input.request.object.b[_]) }", r#"{"a": 1, "b": []}"#, false),
    ("fn-2args-undef-err", "package p\nf(a, b) if a == b\ndeny contains 1 if { f(input.request.object.zz, count(input.request.object.a)) }", r#"{"a": "x", "b": []}"#, false),
    ("other-default", "package p\ndefault z := 1\nz := count(input.request.object.a) if true\ndeny contains 1 if { input.request.object.zz }", r#"{"a": 5}"#, false),
    ("helper-conflict", "package p\nh if input.request.object.a\nh := true if input.request.object.a\ndeny contains 1 if { not h }", r#"{"a": 5}"#, false),
    ("v0", "package p\nx = \"a\"\ndeny[msg] { input.request.object.a == x; x := \"b\"; msg := \"m\" }", r#"{"a": "b"}"#, true),
    ("v0some", "package p\nx = \"a\"\ndeny[msg] { input.request.object.a == x; some x; input.request.object.l[x]; msg := \"m\" }", r#"{"a": "k", "l": {"k": 1}}"#, true),
    ("strbool", "package p\nh if is_string(input.request.object.a)\ndeny contains 1 if not h", r#"{"a": null}"#, false),
    ("const-loop", "package p\nm := {\"a\", \"b\"}\ndeny contains 1 if input.request.object.a == m[_]", r#"{"a": "b"}"#, false),
    ("set-idx", "package p\nm := {\"a\", \"b\"}\ndeny contains 1 if m.a", r#"{"a": "b"}"#, false),
    ("str-loop", "package p\nm := \"abc\"\ndeny contains 1 if m[_]", r#"{"a": "b"}"#, false),
    ("lt-strict", "package p\ndeny contains 1 if input.request.object.a < 1", r#"{"a": "b"}"#, false),
    ("paramnull", "package p\nh if input.parameters.nn.x\ndeny contains 1 if not h", r#"{"a": "b"}"#, false),
    ("alias-imp", "package p\nimport input.request.object.a as al\ndeny contains 1 if al == \"b\"", r#"{"a": "b"}"#, false),
    ("arg-shadow-later", "package p\nf(v) if { v == \"a\"; v := 1 }\ndeny contains 1 if not f(input.request.object.a)", r#"{"a": "b"}"#, false),
    ("nested-compr-shadow", "package p\nx := \"a\"\ndeny contains 1 if { input.request.object.a == x; count([x | x := \"b\"]) == 1 }", r#"{"a": "b"}"#, false),
    ("same-name-loop", "package p\ndeny contains 1 if { c := input.request.object.l[_]; d := input.request.object.l[_]; c != d }", r#"{"l": [1, 2]}"#, false),
    ("order-dep", "package p\ndeny contains 1 if { y := input.request.object.a; startswith(y, 1); input.request.object.zz }", r#"{"a": "x"}"#, false),
    ("order-err-first", "package p\ndeny contains 1 if { input.request.object.zz; startswith(input.request.object.a, \"x\") }", r#"{"a": 1}"#, false),
    ("some-key-only", "package p\ndeny contains 1 if { some k, _ in input.request.object.m; k == \"b\" }", r#"{"m": {"b": null}}"#, false),
    ("raw", "package p\ndeny contains 1 if { input.request.object.a == `\\n` }", r#"{"a": "\\n"}"#, false),
    ("esc", "package p\ndeny contains 1 if { input.request.object[\"\\u00e4\"] == \"\\u00e4\\/\" }", r#"{"ä": "ä/"}"#, false),
    ("bignum", "package p\ndeny contains 1 if { input.request.object.a == 9223372036854775808 }", r#"{"a": 9223372036854775808}"#, false),
    ("hexnum", "package p\ndeny contains 1 if { input.request.object.a == 010 }", r#"{"a": 10}"#, false),
    ("paramidx", "package p\ndeny contains 1 if { input.parameters.b[0] == input.request.object.a }", r#"{"a": "a"}"#, false),
    ("objparam", "package p\ndeny contains 1 if { input.parameters.c[_] == input.request.object.a }", r#"{"a": "a"}"#, false),
    ("param-default", "package p\ndeny contains 1 if { object.get(input.parameters, \"zz\", \"a\") == input.request.object.a }", r#"{"a": "a"}"#, false),
    ("rulecount", "package p\nns := input.request.namespace\ndeny contains 1 if { not ns }", r#"{"a": "a"}"#, false),
    ("obj-null-member", "package p\nh if input.request.object.a\ndeny contains 1 if not h", r#"{"a": null}"#, false),
    ("fnv1", "package p\nf(x) if x == 1\ndeny contains 1 if { f(2) }\ndeny contains 2 if { not f }", r#"{"a": 1}"#, false),
    ("fnv2", "package p\nf(_) if true\ndeny contains 1 if { f(2); input.request.object.zz }\ndeny contains 2 if { not f }", r#"{"a": 1}"#, false),
    ("fnv3", "package p\nf(_) if true\ndeny contains 1 if { not f(1) }\ndeny contains 2 if { not f }", r#"{"a": 1}"#, false),
    ("arity2", "package p\nf(a) if a == 1\ndeny contains 1 if { f(2); input.request.object.zz }\ndeny contains 2 if { not f(1, 2) }", r#"{"a": 1}"#, false),
    ("arity3", "package p\nf(a) if a == 1\ndeny contains 1 if { f(2) }\ndeny contains 2 if { f(1, 2) }", r#"{"a": 1}"#, false),
    ("arity4", "package p\nf(a) if a == 1\ndeny contains 1 if { f(2) }\ndeny contains 2 if { f(5, x); x }", r#"{"a": 1}"#, false),
    ("arity5", "package p\nf(a) if a == 1\ndeny contains 1 if { f(2) }\ndeny contains 2 if { f(1, true); input.request.object.a }", r#"{"a": 1}"#, false),
    ("outarg", "package p\ndeny contains 1 if { count(input.request.object.l, 2); true }", r#"{"l": [1,2]}"#, false),
    ("own-sw2", "package p\nstartswith(a, b) if { a == b }\nq := 1\ndeny contains 1 if { startswith(\"CC\", \"C\") }", "{}", false),
    ("own-count2", "package p\ncount(a) := true if a == 7\nd := 1\ndeny contains 1 if { count(\"x\") }", "{}", false),
    ("own-isstr", "package p\nis_string(a) if a == 7\ndeny contains 1 if { is_string(\"x\") }", "{}", false),
    ("local-builtin", "package p\ndeny contains 1 if { count := 1; input.request.object.a == count }", r#"{"a": 1}"#, false),
    ("some-shadow-input", "package p\ndeny contains 1 if { some input in [1]; input == 1 }", r#"{"a": 1}"#, false),
    ("data-x", "package p\ndeny contains 1 if { data.p.q }\nq if input.request.object.a", r#"{"a": 1}"#, false),
    ("chain", "package p\ndeny contains 1 if { x := input.request.object.a; y := x.b; not y }", r#"{"a": 1}"#, false),
    ("let-not", "package p\ndeny contains 1 if { x := input.request.object.a; not x.b }", r#"{"a": {"b": false}}"#, false),
    ("cmp-in-cmp", "package p\ndeny contains 1 if { (input.request.object.a == 1) == false }", r#"{"a": 2}"#, false),
    ("cmp-undef-eq-false", "package p\ndeny contains 1 if { (input.request.object.zz == 1) == false }", r#"{"a": 2}"#, false),
    ("not-cmp-undef", "package p\nh if { (input.request.object.zz == 1) == false }\ndeny contains 1 if not h", r#"{"a": 2}"#, false),
    ("eq-list", "package p\ndeny contains 1 if { not input.request.object.a == [1] }", r#"{"a": [2]}"#, false),
    ("in-nested", "package p\nh if { (1 in input.request.object.a) in [true] }\ndeny contains 1 if not h", r#"{"a": [2]}"#, false),
    ("in-nested2", "package p\nh if { (1 in input.request.object.zz) in [false] }\ndeny contains 1 if not h", r#"{"a": [2]}"#, false),
    ("objget-undef-default", "package p\nh if { object.get(input.request.object, \"a\", input.request.object.zz) }\ndeny contains 1 if not h", r#"{"a": [2]}"#, false),
    ("isnull-undef", "package p\nh if { is_null(input.request.object.zz) == false }\ndeny contains 1 if not h", r#"{"a": [2]}"#, false),
    ("each-null", "package p\nh if { some x in input.request.object.a; x == null }\ndeny contains 1 if not h", r#"{"a": [null]}"#, false),
    ("each-in-helper-arg", "package p\nf(x) if x == 1\ndeny contains 1 if { f(input.request.object.l[_]) }", r#"{"l": [2, 1]}"#, false),
    ("not-f-null", "package p\nf(x) if x == null\ndeny contains 1 if { not f(input.request.object.a) }", r#"{"a": null}"#, false),
    ("f-undef-not", "package p\nf(x) if true\ndeny contains 1 if { not f(input.request.object.zz) }", r#"{"a": null}"#, false),
    ("f-wild-undef-not", "package p\nf(_) if true\ndeny contains 1 if { not f(input.request.object.zz) }", r#"{"a": null}"#, false),
    ("f-false-arg", "package p\nf(x) if x == false\ndeny contains 1 if { not f(input.request.object.a) }", r#"{"a": false}"#, false),
    ("rule-h-multi-err", "package p\nh if input.request.object.a\nh if startswith(input.request.object.a, \"x\")\ndeny contains 1 if { not h }", r#"{"a": 1}"#, false),
    ("rule-h-err-later", "package p\nf(x) if x == 1\nf(x) if startswith(x, \"x\")\ndeny contains 1 if { not f(input.request.object.a) }", r#"{"a": 1}"#, false),
    ("v0-neq-some", "package p\ndeny[m] { input.request.object.a != 1; m := 1 }", r#"{"a": 1.0}"#, true),
    ("v0-undef-in-eq", "package p\ndeny[m] { not h; m := 1 }\nh { input.request.object.l[_] == 1 }", r#"{"l": [1.0]}"#, true),
    ("v0-rule-val", "package p\nx = true { input.request.object.zz }\ndeny[m] { not x; m := 1 }", r#"{"l": [1.0]}"#, true),
    ("v0-import", "package p\nimport input.request.object as o\nimport input.request as q\ndeny[m] { o.a; m := 1 }", r#"{"a": 1}"#, true),
    ("dup-data-pkg", "package parameters\na2 := 5\ndeny contains 1 if { input.parameters.a2 == 5 }", r#"{"a": 1}"#, false),
    ("bool-idx", "package p\ndeny contains 1 if { input.request.object.l[0] == 1 }", r#"{"l": [1]}"#, false),
    ("key-str-num", "package p\ndeny contains 1 if { input.request.object.l[\"0\"] == 1 }", r#"{"l": [1]}"#, false),
    ("str-key", "package p\nh if { input.request.object.s[\"0\"] == 1 }\ndeny contains 1 if not h", r#"{"s": "abc"}"#, false),
    ("large-neg", "package p\ndeny contains 1 if { input.request.object.a == -1 }", r#"{"a": -1}"#, false),
    ("neg-const", "package p\nm := -1\ndeny contains 1 if { input.request.object.a == m }", r#"{"a": -1}"#, false),
    ("not-not", "package p\nh if not input.request.object.a\ndeny contains 1 if { not h }", r#"{"a": 1}"#, false),
];

#[test]
fn what_is_told_silent_is_silent_to_the_engine() {
    let (mut compiled, mut silent) = (0, Vec::new());
    for (name, text, object, is_v0) in CASES {
        let annotations: &[(&str, &str)] = if is_v0 { &[("syntax", "v0")] } else { &[] };
        // Some are refused when they are loaded, which is an answer too.
        let Some(mut program) = program(&format!("{text}\n"), annotations) else { continue };
        compiled += 1;
        if is_silent(&mut program, &serde_json::from_str(object).unwrap()) {
            silent.push(name);
        }
    }
    assert!(compiled > 60 && silent.len() > 10, "{compiled} compiled, silent: {silent:?}");
}
