//! The small verbs: what they print, and how they end.

use std::process::{Command, Output};

use serde_json::{Value, json};
use slicegate::version::VERSION;

use crate::support::server::{Options, TestServer};

/// Runs what must succeed, and returns what it printed.
fn printed(flags: &[&str]) -> String {
    let Output { status, stdout, stderr } = run(flags);
    assert_eq!((status.code(), String::from_utf8_lossy(&stderr).as_ref()), (Some(0), ""), "{flags:?}");
    String::from_utf8(stdout).unwrap()
}

fn run(flags: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_slicegate")).args(flags).output().unwrap()
}

#[test]
fn the_schema_is_that_of_the_parser() {
    let schema: Value = serde_json::from_str(&printed(&["schema"])).unwrap();
    assert_eq!(schema, slicegate::config::schema::schema());
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(
        schema["properties"]["pools"]["items"]["properties"]["sharing"]["enum"],
        json!(["TimeSlicing", "MPS", "MIG", "Exclusive"])
    );
}

#[test]
fn versions_are_those_of_the_admin_port() {
    let told: Value = serde_json::from_str(&printed(&["version", "--output", "json"])).unwrap();
    assert_eq!(told, serde_json::to_value(VERSION).unwrap());
    assert_eq!(told["version"], env!("CARGO_PKG_VERSION"));
    let server = TestServer::start(Options::default());
    assert_eq!(server.get("/version").json(), told);
    let text = printed(&["version"]);
    let members = told.as_object().unwrap().values().map(|value| value.as_str().unwrap());
    for value in members {
        assert!(!value.is_empty() && text.contains(value), "{value}: {text}");
    }
    for part in ["rust", "kubernetes", "regorus"] {
        assert!(told[part].as_str().unwrap().starts_with(|first: char| first.is_ascii_digit()), "{told}");
    }
    let flag = printed(&["--version"]);
    assert_eq!(flag.trim(), format!("slicegate {}", env!("CARGO_PKG_VERSION")));
}

#[test]
fn completions_know_the_verbs_and_nothing_hidden() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let text = printed(&["completions", shell]);
        for word in ["serve", "certs", "tls-cert", "key-type", "coverage-min"] {
            assert!(text.contains(word), "{shell} lacks {word}");
        }
        let hidden = [",rego-worker", "'rego-worker", "Evaluate policies for the server"];
        assert!(!hidden.iter().any(|word| text.contains(word)), "{shell} shows what is hidden");
    }
    let source = "eval \"$1\" && complete -p slicegate";
    let bash = Command::new("bash").args(["-c", source, "bash", &printed(&["completions", "bash"])]).output().unwrap();
    assert!(bash.status.success(), "{}", String::from_utf8_lossy(&bash.stderr));
}

#[test]
fn wrong_use_ends_with_2() {
    for flags in
        [&["completions"][..], &["completions", "csh"], &["schema", "x"], &["version", "-o", "yaml"], &["versions"]]
    {
        assert_eq!(run(flags).status.code(), Some(2), "{flags:?}");
    }
}

#[test]
fn every_verb_has_examples_and_exit_codes() {
    for verb in ["certs", "schema", "completions", "version"] {
        let help = printed(&[verb, "--help"]);
        assert!(help.contains("Examples:\n  ") && help.contains("Exit codes:\n  0  "), "{help}");
    }
}
