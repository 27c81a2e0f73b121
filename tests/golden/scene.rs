//! A server with policy sets: its own one, with real worker processes, fed from a folder as users feed it.
//!
//! What it does: writes manifests into a folder that is watched, waits until what they lead to is settled, and asks the admin
//! port what became of them. Invariant: what is told of sets is told after they were settled, never of those before.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::Value;
use slicegate::facts::Event;
use slicegate::feed::{Sink, Watched};
use slicegate::files;
use slicegate::policies::{Policies, Registry};
use slicegate::policy::Policy;
use slicegate::rego::problem::Problem;
use slicegate::rego::set::{Key, Set};
use slicegate::rego::unit::Unit;
use slicegate::server::following::Following;
use slicegate::workers;
use slicegate::workers::child::Settings;
use tempfile::TempDir;

use crate::case::Case;
use crate::servers;
use crate::sets;
use crate::support::server::TestServer;
use crate::wire::Target;

/// slicegate's own namespace.
const HOME: &str = "slicegate-system";

/// The name of the folder that is watched, and so of a set whose files stand in it.
const FOLDER: &str = "team-policy";

/// The folder behind a mount before its contents change.
const EARLIER: &str = "..earlier";

const INTERVAL: Duration = Duration::from_millis(10);
const PATIENCE: Duration = Duration::from_secs(30);

/// What tells the workers of one server from those of another, since memory is counted: a few bytes more for each.
static SERVERS: AtomicU64 = AtomicU64::new(0);

/// All sets of the source, as they were settled.
type Offered = BTreeMap<Key, Arc<Set>>;

/// A server with policy sets.
pub(crate) struct Scene {
    pub(crate) target: Target,
    /// The last argument of its workers.
    pub(crate) workers: String,
    server: TestServer,
    sink: Arc<dyn Sink>,
    settled: Receiver<Offered>,
    offered: Option<Offered>,
    root: TempDir,
    generation: u32,
    manifests: BTreeMap<String, Value>,
    /// Where policies are led that try to reach a host.
    host: TcpListener,
}

/// What became of the sets of one round.
#[derive(Debug, Clone, Default)]
pub(crate) struct Loaded {
    /// What `/policies` says of each of them.
    pub(crate) reports: Vec<Report>,
    /// Their digests before.
    pub(crate) before: BTreeMap<Key, String>,
    /// From the write to the moment at which all was settled.
    pub(crate) took: Duration,
    /// How many connections policies made.
    pub(crate) calls: usize,
    /// What `/policies` says of them, as it says it.
    pub(crate) text: String,
}

/// One set in `/policies`.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Report {
    #[serde(flatten)]
    pub(crate) key: Key,
    pub(crate) digest: String,
    pub(crate) state: String,
    pub(crate) modules: usize,
    pub(crate) errors: Vec<Problem>,
    pub(crate) warnings: Vec<Problem>,
}

impl Scene {
    /// Starts a server for a case, without any set.
    pub(crate) fn start(case: &Case) -> Result<Self, String> {
        let memory = (64 << 20) + SERVERS.fetch_add(1, Ordering::Relaxed);
        // Without optimisation everything takes many times as long.
        let (budget, compile_budget) = (Duration::from_millis(400), Duration::from_secs(9));
        let workers = workers::Options {
            program: env!("CARGO_BIN_EXE_slicegate").into(),
            workers: 1,
            settings: Settings { budget, compile_budget, memory },
        };
        let mut options = servers::options(case)?;
        options.workers = Some(workers);
        let server = TestServer::start(options);
        let app = Arc::clone(&server.app);
        let publish = Arc::clone(&app);
        let (registry, policies) =
            Registry::new(app.workers.clone(), HOME.into(), Box::new(move |sets| publish.replace_sets(sets)));
        server.runtime().spawn(registry.run());
        let following = Following::new(app, &[Watched::Policies]).with_policies(policies.clone());
        let (told, settled) = mpsc::channel();
        let told = Mutex::new(told);
        let host = TcpListener::bind("127.0.0.1:0").map_err(text)?;
        host.set_nonblocking(true).map_err(text)?;
        Ok(Self {
            target: servers::target(&server),
            workers: memory.to_string(),
            server,
            sink: Arc::new(Telling { following, policies, told }),
            settled,
            offered: None,
            root: TempDir::new().map_err(text)?,
            generation: 0,
            manifests: BTreeMap::new(),
            host,
        })
    }

