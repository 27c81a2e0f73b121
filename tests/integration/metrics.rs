//! What `/metrics` of the real program shows is what README says of it.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::client;
use crate::support::reviews::pod;
use crate::support::running::{Running, eventually, get, offline};

const POLICY: &str = "package p\n\ndeny contains \"no\" if input.request.object.kind == \"Pod\"\n";

/// A metric's labels and its line of help.
type Described = (BTreeSet<String>, String);

/// The metrics of README's table.
fn documented() -> BTreeMap<String, Described> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let text = std::fs::read_to_string(path).unwrap();
    let row = |line: &str| {
        let cells: Vec<_> = line.strip_prefix("| `slicegate_")?.split(" | ").map(str::to_owned).collect();
        let [name, labels, help] = cells.try_into().ok()?;
        let labels = labels.split(", ").filter(|label| !label.is_empty() && *label != "none").map(str::to_owned);
        let help = help.trim_end_matches(" |").to_owned();
        Some((format!("slicegate_{}", name.trim_matches('`')), (labels.collect(), help)))
    };
    text.lines().filter_map(row).collect()
}

/// The metrics of an answer, under the names by which they are asked for.
fn shown(text: &str) -> BTreeMap<String, Described> {
    let mut found = BTreeMap::new();
    let types: BTreeMap<_, _> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' ')).collect();
    for (name, help) in text.lines().filter_map(|line| line.strip_prefix("# HELP ")?.split_once(' ')) {
        let suffix = match types[name] {
            "counter" => "_total",
            "info" => "_info",
            _ => "",
        };
        let samples = text.lines().filter(|line| line.starts_with(name) && line.contains('{'));
        let labels = samples.filter_map(|line| {
            let (sample, rest) = line.split_once('{')?;
            let own = ["", "_total", "_info", "_bucket"].iter().any(|suffix| sample == format!("{name}{suffix}"));
            own.then(|| rest.split("\",").filter_map(|label| Some(label.split_once('=')?.0.to_owned())))
        });
        let labels = labels.flatten().filter(|label| label != "le").collect();
        found.insert(format!("{name}{suffix}"), (labels, help.trim_end_matches('.').to_owned()));
    }
    found
}

#[test]
fn readme_describes_every_metric() {
    let folder = tempfile::tempdir().unwrap();
    let (certificates, flags) = offline(folder.path());
    let policies = folder.path().join("policies");
    std::fs::create_dir(&policies).unwrap();
    std::fs::write(policies.join("p.rego"), POLICY).unwrap();
    let server = Running::start(folder.path(), &[&flags[..], &["--policies", "policies"]].concat());
    let (listen, admin) = server.addresses();
    eventually("it is ready", || get(&admin, "/readyz").starts_with("HTTP/1.1 200 "));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let answer = runtime.block_on(async {
        let stream = client::tls(&certificates, &listen).await;
        client::once(stream, "/validate", &pod("u", "team-blue", r#"{"nvidia.com/gpu.shared":"2"}"#)).await
    });
    assert!(answer.contains("[share-limit]") && answer.contains("no"), "{answer}");

    let text = get(&admin, "/metrics");
    let (shown, documented) = (shown(&text), documented());
    let missing: Vec<_> = shown.iter().filter(|(name, described)| documented.get(*name) != Some(described)).collect();
    let row = |(name, (labels, help)): &(&String, &Described)| {
        let labels: Vec<_> = labels.iter().map(String::as_str).collect();
        let labels = if labels.is_empty() { "none".to_owned() } else { labels.join(", ") };
        format!("| `{name}` | {labels} | {help} |\n")
    };
    assert!(missing.is_empty(), "README lacks:\n{}", missing.iter().map(row).collect::<String>());
    let gone: Vec<_> = documented.keys().filter(|name| !shown.contains_key(*name)).collect();
    assert!(gone.is_empty(), "README has what is not shown: {gone:?}");
}
