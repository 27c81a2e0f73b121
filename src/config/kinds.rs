//! The kinds whose templates are known without any configuration.
//!
//! Invariant: the table is sorted. It holds names alone; where each kind keeps its templates is the extractors' business.

/// Group and kind of every built-in kind, sorted.
pub const BUILT_IN: &[(&str, &str)] = &[
    ("", "Pod"),
    ("", "PodTemplate"),
    ("", "ReplicationController"),
    ("apps", "DaemonSet"),
    ("apps", "Deployment"),
    ("apps", "ReplicaSet"),
    ("apps", "StatefulSet"),
    ("argoproj.io", "ClusterWorkflowTemplate"),
    ("argoproj.io", "CronWorkflow"),
    ("argoproj.io", "Rollout"),
    ("argoproj.io", "Workflow"),
    ("argoproj.io", "WorkflowTemplate"),
    ("batch", "CronJob"),
    ("batch", "Job"),
    ("batch.volcano.sh", "Job"),
    ("jobset.x-k8s.io", "JobSet"),
    ("kubeflow.org", "JAXJob"),
    ("kubeflow.org", "MPIJob"),
    ("kubeflow.org", "Notebook"),
    ("kubeflow.org", "PaddleJob"),
    ("kubeflow.org", "PyTorchJob"),
    ("kubeflow.org", "TFJob"),
    ("kubeflow.org", "XGBoostJob"),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"),
    ("ray.io", "RayCluster"),
    ("ray.io", "RayJob"),
    ("ray.io", "RayService"),
    ("serving.knative.dev", "Configuration"),
    ("serving.knative.dev", "Service"),
    ("serving.kserve.io", "InferenceService"),
    ("sparkoperator.k8s.io", "ScheduledSparkApplication"),
    ("sparkoperator.k8s.io", "SparkApplication"),
    ("trainer.kubeflow.org", "ClusterTrainingRuntime"),
    ("trainer.kubeflow.org", "TrainJob"),
    ("trainer.kubeflow.org", "TrainingRuntime"),
];

/// Whether the templates of a kind are known without any configuration.
pub fn is_built_in(group: &str, kind: &str) -> bool {
    BUILT_IN.binary_search(&(group, kind)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(BUILT_IN.is_sorted());
        assert!(is_built_in("", "Pod") && is_built_in("trainer.kubeflow.org", "TrainingRuntime"));
        assert!(!is_built_in("", "Job"));
    }
}
