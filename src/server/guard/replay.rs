//! The replay of recent requests on what is about to be written.
//!
//! Invariant: it refuses nothing, ends by its time, and costs no more than a bounded number of evaluations in the process that
//! serves nobody.

use std::sync::Arc;

use tokio::time::{Instant, timeout_at};

use super::effect::{Candidate, Differences, Effect};
use super::policy::{Change, Old};
use crate::policy::{Phase, Policy};
use crate::rego::outcome::{Failure, Outcome};
use crate::rego::unit::Unit;
use crate::server::{App, Rules};
use crate::workers::protocol::{Check, Sample};

/// The most requests that one change is tried on.
const MAX_REQUESTS: usize = 200;

/// The most requests, and the most bytes of them, that are judged before it is looked whether there is time for more.
const AT_ONCE: (usize, usize) = (25, 2 << 20);

/// Replays recent requests, and says what would change.
pub(super) async fn replay(app: &Arc<App>, rules: &Arc<Rules>, effects: Vec<Effect>, until: Instant) -> Vec<String> {
    let mut told = Vec::new();
    for effect in effects {
        told.extend(match effect {
            Effect::Configuration(next) => configuration(app, rules, *next).await,
            Effect::Policy(change) => {
                let replay = Replay { app, rules, change: Arc::new(*change), until };
                replay.run().await
            }
        });
    }
    told
}

async fn configuration(app: &Arc<App>, rules: &Arc<Rules>, next: Policy) -> Vec<String> {
    let (app, now) = (Arc::clone(app), Arc::clone(&rules.policy));
    let work = move || {
        let (facts, bodies) = (app.facts(), app.recent.all());
        let mut differences = Differences::default();
        for body in bodies.iter().take(MAX_REQUESTS) {
            differences.add_configuration(body, [&now, &next], &facts);
        }
        differences.tell("", bodies.len().min(MAX_REQUESTS))
    };
    off_thread(work).await
}

struct Replay<'r> {
    app: &'r Arc<App>,
    rules: &'r Arc<Rules>,
    change: Arc<Change>,
    until: Instant,
}

impl Replay<'_> {
    async fn run(&self) -> Vec<String> {
        let candidates = Arc::new(self.candidates().await);
        let subject = if self.change.dependent { format!("policy {}: ", self.change.name) } else { String::new() };
        let mut differences = Differences::default();
        let (mut done, mut careful) = (0, false);
        while let Some(rest) = candidates.get(done..).filter(|rest| !rest.is_empty()) {
            let count = if careful { 1 } else { chunk(rest) };
            let chunk = rest.get(..count).unwrap_or(rest);
            match timeout_at(self.until, self.judge(chunk)).await {
                Ok(Some(outcomes)) => {
                    let compared = self.compare(differences, Arc::clone(&candidates), done, outcomes).await;
                    let Some(compared) = compared else { return Vec::new() };
                    differences = compared;
                    done = done.saturating_add(count);
                }
                // One of them ends the process; one at a time it shows which.
                Ok(None) => careful = true,
                Err(_late) => break,
            }
        }
        differences.tell(&subject, candidates.len())
    }

    async fn candidates(&self) -> Vec<Candidate> {
        let (app, rules, change) = (Arc::clone(self.app), Arc::clone(self.rules), Arc::clone(&self.change));
        let work = move || {
            let (facts, bodies) = (app.facts(), app.recent.all());
            let found = bodies.iter().filter_map(|body| Candidate::of(body, &change, &rules.policy, &facts));
            found.take(MAX_REQUESTS).collect()
        };
        off_thread(work).await
    }

    /// What both forms say, each of what it sees; nothing where that cannot be told of all of them together.
    async fn judge(&self, chunk: &[Candidate]) -> Option<[Vec<Option<Outcome>>; 2]> {
        let old = match &self.change.old {
            Old::InForce(unit, _) => self.ask(unit, chunk, |candidate| candidate.old).await?,
            Old::Broken(_) | Old::Nothing => vec![None; chunk.len()],
        };
        let new = match &self.change.new {
            Some((unit, _)) => self.ask(unit, chunk, |candidate| candidate.new).await?,
            None => vec![None; chunk.len()],
        };
        Some([old, new])
    }

    async fn ask(
        &self,
        unit: &Arc<Unit>,
        chunk: &[Candidate],
        sees: impl Fn(&Candidate) -> bool,
    ) -> Option<Vec<Option<Outcome>>> {
        let samples = chunk.iter().filter(|candidate| sees(candidate)).map(|candidate| Sample {
            phase: Phase::Validate,
            context: candidate.context.clone(),
            body: String::from_utf8_lossy(&candidate.body).into_owned(),
        });
        let check = Check { unit: unit.as_ref().clone(), tests: None, samples: samples.collect() };
        let found = if check.samples.is_empty() { Vec::new() } else { self.outcomes(&check).await? };
        let mut found = found.into_iter();
        Some(chunk.iter().map(|candidate| if sees(candidate) { found.next() } else { None }).collect())
    }

    /// What a set says. It was found good before, so that whatever is wrong with it now is one of the requests' doing.
    async fn outcomes(&self, check: &Check) -> Option<Vec<Outcome>> {
        let checked = self.app.workers.try_out(check).await;
        if checked.report.errors.is_empty() {
            return Some(checked.outcomes);
        }
        let died = || Outcome { error: Some(Failure::Died), ..Outcome::default() };
        (check.samples.len() == 1).then(|| vec![died()])
    }

    async fn compare(
        &self,
        mut differences: Differences,
        candidates: Arc<Vec<Candidate>>,
        from: usize,
        [old, new]: [Vec<Option<Outcome>>; 2],
    ) -> Option<Differences> {
        let (app, rules, change) = (Arc::clone(self.app), Arc::clone(self.rules), Arc::clone(&self.change));
        let work = move || {
            let facts = app.facts();
            for ((candidate, old), new) in candidates.iter().skip(from).zip(old).zip(new) {
                let before = if candidate.old { change.before(old) } else { None };
                differences.add_policy(&candidate.body, [before, change.after(new)], &rules.policy, &facts);
            }
            Some(differences)
        };
        off_thread(work).await
    }
}

/// How many to judge at once.
fn chunk(rest: &[Candidate]) -> usize {
    let (most, bytes) = AT_ONCE;
    let mut sum: usize = 0;
    let fits = rest.iter().take(most).take_while(|candidate| {
        sum = sum.saturating_add(candidate.body.len());
        sum <= bytes
    });
    fits.count().max(1)
}

/// Does work that takes a moment where nobody waits for the thread. A panic in it costs the replay and nothing else.
async fn off_thread<T: Default + Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap_or_default()
}
