//! A [`Sink`] that tests read: what it is told comes out in order, and a wait for more has an end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};

use super::{Sink, Watched};
use crate::facts::Event;
use crate::policy::Policy;
use crate::rego::routing::Routes;
use crate::rego::set::{Key, Set};
use crate::rego::unit::Unit;

/// Fails a test that hangs.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

/// One call of the sink.
#[derive(Debug, PartialEq)]
pub(crate) enum Told {
    Fact(Event),
    /// The digest of the policy.
    Policy(String),
    /// The namespace, and each set's name with the files of its modules.
    Policies(String, Vec<(String, Vec<String>)>),
    /// The digests of units, by key.
    LastGood(Vec<(String, String)>),
    Routes(Routes),
    Synced(Watched),
    Configuration(Option<String>),
    Source(Watched, Option<String>),
}

/// What a sink was told.
pub(crate) struct Record(UnboundedReceiver<Told>);

/// A sink and its record.
pub(crate) fn recorder() -> (Arc<dyn Sink>, Record) {
    let (sender, receiver) = unbounded();
    (Arc::new(Recorder(sender)), Record(receiver))
}

impl Record {
    /// The next call, which is waited for.
    pub(crate) async fn next(&mut self) -> Told {
        tokio::time::timeout(DEADLINE, self.0.next()).await.expect("something told").expect("a watch")
    }

    /// Whether nothing was told beyond what was read.
    pub(crate) fn silent(&mut self) -> bool {
        self.0.try_recv().is_err()
    }
}

struct Recorder(UnboundedSender<Told>);

impl Recorder {
    fn tell(&self, told: Told) {
        // A test that has seen enough is gone before its watch.
        let _ = self.0.unbounded_send(told);
    }
}

impl Sink for Recorder {
    fn fact(&self, event: Event) {
        self.tell(Told::Fact(event));
    }
    fn policy(&self, policy: Policy) {
        self.tell(Told::Policy(policy.digest));
    }
    fn policies(&self, namespace: &str, sets: BTreeMap<Key, Arc<Set>>) {
        let shown = |(key, set): (Key, Arc<Set>)| (key.to_string(), set.modules.keys().cloned().collect());
        self.tell(Told::Policies(namespace.to_owned(), sets.into_iter().map(shown).collect()));
    }
    fn last_good(&self, units: BTreeMap<Key, Unit>) {
        self.tell(Told::LastGood(units.into_iter().map(|(key, unit)| (key.to_string(), unit.digest)).collect()));
    }
    fn routes(&self, routes: Routes) {
        self.tell(Told::Routes(routes));
    }
    fn synced(&self, what: Watched) {
        self.tell(Told::Synced(what));
    }
    fn configuration_problem(&self, problem: Option<String>) {
        self.tell(Told::Configuration(problem));
    }
    fn source_problem(&self, what: Watched, problem: Option<String>) {
        self.tell(Told::Source(what, problem));
    }
}
