//! The guard of policies and of the configuration.

use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use slicegate::policies::{Policies, Registry};
use slicegate::rego::set::{Key, Set};
use slicegate::workers;

use crate::support::reviews;
use crate::support::server::{Options, Protocol, TestServer};

mod replay;

const HOME: &str = "slicegate-system";
const CONFIG: &str = "apiVersion: slicegate.io/v1alpha1\nkind: Config\n";

/// A server with workers, and what it has in force.
struct Guarded {
    server: TestServer,
    policies: Policies,
}

/// An answer, taken apart.
#[derive(Debug)]
struct Answer {
    allowed: bool,
    message: String,
    warnings: Vec<String>,
    response: Value,
}

impl Guarded {
    fn start() -> Self {
        let workers = workers::Options {
            program: env!("CARGO_BIN_EXE_slicegate").into(),
            workers: 1,
            ..workers::Options::default()
        };
        let server = TestServer::start(Options { workers: Some(workers), ..Options::default() });
        let app = Arc::clone(&server.app);
        let publish = Box::new(move |sets| app.replace_sets(sets));
        let (registry, policies) = Registry::new(server.app.workers.clone(), HOME.to_owned(), publish);
        server.runtime().spawn(registry.run());
        Self { server, policies }
    }

    /// Puts these in force.
    fn load(&self, config_maps: &[&Value]) {
        self.policies.offer(HOME, sets(config_maps));
        let (done, settled) = mpsc::channel();
        self.policies.settled(Box::new(move || done.send(()).unwrap()));
        settled.recv().unwrap();
    }

    fn ask(&self, path: &str, object: &Value, old: &Value) -> Answer {
        let reply = self.server.post(path, &[], review(object, old).to_string());
        assert_eq!(reply.status, 200, "{}", reply.text());
        let response = reply.json()["response"].clone();
        assert_eq!(response["uid"], "the-uid");
        if response["allowed"] == false {
            let status = &response["status"];
            assert_eq!((&status["code"], &status["reason"]), (&json!(403), &json!("Forbidden")));
        }
        let warnings = response["warnings"].as_array().into_iter().flatten();
        Answer {
            allowed: response["allowed"].as_bool().unwrap(),
            message: response["status"]["message"].as_str().unwrap_or_default().to_owned(),
            warnings: warnings.map(|warning| warning.as_str().unwrap().to_owned()).collect(),
            response,
        }
    }

    fn create(&self, object: &Value) -> Answer {
        self.ask("/guard?timeout=10s", object, &Value::Null)
    }

    /// A Pod that is judged, so that it is a recent request.
    fn pod(&self, name: &str) {
        let pod = reviews::pod("pod", "team-blue", reviews::GPU).replace("\"web\"", &format!("\"{name}\""));
        assert_eq!(self.server.post("/validate", &[], pod).status, 200);
    }

    fn count(&self, outcome: &str) -> u64 {
        self.server.metric(&format!("slicegate_guard_requests_total{{outcome=\"{outcome}\"}}"))
    }
}

fn sets(config_maps: &[&Value]) -> BTreeMap<Key, Arc<Set>> {
    let sets = config_maps.iter().map(|object| Set::of_config_map(object).unwrap());
    sets.map(|set| (set.key.clone(), Arc::new(set))).collect()
}

fn review(object: &Value, old: &Value) -> Value {
    let shown = if object.is_null() { old } else { object };
    let operation = match (object.is_null(), old.is_null()) {
        (true, _) => "DELETE",
        (_, true) => "CREATE",
        _ => "UPDATE",
    };
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "the-uid",
        "kind": {"group": "", "version": "v1", "kind": shown["kind"]}, "operation": operation,
        "name": shown["metadata"]["name"], "namespace": shown["metadata"]["namespace"],
        "userInfo": {"username": "kim"}, "object": object, "oldObject": old, "dryRun": false}})
}

fn config_map(name: &str, label: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data,
        "metadata": {"name": name, "namespace": HOME, "labels": {"slicegate.io/policy": label}}})
}

fn policy(name: &str, module: &str) -> Value {
    config_map(name, "true", &json!({"rule.rego": module}))
}

/// Refuses Pods whose name begins like this.
fn refusing(prefix: &str) -> String {
    format!(
        "package rule\n\ndeny contains msg if {{\n\tname := input.request.object.metadata.name\n\tstartswith(name, \"{prefix}\")\n\tmsg := sprintf(\"no %v here\", [name])\n}}\n"
    )
}

