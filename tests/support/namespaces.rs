//! Namespaces that are read slowly, badly or not at all.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use slicegate::facts::Labels;
use slicegate::server::admit::NamespaceSource;
use tokio::sync::Semaphore;

/// A source that answers by the name of the Namespace: `stuck` never, `gated` once the gate is opened, `broken` with an
/// error, `panic` with a panic, `missing` with nothing, and others with these labels.
#[derive(Debug)]
pub struct Namespaces {
    /// Labels of all that are there.
    pub labels: Labels,
    /// One permit for each answer about `gated`.
    pub gate: Semaphore,
}

impl Namespaces {
    /// With these labels, and the gate shut.
    pub fn with(labels: &[(&str, &str)]) -> Self {
        let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Self { labels, gate: Semaphore::new(0) }
    }
}

impl NamespaceSource for Namespaces {
    fn read<'a>(&'a self, name: &'a str) -> BoxFuture<'a, anyhow::Result<Option<Labels>>> {
        async move {
            match name {
                "stuck" => std::future::pending().await,
                "gated" => self.gate.acquire().await?.forget(),
                "broken" => anyhow::bail!("the cluster says no"),
                "panic" => panic!("a fault of the source"),
                "missing" => return Ok(None),
                _ => {}
            }
            Ok(Some(self.labels.clone()))
        }
        .boxed()
    }
}
