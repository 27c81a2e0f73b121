//! What the leader writes, on a real API server, with no more rights than the shipped role gives.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use slicegate::cluster::{Cluster as Connection, Options as Find};
use slicegate::feed::Sink;
use slicegate::policy::decision::Action;
use slicegate::rego::problem::Problem;
use slicegate::rego::set::{Key, Set};
use slicegate::rego::state::{SetReport, State};
use slicegate::rego::unit::Unit;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::cluster::{Cluster, Options, Slicegate, shipped, wait};
use crate::watches::Keeper;

const SOON: Duration = Duration::from_secs(30);
/// A lease that nobody renews lasts 15 seconds.
const LEASE: Duration = Duration::from_mins(1);
const USER: &str = "system:serviceaccount:slicegate-system:slicegate";
const HOME: &str = "slicegate-system";
const RULES: &str = "package p\n\ndeny contains \"no\" if input.never\n";

/// One replica as far as the cluster sees it.
struct Replica {
    connection: Connection,
    reports: watch::Sender<Arc<Vec<SetReport>>>,
    stop: CancellationToken,
    running: JoinHandle<()>,
}

impl Replica {
    fn start(runtime: &Runtime, kubeconfig: PathBuf) -> Result<Self> {
        let find =
            Find { kubeconfig: Some(kubeconfig), policy_namespaces: vec!["policies".to_owned()], ..Find::default() };
        let connection = runtime.block_on(Connection::connect(find))?;
        let (reports, reported) = watch::channel(Arc::default());
        let stop = CancellationToken::new();
        let running = runtime.spawn(connection.clone().lead(reported, stop.clone()));
        Ok(Self { connection, reports, stop, running })
    }

    fn report(&self, reports: &[SetReport]) {
        self.reports.send_replace(Arc::new(reports.to_vec()));
    }

    /// Ends it as SIGTERM would.
    fn end(self, runtime: &Runtime) -> Result<()> {
        self.stop.cancel();
        Ok(runtime.block_on(self.running)?)
    }

    /// Ends it as SIGKILL would.
    fn die(self, runtime: &Runtime) {
        self.running.abort();
        let _ = runtime.block_on(self.running);
    }
}

fn start(full: bool) -> Result<(Cluster, Runtime, PathBuf)> {
    let cluster = Cluster::start(Options { apiserver_only: !full, ..Options::default() })?;
    cluster.apply_path(&shipped("slicegate.yaml"))?;
    cluster.create_namespace("policies", &json!({}))?;
    // As the comment in the shipped file says for a further namespace.
    for mut object in serde_saphyr::from_multiple::<Value>(&std::fs::read_to_string(shipped("slicegate.yaml"))?)? {
        if object["kind"] == "Role" || object["kind"] == "RoleBinding" {
            object["metadata"]["namespace"] = json!("policies");
            if let Some(rules) = object["rules"].as_array_mut() {
                rules.retain(|rule| rule["resources"] != json!(["leases"]));
            }
            cluster.apply(&object)?;
        }
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let kubeconfig = cluster.kubeconfig_for(USER, None)?;
    Ok((cluster, runtime, kubeconfig))
}

fn policy(namespace: &str, name: &str, rules: &str) -> Value {
    let labels = json!({"slicegate.io/policy": "true"});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a.rego": rules},
        "metadata": {"name": name, "namespace": namespace, "labels": labels}})
}

fn unit(manifest: &Value) -> Unit {
    Unit::new(Set::of_config_map(manifest).expect("a policy"), &BTreeMap::new())
}

fn loaded(manifest: &Value) -> SetReport {
    let unit = unit(manifest);
    SetReport {
        key: unit.set.key.clone(),
        digest: unit.digest.clone(),
        state: State::Loaded,
        action: Action::Deny,
        engine: "rego.v1",
        modules: unit.set.modules.len(),
        errors: vec![],
        warnings: unit.set.warnings.clone(),
        offered: unit.digest.clone(),
        in_force: Some(Arc::new(unit)),
    }
}

fn get(cluster: &Cluster, path: &str) -> Result<Option<Value>> {
    let reply = cluster.api("GET", path, None)?;
    if reply.status == 404 { Ok(None) } else { reply.success().map(Some) }
}

fn map_path(key: &Key) -> String {
    format!("/api/v1/namespaces/{}/configmaps/{}", key.namespace, key.name)
}