    /// Adds ConfigMaps to those that are there, in place of those of their names.
    pub(crate) fn apply(&mut self, manifests: &[Value]) -> Result<Loaded, String> {
        let mut keys = Vec::new();
        for manifest in manifests {
            let name = sets::name(manifest)?;
            keys.extend(Set::of_config_map(manifest).map(|set| set.key));
            self.manifests.insert(name, manifest.clone());
        }
        self.write(&keys)
    }

    /// Takes a ConfigMap away.
    pub(crate) fn delete(&mut self, name: &str) -> Result<Loaded, String> {
        self.manifests.remove(name).ok_or(format!("there is no ConfigMap {name}"))?;
        self.write(&[])
    }

    /// Puts files and links in place of all ConfigMaps, as kubelet mounts them: first with other contents, then with these,
    /// by a swap of the link that all of them go through.
    pub(crate) fn mount(&mut self, entries: &BTreeMap<String, String>) -> Result<Loaded, String> {
        let link = |entry: &str| entry.strip_prefix("-> ").map(str::to_owned);
        let dated = entries.get("..data").and_then(|entry| link(entry)).ok_or("no link ..data in the mount")?;
        self.manifests.clear();
        let folder = self.next_folder()?;
        fs::create_dir(folder.join(EARLIER)).map_err(text)?;
        for (path, content) in entries.iter().filter(|(path, _)| *path != "..data") {
            let at = folder.join(path);
            fs::create_dir_all(at.parent().ok_or("a file without a folder")?).map_err(text)?;
            match (link(content), path.strip_prefix(&format!("{dated}/"))) {
                (Some(leads_to), _) => symlink(leads_to, &at).map_err(text)?,
                (None, Some(name)) => {
                    fs::write(&at, content).map_err(text)?;
                    fs::write(folder.join(EARLIER).join(name), format!("{content}# earlier\n")).map_err(text)?;
                }
                (None, None) => return Err(format!("{path} is outside of the folder behind the mount")),
            }
        }
        let visible: Vec<&String> = entries.keys().filter(|path| !path.starts_with("..")).collect();
        let key = Key { namespace: HOME.into(), name: FOLDER.into() };
        let mut loaded = Loaded::default();
        for target in [EARLIER, &dated] {
            symlink(target, folder.join("..next")).map_err(text)?;
            fs::rename(folder.join("..next"), folder.join("..data")).map_err(text)?;
            let read = |path: &&String| Ok(((*path).clone(), fs::read_to_string(folder.join(path))?));
            let files = visible.iter().map(read).collect::<std::io::Result<BTreeMap<_, _>>>().map_err(text)?;
            let set = Set::of_files(key.clone(), "true", &BTreeMap::new(), files);
            loaded = self.settle(&folder, &BTreeMap::from([(key.clone(), set)]), std::slice::from_ref(&key))?;
        }
        Ok(loaded)
    }

    /// The ConfigMap of this name, as it is offered.
    pub(crate) fn manifest(&self, name: &str) -> Option<&Value> {
        self.manifests.get(name)
    }

    /// The ConfigMaps with the hosts of examples led to a port of this process.
    pub(crate) fn led_here(&self, manifests: &[Value]) -> Result<Vec<Value>, String> {
        let before = Value::from(manifests.to_vec()).to_string();
        let here = self.host.local_addr().map_err(text)?.to_string();
        let after = before.replace("list.example.test", &here);
        if before == after {
            return Err("the policy names no host that it could reach".into());
        }
        serde_json::from_str(&after).map_err(text)
    }