#[test]
fn a_bad_policy_is_refused_with_the_place_and_a_good_one_passes() {
    let guarded = Guarded::start();
    let bad = guarded.create(&policy("bad", "package rule\n\ndeny contains msg if {\n\tmsg := nowhere(1)\n}\n"));
    assert!(!bad.allowed);
    let lines: Vec<&str> = bad.message.lines().collect();
    assert!(lines[0].starts_with("rule.rego:4:") && lines[0].contains("nowhere"), "{}", bad.message);
    assert_eq!(lines[1..], ["  | msg := nowhere(1)", "  |        ^"], "{}", bad.message);
    let details = &bad.response["status"]["details"];
    assert_eq!((&details["name"], &details["causes"][0]["field"]), (&json!("bad"), &json!("data[rule.rego]")));

    let good = guarded.create(&policy("good", &refusing("greedy")));
    assert_eq!((good.allowed, good.warnings.len()), (true, 0), "{good:?}");
    assert_eq!(good.response["auditAnnotations"]["digest"].as_str().unwrap().len(), 64);
    assert_eq!((guarded.count("refused"), guarded.count("allowed")), (1, 1));
}

#[test]
fn everything_that_would_keep_it_from_being_loaded_is_told_at_once() {
    let guarded = Guarded::start();
    let mut object = policy("bad", "package rule\n\ndeny contains msg if {\n\tmsg := time.now_ns()\n}\n");
    object["metadata"]["annotations"] = json!({"slicegate.io/action": "shout", "slicegate.io/match": "kinds: 3"});
    object["data"]["list.json"] = json!("{\n  \"a\": ]\n}");
    let answer = guarded.create(&object);
    for part in [
        "slicegate.io/action: \"shout\" is none of off, dryrun, warn, deny",
        "slicegate.io/match:1:",
        "  | kinds: 3",
        "list.json:2:8:",
    ] {
        assert!(answer.message.contains(part), "{part}: {}", answer.message);
    }
    object["metadata"]["annotations"] = json!({});
    object["data"]["list.json"] = json!("[]");
    let answer = guarded.create(&object);
    assert!(answer.message.contains("rule.rego:4:9: ") && answer.message.contains("time.now_ns"), "{}", answer.message);
}

#[test]
fn failing_tests_and_exceeded_budgets_are_refused() {
    let guarded = Guarded::start();
    let mut object = policy("tested", &refusing("greedy"));
    let test = |name: &str| {
        let pod = format!("{{\"request\": {{\"object\": {{\"metadata\": {{\"name\": \"{name}\"}}}}}}}}");
        format!(
            "package rule_test\n\nimport data.rule\n\ntest_it_refuses if {{\n\tcount(rule.deny) == 1 with input as {pod}\n}}\n"
        )
    };
    object["data"]["rule_test.rego"] = json!(test("modest"));
    let answer = guarded.create(&object);
    assert!(!answer.allowed);
    let wanted = "rule_test.rego:5: test data.rule_test.test_it_refuses fails: ";
    assert!(answer.message.starts_with(wanted), "{}", answer.message);
    assert!(answer.message.contains("\n  | test_it_refuses if {"), "{}", answer.message);
    object["data"]["rule_test.rego"] = json!(test("greedy-1"));
    assert!(guarded.create(&object).allowed);

    let endless = "package rule\n\ndeny contains \"never\" if {\n\tsome a in numbers.range(1, 2000)\n\tsome b in numbers.range(1, 2000)\n\tsome c in numbers.range(1, 2000)\n\ta + b + c == 0\n}\n";
    let answer = guarded.create(&policy("endless", endless));
    assert!(!answer.allowed && answer.message.contains(" up its time"), "{}", answer.message);
    // The next one finds a process again.
    assert!(guarded.create(&policy("good", &refusing("greedy"))).allowed);
}

#[test]
fn weaknesses_come_back_as_warnings() {
    let guarded = Guarded::start();
    let answer = guarded.create(&policy("weak", "package rule\n\ndeny contains \"no\" if data.nothing.here\n"));
    assert!(answer.allowed && answer.warnings.iter().any(|warning| warning.contains("nothing")), "{answer:?}");
}

