//! What is known of the cluster: labels of namespaces and nodes, priority classes.
//!
//! What it does: answers what rules ask, from an immutable state that a watch replaced by the next one. Invariant: a request
//! sees one state from its start to its end.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

pub mod manifest;
pub mod object;

/// Labels of an object.
pub type Labels = BTreeMap<String, String>;

/// One state of what is known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts {
    namespaces: Arc<HashMap<String, Arc<Labels>>>,
    nodes: Arc<HashMap<String, Arc<Labels>>>,
    /// Names of priority classes, and whether each is the cluster's default.
    priority_classes: Arc<BTreeMap<String, bool>>,
}

/// Something that changed in the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A namespace is there, with these labels.
    Namespace(String, Labels),
    /// A namespace is gone.
    NamespaceGone(String),
    /// A node is there, with these labels.
    Node(String, Labels),
    /// A node is gone.
    NodeGone(String),
    /// A priority class is there, and is the cluster's default or not.
    PriorityClass(String, bool),
    /// A priority class is gone.
    PriorityClassGone(String),
    /// All namespaces, after a list; what is not among them is gone.
    Namespaces(Vec<(String, Labels)>),
    /// All nodes, after a list.
    Nodes(Vec<(String, Labels)>),
    /// All priority classes, after a list.
    PriorityClasses(Vec<(String, bool)>),
}

impl Facts {
    /// The labels of a namespace; nothing where it is not known.
    pub fn namespace(&self, name: &str) -> Option<&Labels> {
        self.namespaces.get(name).map(Arc::as_ref)
    }

    /// The labels of a node; nothing where it is not known.
    pub fn node(&self, name: &str) -> Option<&Labels> {
        self.nodes.get(name).map(Arc::as_ref)
    }

    /// The class that the API server gives to Pods without one.
    pub fn default_priority_class(&self) -> Option<&str> {
        self.priority_classes.iter().find(|(_, default)| **default).map(|(name, _)| name.as_str())
    }

    /// The state after an event, or nothing where the event changes nothing (heartbeats of nodes, mostly).
    #[must_use]
    pub fn after(&self, event: Event) -> Option<Self> {
        let mut next = self.clone();
        let changed = match event {
            Event::Namespace(name, labels) => put(&mut next.namespaces, name, labels),
            Event::NamespaceGone(name) => take(&mut next.namespaces, &name),
            Event::Node(name, labels) => put(&mut next.nodes, name, labels),
            Event::NodeGone(name) => take(&mut next.nodes, &name),
            Event::PriorityClass(name, default) => {
                next.priority_classes.get(&name) != Some(&default)
                    && Arc::make_mut(&mut next.priority_classes).insert(name, default) != Some(default)
            }
            Event::PriorityClassGone(name) => {
                next.priority_classes.contains_key(&name)
                    && Arc::make_mut(&mut next.priority_classes).remove(&name).is_some()
            }
            Event::Namespaces(all) => reset(&mut next.namespaces, all),
            Event::Nodes(all) => reset(&mut next.nodes, all),
            Event::PriorityClasses(all) => {
                let all = Arc::new(all.into_iter().collect());
                let changed = next.priority_classes != all;
                next.priority_classes = all;
                changed
            }
        };
        changed.then_some(next)
    }
}

type Index = Arc<HashMap<String, Arc<Labels>>>;

fn put(index: &mut Index, name: String, labels: Labels) -> bool {
    if index.get(&name).is_some_and(|known| **known == labels) {
        return false;
    }
    Arc::make_mut(index).insert(name, Arc::new(labels));
    true
}

fn take(index: &mut Index, name: &str) -> bool {
    index.contains_key(name) && Arc::make_mut(index).remove(name).is_some()
}

fn reset(index: &mut Index, all: Vec<(String, Labels)>) -> bool {
    let all: Index = Arc::new(all.into_iter().map(|(name, labels)| (name, Arc::new(labels))).collect());
    let changed = *index != all;
    *index = all;
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(value: &str) -> Labels {
        Labels::from([("gpu-mode".to_owned(), value.to_owned())])
    }

    #[test]
    fn events_lead_to_the_next_state_and_leave_the_old_one() {
        let first = Facts::default().after(Event::Node("n1".into(), labels("shared"))).unwrap();
        let second = first.after(Event::Node("n1".into(), labels("exclusive"))).unwrap();
        assert_eq!(first.node("n1"), Some(&labels("shared")));
        assert_eq!(second.node("n1"), Some(&labels("exclusive")));
        assert_eq!(second.after(Event::NodeGone("n1".into())).unwrap().node("n1"), None);
    }

    #[test]
    fn what_changes_nothing_makes_no_new_state() {
        let facts = Facts::default().after(Event::Namespace("blue".into(), Labels::new())).unwrap();
        assert_eq!(facts.after(Event::Namespace("blue".into(), Labels::new())), None);
        assert_eq!(facts.after(Event::NamespaceGone("red".into())), None);
        assert_eq!(facts.after(Event::Namespaces(vec![("blue".into(), Labels::new())])), None);
    }

    #[test]
    fn a_list_forgets_what_is_not_in_it() {
        let facts = Facts::default().after(Event::Namespace("blue".into(), Labels::new())).unwrap();
        let next = facts.after(Event::Namespaces(vec![("red".into(), Labels::new())])).unwrap();
        assert_eq!((next.namespace("blue"), next.namespace("red")), (None, Some(&Labels::new())));
    }

    #[test]
    fn knows_the_default_priority_class() {
        let facts = Facts::default().after(Event::PriorityClass("a".into(), false)).unwrap();
        assert_eq!(facts.default_priority_class(), None);
        let facts = facts.after(Event::PriorityClass("b".into(), true)).unwrap();
        assert_eq!(facts.default_priority_class(), Some("b"));
    }
}
