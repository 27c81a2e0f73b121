//! Worker processes, each of them the real program: what hostile policies and hostile requests do to them, and what is left
//! of a pool whose workers are killed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use slicegate::policy::Phase;
use slicegate::rego::input::Context;
use slicegate::rego::outcome::{Failure, Outcome};
use slicegate::rego::set::{Key, Set};
use slicegate::rego::unit::Unit;
use slicegate::workers::child::Settings;
use slicegate::workers::meter::Meter;
use slicegate::workers::protocol::Check;
use slicegate::workers::{Installed, Options, Question, Workers};
use tokio::time::Instant;

const HEALTHY: &str = r#"package healthy

deny contains msg if {
    input.request.object.metadata.labels.team == "blocked"
    msg := "team is blocked"
}
"#;

/// The memory of the workers that are killed.
const MEMORY: u64 = 65 << 20;

/// Policies that are stopped when a request gives them the means; nothing about their texts tells.
const HOSTILE: [(&str, &str); 6] = [
    ("memory", r#"deny contains "x" if count(numbers.range(1, to_number(input.request.object.n))) == 1"#),
    (
        "range",
        r#"deny contains "x" if count(numbers.range_step(1, to_number(input.request.object.n), to_number(input.request.object.zero))) == 1"#,
    ),
    ("width", r#"deny contains msg if msg := sprintf(concat("", ["%", input.request.object.n, "d"]), [1])"#),
    (
        "loop",
        r#"r := numbers.range(1, to_number(input.request.object.some))

deny contains "x" if {
    some a in r
    some b in r
    some c in r
    a * b * c == -1
}"#,
    ),
    (
        "text",
        r#"deny contains msg if msg := concat("", [s | some _ in numbers.range(1, 90000); s := input.request.object.text])"#,
    ),
    ("replace", r#"deny contains msg if msg := replace(input.request.object.text, "", input.request.object.text)"#),
];

fn unit(name: &str, module: &str) -> Arc<Unit> {
    let key = Key { namespace: "n".into(), name: name.into() };
    let files = BTreeMap::from([("p.rego".to_owned(), module.to_owned())]);
    Arc::new(Unit::new(Set::of_files(key, "true", &BTreeMap::new(), files), &BTreeMap::new()))
}

fn pool(workers: usize) -> Workers {
    with_memory(workers, 64 << 20)
}

fn with_memory(workers: usize, memory: u64) -> Workers {
    let (budget, compile_budget) = (Duration::from_millis(200), Duration::from_secs(20));
    let settings = Settings { budget, compile_budget, memory };
    Workers::new(Options { program: env!("CARGO_BIN_EXE_slicegate").into(), workers, settings }, Meter::default())
}

fn body(object: &Value) -> Vec<u8> {
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u", "operation": "CREATE", "kind": {"group": "", "version": "v1", "kind": "Pod"}, "object": object,
    }})
    .to_string()
    .into_bytes()
}

async fn ask(workers: &Workers, sets: &[Arc<Installed>], object: &Value) -> Vec<Outcome> {
    asked(workers, sets, object, Phase::Validate).await
}

async fn asked(workers: &Workers, sets: &[Arc<Installed>], object: &Value, phase: Phase) -> Vec<Outcome> {
    let deadline = Instant::now() + Duration::from_mins(1);
    let context = Context { namespace: "team".to_owned(), ..Context::default() };
    let body = body(object).into();
    workers.evaluate(Question { phase, sets, context: &context, body, deadline }).await
}

async fn install(workers: &Workers, units: Vec<Arc<Unit>>) -> Vec<Arc<Installed>> {
    let loaded = workers.install(units).await;
    loaded.into_iter().map(|loaded| loaded.unwrap_or_else(|report| panic!("{report:?}"))).collect()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap()
}

fn blocked() -> Value {
    json!({"metadata": {"labels": {"team": "blocked"}}})
}

fn refuses(outcome: &Outcome) -> bool {
    outcome.error.is_none() && outcome.complaints.iter().any(|complaint| complaint.message == "team is blocked")
}