#[test]
fn what_is_none_of_its_business_is_left_alone() {
    let guarded = Guarded::start();
    let broken = policy("broken", "package");
    let mut plain = broken.clone();
    plain["metadata"]["labels"] = json!({});
    let mut elsewhere = broken.clone();
    elsewhere["metadata"]["namespace"] = json!("team");
    let mut status = broken.clone();
    status["metadata"]["annotations"] = json!({"slicegate.io/status": "{}"});
    let mut other = broken.clone();
    other["kind"] = json!("Pod");
    for (object, old) in [
        (&plain, &Value::Null),
        (&elsewhere, &Value::Null),
        (&status, &broken),
        (&broken, &broken),
        (&other, &Value::Null),
        (&Value::Null, &broken),
    ] {
        assert!(guarded.ask("/guard", object, old).allowed, "{object} {old}");
    }
    assert_eq!((guarded.count("left-alone"), guarded.count("refused")), (6, 0));
    // A broken review is refused with its uid, and what is none gets none.
    let twice = review(&broken, &Value::Null)["request"].to_string().replace("\"data\":", "\"data\":{},\"data\":");
    let twice = twice.replace(",\"uid\":\"the-uid\"", "").replacen(
        '{',
        "{\"uid\":\"the-uid\",\"operation\":\"CREATE\",\"kind\":{},",
        1,
    );
    let twice = twice.replace(",\"operation\":\"CREATE\",\"userInfo\"", ",\"userInfo\"");
    let body = format!("{{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"request\":{twice}}}");
    let reply = guarded.server.send(Protocol::Http2, "POST", "/guard", &[("content-type", "application/json")], body);
    let response = &reply.json()["response"];
    assert_eq!((&response["uid"], &response["allowed"]), (&json!("the-uid"), &json!(false)));
    assert_eq!(guarded.server.post("/guard", &[], "{}").status, 400);
}

#[test]
fn taking_a_policy_away_is_let_through_and_said() {
    let guarded = Guarded::start();
    let old = policy("cap", &refusing("greedy"));
    guarded.load(&[&old]);
    guarded.pod("greedy-1");
    let mut bare = old.clone();
    bare["metadata"]["labels"] = json!({});
    let mut empty = old.clone();
    empty["data"] = json!({});
    for new in [&bare, &empty] {
        let answer = guarded.ask("/guard", new, &old);
        assert!(answer.allowed && answer.warnings[0].contains("is unloaded by this"), "{answer:?}");
        assert!(
            answer.warnings.contains(&"replayed on 1 recent request: would no longer deny 1".to_owned()),
            "{answer:?}"
        );
    }
    let mut other = old.clone();
    other["metadata"]["labels"]["slicegate.io/policy"] = json!("yes");
    let answer = guarded.ask("/guard", &other, &old);
    assert!(!answer.allowed && answer.message.contains("the label slicegate.io/policy is \"yes\""), "{answer:?}");
}

#[test]
fn a_library_that_would_break_its_importers_is_refused() {
    let guarded = Guarded::start();
    let library = |module: &str| config_map("names", "library", &json!({"names.rego": module}));
    let good = library("package lib.names\n\ngreedy(name) if startswith(name, \"greedy\")\n");
    let importer = policy(
        "importer",
        "package rule\n\nimport data.lib.names\n\ndeny contains \"greedy\" if names.greedy(input.request.object.metadata.name)\n",
    );
    let alone = policy("alone", &refusing("x"));
    // The importer alone cannot be good; with its library on the way it is.
    let answer = guarded.create(&importer);
    assert!(!answer.allowed && answer.message.contains("rule.rego:3:"), "{}", answer.message);
    guarded.load(&[&good, &importer, &alone]);
    assert!(guarded.create(&importer).allowed);
    guarded.pod("greedy-1");
    guarded.pod("modest-1");

    let renamed = library("package lib.names\n\nhungry(name) if startswith(name, \"greedy\")\n");
    let answer = guarded.ask("/guard", &renamed, &good);
    assert!(!answer.allowed, "{answer:?}");
    assert!(
        answer.message.starts_with("policy importer imports this library and would break: rule.rego:5:"),
        "{answer:?}"
    );
    assert!(!answer.message.contains("alone"), "{answer:?}");

    let wider = library("package lib.names\n\ngreedy(name) if startswith(name, \"\")\n");
    let answer = guarded.ask("/guard", &wider, &good);
    assert!(answer.allowed, "{answer:?}");
    assert_eq!(
        answer.warnings,
        [
            "policy importer: replayed on 2 recent requests: would newly deny 1",
            "would newly deny Pod team-blue/modest-1: [importer/deny] greedy",
        ]
    );
    let mut bare = good.clone();
    bare["metadata"]["labels"] = json!({});
    let answer = guarded.ask("/guard", &bare, &good);
    assert!(
        answer.allowed && answer.warnings.iter().any(|warning| warning.contains("policy importer imports")),
        "{answer:?}"
    );
}

