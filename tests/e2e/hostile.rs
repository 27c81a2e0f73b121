//! Policies that do harm, beside a healthy load: they cost the requests that they match, and nobody else's.

use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::cluster::{Cluster, Options, Slicegate, wait};
use crate::direct::{Direct, review};
use crate::workloads::pod;

const SOON: Duration = Duration::from_mins(1);
const MAPS: &str = "/api/v1/namespaces/slicegate-system/configmaps";
/// How long the load runs alone.
const QUIET: Duration = Duration::from_secs(3);
/// Each has a breaker of its own for each policy, so that many keep the harm going.
const NAMESPACES: usize = 16;
/// More than it takes to open a breaker.
const ROUNDS: usize = 5;

/// Harm that a request's values bring about; nothing about the texts tells.
const BY_VALUE: [(&str, &str); 4] = [
    (
        "memory",
        r#"deny contains "x" if count(numbers.range(1, to_number(input.request.object.metadata.annotations.huge))) == 1"#,
    ),
    (
        "loop",
        r#"r := numbers.range(1, to_number(input.request.object.metadata.annotations.some))

deny contains "x" if {
    some a in r
    some b in r
    some c in r
    a * b * c == -1
}"#,
    ),
    (
        "text",
        r#"deny contains msg if {
    text := input.request.object.metadata.annotations.text
    msg := concat("", [text | some _ in numbers.range(1, 90000)])
}"#,
    ),
    (
        "message",
        r#"deny contains msg if {
    text := input.request.object.metadata.annotations.text
    msg := concat("", [text | some _ in numbers.range(1, 10)])
}"#,
    ),
];

fn policy(name: &str, match_: &str, module: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"p.rego": module}, "metadata": {
        "name": name, "namespace": "slicegate-system", "labels": {"slicegate.io/policy": "true"},
        "annotations": {"slicegate.io/match": match_},
    }})
}