#[test]
fn hostile_values_cost_the_policy_that_uses_them_and_nobody_else() {
    let runtime = runtime();
    runtime.block_on(async {
        let workers = pool(1);
        let object = json!({
            "n": "1000000000", "zero": "0", "some": "3000", "text": "x".repeat(100_000),
            "metadata": {"labels": {"team": "blocked"}},
        });
        for (name, rules) in HOSTILE {
            let hostile = unit(name, &format!("package hostile\n\n{rules}\n"));
            let sets = install(&workers, vec![unit("a", HEALTHY), hostile, unit("z", HEALTHY)]).await;
            let outcomes = ask(&workers, &sets, &object).await;
            assert!(refuses(&outcomes[0]) && refuses(&outcomes[2]), "{name}: {outcomes:?}");
            // It fails, or it says something; what it does not is pass in silence.
            assert!(outcomes[1].error.is_some() || !outcomes[1].complaints.is_empty(), "{name}: {:?}", outcomes[1]);
        }
    });
}

#[test]
fn a_policy_that_ends_its_worker_is_cut_off_and_says_so() {
    let runtime = runtime();
    runtime.block_on(async {
        let workers = pool(1);
        let hostile = unit("hostile", &format!("package hostile\n\n{}\n", HOSTILE[0].1));
        let sets = install(&workers, vec![hostile]).await;
        let object = json!({"n": "1000000000"});
        let mut seen = Vec::new();
        for _ in 0..6 {
            seen.push(ask(&workers, &sets, &object).await.remove(0).error.unwrap());
        }
        assert!(seen[..3].iter().all(Failure::is_costly), "{seen:?}");
        assert!(seen[3..].iter().all(|failure| *failure == Failure::CutOff), "{seen:?}");
        assert_eq!(workers.cut_off(), 1);
    });
}

#[test]
fn a_set_that_is_loaded_while_another_ends_workers_is_loaded() {
    let runtime = runtime();
    runtime.block_on(async {
        let workers = pool(1);
        let hostile = install(&workers, vec![unit("hostile", &format!("package hostile\n\n{}\n", HOSTILE[0].1))]).await;
        let (asking, sets) = (workers.clone(), hostile.clone());
        let harm = tokio::spawn(async move {
            for number in 0..40 {
                // The breaker of one namespace is none of another's.
                let context = Context { namespace: format!("team-{number}"), ..Context::default() };
                let (phase, body) = (Phase::Validate, body(&json!({"n": "1000000000"})).into());
                let deadline = Instant::now() + Duration::from_mins(1);
                let question = Question { phase, sets: &sets, context: &context, body, deadline };
                let outcomes = asking.evaluate(question).await;
                assert!(outcomes[0].error.as_ref().is_some_and(Failure::is_costly), "{outcomes:?}");
            }
        });
        while !harm.is_finished() {
            let sets = install(&workers, vec![unit("healthy", HEALTHY)]).await;
            assert!(refuses(&ask(&workers, &sets, &blocked()).await[0]));
        }
        harm.await.unwrap();
    });
}

#[test]
fn what_cannot_be_compiled_in_time_or_memory_is_a_report() {
    let runtime = runtime();
    runtime.block_on(async {
        let workers = pool(1);
        for (name, module, says) in [
            ("nested", format!("package a\n\nx := {}1{}\n", "[".repeat(26), "]".repeat(26)), "p.rego:3:"),
            ("deep", format!("package a\n\nx := {}1{}\n", "(".repeat(900), ")".repeat(900)), "p.rego:3:"),
            ("recursion", "package a\n\nf(x) := f(x + 1)\n\ndeny contains \"x\" if f(1)\n".to_owned(), "p.rego:3:"),
            ("loop", "package a\n\nr := numbers.range(1, 3000)\n\ndeny contains \"x\" if {\n some a in r\n some b in r\n some c in r\n a * b * c == -1\n}\n".to_owned(), "its time"),
        ] {
            let checked = workers.check(&Check::of(unit(name, &module).as_ref().clone())).await;
            let told: Vec<String> = checked.report.errors.iter().map(ToString::to_string).collect();
            assert!(told.iter().any(|told| told.contains(says)), "{name}: {told:?}");
        }
        let checked = workers.check(&Check::of(unit("healthy", HEALTHY).as_ref().clone())).await;
        assert_eq!(checked.report.errors, [], "the next set is checked as if nothing had been");
    });
}

