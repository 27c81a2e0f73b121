//! The registry of policies with real workers: what becomes of the sets beside one whose check takes as long as it may.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use slicegate::policies::{Policies, Registry, Sets};
use slicegate::rego::set::{Key, Set};
use slicegate::rego::state::State;
use slicegate::workers::child::Settings;
use slicegate::workers::meter::Meter;
use slicegate::workers::{CHECKS, Options, Workers};
use tokio::sync::watch;

/// Fails a test that hangs.
const DEADLINE: Duration = Duration::from_mins(2);
const HOME: &str = "slicegate-system";
/// Uses up whatever time it is given.
const ENDLESS: &str = "package a

r := numbers.range(1, 30000)

deny contains \"x\" if {
	some a in r
	some b in r
	some c in r
	a * b * c == -1
}
";

/// A registry and what it puts in force.
struct Scene {
    policies: Policies,
    sets: watch::Receiver<Arc<Sets>>,
    offered: BTreeMap<Key, Arc<Set>>,
}

fn key(name: &str) -> Key {
    Key { namespace: HOME.to_owned(), name: name.to_owned() }
}

fn says(message: &str) -> String {
    format!("package a\n\ndeny contains {message:?} if input.never\n")
}

impl Scene {
    /// Must be called in a runtime. What is endless is ended after this time.
    fn start(time: Duration) -> Self {
        let settings = Settings { budget: time, compile_budget: time, memory: 64 << 20 };
        let options = Options { program: env!("CARGO_BIN_EXE_slicegate").into(), workers: 1, settings };
        let (publish, sets) = watch::channel(Arc::default());
        let publish = Box::new(move |sets| drop(publish.send_replace(sets)));
        let (registry, policies) = Registry::new(Workers::new(options, Meter::default()), HOME.to_owned(), publish);
        tokio::spawn(registry.run());
        Self { policies, sets, offered: BTreeMap::new() }
    }

    fn write(&mut self, name: &str, label: &str, module: &str) {
        let files = BTreeMap::from([("a.rego".to_owned(), module.to_owned())]);
        self.offered.insert(key(name), Arc::new(Set::of_files(key(name), label, &BTreeMap::new(), files)));
        self.offer();
    }

    fn offer(&self) {
        self.policies.offer(HOME, self.offered.clone());
    }

    fn delete(&mut self, name: &str) {
        self.offered.remove(&key(name));
        self.offer();
    }

    async fn wait(&mut self, what: &str, holds: impl Fn(&Sets) -> bool) -> Arc<Sets> {
        let waited = tokio::time::timeout(DEADLINE, self.sets.wait_for(|sets| holds(sets))).await;
        let sets = waited.unwrap_or_else(|_| panic!("waited in vain for {what}")).unwrap();
        Arc::clone(&sets)
    }
}

/// The state of a set, and the text that is in force of it.
fn state(sets: &Sets, name: &str) -> Option<(State, String)> {
    let report = sets.reports.iter().find(|report| report.key == key(name))?;
    let text = report.in_force.as_ref().map(|unit| unit.set.modules.values().cloned().collect::<String>());
    Some((report.state, text.unwrap_or_default()))
}

fn is_in_force(sets: &Sets, name: &str, message: &str) -> bool {
    state(sets, name) == Some((State::Loaded, says(message))) && sets.active.iter().any(|set| *set.name == *name)
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap()
}

