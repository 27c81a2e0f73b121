//! Kubernetes itself as the judge of the pure core: what a quantity is worth, what a Pod demands, which tolerations cover
//! which, and which Nodes a Pod may run on. Each of at least 100,000 generated inputs gets the same answer from both, or the
//! difference is one of those that are listed here, each with its reason.

use std::collections::BTreeMap;

use anyhow::Result;
use proptest::strategy::{Strategy, ValueTree as _};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};
use slicegate::config::Toleration;
use slicegate::facts::Labels;
use slicegate::json;
use slicegate::policy::toleration::covers;
use slicegate::quantity::{CountError, Quantity, QuantityError};
use slicegate::workload::Placed;
use slicegate::workload::demand::Demand;
use slicegate::workload::path::Path;
use slicegate::workload::placement::Placement;
use slicegate::workload::template::pod_template;

use crate::cluster::Oracle;
use crate::generate;

const INPUTS: usize = 100_000;

/// More than those that are compared, to make up for the listed differences.
const SPELLINGS: usize = 120_000;

/// Inputs of a strategy, the same ones in every run.
fn inputs<T: std::fmt::Debug>(count: usize, strategy: impl Strategy<Value = T>) -> Vec<T> {
    let seed = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(Config::default(), seed);
    (0..count).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect()
}

#[test]
fn quantities_are_worth_what_kubernetes_says() -> Result<()> {
    let texts = inputs(SPELLINGS, generate::quantity_text());
    let ask = |text: &String| json!({"op": "quantity", "json": Value::from(text.as_str()).to_string()});
    let answers = Oracle::start()?.ask_all(&texts.iter().map(ask).collect::<Vec<_>>())?;
    let (mut compared, mut listed) = (0, BTreeMap::<&str, usize>::new());
    for (text, answer) in texts.iter().zip(&answers) {
        let ours = Quantity::parse(text);
        if let Some(reason) = difference(text, &ours, answer) {
            *listed.entry(reason).or_default() += 1;
        } else {
            compared += 1;
            same_value(text, &ours, answer);
        }
    }
    eprintln!("{compared} quantities compared; left out: {listed:?}");
    assert!(compared >= INPUTS, "too many were left out: {listed:?}");
    Ok(())
}

/// The differences that are wanted, each with its reason; all of them end in a refusal here.
fn difference(text: &str, ours: &Result<Quantity, QuantityError>, answer: &Value) -> Option<&'static str> {
    if answer["unjudged"] == true {
        return Some("Kubernetes would compute for hours");
    }
    let exponent = text.trim().to_ascii_lowercase().rsplit_once('e').and_then(|(_, power)| power.parse::<i64>().ok());
    if exponent.is_some_and(|exponent| i32::try_from(exponent).is_err()) {
        assert!(refused(ours), "{text}");
        return Some("Kubernetes keeps the low 32 bits of an exponent");
    }
    if *ours == Err(QuantityError::TooLong) {
        return Some("more digits than fit 128 bits are refused");
    }
    None
}

fn refused(ours: &Result<Quantity, QuantityError>) -> bool {
    ours.as_ref().map_or(true, |quantity| quantity.count().map_or(true, |count| count > 1 || quantity.is_zero()))
}

fn same_value(text: &str, ours: &Result<Quantity, QuantityError>, answer: &Value) {
    let Ok(quantity) = ours else {
        assert!(answer["error"].is_string(), "{text:?}: {ours:?}, and Kubernetes reads {answer}");
        return;
    };
    let theirs = answer["value"].as_str().unwrap_or_else(|| panic!("{text:?}: {ours:?}, and Kubernetes says {answer}"));
    let exact = plain(*quantity);
    let capped = if exact.starts_with('-') { "-9223372036854775807" } else { "9223372036854775807" };
    assert!(
        theirs == exact || (theirs == capped && exact.len() >= capped.len()),
        "{text:?}: {exact}, and Kubernetes reads {theirs}"
    );
    let whole = !matches!(quantity.count(), Err(CountError::Fractional)) && !exact.contains('.');
    assert_eq!(answer["negative"], exact.starts_with('-'), "{text:?}");
    assert!(theirs != exact || answer["whole"] == whole, "{text:?}: {answer}");
}

