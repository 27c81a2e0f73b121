//! The guard on a real API server: what reaches it, what it refuses, and what passes while it is away.

use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use crate::cluster::{Cluster, Options, Slicegate, wait};
use crate::workloads::pod;

const MAPS: &str = "/api/v1/namespaces/slicegate-system/configmaps";
const SOON: Duration = Duration::from_secs(30);
const GOOD: &str =
    "package rule\n\ndeny contains \"not here\" if startswith(input.request.object.metadata.name, \"greedy\")\n";
const BAD: &str = "package rule\n\ndeny contains msg if {\n  msg := nowhere(1)\n}\n";

fn policy(name: &str, module: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"rule.rego": module},
        "metadata": {"name": name, "namespace": "slicegate-system", "labels": {"slicegate.io/policy": "true"}}})
}

fn apply(cluster: &Cluster, object: &Value, more: &[&str]) -> Result<crate::cluster::Output> {
    cluster.kubectl_stdin(&[&["apply", "-f", "-"], more].concat(), &object.to_string())
}

#[test]
fn edits_are_refused_with_their_place_and_good_ones_say_whom_they_hit() -> Result<()> {
    let cluster = Cluster::start(Options { apiserver_only: true, ..Options::default() })?;
    cluster.create_namespace("team", &json!({}))?;
    let slicegate = Slicegate::start(&cluster)?;
    slicegate.register(&cluster, |_| {})?;
    slicegate.register_guard(&cluster)?;

    for more in [&[][..], &["--dry-run=server"]] {
        let refused = apply(&cluster, &policy("cap", BAD), more)?.failure()?;
        assert!(refused.contains("denied the request: rule.rego:4:"), "{refused}");
        assert!(refused.contains("  | msg := nowhere(1)\n  |        ^"), "{refused}");
    }
    assert_eq!(cluster.api("GET", &format!("{MAPS}/cap"), None)?.status, 404);
    for name in ["greedy-1", "modest-1"] {
        let created = cluster.api("POST", "/api/v1/namespaces/team/pods?dryRun=All", Some(&pod(name, "1")))?;
        assert_eq!(created.status, 201, "{}", created.message());
    }
    let tried = apply(&cluster, &policy("cap", GOOD), &["--dry-run=server"])?;
    assert!(tried.status.success(), "{}", tried.stderr);
    assert!(tried.stderr.contains("would newly deny Pod team/greedy-1: [cap/deny] not here"), "{}", tried.stderr);
    assert!(!tried.stderr.contains("modest-1"), "{}", tried.stderr);
    apply(&cluster, &policy("cap", GOOD), &[])?.success()?;
    wait(SOON, "the policy to be in force", || {
        let reply = cluster.api("POST", "/api/v1/namespaces/team/pods?dryRun=All", Some(&pod("greedy-2", "1"))).ok()?;
        (reply.status == 403 && reply.message().contains("not here")).then_some(())
    })?;
    let refused = apply(&cluster, &policy("cap", BAD), &[])?.failure()?;
    assert!(refused.contains("rule.rego:4:"), "{refused}");

    // The configuration, and what the guard has no part in.
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"config.yaml": "kind: Config\nshout: loud\n"},
        "metadata": {"name": "slicegate-config", "namespace": "slicegate-system"}});
    let refused = apply(&cluster, &config, &[])?.failure()?;
    assert!(refused.contains("config.yaml:2:1: unknown field"), "{refused}");
    let before = guarded(&slicegate)?;
    let mut plain = policy("plain", BAD);
    plain["metadata"]["labels"] = json!({});
    apply(&cluster, &plain, &[])?.success()?;
    let mut elsewhere = policy("elsewhere", BAD);
    elsewhere["metadata"]["namespace"] = json!("team");
    apply(&cluster, &elsewhere, &[])?.success()?;
    let status = json!({"metadata": {"annotations": {"slicegate.io/status": "{}", "team": "ml"}}});
    assert_eq!(cluster.api("PATCH", &format!("{MAPS}/cap"), Some(&status))?.status, 200);
    assert_eq!(guarded(&slicegate)?, before, "the API server asks about nothing else");

    // As large as a ConfigMap may be: comparing it costs the API server's conditions little.
    let mut large = policy("large", GOOD);
    large["data"]["list.json"] = json!(format!("[\"{}\"]", "x".repeat(900_000)));
    assert_eq!(cluster.api("POST", MAPS, Some(&large))?.status, 201);
    let more = json!({"data": {"list.json": format!("[\"{}\"]", "y".repeat(900_000))}});
    let changed = cluster.api("PATCH", &format!("{MAPS}/large"), Some(&more))?;
    assert_eq!(changed.status, 200, "{}", changed.message());

    // Taking the label off is seen, and unloads.
    let bare = json!({"metadata": {"labels": {"slicegate.io/policy": null}}});
    let reply = cluster.api("PATCH", &format!("{MAPS}/cap"), Some(&bare))?;
    assert!(
        reply.status == 200 && reply.warnings.iter().any(|text| text.contains("is unloaded")),
        "{:?}",
        reply.warnings
    );
    Ok(())
}

#[test]
fn without_the_guard_only_edits_of_what_is_read_are_refused_and_the_glass_breaks() -> Result<()> {
    let cluster = Cluster::start(Options { apiserver_only: true, ..Options::default() })?;
    let slicegate = Slicegate::start(&cluster)?;
    slicegate.register_guard(&cluster)?;
    for name in ["cap", "other"] {
        assert_eq!(cluster.api("POST", MAPS, Some(&policy(name, GOOD)))?.status, 201);
    }
    drop(slicegate);

    let away = |reply: crate::cluster::Reply| {
        assert!(reply.status == 500 && reply.message().contains("guard.slicegate.io"), "{}", reply.message());
    };
    away(cluster.api("POST", MAPS, Some(&policy("new", GOOD)))?);
    let edit = json!({"data": {"rule.rego": format!("{GOOD}# more\n")}});
    away(cluster.api("PATCH", &format!("{MAPS}/cap"), Some(&edit))?);
    let action = json!({"metadata": {"annotations": {"slicegate.io/action": "off"}}});
    away(cluster.api("PATCH", &format!("{MAPS}/cap"), Some(&action))?);
    let bare = json!({"metadata": {"labels": {"slicegate.io/policy": null}}});
    away(cluster.api("PATCH", &format!("{MAPS}/cap"), Some(&bare))?);

    let mut plain = policy("plain", BAD);
    plain["metadata"]["labels"] = json!({});
    assert_eq!(cluster.api("POST", MAPS, Some(&plain))?.status, 201);
    let status = json!({"metadata": {"annotations": {"slicegate.io/status": "{}"}}});
    assert_eq!(cluster.api("PATCH", &format!("{MAPS}/cap"), Some(&status))?.status, 200);
    assert_eq!(cluster.api("DELETE", &format!("{MAPS}/other"), None)?.status, 200);

    cluster.kubectl(&["delete", "validatingwebhookconfiguration", "slicegate-guard"])?.success()?;
    wait(SOON, "the API server to ask nobody", || {
        let reply = cluster.api("PATCH", &format!("{MAPS}/cap"), Some(&edit)).ok()?;
        (reply.status == 200).then_some(())
    })
}

/// How many writes the guard answered so far.
fn guarded(slicegate: &Slicegate) -> Result<Vec<String>> {
    let (_, metrics) = slicegate.admin("/metrics")?;
    Ok(metrics.lines().filter(|line| line.starts_with("slicegate_guard_requests_total")).map(str::to_owned).collect())
}
