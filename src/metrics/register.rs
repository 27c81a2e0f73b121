//! Under which names metrics are shown, with their lines of help; and the closed sets of labels, which are there from the
//! start at 0, since what appears only with its first event cannot be compared with the time before.
//!
//! Invariant: README's table has each of them with this very line.

use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;

use super::{DURATIONS, Labels, Metrics, endpoint};
use crate::policy::Phase;
use crate::server::{listener, routes, tls};
use crate::version::VERSION;

/// What an answer may have waited for when its deadline came.
const WAITED_FOR: [&str; 5] = ["namespace", "policies", "policies-read", "large", "guard"];

/// How a read of a Namespace may end.
const READS: [&str; 4] = ["found", "missing", "error", "deadline"];

/// How a write that the guard answers may end.
const GUARDED: [&str; 5] = ["allowed", "refused", "left-alone", "unreadable", "panicked"];

impl Metrics {
    pub(super) fn registered(mut self) -> Self {
        self.preset();
        self.register_reviews();
        self.register_state();
        self.register_connections();
        self.register_policies();
        self
    }

    fn register_reviews(&mut self) {
        let registry = &mut self.registry;
        registry.register("requests", "Reviews that were answered", self.requests.clone());
        let durations: Family<Labels<1>, Histogram, fn() -> Histogram> =
            Family::new_with_constructor(|| Histogram::new(DURATIONS));
        // The handles are taken out once, so that a request looks up no label.
        self.durations = [Phase::Mutate, Phase::Validate]
            .map(|phase| durations.get_or_create_owned(&[("endpoint", endpoint(phase))]));
        registry.register("request_duration_seconds", "Time from a review's last byte to its answer", durations);
        let help = "Time that reviews of 256 KiB and more waited for a core";
        registry.register("large_queue_duration_seconds", help, self.large_queue.clone());
        registry.register("findings", "Findings of rules", self.findings.clone());
        registry.register("rejected_requests", "Requests that were no review or came too many", self.rejected.clone());
        registry.register("requests_in_flight", "Requests being answered", self.in_flight.clone());
        registry.register("panics", "Panics that were caught while a review was judged", self.panics.clone());
        registry.register("deadlines", "Times that a deadline came before all was known", self.deadlines.clone());
        registry.register("patch_errors", "Patches left out since they did not apply", self.patch_errors.clone());
        registry.register("namespace_reads", "Reads of Namespaces not watched yet", self.namespace_reads.clone());
    }

    fn register_state(&mut self) {
        let registry = &mut self.registry;
        let version = ("version", VERSION.version);
        registry.register("build", "Which build this is", Info::new([version, ("revision", VERSION.revision)]));
        registry.register("configuration", "The configuration in force", self.digest.clone());
        registry.register("policies", "All policy sets together, as they are in force", self.policies_digest.clone());
        let generations: Family<Labels<1>, _> = Family::default();
        self.generations = ["configuration", "policies"].map(|of| generations.get_or_create_owned(&[("of", of)]));
        registry.register("generation", "How often it was put in force since the start", generations);
        let help = "Whether something watched is out of reach or wrong";
        registry.register("source_problem", help, self.problems.clone());
        let help = "Changes of certificate files, by what became of them";
        registry.register("certificate_reloads", help, self.reloads.clone());
        let end = self.certificate_end.clone();
        registry.register("certificate_expiry_timestamp_seconds", "When the served certificate ends", end);
    }

    fn register_connections(&mut self) {
        let registry = &mut self.registry;
        registry.register("connections", "Connections that are open", self.connections.clone());
        registry.register("connections_accepted", "Connections that were accepted", self.connections_accepted.clone());
        registry.register("connections_ended", "Connections that the server ended", self.connections_ended.clone());
        registry.register("accept_errors", "Failures of accepting a connection", self.accept_errors.clone());
    }

    fn register_policies(&mut self) {
        let registry = &mut self.registry;
        registry.register("policy_set", "Policy sets, 1 where a form of it is in force", self.sets.clone());
        registry.register("policy_sets", "Policy sets by state", self.states.clone());
        registry.register("policy_findings", "Findings of policy sets", self.policy_findings.clone());
        registry.register("guard_requests", "Writes of ConfigMaps that the guard answered", self.guarded.clone());
        let duration = self.guard_duration.clone();
        registry.register("guard_duration_seconds", "Time that the guard took for a write that it judged", duration);
        self.policies.register(registry);
    }

    /// Has what may be counted at 0. What rules find is left out: most of its combinations never come.
    fn preset(&self) {
        for reason in routes::REASONS {
            self.rejected.get_or_create(&[("reason", reason)]).inc_by(0);
        }
        for port in ["webhook", "admin"] {
            self.connections.get_or_create(&[("port", port)]).set(0);
            self.connections_accepted.get_or_create(&[("port", port)]).inc_by(0);
            for reason in listener::REASONS {
                self.connections_ended.get_or_create(&[("port", port), ("reason", reason)]).inc_by(0);
            }
        }
        for reason in WAITED_FOR {
            self.deadlines.get_or_create(&[("waited_for", reason)]).inc_by(0);
        }
        for outcome in READS {
            self.namespace_reads.get_or_create(&[("outcome", outcome)]).inc_by(0);
        }
        for outcome in GUARDED {
            self.guarded.get_or_create(&[("outcome", outcome)]).inc_by(0);
        }
        for outcome in tls::TlsError::LABELS {
            for source in ["certificate", "client-ca"] {
                self.reloads.get_or_create(&[("source", source), ("outcome", outcome)]).inc_by(0);
            }
        }
    }
}
