//! The reader against its case files: `NAME.yaml` beside `NAME.mistakes`, or without one where the text is good.

use std::fs;
use std::path::{Path, PathBuf};

use pretty_assertions::assert_eq;
use proptest::prelude::*;

use super::super::{Pool, Toleration};
use super::*;

const EXAMPLE: &str = include_str!("../../../tests/fixtures/config/example.yaml");
const HEAD: &str = "apiVersion: slicegate.io/v1alpha1\nkind: Config\n";

fn cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/config/cases")
}

fn good(name: &str) -> Config {
    let text = fs::read_to_string(cases().join(name)).unwrap();
    parse(&text).unwrap_or_else(|mistakes| panic!("{name}:\n{mistakes}"))
}

fn mistakes(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

#[test]
fn every_case_has_its_mistakes() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut lines = 0;
    let mut paths: Vec<PathBuf> = fs::read_dir(cases()).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|ending| ending == "yaml")) {
        let got = match parse(&fs::read_to_string(path).unwrap()) {
            Ok(_) => String::new(),
            Err(mistakes) => format!("{mistakes}\n"),
        };
        let file = path.with_extension("mistakes");
        if update && !got.is_empty() {
            fs::write(&file, &got).unwrap();
        }
        let want = fs::read_to_string(&file).unwrap_or_default();
        assert_eq!(got, want, "{}", path.display());
        assert_eq!(want.is_empty(), path.file_name().unwrap().to_string_lossy().starts_with("good-"));
        lines += want.lines().count();
    }
    assert!(lines >= 40, "{lines}");
    let orphans = |path: &&PathBuf| !path.with_extension("yaml").exists();
    assert_eq!(paths.iter().filter(orphans).count(), 0, "every file of mistakes has its text");
}

#[test]
fn the_example_and_an_empty_configuration_are_the_default() {
    assert_eq!(parse(EXAMPLE).unwrap(), Config::default());
    assert_eq!(parse(HEAD).unwrap(), Config::default());
    assert_eq!(good("good-nulls.yaml"), Config::default());
}

