//! What is counted of the evaluation of policies.
//!
//! Invariant: labels come from closed sets.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::rego::outcome::Failure;

/// Upper bounds in seconds.
const DURATIONS: [f64; 12] = [0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5];

/// Handles to the metrics; clones count together.
#[derive(Debug, Clone)]
pub struct Meter {
    evaluations: Family<[(&'static str, &'static str); 1], Counter>,
    restarts: Family<[(&'static str, &'static str); 1], Counter>,
    seconds: Histogram,
    queued: Histogram,
    queue: Gauge,
    cut_off: Gauge,
    unloaded: Counter,
}

impl Default for Meter {
    fn default() -> Self {
        Self {
            evaluations: Family::default(),
            restarts: Family::default(),
            seconds: Histogram::new(DURATIONS),
            queued: Histogram::new(DURATIONS),
            queue: Gauge::default(),
            cut_off: Gauge::default(),
            unloaded: Counter::default(),
        }
    }
}

impl Meter {
    /// Shows them in a registry.
    pub fn register(&self, registry: &mut Registry) {
        for reason in ["budget", "died"] {
            self.restarts.get_or_create(&[("reason", reason)]).inc_by(0);
        }
        registry.register("policy_evaluations", "Evaluations of policy sets", self.evaluations.clone());
        registry.register("policy_worker_restarts", "Worker processes that ended", self.restarts.clone());
        let help = "Time from a request's question to the workers to their answer";
        registry.register("policy_duration_seconds", help, self.seconds.clone());
        let help = "Time that a request waited for a worker to take it";
        registry.register("policy_queue_duration_seconds", help, self.queued.clone());
        let help = "Sets that are not run for a namespace for a while, since they failed again and again";
        registry.register("policy_cut_off", help, self.cut_off.clone());
        registry.register("policies_unloaded", "Sets that their authors took away", self.unloaded.clone());
        registry.register("policy_queue", "Requests that wait for a worker", self.queue.clone());
    }

    /// A set's author took it away.
    pub(crate) fn unloaded(&self) {
        self.unloaded.inc();
    }

    pub(super) fn cut_off(&self, count: usize) {
        self.cut_off.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    pub(super) fn evaluated(&self, failure: Option<&Failure>) {
        let outcome = failure.map_or("done", Failure::as_str);
        self.evaluations.get_or_create(&[("outcome", outcome)]).inc();
    }

    pub(super) fn restarted(&self, overran: bool) {
        let reason = if overran { "budget" } else { "died" };
        self.restarts.get_or_create(&[("reason", reason)]).inc();
    }

    pub(super) fn queued(&self, time: Duration) {
        self.queued.observe(time.as_secs_f64());
    }

    pub(super) fn waited(&self, queue: usize, time: Duration) {
        self.queue.set(i64::try_from(queue).unwrap_or(i64::MAX));
        self.seconds.observe(time.as_secs_f64());
    }
}
