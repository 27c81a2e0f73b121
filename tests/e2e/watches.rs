//! The shipped manifests on a real API server, and the watches with no more rights than those give.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use slicegate::cluster::{Cluster as Watches, Options as Find};
use slicegate::facts::{Event, Facts, Labels};
use slicegate::feed::{Sink, Watched};
use slicegate::policy::Policy;
use slicegate::rego::set::{Key, Set};
use slicegate::rego::unit::Unit;
use tokio_util::sync::CancellationToken;

use crate::cluster::{Cluster, Options, shipped, wait};

const SOON: Duration = Duration::from_secs(30);
const USER: &str = "system:serviceaccount:slicegate-system:slicegate";
const GOOD: &str = "apiVersion: slicegate.io/v1alpha1\nkind: Config\nenforcement: warn\n";

/// What the watches told, folded.
#[derive(Default)]
pub(crate) struct Known {
    facts: Facts,
    pub(crate) digest: Option<String>,
    /// The sets by namespace and name, whichever namespace they are of.
    pub(crate) policies: BTreeMap<Key, Arc<Set>>,
    /// How often sets were told.
    pub(crate) offered: usize,
    pub(crate) last_good: Vec<String>,
    synced: BTreeSet<Watched>,
    lost: BTreeMap<Watched, String>,
    pub(crate) configuration: Option<String>,
}

#[derive(Default)]
pub(crate) struct Keeper(Mutex<Known>);

impl Keeper {
    pub(crate) fn see<T>(&self, look: impl FnOnce(&mut Known) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn wait(&self, what: &str, mut holds: impl FnMut(&Known) -> bool) -> Result<()> {
        wait(SOON, what, || self.see(|known| holds(known)).then_some(()))
    }
}

impl Sink for Keeper {
    fn fact(&self, event: Event) {
        self.see(|known| {
            if let Some(next) = known.facts.after(event) {
                known.facts = next;
            }
        });
    }
    fn policy(&self, policy: Policy) {
        self.see(|known| known.digest = Some(policy.digest));
    }
    fn policies(&self, namespace: &str, sets: BTreeMap<Key, Arc<Set>>) {
        self.see(|known| {
            known.offered += 1;
            known.policies.retain(|key, _| key.namespace != namespace);
            known.policies.extend(sets);
        });
    }
    fn last_good(&self, units: BTreeMap<Key, Unit>) {
        self.see(|known| known.last_good = units.into_keys().map(|key| key.to_string()).collect());
    }
    fn synced(&self, what: Watched) {
        self.see(|known| known.synced.insert(what));
    }
    fn configuration_problem(&self, problem: Option<String>) {
        self.see(|known| known.configuration = problem);
    }
    fn source_problem(&self, what: Watched, problem: Option<String>) {
        self.see(|known| match problem {
            Some(problem) => drop(known.lost.insert(what, problem)),
            None => drop(known.lost.remove(&what)),
        });
    }
}

fn apply_shipped(cluster: &Cluster) -> Result<()> {
    cluster.apply_path(&shipped("slicegate.yaml"))
}

fn configure(cluster: &Cluster, data: &Value) -> Result<()> {
    let metadata = json!({"name": "slicegate-config", "namespace": "slicegate-system"});
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data});
    cluster.kubectl_stdin(&["apply", "-f", "-"], &map.to_string())?.success()?;
    Ok(())
}

#[test]
fn the_api_server_keeps_the_webhooks_as_written() -> Result<()> {
    let cluster = Cluster::start(Options { apiserver_only: true, ..Options::default() })?;
    apply_shipped(&cluster)?;
    cluster.apply_path(&shipped("webhooks.yaml"))?;
    let text = std::fs::read_to_string(shipped("webhooks.yaml"))?;
    for written in serde_saphyr::from_multiple::<Value>(&text)? {
        let kind = written["kind"].as_str().context("no kind")?;
        let mut kept = cluster.kubectl(&["get", kind, "slicegate", "-o", "json"])?.json()?["webhooks"][0].clone();
        // Two fields are empty as written, and the API server shows empty ones as absent.
        kept["clientConfig"]["caBundle"] = json!("");
        kept["matchConditions"] = json!([]);
        assert_eq!(kept, written["webhooks"][0]);
    }

    // A Pod as the Deployment would make it passes the namespace's own Pod Security.
    let deployment =
        cluster.kubectl(&["-n", "slicegate-system", "get", "deployment", "slicegate", "-o", "json"])?.json()?;
    let mut pod = deployment["spec"]["template"].clone();
    pod["apiVersion"] = json!("v1");
    pod["kind"] = json!("Pod");
    pod["metadata"]["name"] = json!("probe");
    let told = cluster.kubectl_stdin(&["-n", "slicegate-system", "create", "-f", "-"], &pod.to_string())?.success()?;
    assert!(told.contains("pod/probe created"), "{told}");

    // With nobody behind the webhooks other namespaces are closed, and kube-system is open.
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "other"},
        "spec": {"containers": [{"name": "main", "image": "registry.example.test/work:1"}]}});
    let told = cluster.kubectl_stdin(&["-n", "default", "create", "-f", "-"], &pod.to_string())?.failure()?;
    assert!(told.contains("failed calling webhook \"mutate.slicegate.io\""), "{told}");
    cluster.kubectl_stdin(&["-n", "kube-system", "create", "-f", "-"], &pod.to_string())?.success()?;
    Ok(())
}