fn secret_path(key: &Key) -> String {
    format!("/api/v1/namespaces/{}/secrets/slicegate-last-good-{}", key.namespace, key.name)
}

fn status(cluster: &Cluster, key: &Key) -> Option<Value> {
    let map = get(cluster, &map_path(key)).ok()??;
    serde_json::from_str(map["metadata"]["annotations"]["slicegate.io/status"].as_str()?).ok()
}

fn holder(cluster: &Cluster) -> Option<String> {
    let lease = get(cluster, "/apis/coordination.k8s.io/v1/namespaces/slicegate-system/leases/slicegate").ok()??;
    Some(lease["spec"]["holderIdentity"].as_str().filter(|holder| !holder.is_empty())?.to_owned())
}

fn event(reason: &str, kind: &str, name: &str) -> (String, String, String) {
    (reason.to_owned(), kind.to_owned(), name.to_owned())
}

fn events(cluster: &Cluster, namespace: &str) -> Result<Vec<(String, String, String)>> {
    let list = cluster.kubectl(&["-n", namespace, "get", "events", "-o", "json"])?.json()?;
    let all = list["items"].as_array().context("no list")?.iter().map(|event| {
        let text = |field: &str| event[field].as_str().unwrap_or_default().to_owned();
        (text("reason"), text("type"), event["involvedObject"]["name"].as_str().unwrap_or_default().to_owned())
    });
    Ok(all.collect())
}

#[test]
fn the_lease_goes_from_one_to_the_next() -> Result<()> {
    let (cluster, runtime, kubeconfig) = start(false)?;
    let manifest = policy(HOME, "a", RULES);
    cluster.apply(&manifest)?;
    let report = loaded(&manifest);
    let key = report.key.clone();
    let first = Replica::start(&runtime, kubeconfig.clone())?;
    let held = wait(SOON, "the first one to lead", || holder(&cluster))?;
    let second = Replica::start(&runtime, kubeconfig.clone())?;
    let rejected = SetReport { state: State::Rejected, ..report.clone() };
    second.report(std::slice::from_ref(&rejected));
    first.report(std::slice::from_ref(&report));
    wait(SOON, "the status by the first one", || status(&cluster, &key).filter(|status| status["state"] == "Loaded"))?;
    assert_eq!(holder(&cluster), Some(held.clone()));

    // One that ends gives the lease back, so that the next one need not wait for its time to pass.
    first.end(&runtime)?;
    let next = wait(SOON, "the second one to lead", || holder(&cluster).filter(|holder| *holder != held))?;
    wait(SOON, "its status", || status(&cluster, &key).filter(|status| status["state"] == "Rejected"))?;

    // One that is killed does not.
    second.die(&runtime);
    let third = Replica::start(&runtime, kubeconfig)?;
    third.report(std::slice::from_ref(&report));
    let last = wait(LEASE, "the third one to lead", || holder(&cluster).filter(|holder| *holder != next))?;
    wait(SOON, "its status", || status(&cluster, &key).filter(|status| status["state"] == "Loaded"))?;

    // The API server goes and comes back: nobody ended, and somebody leads.
    cluster.stop_apiserver();
    cluster.start_apiserver()?;
    third.report(std::slice::from_ref(&rejected));
    wait(LEASE, "a status after the outage", || status(&cluster, &key).filter(|status| status["state"] == "Rejected"))?;
    assert_eq!(holder(&cluster), Some(last));
    third.end(&runtime)
}

