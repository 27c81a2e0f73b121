//! What the API server sends to slicegate: the rules of its webhook configurations, and what is served under which kind.
//!
//! What it does: follows the two configurations by their name and asks now and then what is served. Invariant: nothing waits
//! for it; where it is refused, or the configurations have another name, that is told once and nothing is known.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::header::ACCEPT;
use kube::{Client, Error};
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tracing::{debug, info};

use super::watch::{Pace, Reader, Source, between_half_and_whole, follow};
use crate::feed::{Sink, Watched};
use crate::rego::routing::{self, CONFIGURATION, Resource, Routes, Rule};

/// How often what is served is read again: a kind that is new is known after this, or when a configuration changes.
const AGAIN: Duration = Duration::from_mins(2);

/// The form in which one document tells all that is served.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
                          application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

/// Follows all of it for ever.
pub(super) async fn follow_all(client: &Client, pace: Pace, sink: &Arc<dyn Sink>) {
    let all = Arc::new(All { sink: Arc::clone(sink), state: Mutex::default(), changed: Notify::new() });
    let each = Which::ALL.map(|which| {
        let all = Arc::clone(&all);
        async move {
            let mut reader = Webhooks { which, all: Arc::clone(&all) };
            let tell = |problem| all.problem(which, problem);
            follow(client, &which.source(), pace, &mut reader, &tell).await;
        }
    });
    futures::future::join(futures::future::join_all(each), all.follow_served(client, pace)).await;
}

/// One of the two configurations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    Validating,
    Mutating,
}

impl Which {
    const ALL: [Self; 2] = [Self::Validating, Self::Mutating];

    fn kind(self) -> &'static str {
        match self {
            Self::Validating => "ValidatingWebhookConfiguration",
            Self::Mutating => "MutatingWebhookConfiguration",
        }
    }

    /// The one configuration, which is all that the role allows to watch.
    fn source(self) -> Source {
        Source {
            what: Watched::Webhooks,
            path: format!("/apis/admissionregistration.k8s.io/v1/{}s", self.kind().to_lowercase()),
            fields: Some(format!("metadata.name={CONFIGURATION}")),
            labels: None,
            metadata_only: false,
        }
    }
}

/// What is known of one thing: nothing yet, or that nobody can say, or it.
type Known<T> = Option<Option<T>>;

#[derive(Default)]
struct State {
    validating: Known<Vec<Rule>>,
    mutating: Known<Vec<Rule>>,
    served: Known<Vec<Resource>>,
    /// Which of the configurations cannot be reached, and why.
    problems: [Option<String>; 2],
    told: Option<Routes>,
}

impl State {
    fn rules(&mut self, which: Which) -> &mut Known<Vec<Rule>> {
        match which {
            Which::Validating => &mut self.validating,
            Which::Mutating => &mut self.mutating,
        }
    }

    /// What is to be told, if it is another thing than before.
    fn news(&mut self) -> Option<Routes> {
        let (validating, mutating, served) = (self.validating.clone()?, self.mutating.clone()?, self.served.clone()?);
        let routes = Routes { validating, mutating, served };
        if self.told.as_ref() == Some(&routes) {
            return None;
        }
        self.told = Some(routes.clone());
        Some(routes)
    }
}

/// What the watches have in common.
struct All {
    sink: Arc<dyn Sink>,
    state: Mutex<State>,
    /// A configuration changed.
    changed: Notify,
}

impl All {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn learn(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state();
        change(&mut state);
        // Told under the lock, so that what is told last is what is known.
        if let Some(routes) = state.news() {
            self.sink.routes(routes);
        }
    }

    fn configuration(&self, which: Which, rules: Option<Vec<Rule>>) {
        if rules.is_none() {
            let kind = which.kind();
            info!(
                kind,
                name = CONFIGURATION,
                "No such configuration: whether policies get what they match is not known"
            );
        }
        self.learn(|state| *state.rules(which) = Some(rules));
        self.changed.notify_one();
    }

    fn problem(&self, which: Which, problem: Option<String>) {
        self.learn(|state| {
            // What was known stays, and who waits for it is not kept waiting.
            if problem.is_some() {
                state.rules(which).get_or_insert(None);
            }
            let of = |which: Which| Which::ALL.into_iter().position(|known| known == which);
            if let Some(known) = of(which).and_then(|place| state.problems.get_mut(place)) {
                *known = problem;
            }
            let all: Vec<&str> = state.problems.iter().flatten().map(String::as_str).collect();
            self.sink.source_problem(Watched::Webhooks, Some(all.join("; ")).filter(|all| !all.is_empty()));
        });
    }

    fn listed(&self) {
        let state = self.state();
        if state.validating.is_some() && state.mutating.is_some() {
            self.sink.synced(Watched::Webhooks);
        }
    }

    /// Reads what is served, again and again. A failure leaves what is known.
    async fn follow_served(&self, client: &Client, pace: Pace) {
        loop {
            match timeout(pace.answer, served(client)).await {
                Ok(Ok(served)) => self.learn(|state| state.served = Some(served)),
                outcome => {
                    let problem = outcome.map(|outcome| outcome.err().map(|error| error.to_string()));
                    debug!(?problem, "What the API server serves cannot be read");
                    self.learn(|state| {
                        state.served.get_or_insert(None);
                    });
                    sleep(between_half_and_whole(pace.longest)).await;
                    continue;
                }
            }
            // One that is over is none of those that a new configuration ends.
            let _ = timeout(AGAIN, self.changed.notified()).await;
        }
    }
}

/// All resources, with their kinds; nothing where the API server is too old to tell in one document.
async fn served(client: &Client) -> Result<Option<Vec<Resource>>, Error> {
    let mut all = Vec::new();
    for path in ["/api", "/apis"] {
        let request = http::Request::get(path).header(ACCEPT, AGGREGATED).body(Vec::new());
        let document: Value = client.request(request.map_err(Error::HttpError)?).await?;
        let Some(resources) = routing::served(&document) else { return Ok(None) };
        all.extend(resources);
    }
    Ok(Some(all))
}

/// Reads one configuration.
struct Webhooks {
    which: Which,
    all: Arc<All>,
}

impl Reader for Webhooks {
    type Item = Vec<Rule>;

    fn read(&self, object: Value) -> Option<Self::Item> {
        Some(routing::configuration(&object))
    }

    fn listed(&mut self, all: Vec<Self::Item>) {
        self.all.configuration(self.which, all.into_iter().next());
        self.all.listed();
    }

    fn applied(&mut self, rules: Self::Item) {
        self.all.configuration(self.which, Some(rules));
    }

    fn deleted(&mut self, _: Self::Item) {
        self.all.configuration(self.which, None);
    }
}
