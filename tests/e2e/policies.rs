//! Policy ConfigMaps on a real API server: what holds while they are listed for the first time, and again; and what is said of
//! those that match what nobody sends.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::cluster::{Cluster, Options, Reply, Slicegate, shipped, wait};
use crate::workloads::pod;

const SOON: Duration = Duration::from_mins(1);
const BINDING: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/slicegate-system/rolebindings/slicegate";
const PODS: &str = "/api/v1/namespaces/team/pods?dryRun=All";
const RULES: &str = r#"package gpu.admission

deny contains msg if {
    input.request.object.metadata.labels.team == "blocked"
    msg := "last-good: team is blocked"
}
"#;

fn policy(name: &str, rules: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"base.rego": rules},
        "metadata": {"name": name, "namespace": "slicegate-system", "labels": {"slicegate.io/policy": "true"}}})
}

fn create(cluster: &Cluster) -> Result<Reply> {
    let mut blocked = pod("trainer-0", "1");
    blocked["metadata"]["labels"]["team"] = "blocked".into();
    cluster.api("POST", PODS, Some(&blocked))
}

/// How often the program listed all policies so far.
fn lists(cluster: &Cluster) -> Result<usize> {
    let is_list = |event: &&Value| {
        let uri = event["requestURI"].as_str().unwrap_or_default();
        event["verb"] == "list"
            && event["stage"] == "ResponseComplete"
            && event["responseStatus"]["code"] == 200
            && uri.starts_with("/api/v1/namespaces/slicegate-system/configmaps")
            && uri.contains("slicegate.io%2Fpolicy")
    };
    Ok(cluster.audit_log()?.iter().filter(is_list).count())
}

/// An API server that starts again knows no version from before, so that the watch has to list everything anew.
#[test]
fn a_relist_never_opens_a_gap() -> Result<()> {
    let cluster = Cluster::start(Options { apiserver_only: true, audit: true, ..Options::default() })?;
    cluster.create_namespace("team", &json!({}))?;
    cluster.apply_path(&shipped("slicegate.yaml"))?;
    cluster.apply(&policy("team-policy", RULES))?;
    let slicegate = Slicegate::start(&cluster)?;
    slicegate.register(&cluster, |_| {})?;
    let refused = create(&cluster)?;
    ensure!(refused.status == 403 && refused.message().contains("last-good"), "{}", refused.message());
    let (listed, over) = (lists(&cluster)?, AtomicBool::new(false));
    ensure!(listed > 0, "the audit log tells of no list of the policies");

    let (answers, relisted) = std::thread::scope(|scope| {
        let client = scope.spawn(|| {
            let mut answers = 0;
            while !over.load(Ordering::Relaxed) {
                // While the API server is away nobody is asked.
                let Ok(reply) = create(&cluster) else { continue };
                let away = reply.status >= 500 || reply.status == 429;
                let holds = reply.status == 403 && reply.message().contains("last-good: team is blocked");
                ensure!(holds || away, "{} {}", reply.status, reply.message());
                answers += usize::from(holds);
            }
            Ok(answers)
        });
        let relisted = (|| {
            cluster.stop_apiserver();
            // What changes meanwhile makes the version old that the watch knows.
            cluster.start_apiserver()?;
            cluster.apply(&policy("another", &RULES.replace("blocked", "other")))?;
            wait(SOON, "the policies to be listed again", || lists(&cluster).ok().filter(|now| *now > listed))?;
            wait(SOON, "what came meanwhile", || {
                let (_, text) = slicegate.admin("/policies").ok()?;
                text.contains("\"another\"").then_some(())
            })
        })();
        over.store(true, Ordering::Relaxed);
        (client.join().expect("no panic"), relisted)
    });
    relisted?;
    ensure!(answers? > 0, "no request was judged while the policies were listed");
    Ok(())
}

/// A replica that has not read its policies says that it is not ready, so that it is sent nothing; what is sent anyway is
/// judged by what it knows.
#[test]
fn not_ready_before_the_first_list() -> Result<()> {
    let cluster = Cluster::start(Options { apiserver_only: true, ..Options::default() })?;
    cluster.create_namespace("team", &json!({}))?;
    cluster.apply_path(&shipped("slicegate.yaml"))?;
    cluster.apply(&policy("team-policy", RULES))?;
    // A list that is refused is one that does not come, for as long as the test likes.
    cluster.api("DELETE", BINDING, None)?.success()?;
    let slicegate = Slicegate::launch(&cluster)?;
    // Returns when the built-in rules refuse.
    slicegate.register(&cluster, |_| {})?;
    let (status, text) = slicegate.admin("/readyz?verbose")?;
    ensure!(status == 503 && text.contains("[-]policies"), "{status} {text}");
    // Who asks it all the same waits, and is told to come again.
    let early = create(&cluster)?;
    ensure!(early.status == 403 && early.message().contains("policies are not read yet"), "{}", early.message());

    cluster.apply_path(&shipped("slicegate.yaml"))?;
    wait(SOON, "the first list", || slicegate.admin("/readyz").is_ok_and(|(status, _)| status == 200).then_some(()))?;
    // Ready means that all that was there is in force: the very first request is refused.
    let refused = create(&cluster)?;
    ensure!(refused.status == 403 && refused.message().contains("last-good"), "{}", refused.message());
    Ok(())
}

/// A policy that matches these kinds and refuses nothing but what is called `refused`.
fn on(name: &str, kinds: &str) -> Value {
    let rules = "package routed\n\ndeny contains \"by name\" if input.request.name == \"refused\"\n";
    let mut policy = policy(name, rules);
    policy["metadata"]["annotations"] = json!({"slicegate.io/match": format!("kinds: [{kinds}]")});
    policy
}

