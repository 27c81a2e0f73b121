use super::*;

fn expression(text: &str) -> Vec<Problem> {
    check("p.rego", &format!("package t\n\nx := {text}\n"))
}

fn nested(open: &str, close: &str, levels: usize) -> String {
    format!("{}1{}", open.repeat(levels), close.repeat(levels))
}

/// Nesting per form: levels that pass, levels that do not, a word of the reason.
const NESTING: [(&str, &str, usize, usize, &str); 16] = [
    ("[", "]", 14, 18, "doubles"),
    ("{", "}", 14, 18, "doubles"),
    ("{\"a\":", "}", 13, 18, "doubles"),
    ("{1:", "}", 13, 18, "doubles"),
    ("([", "])", 13, 18, "doubles"),
    ("f([", "])", 13, 18, "doubles"),
    ("a[[", "]]", 13, 18, "doubles"),
    ("[1 | ", "| 2]", 8, 12, "doubles"),
    ("{1 | ", ", 2}", 8, 12, "doubles"),
    ("[1 | a, ", " in x, 1]", 8, 14, "doubles"),
    ("{1: - ", "}", 13, 18, "doubles"),
    ("[1,\n", "]", 64, 65, "64 deep"),
    ("{\"z\": 1, \"a\":\n", "}", 64, 65, "64 deep"),
    ("f(\n", ")", 64, 65, "64 deep"),
    ("a[\n", "]", 64, 65, "64 deep"),
    ("-\n", "", 63, 64, "64 deep"),
];

#[test]
fn nesting_is_limited_by_what_it_costs() {
    for (open, close, good, bad, word) in NESTING {
        assert_eq!(expression(&nested(open, close, good)), [], "{good} levels of {open:?}");
        let problems = expression(&nested(open, close, bad));
        assert!(problems[0].message.contains(word), "{bad} levels of {open:?}: {problems:?}");
    }
}

#[test]
fn chains_are_limited() {
    for link in ["+ 1\n", "\n| x", "\n== 1", " in\nx", "[\n1]", "\n-1", ".\na"] {
        assert_eq!(expression(&format!("a{}", link.repeat(200))), [], "200 of {link:?}");
        let problems = expression(&format!("a{}", link.repeat(300)));
        assert!(problems[0].message.contains("240"), "300 of {link:?}: {problems:?}");
    }
    let zigzag = format!("{}1{}", "[1,\n".repeat(40), "] +\n1 + 1 + 1 + 1 + 1 + 1".repeat(40));
    assert!(expression(&zigzag)[0].message.contains("240"), "chains add up through brackets");
}

#[test]
fn the_bracket_to_blame_is_named() {
    let problems = check("p.rego", &format!("package t\n\n# [[[[ é\nü := \"é[\" + {}\n", nested("[", "]", 20)));
    assert_eq!((problems[0].line, problems[0].column), (4, 13), "{problems:?}");
}

#[test]
fn strings_and_comments_are_skipped() {
    let many = "[".repeat(100);
    let text =
        format!("package t\n\n# {many}\nx := \"{many}\\\"{many}\"\ny := `{many}\n{many}\"`\nz := \"`\" # {many}`\n");
    assert_eq!(check("p.rego", &text), []);
}

#[test]
fn what_people_write_passes() {
    let pod = r#"{"request": {"uid": "u", "object": {"kind": "CronJob", "spec": {"jobTemplate": {"spec": {"template": {"spec":
        {"containers": [{"name": "a", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}}}}}}}}"#;
    let tests = format!("test_x if {{\n count(deny) == 1 with input as {pod}\n}}\n\n").repeat(200);
    assert_eq!(check("p_test.rego", &format!("package t\n\n{tests}")), []);
    let rules = "deny contains msg if {\n\tsome c in input.request.object.spec.containers\n\tnot c.a[\"b\"].d\n\tx := {y |\n\t\ty := \
                 c.b[_]\n\t\ty != \"a\"\n\t}\n\tcount(x) > 1\n\tmsg := sprintf(\"%v %v\", [c.name, x])\n}\n\n"
        .repeat(2000);
    assert_eq!(check("p.rego", &format!("package t\n\n{rules}")), []);
    let v0 =
        "deny[msg] {\n  x := input.a\n  x[_].b == [1, 2][_]\n  msg := {\"msg\": \"a\"}\n} else = 1 {\n true\n}\n\n"
            .repeat(500);
    assert_eq!(check("p.rego", &format!("package t\n\n{v0}")), []);
}

/// What passes must not end the process: parsed and evaluated on the stack of a test's thread, 2 MiB.
#[test]
fn the_deepest_that_passes_is_safe_in_the_engine() {
    let chains = ["+ 1\n", "[\n1]", "\n| x"].map(|link| format!("a{}", link.repeat(238)));
    let levels = NESTING.iter().filter(|(_, _, good, ..)| *good > 60);
    let levels: Vec<String> = levels.map(|(open, close, good, ..)| nested(open, close, *good)).collect();
    for text in levels.iter().chain(&chains) {
        let mut engine = regorus::Engine::new();
        let policy = format!("package t\n\nx := {text}\n\na := {{}}\n\nf(y) := y\n");
        assert_eq!(check("p.rego", &policy), []);
        if engine.add_policy("p.rego".to_owned(), policy).is_ok() {
            let _ = engine.eval_rule("data.t.x".to_owned());
        }
    }
}

#[test]
fn odd_texts_are_left_to_the_parser() {
    for text in ["", "]", "}}}", "\"", "`", "\\", "package t\nx := \"\\", "[", "\u{feff}package t", "a\r\nb", "é"] {
        assert_eq!(check("p.rego", text), [], "{text:?}");
    }
}
