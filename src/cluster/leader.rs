//! Which of the replicas writes, by a Lease.
//!
//! What it does: tries to hold the Lease and renews it, and says at each moment whether it is held. It judges another holder's
//! time by when it saw the Lease change and never by the times that stand in it, so that clocks need not agree. Invariant: it
//! says that it leads only for as long as no other replica may take over; trouble with the API server ends nothing but that.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::PostParams;
use kube::{Api, Client, Error};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::watch::{between_half_and_whole, explained};

/// The name of the Lease.
pub(super) const LEASE: &str = "slicegate";

/// How long things may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// How long others leave a Lease alone that does not change.
    pub(super) lease: Duration,
    /// The longest pause between two looks or two renewals.
    pub(super) renew: Duration,
    /// How long after the last renewal it is given up: less than the lease.
    pub(super) give_up: Duration,
    /// For one look and what follows from it.
    pub(super) answer: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        let [lease, renew, give_up, answer] = [15, 5, 10, 5].map(Duration::from_secs);
        Self { lease, renew, give_up, answer }
    }
}

/// One candidate.
pub(super) struct Election {
    leases: Api<Lease>,
    identity: String,
    pace: Pace,
    /// What the Lease said, and since when it says so.
    seen: Option<(LeaseSpec, Instant)>,
    /// The Lease as it was written last.
    written: Option<Lease>,
    /// What was told last, so that a repetition is silent.
    problem: Option<String>,
}

/// A name for this process that no other one has: that of its machine, which is the Pod's, and something of its own.
pub(super) fn identity() -> String {
    let machine = rustix::system::uname();
    let chance = RandomState::new().build_hasher().finish();
    format!("{}_{chance:016x}", machine.nodename().to_string_lossy())
}

/// What a look at the Lease came to.
enum Outcome {
    Held,
    /// By this one.
    HeldBy(String),
    /// Someone wrote it between the look and the writing.
    Changed,
}

impl Election {
    pub(super) fn new(client: Client, namespace: &str, identity: String, pace: Pace) -> Self {
        let leases = Api::namespaced(client, namespace);
        Self { leases, identity, pace, seen: None, written: None, problem: None }
    }

    /// Stands for election until told to stop, and gives the Lease back then.
    pub(super) async fn run(mut self, leads: watch::Sender<bool>, stop: CancellationToken) {
        stop.run_until_cancelled(self.hold(&leads)).await;
        if leads.send_replace(false) {
            self.release().await;
        }
    }

    async fn hold(&mut self, leads: &watch::Sender<bool>) {
        let mut renewed: Option<Instant> = None;
        loop {
            let began = Instant::now();
            let left = renewed.map(|last| self.pace.give_up.saturating_sub(last.elapsed()));
            let limit = left.map_or(self.pace.answer, |left| left.min(self.pace.answer));
            let outcome = match timeout(limit, self.attempt()).await {
                Ok(outcome) => outcome.map_err(|error| explained(&error)),
                Err(_) => Err(format!("no answer within {limit:?}")),
            };
            match outcome {
                Ok(Outcome::Held) => renewed = Some(began),
                Ok(Outcome::HeldBy(holder)) => {
                    if renewed.take().is_some() {
                        warn!(holder, "Another replica leads now");
                    }
                }
                Ok(Outcome::Changed) => {}
                Err(problem) => self.tell(Some(problem)),
            }
            if renewed.is_some_and(|last| last.elapsed() >= self.pace.give_up) {
                warn!(after = ?self.pace.give_up, "The lease could not be renewed; this replica no longer leads");
                renewed = None;
            }
            self.announce(leads, renewed.is_some());
            // One that leads and cannot renew tries more often, since its time runs.
            let late = renewed.is_some_and(|last| last != began);
            let pause = if late { self.pace.renew.checked_div(5).unwrap_or_default() } else { self.pace.renew };
            sleep(between_half_and_whole(pause)).await;
        }
    }

    fn announce(&mut self, leads: &watch::Sender<bool>, leading: bool) {
        if leading {
            self.tell(None);
        }
        let changed = leads.send_if_modified(|known| std::mem::replace(known, leading) != leading);
        if changed && leading {
            info!(identity = self.identity, "This replica leads: it writes status, events and last good forms");
        }
    }

    fn tell(&mut self, problem: Option<String>) {
        if let Some(problem) = &problem
            && self.problem.as_ref() != Some(problem)
        {
            warn!(problem, lease = LEASE, "The lease cannot be read or written");
        }
        self.problem = problem;
    }

    /// One look at the Lease, and what follows from it.
    async fn attempt(&mut self) -> Result<Outcome, Error> {
        let Some(found) = self.leases.get_opt(LEASE).await? else {
            let metadata = ObjectMeta { name: Some(LEASE.to_owned()), ..ObjectMeta::default() };
            return self.write(Lease { metadata, spec: None }, true).await;
        };
        let spec = found.spec.clone().unwrap_or_default();
        let since = match &self.seen {
            Some((seen, since)) if *seen == spec => *since,
            _ => {
                let now = Instant::now();
                self.seen = Some((spec.clone(), now));
                now
            }
        };
        let other = spec.holder_identity.filter(|holder| !holder.is_empty() && *holder != self.identity);
        let seconds = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        // However long another one claims to hold it, it has to renew.
        let lease = seconds.map_or(self.pace.lease, |seconds| Duration::from_secs(seconds).min(LONGEST));
        match other {
            Some(holder) if since.elapsed() < lease => Ok(Outcome::HeldBy(holder)),
            _ => self.write(found, false).await,
        }
    }

    /// Writes this replica into the Lease, unless it changed since it was read.
    async fn write(&mut self, mut lease: Lease, new: bool) -> Result<Outcome, Error> {
        let now = MicroTime(Timestamp::now());
        let mut spec = lease.spec.take().unwrap_or_default();
        if spec.holder_identity.as_ref() != Some(&self.identity) {
            spec.acquire_time = Some(now.clone());
            spec.lease_transitions = Some(spec.lease_transitions.unwrap_or_default().saturating_add(i32::from(!new)));
        }
        spec.holder_identity = Some(self.identity.clone());
        spec.renew_time = Some(now);
        spec.lease_duration_seconds = Some(i32::try_from(self.pace.lease.as_secs()).unwrap_or(i32::MAX).max(1));
        lease.spec = Some(spec);
        let params = PostParams::default();
        let written = if new {
            self.leases.create(&params, &lease).await
        } else {
            self.leases.replace(LEASE, &params, &lease).await
        };
        match written {
            Ok(lease) => {
                self.written = Some(lease);
                Ok(Outcome::Held)
            }
            Err(Error::Api(status)) if status.code == CONFLICT => Ok(Outcome::Changed),
            Err(error) => Err(error),
        }
    }

    /// Lets the next one take over at once instead of after the lease.
    async fn release(&mut self) {
        let Some(mut lease) = self.written.take() else { return };
        if let Some(spec) = &mut lease.spec {
            spec.holder_identity = None;
            spec.lease_duration_seconds = Some(1);
        }
        let params = PostParams::default();
        let released = timeout(self.pace.answer, self.leases.replace(LEASE, &params, &lease)).await;
        info!(released = matches!(released, Ok(Ok(_))), "This replica no longer leads");
    }
}

const CONFLICT: u16 = 409;
/// The longest that the claim of another holder is believed.
const LONGEST: Duration = Duration::from_mins(1);