#[test]
fn a_status_is_written_once_and_tells_what_is_in_force() -> Result<()> {
    let (cluster, runtime, kubeconfig) = start(false)?;
    let manifests = [policy(HOME, "a", RULES), policy("policies", "b", RULES)];
    let mut reports = Vec::new();
    for manifest in &manifests {
        cluster.apply(manifest)?;
        reports.push(loaded(manifest));
    }
    let keys: Vec<Key> = reports.iter().map(|report| report.key.clone()).collect();
    let keeper = Arc::new(Keeper::default());
    let replica = Replica::start(&runtime, kubeconfig)?;
    let sink = Arc::clone(&keeper) as Arc<dyn Sink>;
    let watching = runtime.spawn(replica.connection.clone().watch(true, sink, replica.stop.clone()));
    keeper.wait("both sets", |known| known.policies.len() == 2)?;
    replica.report(&reports);
    for report in &reports {
        let written = wait(SOON, "the status", || status(&cluster, &report.key))?;
        let want = json!({"state": "Loaded", "digest": report.digest, "observedDigest": report.digest,
            "errors": [], "warnings": []});
        assert_eq!(written, want);
    }

    // What was written is no change of a set, and no reason to write again.
    let offered = keeper.see(|known| known.offered);
    let version = |key: &Key| -> Result<Value> {
        Ok(get(&cluster, &map_path(key))?.context("gone")?["metadata"]["resourceVersion"].clone())
    };
    wait(SOON, "the Secrets", || {
        keys.iter().all(|key| get(&cluster, &secret_path(key)).is_ok_and(|secret| secret.is_some())).then_some(())
    })?;
    let before = (version(&keys[0])?, version(&keys[1])?);
    replica.report(&reports);
    let mut bad = reports.clone();
    bad[1].state = State::LastGood;
    bad[1].offered = "0".repeat(64);
    bad[1].errors =
        vec![Problem { file: "a.rego".to_owned(), line: 3, column: 7, message: "unexpected token".to_owned() }];
    replica.report(&bad);
    let written =
        wait(SOON, "the error", || status(&cluster, &keys[1]).filter(|status| status["state"] == "LastGood"))?;
    assert_eq!(written["errors"], json!([{"file": "a.rego", "line": 3, "column": 7, "message": "unexpected token"}]));
    assert_eq!((&written["digest"], &written["observedDigest"]), (&json!(reports[1].digest), &json!("0".repeat(64))));
    assert_eq!(version(&keys[0])?, before.0, "the other one was left alone");
    assert_eq!(keeper.see(|known| known.offered), offered, "a status is no news to the watch");

    // An Event tells the same to who asks by kubectl.
    wait(SOON, "the events", || events(&cluster, "policies").ok().filter(|events| events.len() == 2))?;
    let mut told = events(&cluster, "policies")?;
    told.sort();
    assert_eq!(told, [event("PolicyLastGood", "Warning", "b"), event("PolicyLoaded", "Normal", "b")]);
    let described = cluster.kubectl(&["-n", "policies", "describe", "configmap", "b"])?.success()?;
    assert!(described.contains("a.rego:3:7: unexpected token"), "{described}");

    what_goes_is_told(&cluster, &replica, &keeper, &bad[..1], &keys)?;
    replica.end(&runtime)?;
    Ok(runtime.block_on(watching)?)
}

fn what_goes_is_told(
    cluster: &Cluster,
    replica: &Replica,
    keeper: &Keeper,
    rest: &[SetReport],
    keys: &[Key],
) -> Result<()> {
    // The label goes: the status and the last good form go with it, and the Event says so.
    cluster.kubectl(&["-n", "policies", "label", "configmap", "b", "slicegate.io/policy-"])?.success()?;
    keeper.wait("the set to go", |known| known.policies.len() == 1)?;
    replica.report(rest);
    wait(SOON, "the end to be told", || {
        let told = events(cluster, "policies").ok()?;
        told.contains(&event("PolicyUnloaded", "Warning", "b")).then_some(())
    })?;
    assert_eq!(status(cluster, &keys[1]), None);
    assert_eq!(get(cluster, &secret_path(&keys[1]))?, None);
    cluster.kubectl(&["-n", HOME, "delete", "configmap", "a"])?.success()?;
    replica.report(&[]);
    wait(SOON, "the deletion to be told", || {
        events(cluster, HOME).ok()?.contains(&event("PolicyUnloaded", "Warning", "a")).then_some(())
    })?;
    assert_eq!(get(cluster, &secret_path(&keys[0]))?, None);
    Ok(())
}