    fn write(&mut self, keys: &[Key]) -> Result<Loaded, String> {
        let folder = self.next_folder()?;
        let mut expected = BTreeMap::new();
        for (name, manifest) in &self.manifests {
            fs::write(folder.join(format!("{name}.json")), manifest.to_string()).map_err(text)?;
            expected.extend(Set::of_config_map(manifest).map(|set| (set.key.clone(), set)));
        }
        self.settle(&folder, &expected, keys)
    }

    fn next_folder(&mut self) -> Result<PathBuf, String> {
        self.generation += 1;
        let folder = self.root.path().join(self.generation.to_string()).join(FOLDER);
        fs::create_dir_all(&folder).map_err(text)?;
        Ok(folder)
    }

    /// Puts a folder in the place that is watched, waits until its sets are settled, and says what became of them.
    fn settle(&mut self, folder: &Path, expected: &BTreeMap<Key, Set>, keys: &[Key]) -> Result<Loaded, String> {
        let before = self.reports()?.0.into_iter().map(|report| (report.key, report.digest)).collect();
        let begin = Instant::now();
        let (watched, next) = (self.root.path().join("watched"), self.root.path().join("next"));
        symlink(folder, &next).and_then(|()| fs::rename(&next, &watched)).map_err(text)?;
        if self.generation == 1 {
            let stop = self.server.app.shutdown.aborting();
            self.server.runtime().spawn(files::watch_policies(watched, INTERVAL, true, Arc::clone(&self.sink), stop));
        }
        let is = |offered: &Offered| {
            offered.len() == expected.len()
                && offered.iter().zip(expected).all(|(is, wanted)| is.0 == wanted.0 && is.1.as_ref() == wanted.1)
        };
        while !self.offered.as_ref().is_some_and(is) {
            let left = PATIENCE.saturating_sub(begin.elapsed());
            self.offered = Some(self.settled.recv_timeout(left).map_err(|_| {
                format!("the sets were not settled in {PATIENCE:?}: {}", self.server.get("/readyz?verbose").text())
            })?);
        }
        let took = begin.elapsed();
        let (mut reports, _) = self.reports()?;
        reports.retain(|report| keys.contains(&report.key));
        if reports.len() != keys.len() {
            return Err(format!("/policies does not tell of all of {keys:?}: {reports:?}"));
        }
        let text = self.server.get("/policies").text();
        Ok(Loaded { reports, before, took, calls: self.calls(), text })
    }

    fn reports(&self) -> Result<(Vec<Report>, u16), String> {
        let reply = self.server.get("/policies");
        let reports = serde_json::from_slice(&reply.body).map_err(|error| format!("/policies: {error}"))?;
        Ok((reports, reply.status))
    }

    /// The connections that were made since they were last counted.
    fn calls(&self) -> usize {
        std::iter::from_fn(|| self.host.accept().ok()).count()
    }
}

/// Hands on to the server, and tells the test when what was handed on is settled.
#[derive(Debug)]
struct Telling {
    following: Following,
    policies: Policies,
    told: Mutex<Sender<Offered>>,
}

impl Sink for Telling {
    fn fact(&self, event: Event) {
        self.following.fact(event);
    }

    fn policy(&self, policy: Policy) {
        self.following.policy(policy);
    }

    fn policies(&self, namespace: &str, sets: Offered) {
        self.following.policies(namespace, sets.clone());
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // A test that is over does not listen any more.
        self.policies.settled(Box::new(move || drop(told.send(sets))));
    }

    fn last_good(&self, units: BTreeMap<Key, Unit>) {
        self.following.last_good(units);
    }

    fn synced(&self, what: Watched) {
        self.following.synced(what);
    }

    fn configuration_problem(&self, problem: Option<String>) {
        self.following.configuration_problem(problem);
    }

    fn source_problem(&self, what: Watched, problem: Option<String>) {
        self.following.source_problem(what, problem);
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
