//! The JSON Schema of the configuration against the parser, on every configuration that is here and on damaged ones.

use std::sync::OnceLock;

use jsonschema::Validator;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::Value;
use slicegate::config::parse;
use slicegate::config::schema::schema;

use crate::seeds;

/// Mistakes that a schema cannot see, as words of the parser's message, each with its reason.
const BEYOND: [(&str, &str); 14] = [
    ("is in the list twice", "kinds are compared by two of their fields"),
    ("the same toleration is in the list twice", "tolerations are compared under their defaults"),
    ("the same JSON pointer is there twice", "two lists are compared with each other"),
    ("a Node can belong to both pools", "two pools are compared with each other"),
    ("is the default for", "two pools are compared with each other"),
    ("overlaps", "two globs are compared with each other"),
    ("the pool on line", "two pools are compared with each other"),
    ("less than perContainer", "two numbers are compared with each other"),
    ("set perPod as well", "a number is compared with a default"),
    ("need two label keys", "two texts are compared with each other"),
    ("globs in all", "elements of several lists are counted together"),
    ("no rule has the id", "a glob is matched against the rules"),
    ("is built in", "the table of kinds is the program's, and another one in each version"),
    ("does not exist in the calendar", "a pattern does not know the calendar"),
];

fn validator() -> &'static Validator {
    static VALIDATOR: OnceLock<Validator> = OnceLock::new();
    VALIDATOR.get_or_init(|| {
        let schema = schema();
        jsonschema::draft202012::meta::validate(&schema).expect("the schema is one");
        jsonschema::draft202012::new(&schema).expect("the schema can be used")
    })
}

/// Every configuration that is here.
fn configurations() -> &'static [String] {
    static CONFIGURATIONS: OnceLock<Vec<String>> = OnceLock::new();
    CONFIGURATIONS.get_or_init(seeds::configurations)
}

/// What a reader of YAML that knows nothing of slicegate makes of a text; nothing where that is no YAML or not all of it.
fn read(text: &str) -> Option<Value> {
    serde_saphyr::from_str::<Value>(text).ok().filter(|value| !value.is_null())
}

/// What is not as it should be: the schema refuses what the parser reads, or takes what the parser refuses for something that
/// a schema could see.
fn disagreement(text: &str) -> Option<String> {
    let value = read(text)?;
    let refused: Vec<String> =
        validator().iter_errors(&value).map(|error| format!("{}: {error}", error.instance_path())).collect();
    match parse(text) {
        Ok(_) if refused.is_empty() => None,
        Ok(_) => Some(format!("the schema refuses what the parser reads: {refused:?}\n{text}")),
        Err(_) if !refused.is_empty() => None,
        Err(mistakes) => {
            let beyond = |message: &String| BEYOND.iter().any(|(words, _)| message.contains(words));
            let seen: Vec<String> =
                mistakes.0.iter().map(|mistake| mistake.message.clone()).filter(|message| !beyond(message)).collect();
            (!seen.is_empty()).then(|| format!("the schema takes it, and the parser says {seen:?}\n{text}"))
        }
    }
}

#[test]
fn the_schema_and_the_parser_agree_on_every_configuration() {
    let all = configurations();
    let (mut good, mut bad, mut wrong) = (0, 0, Vec::new());
    for text in all {
        match disagreement(text) {
            Some(why) => wrong.push(why),
            None if parse(text).is_ok() => good += 1,
            None => bad += 1,
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(good > 4 && bad > 20, "{good} good ones and {bad} bad ones");
}

/// One mistake in an otherwise good text, which the schema sees by itself.
#[test]
fn plain_mistakes_are_seen() {
    let whole = include_str!("../fixtures/config/cases/good-everything.yaml");
    assert_eq!(disagreement(whole), None);
    for (from, to) in [
        ("kind: Config", "kind: Konfig"),
        ("sharing: MIG", "sharing: mig"),
        ("sharing: MIG", "sharin: MIG"),
        ("state: Draining", "state: draining"),
        ("name: mig", "name: Mig"),
        ("perPod: 4", "perPod: 0"),
        ("perPod: 4", "perPod: \"4\""),
        ("tolerations: false", "tolerations: maybe"),
        ("into: Templates", "into: Template"),
        ("operator: Exists, effect: \"\"", "operator: Exists, value: x"),
        ("effect: NoExecute, tolerationSeconds", "effect: NoSchedule, tolerationSeconds"),
        ("- {operator: Exists}", "- {operator: Equal}"),
        ("nvidia.com/mig-1g.10gb", "kubernetes.io/gpu"),
        ("gpu-mode: \"true\"", "gpu-mode: true"),
        ("gpu-mode: \"true\"", "matchLabels: x"),
        ("until: 2027-01-31\n", "until: tomorrow\n"),
        ("reason: moves to MIG in January", "why: moves"),
        ("share-limit:\n", "share-limits:\n"),
        ("action: warn", "action: warning"),
        ("team-a: deny", "Team: deny"),
        ("kind: Trainer", "kind: trainer"),
        ("/spec/workers/*/template", "spec.workers.template"),
        ("Deployment/trainer", "trainer"),
        ("onDeadline: allow", "onDeadline: Allow"),
    ] {
        assert!(whole.contains(from), "{from}");
        let text = whole.replacen(from, to, 1);
        assert!(parse(&text).is_err(), "the parser takes {to}");
        let value = read(&text).unwrap_or_else(|| panic!("{to} is no YAML"));
        assert!(!validator().is_valid(&value), "the schema takes {to}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// In one direction: whatever damage the parser still reads, the schema takes.
    #[test]
    fn what_the_parser_reads_the_schema_takes(which in any::<Index>(), place in any::<Index>(), new in "[ -~é\u{85}\u{feff}\n]{0,3}") {
        let all = configurations();
        let text: Vec<char> = all[which.index(all.len())].chars().collect();
        let place = place.index(text.len());
        let damaged: String = text[..place].iter().copied().chain(new.chars()).chain(text[place + 1..].iter().copied()).collect();
        if let (Ok(_), Some(value)) = (parse(&damaged), read(&damaged)) {
            let errors: Vec<String> = validator().iter_errors(&value).map(|error| error.to_string()).collect();
            prop_assert!(errors.is_empty(), "{errors:?}\n{damaged}");
        }
    }
}
