//! What is counted, and its form for Prometheus.
//!
//! Invariant: labels come from closed sets (endpoint, operation, outcome, rule, action), never from a request. The one
//! exceptions are the digest of the configuration, of which one stands there at a time, and the names and digests of policy
//! sets, of which there are as many as the platform team makes.

use std::fmt::Write as _;

use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use ring::digest::{SHA256, digest};

use crate::policy::Phase;
use crate::policy::decision::{Finding, Rule, Spared};
use crate::rego::state::{SetReport, State};
use crate::review::Operation;
use crate::workers::meter::Meter;

pub(crate) mod register;

type Labels<const N: usize> = [(&'static str, &'static str); N];
type Counters<const N: usize> = Family<Labels<N>, Counter>;

/// Upper bounds of the duration histogram, in seconds: most verdicts take microseconds, and ten seconds is the longest that
/// an API server waits by default.
const DURATIONS: [f64; 14] =
    [0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.05, 0.25, 1.0, 5.0, 10.0];

/// How a review ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Let through as it is.
    Allowed,
    /// Let through with warnings.
    Warned,
    /// Let through with changes.
    Patched,
    /// Refused by a rule, or because the deadline came.
    Denied,
    /// Refused since it could not be judged.
    Unreadable,
    /// Refused after a fault of this program.
    Panicked,
}

impl Outcome {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Allowed, Self::Warned, Self::Patched, Self::Denied, Self::Unreadable, Self::Panicked];

    /// The word in logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Warned => "warned",
            Self::Patched => "patched",
            Self::Denied => "denied",
            Self::Unreadable => "unreadable",
            Self::Panicked => "panicked",
        }
    }
}

