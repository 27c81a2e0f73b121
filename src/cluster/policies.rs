//! The ConfigMaps that hold policies, in each namespace where they may stand.
//!
//! What it does: follows the labelled ConfigMaps of each namespace and hands on what sets they make. Invariant: what is handed
//! on is a namespace's whole state, from a complete list and all changes since; an edit of something that no set is made of,
//! slicegate's own status among it, is not handed on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::Client;
use serde_json::Value;
use tracing::warn;

use super::watch::{Pace, Reader, Source, follow};
use crate::feed::{Sink, Watched};
use crate::rego::set::{Key, LABEL, Set};

/// Follows the policies of all these namespaces for ever.
pub(super) async fn follow_all(namespaces: &[String], client: &Client, pace: Pace, sink: &Arc<dyn Sink>) {
    let all = Arc::new(All::new(namespaces, Arc::clone(sink)));
    let each = namespaces.iter().map(|namespace| {
        let all = Arc::clone(&all);
        async move {
            let mut reader = Policies { namespace: namespace.clone(), sets: BTreeMap::new(), all: Arc::clone(&all) };
            let tell = |problem| all.problem(namespace, problem);
            follow(client, &source(namespace), pace, &mut reader, &tell).await;
        }
    });
    futures::future::join_all(each).await;
}

fn source(namespace: &str) -> Source {
    Source {
        what: Watched::Policies,
        path: format!("/api/v1/namespaces/{namespace}/configmaps"),
        fields: None,
        labels: Some(LABEL.to_owned()),
        metadata_only: false,
    }
}

/// What the namespaces have in common.
struct All {
    sink: Arc<dyn Sink>,
    state: Mutex<State>,
}

struct State {
    /// The namespaces that were not listed yet.
    unlisted: BTreeSet<String>,
    /// Which of them cannot be reached, and why.
    problems: BTreeMap<String, String>,
}

impl All {
    fn new(namespaces: &[String], sink: Arc<dyn Sink>) -> Self {
        let state = State { unlisted: namespaces.iter().cloned().collect(), problems: BTreeMap::new() };
        Self { sink, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn listed(&self, namespace: &str) {
        let mut state = self.state();
        state.unlisted.remove(namespace);
        if state.unlisted.is_empty() {
            self.sink.synced(Watched::Policies);
        }
    }

    /// One namespace that is reached again says nothing about another one. What is told names them all.
    fn problem(&self, namespace: &str, problem: Option<String>) {
        let mut state = self.state();
        match problem {
            Some(problem) => state.problems.insert(namespace.to_owned(), problem),
            None => state.problems.remove(namespace),
        };
        let all: Vec<_> = state.problems.iter().map(|(name, problem)| format!("namespace {name}: {problem}")).collect();
        self.sink.source_problem(Watched::Policies, Some(all.join("; ")).filter(|all| !all.is_empty()));
    }
}

/// Reads the policies of one namespace.
struct Policies {
    namespace: String,
    sets: BTreeMap<Key, Arc<Set>>,
    all: Arc<All>,
}

impl Policies {
    fn hand_on(&self) {
        self.all.sink.policies(&self.namespace, self.sets.clone());
    }

    fn remove(&mut self, key: &Key) {
        if self.sets.remove(key).is_some() {
            self.hand_on();
        }
    }
}

impl Reader for Policies {
    /// A ConfigMap that lost its label comes as deleted, in whichever of its states: it has a key and may have no set.
    type Item = (Key, Option<Set>);

    fn read(&self, object: Value) -> Option<Self::Item> {
        let Some(name) = object.pointer("/metadata/name").and_then(Value::as_str) else {
            warn!(watched = Watched::Policies.as_str(), namespace = self.namespace, "Object without a name left out");
            return None;
        };
        let key = Key { namespace: self.namespace.clone(), name: name.to_owned() };
        Some((key, Set::of_config_map(&object)))
    }

    fn listed(&mut self, all: Vec<Self::Item>) {
        let sets = all.into_iter().filter_map(|(key, set)| set.map(|set| (key, set)));
        let next = sets.map(|(key, set)| match self.sets.get(&key) {
            // The same set stays the same allocation, which is how others see cheaply that nothing changed.
            Some(known) if **known == set => (key, Arc::clone(known)),
            _ => (key, Arc::new(set)),
        });
        self.sets = next.collect();
        self.hand_on();
        self.all.listed(&self.namespace);
    }

    fn applied(&mut self, (key, set): Self::Item) {
        let Some(set) = set else { return self.remove(&key) };
        if self.sets.get(&key).is_some_and(|known| **known == set) {
            return;
        }
        self.sets.insert(key, Arc::new(set));
        self.hand_on();
    }

    fn deleted(&mut self, (key, _): Self::Item) {
        self.remove(&key);
    }
}