/// The value in plain notation, rounded away from zero at the ninth place as Kubernetes stores it.
fn plain(quantity: Quantity) -> String {
    let shown = quantity.to_string();
    let (sign, shown) = shown.strip_prefix('-').map_or(("", shown.as_str()), |rest| ("-", rest));
    let (digits, exponent) = shown.split_once('e').unwrap_or((shown, "0"));
    let exponent: i64 = exponent.parse().unwrap();
    if let Ok(zeros) = usize::try_from(exponent) {
        return format!("{sign}{digits}{}", "0".repeat(zeros));
    }
    let places = usize::try_from(-exponent).unwrap();
    let padded = format!("{}{digits}", "0".repeat((places + 1).saturating_sub(digits.len())));
    let (whole, fraction) = padded.split_at(padded.len() - places);
    if fraction.len() <= 9 {
        return format!("{sign}{whole}.{fraction}");
    }
    let nanos: u128 = format!("{whole}{}", &fraction[..9]).parse::<u128>().unwrap() + 1;
    let text = format!("{nanos:0>10}");
    let (whole, fraction) = text.split_at(text.len() - 9);
    let fraction = fraction.trim_end_matches('0');
    if fraction.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

#[test]
fn pods_demand_what_the_scheduler_adds_up() -> Result<()> {
    let lists = (
        generate::containers("i", generate::count().boxed(), 0..4),
        generate::containers("m", generate::count().boxed(), 1..4),
        proptest::option::weighted(0.2, generate::count()),
    );
    let pods = inputs(INPUTS, lists.prop_map(|(init, main, overhead)| {
        let overhead = overhead.map(|count| json!({"nvidia.com/gpu.shared": count}));
        json!({"metadata": {"name": "p"}, "spec": {"initContainers": init, "containers": main, "overhead": overhead}})
    }));
    let resource = "nvidia.com/gpu.shared";
    let ask = |pod: &Value| json!({"op": "demand", "pod": greater_requests(pod, resource), "resource": resource});
    let answers = Oracle::start()?.ask_all(&pods.iter().map(ask).collect::<Vec<_>>())?;
    for (pod, answer) in pods.iter().zip(&answers) {
        let text = pod.to_string();
        let tree = json::parse(text.as_bytes())?;
        let template = pod_template(&tree, &Placed::new(Path::root(), &tree));
        let demand = Demand::of(&template, |name| name == resource);
        let ours = demand.resources.first().map_or(0, |demand| demand.total);
        assert_eq!(answer["count"], ours.to_string(), "{pod}");
    }
    Ok(())
}

/// Kubernetes reads requests, into which its defaulting copies missing ones from the limits. Where a container has both and
/// they differ, which the API server refuses for Pods but not for templates, the greater one counts here; the question is
/// asked with that one.
fn greater_requests(pod: &Value, resource: &str) -> Value {
    let mut pod = pod.clone();
    for list in ["initContainers", "containers"] {
        for container in pod["spec"][list].as_array_mut().into_iter().flatten() {
            let count = |side: &str| {
                let text = container["resources"][side][resource].as_str()?;
                Quantity::parse(text).ok()?.count().ok()
            };
            if let (Some(limit), Some(request)) = (count("limits"), count("requests")) {
                container["resources"]["requests"][resource] = limit.max(request).to_string().into();
            }
        }
    }
    pod
}

#[test]
fn nodes_match_as_the_scheduler_matches_them() -> Result<()> {
    let node = (proptest::sample::select(vec!["n1", "n2"]), generate::labels());
    let cases = inputs(
        INPUTS,
        (proptest::option::of(generate::labels()), proptest::option::weighted(0.8, generate::affinity()), node),
    );
    let pod = |selector: &Option<Value>, affinity: &Option<Value>| json!({"metadata": {"name": "p"}, "spec": {"nodeSelector": selector, "affinity": affinity, "containers": []}});
    let questions: Vec<Value> = cases
        .iter()
        .map(|(selector, affinity, (name, labels))| {
            json!({"op": "nodematch", "pod": pod(selector, affinity), "node": {"name": name, "labels": labels}})
        })
        .collect();
    let answers = Oracle::start()?.ask_all(&questions)?;
    let mut matched = 0;
    for ((selector, affinity, (name, labels)), answer) in cases.iter().zip(&answers) {
        let text = pod(selector, affinity).to_string();
        let tree = json::parse(text.as_bytes())?;
        let placement = Placement::of(&pod_template(&tree, &Placed::new(Path::root(), &tree)));
        let labels: Labels = serde_json::from_value(labels.clone())?;
        let ours = placement.matches(name, &labels);
        matched += usize::from(ours);
        assert_eq!(answer["match"] == true, ours, "{text} on {name} {labels:?}: {answer}");
        // A pool whose nodes all have these labels: what matches one of them does not contradict the pool.
        let facts = slicegate::facts::Facts::default();
        assert!(!ours || placement.contradicts(&labels, &facts).is_none(), "{text} on {labels:?}");
    }
    assert!(matched > INPUTS / 20, "only {matched} of {INPUTS} matched: the generator is off");
    Ok(())
}

#[test]
fn tolerations_cover_what_kubernetes_says() -> Result<()> {
    // Kubernetes compares the spelling of the operator, in which nothing and Equal mean the same; a pool's toleration always
    // has one.
    let spelled = generate::toleration().prop_map(|mut wanted| {
        if wanted["operator"] != "Exists" {
            wanted["operator"] = "Equal".into();
        }
        wanted
    });
    let pairs = inputs(INPUTS, (generate::toleration(), spelled));
    let ask = |(present, wanted): &(Value, Value)| json!({"op": "covers", "present": present, "wanted": wanted});
    let mut oracle = Oracle::start()?;
    let answers = oracle.ask_all(&pairs.iter().map(ask).collect::<Vec<_>>())?;
    let mut covered = Vec::new();
    for (pair @ (present, wanted), answer) in pairs.iter().zip(&answers) {
        let ours = our_covers(present, wanted);
        assert_eq!(answer["covers"], ours, "{present} covers {wanted}");
        if ours {
            covered.push(pair);
        }
    }
    assert!(covered.len() > INPUTS / 50, "only {} covered", covered.len());
    sound(&mut oracle, &covered)
}

/// Whatever taint a covered toleration tolerates, the one that covers it tolerates too.
fn sound(oracle: &mut Oracle, covered: &[&(Value, Value)]) -> Result<()> {
    let mut questions = Vec::new();
    for (present, wanted) in covered.iter().copied() {
        for effect in ["NoSchedule", "PreferNoSchedule", "NoExecute"] {
            for (key, value) in [("nvidia.com/gpu.shared", "true"), ("nvidia.com/gpu.shared", ""), ("team", "blue")] {
                let taint = json!({"key": key, "value": value, "effect": effect});
                for toleration in [wanted, present] {
                    questions.push(json!({"op": "tolerates", "toleration": toleration, "taint": taint}));
                }
            }
        }
    }
    let answers = oracle.ask_all(&questions)?;
    for (question, answer) in questions.chunks(2).zip(answers.chunks(2)) {
        assert!(answer[0]["tolerates"] != true || answer[1]["tolerates"] == true, "{question:?}");
    }
    Ok(())
}

fn our_covers(present: &Value, wanted: &Value) -> bool {
    let text = |key: &str| wanted[key].as_str().unwrap_or_default().to_owned();
    let wanted = Toleration {
        key: text("key"),
        operator: text("operator"),
        value: text("value"),
        effect: text("effect"),
        seconds: wanted["tolerationSeconds"].as_i64(),
    };
    let present = present.to_string();
    covers(&json::parse(present.as_bytes()).unwrap(), &wanted)
}
