//! The configuration in force, and what may replace it.
//!
//! What it does: takes each text that a ConfigMap or a file offers and puts it in force when it is good. Invariant: what
//! is in force leaves only for something good; a bad text, an unreadable source and a deletion keep it and are told.

use std::fmt::Write as _;
use std::sync::Arc;

use ring::digest::{SHA256, digest};
use tracing::{error, info};

use super::{Sink, Watched};
use crate::config::{self, Config, Mistakes};
use crate::policy::Policy;

/// The digest of the configuration that holds where none is given.
pub const DEFAULT_DIGEST: &str = "default";

/// The configuration from one source.
pub struct Configuration {
    origin: String,
    sink: Arc<dyn Sink>,
    /// The digest of what is in force, once something is.
    current: Option<String>,
    /// What was in force before the process started, for when nothing good is offered.
    last_good: Option<Policy>,
    /// What was told last, so that a repetition is silent.
    problem: Option<String>,
}

/// Makes a policy of the text of a configuration.
///
/// # Errors
/// All mistakes of the text.
pub fn policy(text: &str) -> Result<Policy, Mistakes> {
    Ok(Policy { config: config::parse(text)?, digest: sha256(text) })
}

/// The policy that holds where no configuration is given.
pub fn default_policy() -> Policy {
    Policy { config: Config::default(), digest: DEFAULT_DIGEST.to_owned() }
}

impl Configuration {
    /// Nothing is in force yet. The origin is how people call the source: a path, or the ConfigMap's name.
    pub fn new(origin: String, sink: Arc<dyn Sink>) -> Self {
        Self { origin, sink, current: None, last_good: None, problem: None }
    }

    /// This text was in force before the process started: it is again if the first that is offered is bad.
    pub fn remember(&mut self, text: &str) {
        match policy(text) {
            Ok(policy) => self.last_good = Some(policy),
            Err(mistakes) => error!(origin = self.origin, problem = %mistakes, "Last good configuration refused"),
        }
    }

    /// A text is offered. Says whether it is in force now.
    pub fn offer(&mut self, text: &str) -> bool {
        match policy(text) {
            Ok(policy) => {
                self.accept(policy);
                true
            }
            Err(mistakes) => {
                self.reject(&mistakes.to_string());
                false
            }
        }
    }

    /// There is no configuration at all: the defaults hold, unless something better did.
    pub fn absent(&mut self) {
        match self.current.as_deref() {
            None => self.accept(default_policy()),
            Some(DEFAULT_DIGEST) => self.settle(),
            Some(_) => self.reject("it was deleted"),
        }
    }

    /// Something is there that holds no text, for this reason.
    pub fn reject(&mut self, why: &str) {
        if self.current.is_none()
            && let Some(last_good) = self.last_good.take()
        {
            self.accept(last_good);
        }
        let problem = match &self.current {
            Some(digest) => format!("{}: {why}\nthe last good one stays in force: {digest}", self.origin),
            None => format!("{}: {why}\nthere is no last good one", self.origin),
        };
        if self.problem.as_ref() == Some(&problem) {
            return;
        }
        error!(origin = self.origin, in_force = self.current, problem = why, "Configuration refused");
        self.sink.configuration_problem(Some(problem.clone()));
        self.problem = Some(problem);
    }

    /// Something good is in force from now on.
    pub fn accept(&mut self, policy: Policy) {
        if self.current.as_ref() != Some(&policy.digest) {
            info!(origin = self.origin, digest = policy.digest, "Configuration in force");
            self.current = Some(policy.digest.clone());
            self.sink.policy(policy);
        }
        self.settle();
    }

    fn settle(&mut self) {
        if self.problem.take().is_some() {
            info!(origin = self.origin, "Configuration is good again");
            self.sink.configuration_problem(None);
        }
        self.sink.synced(Watched::Configuration);
    }
}

fn sha256(text: &str) -> String {
    let mut hex = String::with_capacity(64);
    for byte in digest(&SHA256, text.as_bytes()).as_ref() {
        // Writing into a text cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::super::recorder::{Record, Told, recorder};
    use super::*;

    const GOOD: &str = "apiVersion: slicegate.io/v1alpha1\nkind: Config\nenforcement: warn\n";
    const BAD: &str = "apiVersion: slicegate.io/v1alpha1\nkind: Config\nenforcement: loud\nexisting: Perhaps\n";

    fn configuration() -> (Configuration, Record) {
        let (sink, record) = recorder();
        (Configuration::new("config.yaml".to_owned(), sink), record)
    }

    #[tokio::test]
    async fn every_mistake_of_a_bad_edit_is_told_once_and_the_last_good_one_stays() {
        let (mut configuration, mut record) = configuration();
        configuration.offer(GOOD);
        let digest = policy(GOOD).unwrap().digest;
        assert_eq!(record.next().await, Told::Policy(digest.clone()));
        assert_eq!(record.next().await, Told::Synced(Watched::Configuration));

        configuration.offer(BAD);
        configuration.offer(BAD);
        let Told::Configuration(Some(problem)) = record.next().await else { panic!("no problem") };
        let lines: Vec<_> = problem.lines().collect();
        assert!(lines[0].starts_with("config.yaml: line 3, "), "{problem}");
        assert!(lines[1].starts_with("line 4, "), "{problem}");
        assert_eq!(lines[2..], [format!("the last good one stays in force: {digest}")]);
        assert!(record.silent());

        configuration.offer(GOOD);
        assert_eq!(record.next().await, Told::Configuration(None));
        assert_eq!(record.next().await, Told::Synced(Watched::Configuration));
    }

    #[tokio::test]
    async fn what_was_in_force_before_is_again_when_the_start_is_bad() {
        let (mut configuration, mut record) = configuration();
        let digest = policy(GOOD).unwrap().digest;
        configuration.remember(BAD);
        configuration.remember(GOOD);
        assert!(record.silent());
        assert!(!configuration.offer(BAD));
        assert_eq!(record.next().await, Told::Policy(digest.clone()));
        assert_eq!(record.next().await, Told::Synced(Watched::Configuration));
        let Told::Configuration(Some(problem)) = record.next().await else { panic!("no problem") };
        assert!(problem.ends_with(&format!("\nthe last good one stays in force: {digest}")), "{problem}");
    }

    #[tokio::test]
    async fn a_bad_start_gives_nothing_and_taking_it_away_gives_the_defaults() {
        let (mut configuration, mut record) = configuration();
        configuration.offer(BAD);
        let Told::Configuration(Some(problem)) = record.next().await else { panic!("no problem") };
        assert!(problem.ends_with("\nthere is no last good one"), "{problem}");
        assert!(record.silent());
        configuration.absent();
        assert_eq!(record.next().await, Told::Policy(DEFAULT_DIGEST.to_owned()));
        assert_eq!(record.next().await, Told::Configuration(None));
        assert_eq!(record.next().await, Told::Synced(Watched::Configuration));
        configuration.absent();
        assert_eq!(record.next().await, Told::Synced(Watched::Configuration));
        assert!(record.silent());
    }
}
