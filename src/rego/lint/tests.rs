//! Tables of policies and what is found in them: the file's text, then the problems that it must have, each as
//! `line:column words`, in order.

use super::*;

const V1: &str = "package gpu.admission\n\n";

fn parse(files: &[(&str, &str)], v0: bool) -> Vec<Ref<Module>> {
    let mut engine = regorus::Engine::new();
    engine.set_rego_v0(v0);
    for (name, text) in files {
        engine.add_policy((*name).to_owned(), (*text).to_owned()).unwrap();
    }
    engine.get_modules().clone()
}

#[derive(Default)]
struct Options {
    v0: bool,
    is_library: bool,
    suffixes: bool,
    data: &'static str,
    libraries: &'static [&'static str],
}

fn run<T>(files: &[(&str, &str)], options: &Options, check: impl Fn(&Unit<'_>) -> T) -> T {
    let modules = parse(files, options.v0);
    let tests = files.iter().map(|(name, _)| (*name).to_owned()).filter(|name| name.ends_with("_test.rego")).collect();
    let libraries = options.libraries.iter().map(|name| (*name).to_owned()).collect();
    let text = if options.data.is_empty() { "{}" } else { options.data };
    let value = Value::from_json_str(text).unwrap();
    let data = value.as_object().unwrap().iter();
    let data = data.map(|(name, value)| (name.as_string().unwrap().to_string(), value.clone())).collect();
    check(&Unit {
        modules: &modules,
        libraries: &libraries,
        tests: &tests,
        is_library: options.is_library,
        suffixes_everywhere: options.suffixes,
        data: &data,
    })
}

fn found(files: &[(&str, &str)], options: &Options) -> Report {
    run(files, options, check)
}

/// `file:line:column` must begin, and the words must occur in, each problem.
fn assert_problems(about: &str, problems: &[Problem], wanted: &[&str]) {
    let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(problems.len(), wanted.len(), "{about}: {all:#?}");
    for (problem, wanted) in all.iter().zip(wanted) {
        let (position, words) = wanted.split_once(' ').unwrap();
        assert!(problem.starts_with(position), "{about}: {problem} is not at {position}");
        for words in words.split(" / ") {
            assert!(problem.contains(words), "{about}: {problem} lacks {words}");
        }
    }
}

/// One module, without its package: its errors.
const ERRORS: &[(&str, &[&str])] = &[
    // Builtins that are lacking or refused, everywhere that a call can be.
    ("deny contains \"x\" if io.jwt.decode(input.request.x)[1].a\n", &["p.rego:3:22 `io.jwt.decode` / tokens"]),
    ("deny contains \"x\" if {\n\tr := http.send({})\n\tr.a\n}\n", &["p.rego:4:7 `http.send` / other servers"]),
    ("deny contains \"ü\" if rand.intn(\"é\", 2) == 1\n", &["p.rego:3:22 `rand.intn` / chance"]),
    ("deny contains time.now_ns() if true\n", &["p.rego:3:15 `time.now_ns` / clock"]),
    ("default a := [1 | opa.runtime()]\n\ndeny contains \"x\" if a\n", &["p.rego:3:19 `opa.runtime`"]),
    ("deny contains \"x\" if every a in [1] { crypto.md5(a) == 1 }\n", &["p.rego:3:39 `crypto.md5`"]),
    ("deny contains \"x\" if count([a | a := uuid.rfc4122(\"\")]) > 0\n", &["p.rego:3:38 `uuid.rfc4122`"]),
    ("deny contains \"x\" if true with input as net.lookup_ip_addr(\"a\")\n", &["p.rego:3:41 `net.lookup_ip_addr`"]),
    ("deny contains \"x\" if f(1)\n\nf(x) := external_data({})\n", &["p.rego:5:9 `external_data`"]),
    ("deny contains \"x\" if a with data.gpu.admission.a as time.clock\n\na := 1\n", &["p.rego:3:53 `time.clock`"]),
    (
        "deny contains \"x\" if time.clock(time.now_ns()) == [1]\n",
        &["p.rego:3:22 `time.clock`", "p.rego:3:33 `time.now_ns`"],
    ),
    ("deny contains \"x\" if frobnicate(1)\n", &["p.rego:3:22 no function `frobnicate`"]),
    ("deny contains \"x\" if a(1)\n\na := 1\n", &["p.rego:3:22 `a` is a rule and no function"]),
    ("deny contains \"x\" if data.gpu.admission.b(1)\n", &["p.rego:3:22 no function `data.gpu.admission.b`"]),
    ("deny contains \"x\" if abs(1, 2, 3) == 1\n", &["p.rego:3:22 `abs` takes 1 argument and is given 3"]),
    ("deny contains \"x\" if f(1) == 2\n\nf(x, y) := 1\n", &["p.rego:3:22 `f` takes 2 arguments and is given 1"]),
    ("deny contains \"x\" if split(\"a/b\", \"/\", p)\n", &[]),
    ("deny contains \"x\" if print(\"a\", 1, 2)\n", &[]),
    ("deny contains \"x\" if -input.request.x == 3 - input.request.y\n", &["p.rego:3:22 sign"]),
    ("deny contains \"x\" if -1 < - 2\n", &[]),
    (
        "deny contains \"x\" if {\n\tinput.request.a\n\t(1 + 2) > input.request.b\n}\n",
        &["p.rego:4:2 `input.request.a` and the parentheses on the next line"],
    ),
    // Cycles.
    ("a if b\n\nb if a\n\ndeny contains \"x\" if a\n", &["p.rego:3:1 a -> b -> a need each other"]),
    ("f(x) := f(x + 1)\n\ndeny contains \"x\" if f(1)\n", &["p.rego:3:1 f -> f needs itself"]),
    (
        "ping(x) := pong(x)\n\npong(x) := ping(x)\n\ndeny contains \"x\" if ping(1)\n",
        &["p.rego:3:1 ping -> pong -> ping"],
    ),
    ("a := data[x] if x := \"gpu\"\n\ndeny contains \"x\" if a\n", &["p.rego:3:1 a -> a"]),
    ("a := data.gpu\n\ndeny contains \"x\" if a\n", &["p.rego:3:1 a -> a"]),
    ("a := {\"b\": c}\n\nc := a.b\n\ndeny contains \"x\" if c\n", &["p.rego:3:1 a -> c -> a"]),
    ("a := [b | some b in [1]]\n\nb := a\n\ndeny contains \"x\" if b\n", &["p.rego:3:16 `b` is a rule"]),
    ("a := 1 if { b := 1; b == 1 }\n\nb := a\n\ndeny contains \"x\" if b\n", &[]),
    // Names.
    ("default a := 1\n\ndefault a := 2\n\ndeny contains \"x\" if a\n", &["p.rego:5:9 second default / line 3"]),
    (
        "import data.lib.images\n\ndeny contains \"x\" if images.bad(1)\n",
        &["p.rego:3:1 `data.lib.images` is imported", "p.rego:5:22 no function `data.lib.images.bad`"],
    ),
    ("deny contains \"x\" if data.lib.a.b\n", &["p.rego:3:22 `data.lib.a.b` is in no library"]),
    (
        "deny contains \"x\" if data.inventory.namespace[_].a\n",
        &["p.rego:3:22 `data.inventory` / other objects of the cluster"],
    ),
    ("import data.kubernetes.pods\n\ndeny contains \"x\" if pods\n", &["p.rego:3:1 `data.kubernetes` / other objects"]),
    // Constants.
    (
        "deny contains \"x\" if not regex.match(`^(?!kube-).*$`, \"a\")\n",
        &["p.rego:3:38 regular expression / look-ahead"],
    ),
    ("deny contains \"x\" if glob.match(\"[\", [], \"a\")\n", &["p.rego:3:33 invalid glob"]),
    ("deny contains \"x\" if glob.match(\"*-a\", [\"ab\"], \"a\")\n", &["p.rego:3:33 glob"]),
    ("deny contains \"x\" if glob.match(\"*-a\", null, \"a\")\n", &[]),
    ("deny contains \"x\" if glob.match(\"*-a\", \"a\")\n", &["p.rego:3:22 takes 3 arguments and is given 2"]),
    ("deny contains \"x\" if glob.match(\"[!a\", [])\n", &["p.rego:3:22 takes 3 arguments and is given 2"]),
    ("deny contains sprintf(\"%1000000000d\", [1]) if true\n", &["p.rego:3:23 width"]),
    ("deny contains sprintf(\"%-5.2f %% %v\", [1, 2]) if true\n", &[]),
    ("deny contains sprintf(\"%s\", [1, 2]) if true\n", &["p.rego:3:23 1 verbs and is given 2 values"]),
    ("deny contains \"x\" if count(numbers.range(1, 1000000000)) > 1\n", &["p.rego:3:42 range"]),
    ("deny contains \"x\" if numbers.range_step(1, 5, 0)\n", &["p.rego:3:47 step"]),
    ("deny contains \"x\" if 1 / 0 > 2\n", &["p.rego:3:26 division by zero"]),
    // Heads.
    ("deny contains msg if input.request.x\n", &["p.rego:3:15 `msg` has no value"]),
    ("deny contains sprintf(\"%s\", [who]) if input.request.x\n", &["p.rego:3:30 `who` has no value"]),
    ("deny contains msg if msg = \"a\"\n", &[]),
    ("deny contains msg if { input.request.x[msg] }\n", &[]),
    ("deny contains {\"msg\": m, \"all\": [y | y := [1][_]]} if { some m in [\"a\"] }\n", &[]),
    ("deny(x) := 1 if x\n", &["p.rego:3:1 `deny` is a function"]),
    ("deny.a contains \"x\" if true\n", &["p.rego:3:1 `deny` must be a set itself"]),
];

#[test]
fn errors_are_found_where_they_are() {
    for (text, wanted) in ERRORS {
        let report = found(&[("p.rego", &format!("{V1}{text}"))], &Options::default());
        assert_problems(text, &report.errors, wanted);
    }
}

/// One module, without its package: its warnings.
const WARNINGS: &[(&str, &[&str])] = &[
    ("deny contains \"x\" if input.request.x\n", &[]),
    ("a := 1\n", &[":0 no rule that is asked", "p.rego:1:1 package `gpu.admission` has neither"]),
    ("deny contains \"x\" if 3 > data.params.max\n", &["p.rego:3:26 `data.params.max` / this `deny` can never fire"]),
    ("deny contains \"x\" if false\n", &["p.rego:3:22 can never fire"]),
    ("deny if input.request.x\n", &["p.rego:3:1 `deny` is one value"]),
    ("deny[\"a\"] := \"b\" if input.request.x\n", &["p.rego:3:1 `deny` is an object"]),
    ("deny[msg] if msg := \"b\"\n", &["p.rego:3:1 the value true"]),
    ("deny contains {\"message\": \"a\"} if true\n", &["p.rego:3:16 no `msg`"]),
    ("warn contains \"x\" if input.spec.a\n", &["p.rego:3:22 `input.spec` / input.request.object.spec"]),
    ("warn contains \"x\" if input.parameters.a\n", &["p.rego:3:22 no data document `parameters`"]),
    ("import input.metadata as m\n\nwarn contains \"x\" if m.a\n", &["p.rego:5:22 `input.metadata`"]),
    (
        "denies contains \"x\" if true\n\nwarn contains \"x\" if true\n",
        &["p.rego:3:1 `denies` is never asked / call it `deny`"],
    ),
    ("Deny contains \"x\" if true\n\nwarn contains \"x\" if true\n", &["p.rego:3:1 `Deny` / `deny`"]),
    ("violatin contains \"x\" if true\n\nwarn contains \"x\" if true\n", &["p.rego:3:1 `violation`"]),
    ("violations := 1\n\nwarn contains \"x\" if violations > 1\n", &[]),
    ("deny_team contains \"x\" if true\n\nwarn contains \"x\" if true\n", &["p.rego:3:1 suffixes"]),
];

#[test]
fn warnings_are_found_where_they_are() {
    for (text, wanted) in WARNINGS {
        let report = found(&[("p.rego", &format!("{V1}{text}"))], &Options::default());
        let wanted: Vec<&str> = wanted
            .iter()
            .map(|it| it.strip_prefix(":0 ").map_or(*it, |_| "this this set has no rule that is asked"))
            .collect();
        assert_problems(text, &report.warnings, &wanted);
        assert_problems(text, &report.errors, &[]);
    }
}

#[test]
fn modules_are_seen_together() {
    let own = "package a\n\nimport data.lib.images\n\ndeny contains \"x\" if images.bad(input.request.name)\n";
    let library = "package lib.images\n\nbad(name) if name == \"x\"\n";
    let options = Options { libraries: &["images.rego"], ..Options::default() };
    assert_eq!(found(&[("a.rego", own), ("images.rego", library)], &options), Report::default());

    let broken = "package lib.images\n\nbad(name) if time.now_ns() > 1\n";
    let report = found(&[("a.rego", own), ("images.rego", broken)], &options);
    assert_problems("library", &report.errors, &["images.rego:3:14 time.now_ns"]);

    let one = "package a\n\nimport data.u as f\n\ndeny contains f.x if true\n";
    let two = "package a\n\nimport data.v as f\n\nwarn contains f.x if true\n";
    let rest = [("u.rego", "package u\n\nx := 1\n"), ("v.rego", "package v\n\nx := 1\n")];
    let report = found(&[("a.rego", one), ("b.rego", two), rest[0], rest[1]], &Options::default());
    assert_problems(
        "aliases",
        &report.errors,
        &["b.rego:3:1 `f` is imported as `data.v` here and as `data.u` in a.rego / package `a`"],
    );
    assert_problems("aliases", &report.warnings, &[]);

    let report = found(
        &[("a.rego", "package a\n\nx := data.b.y\n"), ("b.rego", "package b\n\ny := data.a.x\n")],
        &Options::default(),
    );
    assert_problems("cycle", &report.errors, &["a.rego:3:1 x -> data.b.y -> x"]);
}

#[test]
fn tests_may_replace_what_is_not_there() {
    let own = "package a\n\ndeny contains \"x\" if data.params.max > 1\n";
    let test = "package a\n\ntest_x if \"x\" in deny with data.params.max as 2 with input.spec as 1\n\ntest_y if count(data.nothing) == 0\n";
    let report = found(
        &[("a.rego", own), ("a_test.rego", test)],
        &Options { data: r#"{"params": {"max": 1}}"#, ..Options::default() },
    );
    assert_eq!(report, Report::default());
    let sent = "package a\n\ntest_x if \"x\" in deny with http.send as {}\n";
    let report = found(
        &[("a.rego", own), ("a_test.rego", sent)],
        &Options { data: r#"{"params": {"max": 1}}"#, ..Options::default() },
    );
    assert_problems("test", &report.errors, &["a_test.rego:3:28 http.send"]);
}

#[test]
fn documents_must_not_hide_rules() {
    let text = "package a\n\ndeny contains \"x\" if true\n";
    for (data, hidden) in [(r#"{"a": {"deny": []}}"#, true), (r#"{"a": 3}"#, true), (r#"{"a": {"b": 1}}"#, false)] {
        let data: &'static str = data;
        let report = found(&[("a.rego", text)], &Options { data, ..Options::default() });
        let wanted: &[&str] = if hidden { &["a.rego:3:1 document `a` / `data.a.deny`"] } else { &[] };
        assert_problems(data, &report.errors, wanted);
    }
}

#[test]
fn libraries_stay_below_lib() {
    let options = Options { is_library: true, ..Options::default() };
    assert_eq!(found(&[("a.rego", "package lib.a\n\nx := 1\n")], &options), Report::default());
    let report = found(&[("a.rego", "package a.lib\n\nx := 1\n")], &options);
    assert_problems("library", &report.errors, &["a.rego:1:9 below `lib`"]);
}

#[test]
fn old_syntax_is_read_alike() {
    let text = "package k8s\n\nviolation[{\"msg\": msg}] {\n  c := input.review.object.spec.containers[_]\n  msg := sprintf(\"%v\", [c.name])\n}\n\nviolation[{\"msg\": who}] { input.review.x }\n";
    let report = found(&[("a.rego", text)], &Options { v0: true, ..Options::default() });
    assert_problems("v0", &report.errors, &["a.rego:8:19 `who` has no value"]);
    assert_problems("v0", &report.warnings, &[]);
}

#[test]
fn bare_objects_have_no_request() {
    let text = "package main\n\ndeny_x contains \"x\" if input.spec.a\n\nwarn contains \"x\" if input.request.object\n";
    let report = found(&[("a.rego", text)], &Options { suffixes: true, ..Options::default() });
    assert_problems("object", &report.warnings, &["a.rego:5:22 `input.request` is not there"]);
}

#[test]
fn deep_chains_of_rules_are_refused() {
    let chain = |count: usize| {
        let rules: Vec<String> = (1..count).map(|rule| format!("r{rule} := r{}", rule - 1)).collect();
        let rules = rules.join("\n");
        format!("package a\n\nr0 := 1\n{rules}\n\ndeny contains \"x\" if r{} > 1\n", count - 1)
    };
    assert_problems("chain", &found(&[("a.rego", &chain(150))], &Options::default()).errors, &[]);
    let report = found(&[("a.rego", &chain(300))], &Options::default());
    assert_problems("chain", &report.errors, &["a.rego: overflow the stack"]);
    let report = found(&[("a.rego", &chain(19_000))], &Options::default());
    assert_problems("chain", &report.errors, &["a.rego: overflow the stack"]);
}

#[test]
fn long_bodies_are_refused() {
    let body = "  true\n".repeat(700);
    let report =
        found(&[("a.rego", &format!("package a\n\ndeny contains \"x\" if {{\n{body}}}\n"))], &Options::default());
    assert_problems("body", &report.errors, &["a.rego:604:3 600 statements"]);
}

#[test]
fn the_rules_that_are_asked_are_listed() {
    let files = [
        (
            "a.rego",
            "package gpu.admission\n\ndeny contains \"x\" if true\n\ndeny_x contains \"y\" if true\n\nwarn := 1\n\nhelper(x) := x\n",
        ),
        ("b.rego", "package gpu.admission\n\ndeny contains \"z\" if true\n\ndeny[\"q\"] := 1\n"),
        ("m.rego", "package main\n\nviolation_y contains \"y\" if true\n\npatch contains {} if true\n"),
        ("s.rego", "package system\n\nmain := {}\n"),
        ("q.rego", "package a[\"b-c\"]\n\ndeny contains \"x\" if true\n"),
        ("a_test.rego", "package gpu.admission\n\nviolation contains \"x\" if true\n"),
    ];
    let list = |suffixes| {
        let options = Options { suffixes, ..Options::default() };
        let entries = run(&files, &options, rules::entries);
        entries
            .iter()
            .map(|it| format!("{}.{} {:?} {}:{} {}", it.package, it.rule, it.kind, it.file, it.line, it.is_set))
            .collect::<Vec<_>>()
    };
    let mut wanted = vec![
        "data.a[\"b-c\"].deny Deny q.rego:3 true",
        "data.gpu.admission.deny Deny a.rego:3 false",
        "data.gpu.admission.warn Warn a.rego:7 false",
        "data.main.patch Patch m.rego:5 true",
        "data.main.violation_y Violation m.rego:3 true",
        "data.system.main Main s.rego:3 false",
    ];
    assert_eq!(list(false), wanted);
    wanted.insert(2, "data.gpu.admission.deny_x Deny a.rego:5 true");
    assert_eq!(list(true), wanted);
}