#[test]
fn a_set_that_is_being_judged_holds_up_neither_edits_nor_deletions_of_others() {
    runtime().block_on(async {
        let mut scene = Scene::start(Duration::from_mins(10));
        scene.write("healthy", "true", &says("one"));
        scene.write("other", "true", &says("other"));
        scene.wait("both", |sets| is_in_force(sets, "healthy", "one") && is_in_force(sets, "other", "other")).await;
        for number in 1..CHECKS {
            scene.write(&format!("endless-{number}"), "true", ENDLESS);
        }
        let unjudged = |sets: &Sets| (1..CHECKS).all(|number| state(sets, &format!("endless-{number}")).is_none());
        scene.write("healthy", "true", &says("two"));
        let sets = scene.wait("the edit", |sets| is_in_force(sets, "healthy", "two")).await;
        assert!(unjudged(&sets), "the test is void: what is endless ended");
        scene.delete("other");
        let sets = scene.wait("the deletion", |sets| state(sets, "other").is_none()).await;
        assert!(unjudged(&sets) && sets.active.len() == 1);
        // A deletion needs nobody who judges.
        scene.write(&format!("endless-{CHECKS}"), "true", ENDLESS);
        scene.delete("healthy");
        let sets = scene.wait("the second deletion", |sets| sets.active.is_empty()).await;
        assert!(unjudged(&sets));
        // What is mended is judged at once, and the old form no further.
        scene.write(&format!("endless-{CHECKS}"), "true", &says("mended"));
        scene.wait("what is mended", |sets| is_in_force(sets, &format!("endless-{CHECKS}"), "mended")).await;
    });
}

#[test]
fn of_one_set_the_latest_edit_wins_and_none_goes_back() {
    runtime().block_on(async {
        let mut scene = Scene::start(Duration::from_secs(20));
        let mut seen = scene.sets.clone();
        let watched = tokio::spawn(async move {
            let mut newest = 0;
            while newest < 60 {
                seen.changed().await.unwrap();
                let sets = Arc::clone(&seen.borrow_and_update());
                let Some((_, text)) = state(&sets, "a") else { continue };
                let number = text.split('"').nth(1).and_then(|text| text.parse().ok()).unwrap_or(newest);
                assert!(number >= newest, "{number} after {newest}");
                newest = number;
            }
        });
        for number in 1..=60 {
            // Bad edits between good ones leave the last good one in force.
            if number % 7 == 0 {
                scene.write("a", "true", "package a\n\ndeny contains {\n");
            }
            scene.write("a", "true", &says(&number.to_string()));
            if number % 5 == 0 {
                scene.wait("an edit", |sets| is_in_force(sets, "a", &number.to_string())).await;
            }
        }
        scene.wait("the last edit", |sets| is_in_force(sets, "a", "60")).await;
        tokio::time::timeout(DEADLINE, watched).await.unwrap().unwrap();
    });
}

#[test]
fn a_policy_waits_for_its_library_and_for_nobody_else() {
    const USES: &str = "package p\n\nimport data.lib.a\n\ndeny contains \"x\" if a.bad\n";
    runtime().block_on(async {
        let mut scene = Scene::start(Duration::from_mins(10));
        scene.write("endless", "library", &ENDLESS.replace("package a", "package lib.endless"));
        scene.write("uses", "true", USES);
        scene.write("library", "library", "package lib.a\n\nbad if input.bad\n");
        scene.delete("absent");
        let is_loaded = |sets: &Sets| state(sets, "uses").is_some_and(|(state, _)| state == State::Loaded);
        let sets = scene.wait("the policy", |sets| is_loaded(sets)).await;
        assert!(state(&sets, "endless").is_none(), "the test is void: what is endless ended");
        // Without its library it cannot be loaded anew; what is in force stays.
        scene.delete("library");
        let is_kept = |sets: &Sets| state(sets, "uses").is_some_and(|(state, _)| state == State::LastGood);
        scene.wait("the last good form", |sets| is_kept(sets) && sets.active.len() == 1).await;
    });
}

#[test]
fn who_waits_is_told_when_all_is_judged() {
    runtime().block_on(async {
        let mut scene = Scene::start(Duration::from_secs(2));
        scene.write("good", "true", &says("good"));
        scene.write("endless", "true", ENDLESS);
        let (tell, told) = tokio::sync::oneshot::channel();
        scene.policies.settled(Box::new(move || {
            let _ = tell.send(());
        }));
        tokio::time::timeout(DEADLINE, told).await.unwrap().unwrap();
        let sets = Arc::clone(&scene.sets.borrow());
        assert_eq!(state(&sets, "endless"), Some((State::Rejected, String::new())));
        assert!(is_in_force(&sets, "good", "good"));
        assert_eq!(sets.active.len(), 2, "the bad one obeys its on-error");
    });
}