/// The state of a policy, and all its warnings.
fn told(slicegate: &Slicegate, name: &str) -> Option<(String, String)> {
    let (_, text) = slicegate.admin("/policies").ok()?;
    let all: Vec<Value> = serde_json::from_str(&text).ok()?;
    let one = all.into_iter().find(|report| report["name"] == name)?;
    Some((one["state"].as_str()?.to_owned(), one["warnings"].to_string()))
}

/// Waits until a policy is in this state, with this text in its warnings, or without any.
fn becomes(slicegate: &Slicegate, name: &str, state: &str, warning: &str) -> Result<()> {
    let holds = |told: &(String, String)| {
        told.0 == state && told.1.contains(warning) && (warning.is_empty() == (told.1 == "[]"))
    };
    let wanted = || told(slicegate, name).filter(holds).map(drop);
    wait(SOON, state, wanted).with_context(|| format!("{:?}", told(slicegate, name)))
}

#[test]
fn a_policy_that_nothing_is_sent_for_is_told_what_to_add() -> Result<()> {
    let cluster = Cluster::start(Options { apiserver_only: true, ..Options::default() })?;
    cluster.create_namespace("team", &json!({}))?;
    let slicegate = Slicegate::start(&cluster)?;
    cluster.apply(&on("maps", "ConfigMap, Service"))?;
    // Without the configurations nobody knows what is sent.
    becomes(&slicegate, "maps", "Loaded", "")?;
    slicegate.register(&cluster, |_| {})?;
    becomes(&slicegate, "maps", "NotRouted", "CREATE and UPDATE of ConfigMap, Service")?;
    cluster.apply(&on("both", "Pod, ConfigMap"))?;
    becomes(&slicegate, "both", "Loaded", "resources: [configmaps], scope: Namespaced")?;
    cluster.apply(&on("pods", "Pod"))?;
    becomes(&slicegate, "pods", "Loaded", "")?;
    cluster.apply(&on("misspelt", "Deploymnet"))?;
    becomes(&slicegate, "misspelt", "Loaded", "serves no kind Deploymnet")?;
    wait(SOON, "the status and the Event", || {
        let home = ["-n", "slicegate-system", "get"];
        let map = cluster.kubectl(&[&home[..], &["configmap", "maps", "-o", "json"]].concat()).ok()?.json().ok()?;
        let status = map["metadata"]["annotations"]["slicegate.io/status"].as_str()?.to_owned();
        let events = cluster.kubectl(&[&home[..], &["events", "-o", "json"]].concat()).ok()?.json().ok()?;
        let told = events["items"].as_array()?.iter().any(|event| {
            let text = event["message"].as_str().unwrap_or_default();
            event["reason"] == "PolicyNotRouted"
                && event["type"] == "Warning"
                && text.contains("resources: [configmaps, services]")
        });
        (status.contains("\"NotRouted\"") && told).then_some(())
    })?;

    let rule = json!({"apiGroups": [""], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"],
        "resources": ["configmaps", "services"], "scope": "Namespaced"});
    let add = json!([{"op": "add", "path": "/webhooks/0/rules/-", "value": rule}]).to_string();
    let configuration = ["patch", "validatingwebhookconfiguration", "slicegate", "--type=json", "-p", &add];
    cluster.kubectl(&configuration)?.success()?;
    becomes(&slicegate, "maps", "Loaded", "")?;
    becomes(&slicegate, "both", "Loaded", "")?;
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "refused"}});
    wait(SOON, "the API server to send it", || {
        let reply = cluster.api("POST", "/api/v1/namespaces/team/configmaps?dryRun=All", Some(&map)).ok()?;
        (reply.status == 403 && reply.message().contains("by name")).then_some(())
    })?;

    // Nobody knows what is sent any more, so that nothing is said.
    cluster.kubectl(&["delete", "validatingwebhookconfiguration", "slicegate"])?.success()?;
    becomes(&slicegate, "misspelt", "Loaded", "")
}

#[test]
fn without_the_right_to_read_what_is_sent_nothing_is_said_of_it() -> Result<()> {
    let cluster = Cluster::start(Options { apiserver_only: true, ..Options::default() })?;
    cluster.apply_path(&shipped("slicegate.yaml"))?;
    cluster.apply_path(&shipped("webhooks.yaml"))?;
    let role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/slicegate";
    let mut narrow = cluster.api("GET", role, None)?.success()?;
    let rules = narrow["rules"].as_array_mut().context("no rules")?;
    rules.retain(|rule| rule["apiGroups"] != json!(["admissionregistration.k8s.io"]));
    cluster.api("PUT", role, Some(&narrow))?.success()?;
    cluster.apply(&on("maps", "ConfigMap"))?;
    let slicegate = Slicegate::launch(&cluster)?;
    wait(SOON, "slicegate to be ready", || {
        slicegate.admin("/readyz").is_ok_and(|(status, _)| status == 200).then_some(())
    })?;
    becomes(&slicegate, "maps", "Loaded", "")?;
    let refusals =
        |log: &str| log.lines().filter(|line| line.contains("webhookconfigurations") && line.contains("WARN")).count();
    wait(SOON, "the refusal to be logged", || (refusals(&slicegate.log()) == 2).then_some(()))?;
    // With the right it is known, without a restart.
    cluster.apply_path(&shipped("slicegate.yaml"))?;
    becomes(&slicegate, "maps", "NotRouted", "resources: [configmaps]")
}
