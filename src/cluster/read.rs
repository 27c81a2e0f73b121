//! What is watched, and how its objects become facts and configuration.
//!
//! What it does: names each source with its path on the API server, and reads what comes of it. Invariant: one malformed
//! object is told and costs itself alone; what can be read of it counts.

use std::sync::Arc;

use kube::Client;
use serde_json::Value;
use tokio::sync::watch;
use tracing::warn;

use super::watch::{Pace, Reader, Source, follow};
use super::{CONFIG_KEY, CONFIG_MAP};
use crate::facts::object::{self, Fact, Kind};
use crate::feed::configuration::Configuration;
use crate::feed::{Sink, Watched};

/// Namespaces.
pub(super) const NAMESPACES: (Watched, Kind) = (Watched::Namespaces, Kind::Namespace);
/// Nodes.
pub(super) const NODES: (Watched, Kind) = (Watched::Nodes, Kind::Node);
/// Priority classes.
pub(super) const PRIORITY_CLASSES: (Watched, Kind) = (Watched::PriorityClasses, Kind::PriorityClass);

/// Reads objects of one kind into facts.
pub(super) struct Facts {
    what: Watched,
    kind: Kind,
    sink: Arc<dyn Sink>,
}

/// Reads the configuration's ConfigMap.
pub(super) struct ConfigMap {
    configuration: Configuration,
    /// Where the text goes that is in force.
    kept: watch::Sender<Option<Arc<str>>>,
}

/// What of the ConfigMap matters.
pub(super) enum Content {
    /// The configuration's text.
    Text(String),
    /// The ConfigMap is there and holds none, for this reason.
    Unusable(String),
}

impl Facts {
    /// Watches a kind for ever.
    pub(super) async fn follow(facts: (Watched, Kind), client: &Client, sink: &Arc<dyn Sink>) {
        let mut reader = Self::new(facts, Arc::clone(sink));
        let tell = |problem| sink.source_problem(facts.0, problem);
        follow(client, &reader.source(), Pace::default(), &mut reader, &tell).await;
    }

    pub(super) fn new((what, kind): (Watched, Kind), sink: Arc<dyn Sink>) -> Self {
        Self { what, kind, sink }
    }

    pub(super) fn source(&self) -> Source {
        // A priority class's default stands beside its metadata; of the others nothing but labels is read, and a Node
        // without its status is a tenth of it.
        let (path, metadata_only) = match self.kind {
            Kind::Namespace => ("/api/v1/namespaces", true),
            Kind::Node => ("/api/v1/nodes", true),
            Kind::PriorityClass => ("/apis/scheduling.k8s.io/v1/priorityclasses", false),
        };
        Source { what: self.what, path: path.to_owned(), fields: None, labels: None, metadata_only }
    }
}

impl Reader for Facts {
    type Item = Fact;

    fn read(&self, object: Value) -> Option<Fact> {
        match object::read(self.kind, &object) {
            Ok(reading) => {
                for problem in reading.problems {
                    let name = object.pointer("/metadata/name").and_then(Value::as_str);
                    warn!(watched = self.what.as_str(), name, problem, "Malformed field left out");
                }
                Some(reading.fact)
            }
            Err(problem) => {
                warn!(watched = self.what.as_str(), problem, "Malformed object left out");
                None
            }
        }
    }

    fn listed(&mut self, all: Vec<Fact>) {
        let [namespaces, nodes, classes] = object::replace(all);
        self.sink.fact(match self.kind {
            Kind::Namespace => namespaces,
            Kind::Node => nodes,
            Kind::PriorityClass => classes,
        });
        self.sink.synced(self.what);
    }

    fn applied(&mut self, fact: Fact) {
        self.sink.fact(fact.present());
    }

    fn deleted(&mut self, fact: Fact) {
        self.sink.fact(fact.gone());
    }
}

impl ConfigMap {
    /// Watches the ConfigMap for ever.
    pub(super) async fn follow(
        namespace: &str,
        client: &Client,
        sink: &Arc<dyn Sink>,
        last_good: Option<&str>,
        kept: watch::Sender<Option<Arc<str>>>,
    ) {
        let mut reader = Self::new(namespace, Arc::clone(sink), kept);
        if let Some(text) = last_good {
            reader.configuration.remember(text);
        }
        let tell = |problem| sink.source_problem(Watched::Configuration, problem);
        follow(client, &Self::source(namespace), Pace::default(), &mut reader, &tell).await;
    }

    pub(super) fn new(namespace: &str, sink: Arc<dyn Sink>, kept: watch::Sender<Option<Arc<str>>>) -> Self {
        Self { configuration: Configuration::new(format!("ConfigMap {namespace}/{CONFIG_MAP}"), sink), kept }
    }

    /// The one ConfigMap, which is all that the role allows to watch.
    pub(super) fn source(namespace: &str) -> Source {
        Source {
            what: Watched::Configuration,
            path: format!("/api/v1/namespaces/{namespace}/configmaps"),
            fields: Some(format!("metadata.name={CONFIG_MAP}")),
            labels: None,
            metadata_only: false,
        }
    }

    fn offer(&mut self, content: Content) {
        match content {
            Content::Text(text) => {
                if self.configuration.offer(&text) {
                    self.kept.send_if_modified(|known| {
                        let changed = known.as_deref() != Some(text.as_str());
                        if changed {
                            *known = Some(text.into());
                        }
                        changed
                    });
                }
            }
            Content::Unusable(why) => self.configuration.reject(&why),
        }
    }
}

impl Reader for ConfigMap {
    type Item = Content;

    fn read(&self, object: Value) -> Option<Content> {
        Some(match object.pointer(&format!("/data/{CONFIG_KEY}")) {
            Some(Value::String(text)) => Content::Text(text.clone()),
            Some(_) => Content::Unusable(format!("the key {CONFIG_KEY} is not a text")),
            None => Content::Unusable(format!("the key {CONFIG_KEY} is missing")),
        })
    }

    fn listed(&mut self, all: Vec<Content>) {
        match all.into_iter().next() {
            Some(content) => self.offer(content),
            None => self.configuration.absent(),
        }
    }

    fn applied(&mut self, content: Content) {
        self.offer(content);
    }

    fn deleted(&mut self, _: Content) {
        self.configuration.absent();
    }
}
