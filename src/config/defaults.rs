//! What holds where a configuration says nothing.
//!
//! Invariant: [`Config::default`] is what [`super::parse()`] makes of a document without any setting; a test holds both, and
//! the documented example, equal.

use std::collections::BTreeMap;

use super::glob::Glob;
use super::{Config, Existing, Inject, InjectInto, OnDeadline, Pool, PoolState, Sharing, Toleration};
use crate::policy::decision::Action;

/// What is a GPU resource in every configuration.
const GPU_RESOURCES: [&str; 6] =
    ["nvidia.com/gpu*", "nvidia.com/mig-*", "amd.com/gpu*", "gpu.intel.com/*", "habana.ai/gaudi", "huawei.com/Ascend*"];

/// Who counts as a controller in every configuration: kube-controller-manager with one identity for all of its controllers,
/// and, where each has its own, those that make Pods or what makes Pods.
const CONTROLLERS: [&str; 8] = [
    "system:kube-controller-manager",
    "system:serviceaccount:kube-system:cronjob-controller",
    "system:serviceaccount:kube-system:daemon-set-controller",
    "system:serviceaccount:kube-system:deployment-controller",
    "system:serviceaccount:kube-system:job-controller",
    "system:serviceaccount:kube-system:replicaset-controller",
    "system:serviceaccount:kube-system:replication-controller",
    "system:serviceaccount:kube-system:statefulset-controller",
];

impl Default for Config {
    fn default() -> Self {
        let shared = Pool {
            name: "shared".to_owned(),
            resources: vec![Glob::new("nvidia.com/gpu.shared"), Glob::new("nvidia.com/mig-*.shared")],
            node_selector: BTreeMap::from([("gpu-mode".to_owned(), "shared".to_owned())]),
            tolerations: vec![Toleration {
                key: "nvidia.com/gpu.shared".to_owned(),
                operator: "Exists".to_owned(),
                effect: "NoSchedule".to_owned(),
                ..Toleration::default()
            }],
            ..Pool::with_defaults(Sharing::TimeSlicing)
        };
        Self {
            enforcement: Action::Deny,
            existing: Existing::Enforce,
            latency_label: "slicegate.io/latency".to_owned(),
            checkpoint_label: "slicegate.io/checkpoint".to_owned(),
            critical_priority_classes: Vec::new(),
            pools: vec![shared],
            rules: BTreeMap::new(),
            exemptions: Vec::new(),
            workloads: Vec::new(),
            gpu_resources: GPU_RESOURCES.map(Glob::new).to_vec(),
            controllers: CONTROLLERS.map(Glob::new).to_vec(),
            on_deadline: OnDeadline::Deny,
        }
    }
}

impl Pool {
    /// A pool without name and resources, and with everything else as it is where the configuration says nothing. One that
    /// shares no GPU has no limit and asks for no class.
    pub fn with_defaults(sharing: Sharing) -> Self {
        let exclusive = sharing == Sharing::Exclusive;
        let limit = if exclusive { None } else { Some(1) };
        Self {
            name: String::new(),
            sharing,
            state: PoolState::Open,
            resources: Vec::new(),
            node_selector: BTreeMap::new(),
            tolerations: Vec::new(),
            per_container: limit,
            per_pod: limit,
            inject: Inject { tolerations: true, node_selector: true, into: InjectInto::Pods },
            admits_latency_critical: exclusive,
            requires_checkpoint: !exclusive,
            default: false,
        }
    }
}
