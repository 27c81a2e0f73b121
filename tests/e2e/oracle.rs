//! Shows that the oracle gives Kubernetes' own answers, on questions whose
//! answer is known, and that no input ends it.

use std::time::Instant;

use anyhow::Result;
use serde_json::{Value, json};

use crate::cluster::Oracle;

#[test]
fn reads_quantities_as_kubernetes_does() -> Result<()> {
    let mut oracle = Oracle::start()?;
    for (literal, value, whole, int) in [
        (r#""1e0""#, "1", true, "1"),
        ("1.5", "1.5", false, "2"),
        (r#""1000m""#, "1", true, "1"),
        (r#""-1Ki""#, "-1024", true, "-1024"),
        (r#"" 2 ""#, "2", true, "2"),
        (r#""1999999u""#, "1.999999", false, "2"),
        // More than 64 bits: exact as a decimal, wrapped as an integer.
        (r#""18446744073709551617""#, "18446744073709551617", true, "1"),
        // What is finer than a billionth is rounded up, away from zero.
        (r#""1e-30""#, "0.000000001", false, "1"),
        // Only the low 32 bits of an exponent count.
        ("1e4294967296", "1", true, "1"),
        ("null", "0", true, "0"),
    ] {
        let negative = value.starts_with('-');
        let want = json!({"value": value, "whole": whole, "negative": negative, "int": int});
        assert_eq!(oracle.ask(&quantity(literal))?, want, "{literal}");
    }
    Ok(())
}

#[test]
fn refuses_what_is_no_quantity() -> Result<()> {
    let mut oracle = Oracle::start()?;
    let escaped = r#""\u0031""#;
    for literal in [r#""one""#, r#""""#, "true", "\"1", "[1]", r#""1 k""#, r#""1.2.3""#, "", escaped] {
        let answer = oracle.ask(&quantity(literal))?;
        assert!(is_error(&answer), "{literal}: {answer}");
        assert_eq!(answer.get("unjudged"), None, "{literal}: {answer}");
    }
    // These are no errors of Kubernetes, but would take it hours.
    for literal in ["1e2000000000", r#""1e-2000000000""#, r#"" -1E99999999 ""#] {
        let answer = oracle.ask(&quantity(literal))?;
        assert_eq!(answer.get("unjudged"), Some(&Value::Bool(true)), "{literal}: {answer}");
    }
    Ok(())
}

#[test]
fn counts_demand_as_the_scheduler_does() -> Result<()> {
    let shared = |count: &str| json!({"limits": {"nvidia.com/gpu.shared": count}});
    let pod = json!({"spec": {
        "initContainers": [
            {"name": "side", "restartPolicy": "Always", "resources": shared("1")},
            {"name": "init", "resources": shared("3")},
        ],
        "containers": [
            {"name": "a", "resources": shared("1")},
            {"name": "b", "resources": shared("1000m")},
        ],
    }});
    let mut oracle = Oracle::start()?;
    for (resource, count) in [("nvidia.com/gpu.shared", "4"), ("nvidia.com/gpu", "0")] {
        let question = json!({"op": "demand", "pod": pod, "resource": resource});
        assert_eq!(oracle.ask(&question)?, json!({"count": count}));
    }
    Ok(())
}

#[test]
fn compares_tolerations_and_nodes() -> Result<()> {
    let mut oracle = Oracle::start()?;
    let exists = json!({"key": "gpu", "operator": "Exists"});
    let equal = json!({"key": "gpu", "operator": "Equal", "value": "x", "effect": "NoSchedule"});
    let all = json!({"operator": "Exists"});

    let taint = json!({"key": "gpu", "value": "y", "effect": "NoSchedule"});
    for (toleration, want) in [(&exists, true), (&equal, false), (&all, true)] {
        let question = json!({"op": "tolerates", "toleration": toleration, "taint": taint});
        assert_eq!(oracle.ask(&question)?, json!({"tolerates": want}), "{question}");
    }
    for (present, wanted, want) in
        [(&exists, &equal, true), (&equal, &exists, false), (&equal, &equal, true), (&all, &exists, true)]
    {
        let question = json!({"op": "covers", "present": present, "wanted": wanted});
        assert_eq!(oracle.ask(&question)?, json!({"covers": want}), "{question}");
    }
    let pod = json!({"spec": {"nodeSelector": {"gpu-mode": "shared"}, "containers": []}});
    for (mode, want) in [("shared", true), ("exclusive", false)] {
        let node = json!({"name": "n", "labels": {"gpu-mode": mode}});
        let question = json!({"op": "nodematch", "pod": pod, "node": node});
        assert_eq!(oracle.ask(&question)?, json!({"match": want}), "{question}");
    }
    Ok(())
}

#[test]
fn nothing_that_it_reads_ends_it() -> Result<()> {
    let mut oracle = Oracle::start()?;
    for nonsense in [
        json!([]),
        json!({"op": "none"}),
        json!({"op": "demand"}),
        json!({"op": "demand", "pod": {"spec": 1}, "resource": "cpu"}),
        json!({"op": "quantity", "jsn": ""}),
    ] {
        let answer = oracle.ask(&nonsense)?;
        assert!(is_error(&answer), "{nonsense}: {answer}");
    }
    Ok(())
}

#[test]
fn answers_many_in_order() -> Result<()> {
    let mut oracle = Oracle::start()?;
    let questions: Vec<Value> =
        (0..200_000).map(|n| json!({"op": "quantity", "json": format!("\"{n}m\""), "id": n})).collect();
    let began = Instant::now();
    let answers = oracle.ask_all(&questions)?;
    eprintln!("{} answers after {:?}", answers.len(), began.elapsed());
    for (n, answer) in answers.iter().enumerate() {
        assert_eq!(answer.get("id"), Some(&json!(n)));
    }
    assert_eq!(answers.get(1500).and_then(|answer| answer.get("value")), Some(&json!("1.5")));
    Ok(())
}

fn quantity(literal: &str) -> Value {
    json!({"op": "quantity", "json": literal})
}

fn is_error(answer: &Value) -> bool {
    answer.get("error").is_some_and(Value::is_string)
}
