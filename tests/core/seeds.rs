//! What the fuzz bodies begin with: the recorded reviews, the cases, the configurations and the policies that are here.
//!
//! Invariant: in the order of names, and nothing that is not in the repository.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::pairs;

/// The texts of each target, by its name.
pub(crate) fn all() -> BTreeMap<&'static str, Vec<Vec<u8>>> {
    let reviews: Vec<String> = recorded().into_iter().chain(cases(&reviews_of)).collect();
    let bytes = |texts: &[String]| texts.iter().map(|text| text.clone().into_bytes()).collect::<Vec<_>>();
    let chosen = |text: &str| [b"\x00", b"\x01"].map(|choice| [choice, text.as_bytes()].concat());
    let patches = reviews.iter().filter_map(|review| object(review));
    let patches = patches.flat_map(|object| chosen(&object)).map(|text| [&text[..], b"\xFF", OPERATIONS].concat());
    BTreeMap::from([
        ("review", bytes(&reviews)),
        ("quantity", bytes(&QUANTITIES.map(str::to_owned))),
        ("configuration", bytes(&configurations())),
        ("patch", patches.collect()),
        ("policy", policies()),
        ("answer", reviews.iter().flat_map(|review| chosen(review)).collect()),
    ])
}

const OPERATIONS: &[u8] = br#"[{"op":"add","path":"/metadata/labels/team","value":"blue"},{"op":"add","path":"/spec/tolerations/-","value":{"key":"x","operator":"Exists"}},{"op":"add","path":"/spec/a~1b/c~0d","value":null}]"#;

const QUANTITIES: [&str; 17] = [
    "1",
    "2",
    "0",
    "-1",
    "1e0",
    "1000m",
    "1999999u",
    "0.5",
    ".5",
    "+1Ki",
    "9.5Ei",
    "1E-3",
    "1e9223372036854775807",
    " 1 ",
    "100000000000000000000n",
    "99999999999999999999999999999999999999",
    "126999999999999999999Ei",
];

/// The bodies of the reviews that a real API server sent.
fn recorded() -> Vec<String> {
    read(&root().join("tests/fixtures/admission-reviews"), "json")
}

fn reviews_of(case: &Value) -> Vec<String> {
    let review = case.get("request").or_else(|| case.pointer("/http/body/review"));
    review.map(Value::to_string).into_iter().collect()
}

pub(crate) fn configurations() -> Vec<String> {
    let own = read(&root().join("tests/fixtures/config"), "yaml");
    let of_case = |case: &Value| {
        let text = case.get("configuration").and_then(Value::as_str);
        text.map(str::to_owned).into_iter().collect()
    };
    own.into_iter().chain(cases(&of_case)).collect()
}

/// A set each: a module, its tests, data and what it matches.
fn policies() -> Vec<Vec<u8>> {
    let set = |choice: u8, parts: [&str; 5]| {
        let parts = parts.map(str::as_bytes).join(&0xFF);
        [&[choice][..], &parts].concat()
    };
    let mut all = Vec::new();
    for folder in pairs::starters().unwrap() {
        let file = |ending: &str| read(&folder, ending).pop().unwrap_or_default();
        let modules = read(&folder, "rego");
        all.push(set(1, [&modules[0], modules.get(1).map_or("", String::as_str), "{}", &file("yaml"), "kinds: [Pod]"]));
    }
    let modules = |case: &Value| {
        let maps = case.pointer("/policy/configmaps").and_then(Value::as_array);
        let maps = maps.into_iter().flatten();
        let data = maps.filter_map(|map| map.get("data").and_then(Value::as_object)).flatten();
        data.filter_map(|(_, text)| text.as_str().map(str::to_owned)).collect()
    };
    all.extend(cases(&modules).iter().map(|module| set(1, [module, "", "", "", "operations: [CREATE]"])));
    for file in pairs::files().unwrap() {
        for pair in pairs::pairs(&file).unwrap() {
            let v0 = if pair.v0 { 2 } else { 1 };
            all.extend(pair.modules.values().map(|module| set(v0, [module, "", "", "", ""])));
        }
    }
    all.sort();
    all.dedup();
    all
}

fn object(review: &str) -> Option<String> {
    let review: Value = serde_json::from_str(review).ok()?;
    review.pointer("/request/object").filter(|object| object.is_object()).map(Value::to_string)
}

/// What is taken from each case.
fn cases(take: &dyn Fn(&Value) -> Vec<String>) -> Vec<String> {
    let texts = read(&root().join("tests/cases"), "yaml");
    texts.iter().filter_map(|text| serde_saphyr::from_str::<Value>(text).ok()).flat_map(|case| take(&case)).collect()
}

/// The texts of all files below a folder whose names have one ending.
fn read(folder: &Path, ending: &str) -> Vec<String> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut texts = Vec::new();
    for path in paths {
        if path.is_dir() {
            texts.extend(read(&path, ending));
        } else if path.extension().is_some_and(|found| found == ending) {
            texts.extend(fs::read_to_string(&path));
        }
    }
    texts
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