#[test]
fn watches_need_no_more_than_the_shipped_role_and_outlive_the_api_server() -> Result<()> {
    let cluster = Cluster::start(Options { apiserver_only: true, ..Options::default() })?;
    apply_shipped(&cluster)?;
    cluster.create_namespace("blue", &json!({"slicegate.io/checkpoint": "true"}))?;

    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let keeper = Arc::new(Keeper::default());
    let find = Find { kubeconfig: Some(cluster.kubeconfig_for(USER, None)?), ..Find::default() };
    let watches = runtime.block_on(Watches::connect(find))?;
    assert_eq!(watches.namespace(), "slicegate-system");
    let stop = CancellationToken::new();
    let running = runtime.spawn(watches.clone().watch(true, Arc::clone(&keeper) as Arc<dyn Sink>, stop.clone()));
    keeper.wait("all watches to be synced", |known| known.synced.len() == Watched::ALL.len())?;
    let blue = Labels::from([("slicegate.io/checkpoint".to_owned(), "true".to_owned())]);
    keeper.see(|known| {
        let labels = known.facts.namespace("blue").cloned().unwrap_or_default();
        assert_eq!(labels.get("slicegate.io/checkpoint").map(String::as_str), Some("true"));
        assert_eq!(known.digest.as_deref(), Some("default"));
        assert!(known.lost.is_empty(), "{:?}", known.lost);
    });

    live_changes_are_seen(&cluster, &keeper)?;
    let read = runtime.block_on(watches.namespace_labels("blue"))?.context("blue is missing")?;
    assert!(blue.iter().all(|(key, value)| read.get(key) == Some(value)), "{read:?}");
    assert_eq!(runtime.block_on(watches.namespace_labels("nowhere"))?, None);

    cluster.stop_apiserver();
    keeper.wait("the loss to be told", |known| known.lost.len() == Watched::ALL.len())?;
    keeper.see(|known| {
        assert!(known.facts.node("n1").is_some() && known.facts.namespace("blue").is_some());
        assert_eq!(known.facts.default_priority_class(), Some("usual"));
    });
    cluster.start_apiserver()?;
    keeper.wait("the watches to stand again", |known| known.lost.is_empty())?;
    cluster.kubectl(&["delete", "namespace", "blue", "--wait=false"])?.success()?;
    cluster.kubectl(&["label", "node", "n1", "gpu-mode=exclusive", "--overwrite"])?.success()?;
    keeper.wait("a change after the restart", |known| {
        known.facts.node("n1").is_some_and(|labels| labels.get("gpu-mode").is_some_and(|mode| mode == "exclusive"))
    })?;

    stop.cancel();
    runtime.block_on(running)?;
    Ok(())
}

fn live_changes_are_seen(cluster: &Cluster, keeper: &Keeper) -> Result<()> {
    cluster.create_node("n1", &json!({"gpu-mode": "shared"}), &json!({}), &json!([]))?;
    let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "usual"},
        "value": 10, "globalDefault": true});
    cluster.kubectl_stdin(&["apply", "-f", "-"], &class.to_string())?.success()?;
    keeper.wait("the node and the class", |known| {
        known.facts.node("n1").is_some() && known.facts.default_priority_class() == Some("usual")
    })?;
    configure(cluster, &json!({"config.yaml": GOOD}))?;
    keeper.wait("the configuration", |known| known.digest.as_deref() != Some("default"))?;
    let first = keeper.see(|known| known.digest.clone());
    configure(cluster, &json!({"other.yaml": GOOD}))?;
    keeper
        .wait("the missing key", |known| known.configuration.as_ref().is_some_and(|told| told.contains("missing")))?;
    cluster.kubectl(&["-n", "slicegate-system", "delete", "configmap", "slicegate-config"])?.success()?;
    keeper.wait("the deletion", |known| known.configuration.as_ref().is_some_and(|told| told.contains("deleted")))?;
    assert_eq!(keeper.see(|known| known.digest.clone()), first);
    configure(cluster, &json!({"config.yaml": GOOD.replace("warn", "dryrun")}))?;
    keeper.wait("the repair", |known| known.configuration.is_none() && known.digest != first)
}