/// Everything that is counted.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    requests: Counters<3>,
    durations: [Histogram; 2],
    findings: Counters<3>,
    digest: Family<[(&'static str, String); 1], Gauge>,
    generations: [Gauge; 2],
    policies_digest: Family<[(&'static str, String); 1], Gauge>,
    problems: Family<Labels<1>, Gauge>,
    reloads: Counters<2>,
    /// Without labels, and without a value before there is a certificate: zero would be a date.
    certificate_end: Family<Labels<0>, Gauge>,
    /// Requests that got no review's answer, by reason.
    pub rejected: Counters<1>,
    /// The time that large reviews wait for a core.
    pub large_queue: Histogram,
    /// Requests being answered.
    pub in_flight: Gauge,
    /// Connections that are open, by port.
    pub connections: Family<Labels<1>, Gauge>,
    /// Connections that the server ended, by port and reason.
    pub connections_ended: Counters<2>,
    /// Connections that were accepted, by port.
    pub connections_accepted: Counters<1>,
    /// Failures of accepting a connection.
    pub accept_errors: Counter,
    /// Panics that the last net caught.
    pub panics: Counter,
    deadlines: Counters<1>,
    /// Patches that were left out since they did not apply.
    pub patch_errors: Counter,
    /// Reads of Namespaces that the watch did not know, by outcome.
    pub namespace_reads: Counters<1>,
    /// What the evaluation of policy sets took.
    pub policies: Meter,
    sets: Family<[(&'static str, String); 3], Gauge>,
    states: Family<Labels<1>, Gauge>,
    policy_findings: Family<[(&'static str, String); 2], Counter>,
    guarded: Counters<1>,
    guard_duration: Histogram,
}

impl Metrics {
    /// All at zero.
    #[must_use]
    pub fn new() -> Self {
        let metrics = Self {
            registry: Registry::with_prefix("slicegate"),
            requests: Family::default(),
            durations: [Histogram::new(DURATIONS), Histogram::new(DURATIONS)],
            findings: Family::default(),
            digest: Family::default(),
            generations: Default::default(),
            policies_digest: Family::default(),
            problems: Family::default(),
            reloads: Family::default(),
            certificate_end: Family::default(),
            rejected: Family::default(),
            large_queue: Histogram::new(DURATIONS),
            in_flight: Gauge::default(),
            connections: Family::default(),
            connections_ended: Family::default(),
            connections_accepted: Family::default(),
            accept_errors: Counter::default(),
            panics: Counter::default(),
            deadlines: Family::default(),
            patch_errors: Counter::default(),
            namespace_reads: Family::default(),
            policies: Meter::default(),
            sets: Family::default(),
            states: Family::default(),
            policy_findings: Family::default(),
            guarded: Family::default(),
            guard_duration: Histogram::new(DURATIONS),
        };
        metrics.registered()
    }

    /// Counts a review that got an answer.
    pub fn answered(&self, phase: Phase, operation: Option<Operation>, outcome: Outcome, seconds: f64) {
        let operation = operation.map_or("", Operation::as_str);
        let labels = [("endpoint", endpoint(phase)), ("operation", operation), ("outcome", outcome.as_str())];
        self.requests.get_or_create(&labels).inc();
        let [mutate, validate] = &self.durations;
        let durations = if phase == Phase::Mutate { mutate } else { validate };
        durations.observe(seconds);
    }

    /// Counts a finding.
    pub fn found(&self, finding: &Finding) {
        let spared = match finding.spared {
            None => "",
            Some(Spared::Exempted(_)) => "exempted",
            Some(Spared::Existing) => "existing",
            Some(Spared::Kept) => "kept",
            Some(Spared::MirrorPod) => "mirror-pod",
        };
        let labels = [("rule", finding.rule.label()), ("action", finding.action.as_str()), ("spared", spared)];
        self.findings.get_or_create(&labels).inc();
        if let Rule::Policy(rule) = &finding.rule {
            let set = rule.rsplit_once('/').map_or("", |(set, _)| set).to_owned();
            let labels = [("set", set), ("action", finding.action.to_string())];
            self.policy_findings.get_or_create(&labels).inc();
        }
    }

    /// Counts an answer that was given because the deadline came, by what was waited for: a word of a closed set.
    pub fn late(&self, waited_for: &'static str) {
        self.deadlines.get_or_create(&[("waited_for", waited_for)]).inc();
    }

    /// Counts a write that the guard answered, by a word of a closed set, and the time of one that it judged.
    pub fn guarded(&self, outcome: &'static str, judged: bool, seconds: f64) {
        self.guarded.get_or_create(&[("outcome", outcome)]).inc();
        if judged {
            self.guard_duration.observe(seconds);
        }
    }

    /// Shows which policy sets are in force, and how many are in which state.
    pub fn set_sets(&self, reports: &[SetReport]) {
        self.sets.clear();
        for report in reports {
            let (namespace, name) = (report.key.namespace.clone(), report.key.name.clone());
            let labels = [("namespace", namespace), ("name", name), ("digest", report.digest.clone())];
            self.sets.get_or_create(&labels).set(i64::from(report.in_force.is_some()));
        }
        for state in State::ALL {
            let count = reports.iter().filter(|report| report.state == state).count();
            self.states.get_or_create(&[("state", state.as_str())]).set(i64::try_from(count).unwrap_or(i64::MAX));
        }
        let [_, policies] = &self.generations;
        policies.inc();
        self.policies_digest.clear();
        self.policies_digest.get_or_create(&[("digest", digest_of(reports))]).set(1);
    }

    /// Shows which configuration is in force.
    pub fn set_digest(&self, digest: &str) {
        let [configuration, _] = &self.generations;
        configuration.inc();
        self.digest.clear();
        self.digest.get_or_create(&[("digest", digest.to_owned())]).set(1);
    }

    /// Shows whether a source of what is watched is in trouble, while the last good state of it stays in force.
    pub fn set_problem(&self, source: &'static str, problem: bool) {
        self.problems.get_or_create(&[("source", source)]).set(i64::from(problem));
    }

    /// Counts a look at certificate files that found something else, by its source and a word of a closed set.
    pub fn reloaded(&self, source: &'static str, outcome: &'static str) {
        self.reloads.get_or_create(&[("source", source), ("outcome", outcome)]).inc();
    }

    /// Shows when the served certificate ends, in seconds since 1970.
    pub fn set_certificate_end(&self, seconds: i64) {
        self.certificate_end.get_or_create(&[]).set(seconds);
    }

    /// Adds a counter that lives elsewhere.
    pub fn add_counter(&mut self, name: &str, help: &str, counter: Counter) {
        self.registry.register(name, help, counter);
    }

    /// All of it as OpenMetrics text.
    ///
    /// # Errors
    /// Where a metric cannot be written, which no metric of this program does.
    pub fn encode(&self) -> Result<String, std::fmt::Error> {
        let mut out = String::new();
        text::encode(&mut out, &self.registry)?;
        Ok(out)
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

/// The word for a phase in logs and metrics.
pub fn endpoint(phase: Phase) -> &'static str {
    match phase {
        Phase::Mutate => "mutate",
        Phase::Validate => "validate",
    }
}

/// One digest of which form of each set is in force, the same in whatever order they stand.
fn digest_of(reports: &[SetReport]) -> String {
    let form = |report: &SetReport| format!("{} {} {}\n", report.key, report.state.as_str(), report.digest);
    let mut forms: Vec<String> = reports.iter().map(form).collect();
    forms.sort_unstable();
    let mut text = String::new();
    for byte in digest(&SHA256, forms.concat().as_bytes()).as_ref() {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_what_was_counted() {
        let metrics = Metrics::new();
        metrics.set_digest("first");
        metrics.set_digest("second");
        metrics.answered(Phase::Validate, Some(Operation::Create), Outcome::Denied, 0.000_03);
        let text = metrics.encode().unwrap();
        let line = r#"slicegate_requests_total{endpoint="validate",operation="CREATE",outcome="denied"} 1"#;
        assert!(text.contains(line), "{text}");
        assert!(text.contains(r#"slicegate_configuration{digest="second"} 1"#) && !text.contains("first"), "{text}");
        assert!(
            text.contains(r#"slicegate_request_duration_seconds_bucket{le="0.00005",endpoint="validate"} 1"#),
            "{text}"
        );
        assert!(text.contains("slicegate_generation{of=\"configuration\"} 2"), "{text}");
        assert!(text.ends_with("# EOF\n"));
    }
}