#[test]
fn a_library_on_its_way_is_waited_for() {
    let guarded = Guarded::start();
    let library = config_map("names", "library", &json!({"names.rego": "package lib.names\n\nx := 1\n"}));
    let importer =
        policy("importer", "package rule\n\nimport data.lib.names\n\ndeny contains \"no\" if names.x == 2\n");
    let answer = std::thread::scope(|scope| {
        let asked = scope.spawn(|| guarded.create(&importer));
        guarded.load(&[&library]);
        asked.join().unwrap()
    });
    assert!(answer.allowed, "{answer:?}");
}

#[test]
fn the_configuration_is_guarded_and_tried() {
    let guarded = Guarded::start();
    let config = |text: &str| {
        let mut object = config_map("slicegate-config", "", &json!({"config.yaml": text}));
        object["metadata"]["labels"] = json!({});
        object
    };
    let answer = guarded.create(&config(&format!("{CONFIG}enforcement: shout\npols: []\n")));
    assert!(!answer.allowed);
    let lines: Vec<&str> = answer.message.lines().collect();
    assert!(lines[0].starts_with("config.yaml:3:14: enforcement: "), "{}", answer.message);
    assert_eq!(lines[1..3], ["  | enforcement: shout", "  |              ^"]);
    assert!(lines[3].starts_with("config.yaml:4:1: unknown field \"pols\""), "{}", answer.message);

    // Unknown fields of another version are left to it; any other mistake is one.
    let mut newer = config(&format!("{CONFIG}quantumPools: []\n"));
    newer["metadata"]["labels"] = json!({"app.kubernetes.io/version": "9.9.9"});
    let answer = guarded.create(&newer);
    assert!(answer.allowed && answer.warnings[0].contains("version 9.9.9"), "{answer:?}");
    assert!(answer.warnings[1].contains("config.yaml:3:1"), "{answer:?}");
    newer["metadata"]["labels"]["app.kubernetes.io/version"] = json!(env!("CARGO_PKG_VERSION"));
    assert!(!guarded.create(&newer).allowed);
    newer["metadata"]["labels"] = json!({"app.kubernetes.io/version": "9.9.9"});
    newer["data"]["config.yaml"] = json!(format!("{CONFIG}quantumPools: []\nenforcement: shout\n"));
    assert!(!guarded.create(&newer).allowed);

    let mut missing = config("");
    missing["data"] = json!({"config.yml": CONFIG});
    let answer = guarded.create(&missing);
    assert!(!answer.allowed && answer.message.contains("the key config.yaml is missing"), "{answer:?}");

    let pod = reviews::pod("pod", "team-blue", r#"{"nvidia.com/gpu.shared":"2"}"#);
    assert_eq!(guarded.server.post("/validate", &[], pod).json()["response"]["allowed"], false);
    let answer = guarded.create(&config(&format!("{CONFIG}enforcement: warn\n")));
    assert_eq!(answer.warnings[0], "replayed on 1 recent request: would no longer deny 1");
    assert!(answer.warnings[1].starts_with("would no longer deny Pod team-blue/web: [share-limit]"), "{answer:?}");
    assert_eq!(guarded.create(&config(CONFIG)).warnings, ["replayed on 1 recent request: nothing changes"]);
}

#[test]
fn what_is_not_checked_by_its_deadline_is_refused_and_a_replay_is_cut_short() {
    let guarded = Guarded::start();
    // Each of the many tests uses up its budget, and all together take longer than there is time, on any machine.
    let numbers = "numbers.range(1, 2000)";
    let body = format!("count([1 | some a in {numbers}; some b in {numbers}; a > b]) > 0");
    let tests: Vec<String> = (0..2000).map(|place| format!("test_{place} if {body}\n\n")).collect();
    let mut object = policy("slow", &refusing("a"));
    object["data"]["rule_test.rego"] = json!(format!("package rule_test\n\n{}", tests.concat()));
    let answer = guarded.ask("/guard?timeout=1s", &object, &Value::Null);
    assert!(!answer.allowed && answer.message.contains("before the deadline"), "{answer:?}");
    assert_eq!(guarded.server.metric(r#"slicegate_deadlines_total{waited_for="guard"}"#), 1);

    for place in 0..200 {
        guarded.pod(&format!("p{}-{place}", place % 7));
    }
    let slow = format!(
        "package rule\n\ndeny contains \"no\" if {{\n\tinput.request.namespace == \"team-blue\"\n\t{body}\n}}\n"
    );
    let answer = guarded.ask("/guard?timeout=1s", &policy("slow", &slow), &Value::Null);
    assert!(answer.allowed, "{answer:?}");
    assert!(answer.warnings.iter().any(|warning| warning.starts_with("the replay was cut short")), "{answer:?}");
}
