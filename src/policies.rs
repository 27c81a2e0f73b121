//! The policy sets in force, and how they change.
//!
//! What it does: takes the sets that watches offer, brings each together with its libraries, has it checked, has it loaded, and
//! puts all of it in force at once. Invariant: what is in force leaves only for something that was found good, or because its
//! author took it away; and what is said of a set is said from what is in force.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use tokio::sync::{mpsc, watch};

use crate::facts::Labels;
use crate::policy::Verdict;
use crate::policy::decision::Action;
use crate::rego::outcome::{Failure, Outcome};
use crate::rego::program::Speaks;
use crate::rego::routing::Routes;
use crate::rego::set::{Key, Set, Settings};
use crate::rego::state::SetReport;
use crate::rego::unit::Unit;
use crate::review::Request;
use crate::workers::Installed;

mod registry;

pub use registry::Registry;

/// What is in force. A request sees one.
#[derive(Debug, Default)]
pub struct Sets {
    /// The sets that are asked, in the order of their keys.
    pub active: Vec<Arc<Active>>,
    /// What there is to say about all of them.
    pub reports: Arc<Vec<SetReport>>,
    /// The libraries that they may import.
    pub libraries: Arc<BTreeMap<Key, Set>>,
    /// Places of the sets that name their kinds, by kind.
    by_kind: HashMap<String, Vec<usize>>,
    /// Places of the others.
    any: Vec<usize>,
}

impl Sets {
    /// Sets in the order of their keys.
    pub fn new(active: Vec<Arc<Active>>, reports: Arc<Vec<SetReport>>, libraries: Arc<BTreeMap<Key, Set>>) -> Self {
        let (mut by_kind, mut any) = (HashMap::<String, Vec<usize>>::new(), Vec::new());
        for (place, set) in active.iter().enumerate() {
            match set.settings.matches.literal_kinds() {
                Some(kinds) => kinds.into_iter().for_each(|kind| by_kind.entry(kind).or_default().push(place)),
                None => any.push(place),
            }
        }
        Self { active, reports, libraries, by_kind, any }
    }

    /// The sets that may look at this kind, in the order of their keys. A cluster may have a thousand that do not.
    pub fn of_kind(&self, kind: &str) -> impl Iterator<Item = &Arc<Active>> {
        let mut places = self.any.clone();
        places.extend(self.by_kind.get(kind).into_iter().flatten());
        places.sort_unstable();
        places.into_iter().filter_map(|place| self.active.get(place))
    }
}

/// A set that requests may concern.
#[derive(Debug)]
pub struct Active {
    /// Its name in messages.
    pub name: Arc<str>,
    /// What its annotations say.
    pub settings: Arc<Settings>,
    /// The digest of what is in force.
    pub digest: Arc<str>,
    /// What it has to say anything about.
    pub speaks: Speaks,
    /// What the workers have loaded; nothing where it is bad and there is no last good form of it.
    pub installed: Option<Arc<Installed>>,
}

impl Active {
    /// Whether anything but the labels of the Namespace speaks against asking it.
    pub fn may_match(&self, request: &Request<'_>, mutates: bool, involves_gpu: bool) -> bool {
        let speaks = if mutates { self.speaks.mutates } else { self.speaks.validates };
        speaks && self.settings.action != Action::Off && self.settings.matches.may_match(request, involves_gpu)
    }

    /// Whether the labels of the request's Namespace fit.
    pub fn matches_namespace(&self, namespace: &str, labels: Option<&Labels>) -> bool {
        self.settings.matches.matches_namespace(namespace, labels)
    }

    /// What it said.
    pub fn verdict(&self, outcome: Outcome) -> Verdict {
        let (set, digest) = (Arc::clone(&self.name), Arc::clone(&self.digest));
        Verdict { set, digest, settings: Arc::clone(&self.settings), outcome }
    }

    /// What is said where it cannot be asked.
    pub fn failed(&self, failure: Failure) -> Verdict {
        self.verdict(Outcome { error: Some(failure), ..Outcome::default() })
    }
}

/// All sets of one source, complete.
#[derive(Debug)]
pub struct Offer {
    /// Where they come from: a namespace, or a path.
    pub source: String,
    /// The sets.
    pub sets: BTreeMap<Key, Arc<Set>>,
}

/// Where sets are offered, and where what became of them is told.
#[derive(Debug, Clone)]
pub struct Policies {
    offers: mpsc::UnboundedSender<Message>,
    /// The state of each set, whenever it changed.
    pub reports: watch::Receiver<Arc<Vec<SetReport>>>,
}

/// What the registry is told.
enum Message {
    Offer(Offer),
    /// The last good forms that were kept, to be told before the first offer.
    Kept(BTreeMap<Key, Unit>),
    /// What the API server sends, as far as it is known.
    Routes(Routes),
    /// It will be told: what became of sets is not said before.
    RoutesToCome,
    /// To be called when all that was offered before is in force or found bad.
    Settled(Box<dyn FnOnce() + Send>),
}

impl Policies {
    /// Offers all sets of a source.
    pub fn offer(&self, source: impl Into<String>, sets: BTreeMap<Key, Arc<Set>>) {
        // The registry lives as long as the process.
        let _ = self.offers.send(Message::Offer(Offer { source: source.into(), sets }));
    }

    /// Calls when all that was offered before is in force or found bad.
    pub fn settled(&self, then: Box<dyn FnOnce() + Send>) {
        let _ = self.offers.send(Message::Settled(then));
    }

    /// Says what the API server sends, as far as that is known.
    pub fn route(&self, routes: Routes) {
        let _ = self.offers.send(Message::Routes(routes));
    }

    /// What the API server sends will be said in a moment, known or not. Until then nobody is told what became of sets, so
    /// that the word does not change right after it was given; they are in force as soon as they can be.
    pub fn expect_routes(&self) {
        let _ = self.offers.send(Message::RoutesToCome);
    }

    /// Gives the last good forms that were kept.
    pub fn keep(&self, units: BTreeMap<Key, Unit>) {
        let _ = self.offers.send(Message::Kept(units));
    }
}