#[test]
fn pools_are_read_with_the_defaults_of_their_sharing() {
    let pools = good("good-everything.yaml").pools;
    let gpu = Toleration { key: "gpu".into(), operator: "Exists".into(), ..Toleration::default() };
    let mig = &pools[0];
    assert_eq!((mig.per_container, mig.per_pod), (Some(2), Some(4)));
    assert_eq!(mig.tolerations[0], Toleration { key: String::new(), ..gpu.clone() });
    let (operator, value, effect) = ("Equal".into(), "1".into(), "NoExecute".into());
    assert_eq!(mig.tolerations[1], Toleration { operator, value, effect, seconds: Some(300), ..gpu.clone() });
    assert_eq!(mig.tolerations[2], gpu);
    assert!(mig.admits_latency_critical && !mig.requires_checkpoint && !mig.inject.tolerations);
    let unlimited = &pools[1];
    assert_eq!((unlimited.per_container, unlimited.per_pod), (None, None));
    assert_eq!(unlimited.node_selector, mig.node_selector);
    assert!(!unlimited.admits_latency_critical && unlimited.requires_checkpoint);
    let whole = &pools[2];
    assert_eq!((whole.per_container, whole.per_pod), (None, Some(8)));
    assert!(whole.admits_latency_critical && !whole.requires_checkpoint && whole.inject.tolerations);
    let apart = good("good-same-resource-apart.yaml");
    assert_eq!(apart.pools_of_resource("nvidia.com/gpu").collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(apart.pools_of_resource("nvidia.com/mig-7g.40gb").collect::<Vec<_>>(), [3]);
    assert_eq!(apart.pools[2], Pool { default: true, ..apart.pools[2].clone() });
}

#[test]
fn everything_else_is_read() {
    let config = good("good-everything.yaml");
    let settings = config.rules.values().next().unwrap();
    let globs: Vec<&str> = settings.namespaces.iter().map(|(glob, _)| glob.as_str()).collect();
    assert_eq!(globs, ["team-a", "b", "team-*-x", "team-*", "b-*-c", "a*", "*"]);
    let until = |place: usize| config.exemptions[place].until.map(|until| until.to_string());
    assert_eq!(until(0).as_deref(), Some("2027-02-01T00:00:00Z"));
    assert_eq!(until(1).as_deref(), Some("2027-01-31T17:00:00Z"));
    assert_eq!(until(2), None);
    assert_eq!(config.exemptions[1].reason, "trimmed");
    assert_eq!(config.workloads[0].templates, [["spec", "workers", "*", "template"]]);
    assert_eq!(config.workloads[0].pod_specs, [["spec", "driver/pod", "a~b"]]);
    let built_in = Config::default();
    assert_eq!(config.gpu_resources.len(), built_in.gpu_resources.len() + 1);
    assert!(config.gpu_resources.starts_with(&built_in.gpu_resources) && config.is_gpu("example.com/gpu"));
    assert_eq!(config.controllers.len(), built_in.controllers.len() + 1);
    assert_eq!((config.latency_label.as_str(), config.on_deadline), ("example.com/latency", OnDeadline::Allow));
}

#[test]
fn unknown_fields_can_be_told_from_the_rest() {
    assert!(parse(&format!("{HEAD}newer: 1\n")).unwrap_err().are_unknown_fields());
    assert!(!parse(&format!("{HEAD}newer: 1\nenforcement: x\n")).unwrap_err().are_unknown_fields());
}

#[test]
fn hostile_texts_are_refused_and_bounded() {
    let size = 1 << 20;
    for unit in [
        "[",
        "{",
        "{a: ",
        "- ",
        "? ",
        "a: &a [*a, ",
        "!!map {",
        "\"",
        "'",
        "&a ",
        "*a ",
        "#",
        ",",
        "a\n",
        "\t",
        "- a\n",
        "|\n ",
    ] {
        assert!(parse(&unit.repeat(size / unit.len())).is_err(), "{unit}");
        let _ = parse(&format!("{HEAD}pools: {}", unit.repeat(size / unit.len() / 2)));
    }
    assert_eq!(mistakes(&" ".repeat(size + 1)), "line 1, column 1: the configuration is longer than 1048576 bytes");
    let laughs = (1..40).fold("a0: &a0 [x, x]\n".to_owned(), |text, level| {
        let below = level - 1;
        format!("{text}a{level}: &a{level} [*a{below}, *a{below}, *a{below}]\n")
    });
    assert!(mistakes(&laughs).contains("too large with its aliases counted in full"));
    let chain = (1..40)
        .fold("a0: &a0 [x]\n".to_owned(), |text, level| format!("{text}a{level}: &a{level} [*a{}]\n", level - 1));
    assert!(mistakes(&chain).contains("nested deeper than 32 levels by its aliases"));
    let long = format!("{HEAD}gpuResources: [&a \"{}\", {}]\n", "x".repeat(500_000), "*a,".repeat(100_000));
    assert!(mistakes(&long).contains("too large"));
    let keys = (0..100_000).map(|number| format!("k{number}:\n")).collect::<Vec<_>>().concat();
    let lines = mistakes(&format!("{HEAD}{keys}"));
    assert!(lines.lines().count() == 501 && lines.ends_with("99500 further mistakes are not shown"), "{lines}");
    let globs = |count: usize| {
        let domain = format!("{0}*{0}.{1}*{1}.{1}*", "a".repeat(31), "a".repeat(30));
        let globs = (0..count).map(|number| format!("\"{domain}/{}{number}*\"", "a".repeat(50)));
        format!("{HEAD}pools: [{{name: a, sharing: MPS, resources: [{}]}}]", globs.collect::<Vec<_>>().join(","))
    };
    assert!(mistakes(&globs(65)).contains("more than 64 globs"));
    assert!(mistakes(&globs(64)).contains("of the same pool"));
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in any::<String>()) {
        let _ = parse(&text);
        let _ = parse(&format!("{HEAD}{text}"));
    }

    #[test]
    fn no_yaml_makes_it_panic(text in "[a-z0-9:\\-\\[\\]{},&*!|>'\"# \n\t?%~/.]{0,200}") {
        let _ = parse(&text);
        let _ = parse(&format!("{HEAD}{text}"));
    }

    #[test]
    fn no_change_of_the_example_makes_it_panic(
        start in 0..EXAMPLE.len(),
        length in 0_usize..40,
        insert in "[a-zA-Z0-9:\\-\\[\\]{},&*!'\"# \n\t~/.]{0,12}",
    ) {
        let characters = EXAMPLE.chars();
        let (before, after) = (characters.clone().take(start), characters.skip(start.saturating_add(length)));
        let text: String = before.chain(insert.chars()).chain(after).collect();
        if let Err(mistakes) = parse(&text) {
            let lines = text.lines().count().saturating_add(1);
            prop_assert!(!mistakes.0.is_empty());
            prop_assert!(mistakes.0.iter().all(|mistake| (1..=lines).contains(&mistake.line) && mistake.column > 0));
            prop_assert!(mistakes.0.is_sorted_by_key(|mistake| (mistake.line, mistake.column)));
        }
    }
}