#[test]
fn workers_that_are_killed_at_random_fail_no_request() {
    let runtime = runtime();
    runtime.block_on(async {
        // Their memory tells the workers of this test from those of the tests beside it.
        let workers = with_memory(2, MEMORY);
        let sets = install(&workers, (0..20).map(|number| unit(&format!("p{number}"), HEALTHY)).collect()).await;
        let ended = Arc::new(AtomicBool::new(false));
        let killing = Arc::clone(&ended);
        let killer = std::thread::spawn(move || {
            let mut killed = 0;
            while !killing.load(Ordering::SeqCst) {
                let children = children();
                for child in children.iter().skip(killed % children.len().max(1)).take(1) {
                    // One that is gone meanwhile needs no killing.
                    let _ = rustix::process::kill_process(*child, rustix::process::Signal::KILL);
                    killed += 1;
                }
                std::thread::park_timeout(Duration::from_millis(40));
            }
            killed
        });
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..8 {
            let (workers, sets) = (workers.clone(), sets.clone());
            tasks.spawn(async move {
                for _ in 0..150 {
                    let refused = number % 2 == 0;
                    let object = if refused { blocked() } else { json!({"metadata": {}}) };
                    let outcomes = ask(&workers, &sets, &object).await;
                    for outcome in &outcomes {
                        assert_eq!(outcome.error, None);
                        assert_eq!(refuses(outcome), refused, "{outcome:?}");
                    }
                }
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
        ended.store(true, Ordering::SeqCst);
        assert!(killer.join().unwrap() > 0, "somebody was killed");
    });
}

/// The worker processes of the test that kills them.
fn children() -> Vec<rustix::process::Pid> {
    let own = std::process::id().to_string();
    let ids = std::fs::read_dir("/proc").unwrap().flatten();
    let ids = ids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let mine = |id: &i32| {
        let parent = |status: String| status.lines().any(|line| line.strip_prefix("PPid:\t") == Some(own.as_str()));
        let worker = |line: Vec<u8>| line.split(|byte| *byte == 0).any(|word| word == MEMORY.to_string().as_bytes());
        std::fs::read_to_string(format!("/proc/{id}/status")).is_ok_and(parent)
            && std::fs::read(format!("/proc/{id}/cmdline")).is_ok_and(worker)
    };
    ids.filter(mine).filter_map(rustix::process::Pid::from_raw).collect()
}

#[test]
fn a_patch_that_nobody_could_apply_is_its_own_policys_error() {
    let runtime = runtime();
    runtime.block_on(async {
        let workers = pool(1);
        let deep = r#"package deep

patch contains {"op": "add", "path": "/spec/x", "value": json.unmarshal(input.request.object.text)}
"#;
        let large = r#"package large

patch contains {"op": "add", "path": "/metadata/annotations/x", "value": concat("", [s | some _ in numbers.range(1, 9000); s := "0123456789"])}
"#;
        let healthy = r#"package healthy

patch contains {"op": "add", "path": "/metadata/labels/x", "value": "y"}
"#;
        let units = [("a", healthy), ("deep", deep), ("large", large), ("z", healthy)];
        let sets = install(&workers, units.iter().map(|(name, module)| unit(name, module)).collect()).await;
        let object = json!({"text": format!("{}1{}", "[".repeat(120), "]".repeat(120))});
        let outcomes = asked(&workers, &sets, &object, Phase::Mutate).await;
        let of = |place: usize| (outcomes[place].patch.len(), outcomes[place].error.is_some());
        assert_eq!([of(0), of(1), of(2), of(3)], [(1, false), (0, true), (0, true), (1, false)], "{outcomes:?}");
    });
}

#[test]
fn a_large_request_is_read_before_policies_pay_for_it() {
    let runtime = runtime();
    runtime.block_on(async {
        let workers = pool(1);
        let sets = install(&workers, vec![unit("a", HEALTHY)]).await;
        let mut object = blocked();
        object["data"] =
            (0..60_000).map(|number| json!({"name": format!("n{number}"), "values": [number, "text"]})).collect();
        assert!(body(&object).len() > 2 << 20);
        let outcomes = ask(&workers, &sets, &object).await;
        assert!(refuses(&outcomes[0]), "{:?}", outcomes[0].error);
    });
}
