//! Facts and configuration from files, watched like a cluster is.
//!
//! What it does: reads `--config` and `--facts` once, or polls them and hands on what changed. It compares contents, since
//! a mounted ConfigMap changes by a swapped symlink that closes no file. Invariant: as with a cluster, what was good stays
//! until something better is there; a bad edit, an empty file and a deletion change nothing and are told.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

use crate::config::Mistakes;
use crate::facts::manifest::{self, Manifests, Mistake};
use crate::facts::object;
use crate::feed::configuration::{self, Configuration};
use crate::feed::{Sink, Watched};
use crate::policy::Policy;

mod content;
pub mod policies;
pub mod replace;

#[cfg(test)]
mod tests;

pub use content::{Content, Unreadable};

/// How often files are looked at.
pub const INTERVAL: Duration = Duration::from_secs(2);

/// A change is looked at again after this time.
const SETTLE: Duration = Duration::from_millis(100);

/// What files give facts about.
const FACTS: [Watched; 3] = [Watched::Namespaces, Watched::Nodes, Watched::PriorityClasses];

/// Why files give nothing.
#[derive(Debug, Error)]
pub enum FileError {
    /// They cannot be read.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// The configuration has mistakes.
    #[error("{0}: {1}")]
    Configuration(PathBuf, Mistakes),
    /// Manifests have mistakes; each is named with its file.
    #[error("{}", lines(.0))]
    Manifests(Vec<(PathBuf, Mistake)>),
    /// There is nothing that facts come from.
    #[error("{0}: no Namespace, Node or PriorityClass in it")]
    NoFacts(PathBuf),
}

/// Reads a configuration once.
///
/// # Errors
/// The file cannot be read, or has mistakes.
pub fn read_policy(path: &Path) -> Result<Policy, FileError> {
    let text = Content::of_file(path)?.into_text()?;
    configuration::policy(&text).map_err(|mistakes| FileError::Configuration(path.to_owned(), mistakes))
}

/// Reads facts once, from a file of manifests or from those directly in a folder.
///
/// # Errors
/// Something cannot be read or has mistakes, or there are no facts at all.
pub fn read_facts(path: &Path) -> Result<Manifests, FileError> {
    facts(path, &Content::of(path)?)
}

/// Watches a configuration until told to stop. What was read from it before is in force from the first moment on.
pub async fn watch_policy(
    path: PathBuf,
    first: Option<Policy>,
    interval: Duration,
    sink: Arc<dyn Sink>,
    stop: CancellationToken,
) {
    let mut configuration = Configuration::new(path.display().to_string(), sink);
    if let Some(first) = first {
        configuration.accept(first);
    }
    poll(path, Content::of_file, interval, stop, |content| match content.clone().and_then(Content::into_text) {
        Ok(text) => {
            configuration.offer(&text);
        }
        Err(Unreadable { why, .. }) => configuration.reject(&why),
    })
    .await;
}

/// Watches facts until told to stop.
pub async fn watch_facts(path: PathBuf, interval: Duration, sink: Arc<dyn Sink>, stop: CancellationToken) {
    let mut broken = false;
    let root = path.clone();
    poll(path, Content::of, interval, stop, |content| {
        match content.clone().map_err(FileError::from).and_then(|content| facts(&root, &content)) {
            Ok(manifests) => {
                info!(path = %root.display(), facts = manifests.facts.len(), "Facts in force");
                if !manifests.ignored.is_empty() {
                    info!(path = %root.display(), kinds = ?manifests.ignored, "Kinds that no facts come from are left out");
                }
                for event in object::replace(manifests.facts) {
                    sink.fact(event);
                }
                for what in FACTS {
                    if broken {
                        sink.source_problem(what, None);
                    }
                    sink.synced(what);
                }
                broken = false;
            }
            Err(problem) => {
                let problem = problem.to_string();
                error!(path = %root.display(), problem, "Facts refused; what is known stays");
                for what in FACTS {
                    sink.source_problem(what, Some(problem.clone()));
                }
                broken = true;
            }
        }
    })
    .await;
}

/// Watches policy sets until told to stop. What cannot be read takes nothing away. Where they do not stand alone, the other
/// source says when all is read.
pub async fn watch_policies(
    path: PathBuf,
    interval: Duration,
    alone: bool,
    sink: Arc<dyn Sink>,
    stop: CancellationToken,
) {
    let mut broken = false;
    let root = path.display().to_string();
    poll(path, policies::read, interval, stop, |sets| match sets {
        Ok(sets) => {
            info!(path = root, sets = sets.len(), "Policy sets read");
            if std::mem::take(&mut broken) {
                sink.source_problem(Watched::Policies, None);
            }
            sink.policies(&root, sets.iter().map(|set| (set.key.clone(), Arc::new(set.clone()))).collect());
            if alone {
                sink.synced(Watched::Policies);
            }
        }
        Err(problem) => {
            error!(path = root, %problem, "Policy sets cannot be read; what is in force stays");
            sink.source_problem(Watched::Policies, Some(problem.to_string()));
            broken = true;
        }
    })
    .await;
}

/// Hands on what stands there, and again whenever it is another.
async fn poll<T: PartialEq + Send + 'static>(
    path: PathBuf,
    read: fn(&Path) -> Result<T, Unreadable>,
    interval: Duration,
    stop: CancellationToken,
    mut changed: impl FnMut(&Result<T, Unreadable>),
) {
    let (mut last, mut handed_on) = (None, false);
    loop {
        let from = path.clone();
        let found = match tokio::task::spawn_blocking(move || read(&from)).await {
            Ok(found) => found,
            Err(fault) => Err(Unreadable::new(&path, &fault)),
        };
        // A change counts when it stands still for a moment: not in the middle of a write or of the swap of a mount.
        let settled = last.as_ref() == Some(&found);
        if !settled {
            (last, handed_on) = (Some(found), false);
        } else if !handed_on {
            last.iter().for_each(&mut changed);
            handed_on = true;
        }
        let pause = if settled { interval } else { interval.min(SETTLE) };
        if stop.run_until_cancelled(sleep(pause)).await.is_none() {
            return;
        }
    }
}

fn facts(root: &Path, content: &Content) -> Result<Manifests, FileError> {
    let (mut all, mut mistakes) = (Manifests::default(), Vec::new());
    for (path, text) in content.texts()? {
        match manifest::parse(text) {
            Ok(mut manifests) => {
                all.facts.append(&mut manifests.facts);
                all.ignored.append(&mut manifests.ignored);
            }
            Err(wrong) => mistakes.extend(wrong.into_iter().map(|mistake| (path.to_owned(), mistake))),
        }
    }
    if !mistakes.is_empty() {
        return Err(FileError::Manifests(mistakes));
    }
    // An emptied file is the first half of a write far more often than it is meant.
    if all.facts.is_empty() { Err(FileError::NoFacts(root.to_owned())) } else { Ok(all) }
}

fn lines(mistakes: &[(PathBuf, Mistake)]) -> String {
    let lines = mistakes.iter().map(|(path, mistake)| format!("{}: {mistake}", path.display()));
    lines.collect::<Vec<_>>().join("\n")
}