/// Policies that cannot be loaded, and one that is only long.
fn by_text() -> [(&'static str, String); 4] {
    [
        ("recursion", "package p\n\nf(x) := f(x + 1)\n\ndeny contains \"x\" if f(1)\n".to_owned()),
        ("nested", format!("package p\n\nx := {}1{}\n\ndeny contains \"x\" if x\n", "[".repeat(26), "]".repeat(26))),
        ("deep", format!("package p\n\nx := {}1{}\n\ndeny contains \"x\" if x\n", "(".repeat(900), ")".repeat(900))),
        (
            "long",
            format!(
                "package p\n\n{}deny contains \"x\" if input.never\n",
                format!("# {}\n", "x".repeat(97)).repeat(9_000)
            ),
        ),
    ]
}

fn healthy(team: &str) -> String {
    let mut pod = pod("trainer-0", "1");
    pod["metadata"]["labels"]["team"] = team.into();
    review("team", &pod)
}

fn harmful(namespace: usize) -> String {
    let mut pod = pod("trainer-0", "1");
    pod["metadata"]["annotations"] = json!({"huge": "1000000000", "some": "3000", "text": "x".repeat(100_000)});
    review(&format!("hostile-{namespace}"), &pod)
}

/// Asks until it is over, and says how long each answer took. Each verdict is the right one.
fn load(replica: &mut Direct, over: impl Fn() -> bool) -> Result<Vec<Duration>> {
    let (refused, fine) = (healthy("blocked"), healthy("open"));
    let mut took = Vec::new();
    while !over() {
        for (review, allowed) in [(&refused, false), (&fine, true)] {
            let start = Instant::now();
            let verdict = replica.ask(review, 10)?;
            took.push(start.elapsed());
            ensure!(verdict.allowed == allowed, "{verdict:?}");
            ensure!(allowed || verdict.message.contains("team is blocked"), "{verdict:?}");
        }
    }
    Ok(took)
}

/// What a policy that does harm is said to have done.
const DONE: [&str; 3] = ["used up its time", "ended the process", "is cut off"];

/// Asks about what the harmful policies match, which none of it lets through, and counts what was done.
fn harm(replica: &mut Direct) -> Result<[usize; 3]> {
    let mut done = [0; 3];
    for _ in 0..ROUNDS {
        for namespace in 0..NAMESPACES {
            let verdict = replica.ask(&harmful(namespace), 10)?;
            ensure!(!verdict.allowed, "{namespace}: {verdict:?}");
            for (count, what) in done.iter_mut().zip(DONE) {
                *count += verdict.message.matches(what).count();
            }
        }
    }
    Ok(done)
}

fn reports(slicegate: &Slicegate) -> Result<Vec<Value>> {
    let (_, text) = slicegate.admin("/policies")?;
    Ok(serde_json::from_str(&text)?)
}

fn percentile(mut took: Vec<Duration>, percent: usize) -> Duration {
    took.sort_unstable();
    took[(took.len() * percent / 100).min(took.len() - 1)]
}

/// Both connections' answers.
fn together(loads: [Result<Vec<Duration>>; 2]) -> Result<Vec<Duration>> {
    let [first, second] = loads;
    Ok([first?, second?].concat())
}

#[test]
fn hostile_policies_fail_no_healthy_request() -> Result<()> {
    let cluster = Cluster::start(Options { apiserver_only: true, ..Options::default() })?;
    cluster.create_namespace("team", &json!({}))?;
    for namespace in 0..NAMESPACES {
        cluster.create_namespace(&format!("hostile-{namespace}"), &json!({}))?;
    }
    let slicegate = Slicegate::start(&cluster)?;
    let module = "package healthy\n\ndeny contains \"team is blocked\" if input.request.object.metadata.labels.team == \"blocked\"\n";
    let create = |policy: &Value| cluster.api("POST", MAPS, Some(policy))?.success();
    create(&policy("healthy", "", module))?;
    for (name, rules) in BY_VALUE {
        create(&policy(name, "namespaces: [hostile-*]", &format!("package {name}\n\n{rules}\n")))?;
    }
    let all = 1 + BY_VALUE.len();
    wait(SOON, "the policies", || {
        let loaded = reports(&slicegate).ok()?.iter().filter(|report| report["state"] == "Loaded").count();
        (loaded == all).then_some(())
    })?;

    let mut asked = [Direct::to(&slicegate, &cluster)?, Direct::to(&slicegate, &cluster)?];
    let quiet = std::thread::scope(|scope| {
        let start = Instant::now();
        let loads = asked.each_mut().map(|replica| scope.spawn(move || load(replica, || start.elapsed() > QUIET)));
        loads.map(|load| load.join().expect("no panic"))
    });
    let over = AtomicBool::new(false);
    let start = Instant::now();
    let (harmed, told, disturbed) = std::thread::scope(|scope| {
        let is_over = || over.load(Ordering::Relaxed);
        let loads = asked.each_mut().map(|replica| scope.spawn(move || load(replica, is_over)));
        let harmful = scope.spawn(|| harm(&mut Direct::to(&slicegate, &cluster)?));
        let told = (|| {
            for (name, module) in by_text() {
                create(&policy(name, "namespaces: [hostile-*]", &module))?;
            }
            wait(SOON, "all to be judged", || reports(&slicegate).ok().filter(|reports| reports.len() == all + 4))
        })();
        let harmed = harmful.join().expect("no panic");
        over.store(true, Ordering::Relaxed);
        (harmed, told, loads.map(|load| load.join().expect("no panic")))
    });
    let harmed = harmed?;
    ensure!(harmed.iter().all(|count| *count > 0), "{harmed:?}");
    for report in told? {
        let bad = ["recursion", "nested", "deep"].iter().any(|bad| report["name"] == *bad);
        ensure!(report["state"] == if bad { "Rejected" } else { "Loaded" }, "{report}");
    }
    let (quiet, disturbed) = (together(quiet)?, together(disturbed)?);
    let (before, beside) = (percentile(quiet.clone(), 99), percentile(disturbed.clone(), 99));
    writeln!(
        std::io::stderr(),
        "p99 of {} reviews alone {before:?}, of {} beside {:?} of harm {beside:?}: {:.2} times; p50 {:?} and {:?}; {DONE:?}: {harmed:?}",
        quiet.len(),
        disturbed.len(),
        start.elapsed(),
        beside.as_secs_f64() / before.as_secs_f64(),
        percentile(quiet, 50),
        percentile(disturbed, 50)
    )?;
    Ok(())
}