#[test]
fn last_good_forms_outlive_the_process_and_go_with_their_config_map() -> Result<()> {
    let (cluster, runtime, kubeconfig) = start(true)?;
    let (own, other) = (policy(HOME, "a", RULES), policy("policies", "b", RULES));
    let config = "apiVersion: slicegate.io/v1alpha1\nkind: Config\nenforcement: warn\n";
    let configure = |text: &str| {
        cluster.apply(&json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"config.yaml": text},
            "metadata": {"name": "slicegate-config", "namespace": HOME}}))
    };
    cluster.apply(&own)?;
    cluster.apply(&other)?;
    configure(config)?;
    let reports = [loaded(&own), loaded(&other)];
    let [a, b] = [reports[0].key.clone(), reports[1].key.clone()];
    let (first, keeper) = (Replica::start(&runtime, kubeconfig.clone())?, Arc::new(Keeper::default()));
    let sink = Arc::clone(&keeper) as Arc<dyn Sink>;
    let watching = runtime.spawn(first.connection.clone().watch(true, sink, first.stop.clone()));
    first.report(&reports);
    let config_secret = format!("/api/v1/namespaces/{HOME}/secrets/slicegate-config-last-good");
    for path in [&secret_path(&a), &secret_path(&b), &config_secret] {
        wait(SOON, "what is kept", || get(&cluster, path).ok()?)?;
    }
    let secret = get(&cluster, &secret_path(&a))?.context("gone")?;
    let map = get(&cluster, &map_path(&a))?.context("gone")?;
    assert_eq!(secret["type"], "slicegate.io/last-good");
    assert_eq!(secret["metadata"]["labels"], json!({"slicegate.io/last-good": "true"}));
    assert_eq!(secret["metadata"]["annotations"]["slicegate.io/digest"], json!(reports[0].digest));
    let owner = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": map["metadata"]["uid"]}]);
    assert_eq!(secret["metadata"]["ownerReferences"], owner);
    let digest = keeper.see(|known| known.digest.clone());

    // A bad edit, and all replicas are new: what was good before is known, and the bad configuration does no harm.
    first.end(&runtime)?;
    runtime.block_on(watching)?;
    configure("kind: Nonsense\n")?;
    let second = Replica::start(&runtime, kubeconfig.clone())?;
    let found = runtime.block_on(second.connection.last_good())?;
    assert_eq!(found.config.as_deref(), Some(config));
    assert_eq!(found.units, BTreeMap::from([(a.clone(), unit(&own)), (b.clone(), unit(&other))]));
    let keeper = Arc::new(Keeper::default());
    let sink = Arc::clone(&keeper) as Arc<dyn Sink>;
    let watching = runtime.spawn(second.connection.clone().watch(true, sink, second.stop.clone()));
    keeper.wait("the last good configuration", |known| known.digest.is_some() && known.configuration.is_some())?;
    assert_eq!(keeper.see(|known| known.digest.clone()), digest);
    assert_eq!(keeper.see(|known| known.last_good.clone()), [b.to_string(), a.to_string()]);

    // The ConfigMap goes while no leader sees it: the garbage collector takes the Secret, and one of the same name that comes
    // after it inherits nothing.
    cluster.kubectl(&["-n", "policies", "delete", "configmap", "b"])?.success()?;
    wait(LEASE, "the Secret to be collected", || {
        get(&cluster, &secret_path(&b)).is_ok_and(|secret| secret.is_none()).then_some(())
    })?;
    cluster.kubectl(&["-n", HOME, "delete", "configmap", "a", "--cascade=orphan"])?.success()?;
    cluster.apply(&own)?;
    let found = runtime.block_on(second.connection.last_good())?;
    assert_eq!(found.units, BTreeMap::new());
    second.end(&runtime)?;
    Ok(runtime.block_on(watching)?)
}

#[test]
fn the_program_reports_its_policies_and_keeps_a_good_one_through_a_restart() -> Result<()> {
    let cluster = Cluster::start(Options { apiserver_only: true, ..Options::default() })?;
    cluster.apply_path(&shipped("slicegate.yaml"))?;
    let good = policy(HOME, "a", "package p\n\ndeny contains \"always\" if true\n");
    let key = unit(&good).set.key;
    cluster.apply(&good)?;
    let slicegate = Slicegate::start(&cluster)?;
    let state = |wanted: &str| {
        let status = || status(&cluster, &key).filter(|status| status["state"] == wanted);
        wait(LEASE, wanted, status)
    };
    let loaded = state("Loaded")?;
    assert_eq!(loaded["digest"], json!(unit(&good).digest));
    wait(SOON, "what is kept", || get(&cluster, &secret_path(&key)).ok()?)?;
    cluster.apply(&policy(HOME, "a", "package p\n\ndeny contains \"always\" if {\n"))?;
    let bad = state("LastGood")?;
    assert_eq!((&bad["digest"], bad["errors"][0]["file"].as_str()), (&loaded["digest"], Some("a.rego")));

    // Another process knows nothing but what the cluster keeps.
    drop(slicegate);
    cluster.kubectl(&["-n", HOME, "annotate", "configmap", "a", "slicegate.io/status-"])?.success()?;
    let _slicegate = Slicegate::start(&cluster)?;
    let kept = state("LastGood")?;
    assert_eq!(kept["digest"], loaded["digest"]);
    Ok(())
}
