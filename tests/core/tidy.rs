//! The house rules: layers, documentation, and that everything is where the README says.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use slicegate::policy::decision::RuleId;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All files below a folder whose name has one ending.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, ending));
        } else if path.extension().is_some_and(|extension| extension == ending) {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().display().to_string()
}

/// The modules of the pure core, each a file and perhaps a folder.
const PURE: [&str; 10] =
    ["json", "manifest", "names", "quantity", "workload", "facts", "config", "policy", "rego", "review"];

/// The modules of the shell, which it must not name either.
const SHELL: [&str; 13] = [
    "server",
    "cluster",
    "files",
    "feed",
    "metrics",
    "logging",
    "shutdown",
    "args",
    "certificates",
    "command",
    "policies",
    "workers",
    "version",
];

/// What the pure core must not name: the world outside of its arguments.
const IMPURE: [&str; 16] = [
    "tokio",
    "kube::",
    "k8s_openapi",
    "hyper",
    "axum",
    "std::fs",
    "std::env",
    "std::net",
    "std::process",
    "std::thread",
    "std::io",
    "SystemTime",
    "Instant",
    "Timestamp::now",
    "tracing",
    "println!",
];

#[test]
fn the_pure_core_names_nothing_of_the_shell() {
    let mut seen = 0;
    for file in files(&root().join("src"), "rs") {
        let name = shown(&file);
        let module = name.trim_start_matches("src/").split(['/', '.']).next().unwrap().to_owned();
        if !PURE.contains(&module.as_str()) || name.ends_with("tests.rs") {
            continue;
        }
        seen += 1;
        let text = fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap();
        for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
            for word in IMPURE {
                assert!(!line.contains(word), "{name} names {word}: {line}");
            }
            for shell in SHELL {
                assert!(!line.contains(&format!("crate::{shell}")), "{name} names the shell: {line}");
            }
        }
    }
    assert!(seen > 20, "only {seen} files of the pure core were found");
}

#[test]
fn every_module_says_what_it_does_and_is_reached() {
    let all = files(&root().join("src"), "rs");
    let texts: Vec<String> = all.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    for (file, text) in all.iter().zip(&texts) {
        let name = shown(file);
        if !name.ends_with("tests.rs") {
            assert!(text.starts_with("//! "), "{name} does not begin with what it does");
        }
        assert!(text.lines().count() <= 400, "{name} has over 400 lines");
        let stem = file.file_stem().unwrap().to_str().unwrap();
        if !["main", "lib", "build"].contains(&stem) {
            let declared = |text: &String| {
                text.lines().any(|line| {
                    let bare =
                        ["pub ", "pub(crate) ", "pub(super) "].iter().find_map(|word| line.trim().strip_prefix(word));
                    bare.unwrap_or(line.trim()) == format!("mod {stem};")
                })
            };
            assert!(texts.iter().any(declared), "{name} is reached by no mod");
        }
    }
}

#[test]
fn every_rule_has_a_file_a_row_in_the_readme_and_cases_of_both_outcomes() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    for rule in RuleId::ALL {
        let id = rule.as_str();
        let file = root().join(format!("src/policy/rules/{}.rs", id.replace('-', "_")));
        assert!(file.exists(), "{} is missing", file.display());
        assert!(readme.contains(&format!("`{id}`")), "the README does not name {id}");
        let cases = files(&root().join("tests/cases").join(id), "yaml");
        let outcomes: BTreeSet<bool> = cases
            .iter()
            .map(|case| fs::read_to_string(case).unwrap())
            .filter_map(|text| {
                text.lines().find_map(|line| line.trim().strip_prefix("allowed: ").map(|word| word == "true"))
            })
            .collect();
        assert_eq!(outcomes.len(), 2, "tests/cases/{id} needs a case that is let through and one that is refused");
    }
}

#[test]
fn the_top_level_is_the_owners() {
    let allowed =
        ["Cargo.toml", "Cargo.lock", "LICENSE", "README.md", "src", "policies", "certs", "deploy", "tests", "target"];
    for entry in fs::read_dir(root()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(name.starts_with('.') || allowed.contains(&name.as_str()), "{name} does not belong at the top level");
    }
}
