//! What is in force and known while the bodies judge.

use std::sync::OnceLock;

use slicegate::config::{Config, parse};
use slicegate::facts::{Event, Facts, Labels};
use slicegate::policy::Policy;

/// Every template is completed, several pools share a resource, one is closed, one drains, a kind is added.
const WIDE: &str = r#"
apiVersion: slicegate.io/v1alpha1
kind: Config
existing: Keep
latencyCritical: {priorityClasses: ["*-critical"]}
pools:
- name: shared
  sharing: TimeSlicing
  resources: [nvidia.com/gpu.shared, "nvidia.com/mig-*.shared"]
  nodes:
    selector: {gpu-mode: shared}
    tolerations: [{key: nvidia.com/gpu.shared, operator: Exists, effect: NoSchedule}, {key: team, value: blue}]
  inject: {into: Templates}
- name: sliced
  sharing: TimeSlicing
  default: true
  resources: [nvidia.com/gpu]
  nodes: {selector: {gpu-mode: sliced}}
  inject: {into: SuspendedJobs}
- name: whole
  sharing: Exclusive
  state: Draining
  resources: [nvidia.com/gpu]
  nodes: {selector: {gpu-mode: exclusive}}
- name: old
  sharing: MPS
  state: Closed
  resources: [amd.com/gpu.shared]
  nodes: {selector: {gpu-mode: old}}
rules:
  no-gpu-bypass: {action: deny}
  share-limit: {namespaces: {"team-*": warn}}
exemptions:
- {rules: ["no-*"], namespaces: [legacy], until: 2027-01-31, reason: moves}
workloads:
- {group: example.com, kind: Trainer, templates: [/spec/workers/*/template], podSpecs: [/spec/driver]}
"#;

/// One of the policies; any byte names one.
pub fn policy(choice: u8) -> &'static Policy {
    static POLICIES: OnceLock<[Policy; 2]> = OnceLock::new();
    let [usual, wide] = POLICIES.get_or_init(|| {
        [Config::default(), parse(WIDE).expect("it is a configuration")]
            .map(|config| Policy { config, digest: "d".to_owned() })
    });
    if choice.is_multiple_of(2) { usual } else { wide }
}

/// Two Nodes, two Namespaces and a default class.
pub fn facts() -> &'static Facts {
    static FACTS: OnceLock<Facts> = OnceLock::new();
    FACTS.get_or_init(|| {
        let labels = |key: &str, value: &str| Labels::from([(key.to_owned(), value.to_owned())]);
        let events = [
            Event::Node("n1".to_owned(), labels("gpu-mode", "shared")),
            Event::Node("n2".to_owned(), labels("gpu-mode", "exclusive")),
            Event::Namespace("blue".to_owned(), labels("slicegate.io/checkpoint", "true")),
            Event::Namespace("team-vision".to_owned(), Labels::new()),
            Event::PriorityClass("web-critical".to_owned(), true),
        ];
        events.into_iter().fold(Facts::default(), |facts, event| facts.after(event).expect("it is new"))
    })
}
