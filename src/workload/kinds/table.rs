//! The table of kinds that are known to carry templates.
//!
//! Most rows say where full PodTemplateSpecs stand; the others name a reader that knows the shape. Group and kind choose
//! the row together, since `Job` is a kind of three groups. Invariant: a kind stands in one row.

use crate::json::Json;
use crate::workload::path::Path;
use crate::workload::template::pod_template;
use crate::workload::{Placed, Template};

use super::{MOST_TEMPLATES, argo, kserve, notebook, pattern, ray, spark, trainer, volcano};

/// One or several kinds of a group that are read in the same way.
pub(super) struct Row {
    group: &'static str,
    kinds: &'static [&'static str],
    /// Where what the reader reads stands; a pattern as of [`pattern::written`].
    at: &'static [&'static str],
    reader: Reader,
    /// Whether other objects add labels or resources before there is a Pod.
    declared_elsewhere: bool,
}

/// Reads the templates of one piece of the object.
type Reader = for<'r> fn(&'r Json<'r>, &Placed<'r>) -> Vec<Template<'r>>;

/// The row of a kind.
pub(super) fn find(group: &str, kind: &str) -> Option<&'static Row> {
    TABLE.iter().find(|row| row.group == group && row.kinds.contains(&kind))
}

/// The kinds whose rows lead to templates.
pub(super) fn carriers() -> impl Iterator<Item = (&'static str, &'static str)> {
    let rows = TABLE.iter().filter(|row| !row.at.is_empty());
    rows.flat_map(|row| row.kinds.iter().map(|kind| (row.group, *kind)))
}

impl Row {
    pub(super) fn read<'r>(&self, object: &'r Json<'r>) -> Vec<Template<'r>> {
        let root = Placed::new(Path::root(), object);
        let pieces = self.at.iter().flat_map(|pattern| pattern::written(&root, pattern));
        let templates = pieces.flat_map(|piece| (self.reader)(object, &piece));
        let mut templates: Vec<_> = templates.take(MOST_TEMPLATES.saturating_add(1)).collect();
        for template in &mut templates {
            template.declared_elsewhere |= self.declared_elsewhere;
        }
        templates
    }

    /// The same, of a kind that makes no Pods by itself.
    const fn elsewhere(self) -> Self {
        Self { declared_elsewhere: true, ..self }
    }
}

const fn plain(group: &'static str, kinds: &'static [&'static str], at: &'static [&'static str]) -> Row {
    by(group, kinds, at, full)
}

const fn by(group: &'static str, kinds: &'static [&'static str], at: &'static [&'static str], reader: Reader) -> Row {
    Row { group, kinds, at, reader, declared_elsewhere: false }
}

fn full<'r>(object: &'r Json<'r>, piece: &Placed<'r>) -> Vec<Template<'r>> {
    vec![pod_template(object, piece)]
}

/// Knative's webhook names the container of a Service that has one alone.
fn knative<'r>(object: &'r Json<'r>, piece: &Placed<'r>) -> Vec<Template<'r>> {
    let mut template = pod_template(object, piece);
    for container in template.containers.iter_mut().filter(|container| container.name.is_empty()) {
        container.name = "user-container";
    }
    vec![template]
}

const TABLE: &[Row] = &[
    plain("", &["Pod"], &[""]),
    plain("", &["ReplicationController"], &["spec/template"]),
    plain("", &["PodTemplate"], &["template"]),
    plain("apps", &["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"], &["spec/template"]),
    plain("batch", &["Job"], &["spec/template"]),
    plain("batch", &["CronJob"], &["spec/jobTemplate/spec/template"]),
    plain("jobset.x-k8s.io", &["JobSet"], &["spec/replicatedJobs/*/template/spec/template"]),
    plain(
        "leaderworkerset.x-k8s.io",
        &["LeaderWorkerSet"],
        &["spec/leaderWorkerTemplate/leaderTemplate", "spec/leaderWorkerTemplate/workerTemplate"],
    ),
    plain(
        "disaggregatedset.x-k8s.io",
        &["DisaggregatedSet"],
        &[
            "spec/roles/*/spec/leaderWorkerTemplate/leaderTemplate",
            "spec/roles/*/spec/leaderWorkerTemplate/workerTemplate",
        ],
    ),
    plain("kubeflow.org", &["PyTorchJob"], &["spec/pytorchReplicaSpecs/*/template"]),
    plain("kubeflow.org", &["TFJob"], &["spec/tfReplicaSpecs/*/template"]),
    plain("kubeflow.org", &["MPIJob"], &["spec/mpiReplicaSpecs/*/template"]),
    plain("kubeflow.org", &["XGBoostJob"], &["spec/xgbReplicaSpecs/*/template"]),
    plain("kubeflow.org", &["PaddleJob"], &["spec/paddleReplicaSpecs/*/template"]),
    plain("kubeflow.org", &["JAXJob"], &["spec/jaxReplicaSpecs/*/template"]),
    by("kubeflow.org", &["Notebook"], &["spec/template/spec"], notebook::notebook),
    by("kubeflow.org", &["WorkspaceKind"], &["spec/podTemplate"], notebook::workspace_kind).elsewhere(),
    plain(
        "trainer.kubeflow.org",
        &["TrainingRuntime", "ClusterTrainingRuntime"],
        &["spec/template/spec/replicatedJobs/*/template/spec/template"],
    )
    .elsewhere(),
    by("trainer.kubeflow.org", &["TrainJob"], &["spec"], trainer::train_job).elsewhere(),
    by("trainer.kubeflow.org", &["OptimizationJob"], &["spec/trainJobTemplate/spec"], trainer::train_job).elsewhere(),
    by("ray.io", &["RayCluster"], &["spec"], ray::cluster),
    by("ray.io", &["RayService"], &["spec/rayClusterConfig"], ray::cluster),
    by("ray.io", &["RayJob"], &["spec"], ray::job),
    by("ray.io", &["RayCronJob"], &["spec/jobTemplate"], ray::job),
    by("batch.volcano.sh", &["Job"], &["spec"], volcano::job),
    by("batch.volcano.sh", &["CronJob"], &["spec/jobTemplate/spec"], volcano::job),
    by("flow.volcano.sh", &["JobTemplate"], &["spec"], volcano::job),
    by("training.volcano.sh", &["HyperJob"], &["spec/replicatedJobs/*/templateSpec"], volcano::job),
    by("argoproj.io", &["Workflow"], &["spec"], argo::workflow),
    by("argoproj.io", &["CronWorkflow"], &["spec/workflowSpec"], argo::workflow),
    by("argoproj.io", &["WorkflowTemplate", "ClusterWorkflowTemplate"], &["spec"], argo::workflow).elsewhere(),
    by("argoproj.io", &["Rollout"], &["spec"], argo::rollout),
    plain("argoproj.io", &["Experiment"], &["spec/templates/*/template"]),
    plain(
        "argoproj.io",
        &["AnalysisTemplate", "ClusterAnalysisTemplate", "AnalysisRun"],
        &["spec/metrics/*/provider/job/spec/template"],
    )
    .elsewhere(),
    by("serving.kserve.io", &["InferenceService"], &["spec"], kserve::inference_service),
    by("serving.kserve.io", &["ServingRuntime", "ClusterServingRuntime"], &["spec"], kserve::runtime).elsewhere(),
    by("serving.kserve.io", &["LLMInferenceService"], &["spec"], kserve::llm),
    by("serving.kserve.io", &["LLMInferenceServiceConfig"], &["spec"], kserve::llm).elsewhere(),
    by("serving.knative.dev", &["Service", "Configuration"], &["spec/template"], knative),
    by("serving.knative.dev", &["Revision"], &[""], knative),
    by("sparkoperator.k8s.io", &["SparkApplication"], &["spec"], spark::application),
    by("sparkoperator.k8s.io", &["ScheduledSparkApplication"], &["spec/template"], spark::application),
    by("sparkoperator.k8s.io", &["SparkConnect"], &["spec"], spark::connect),
    // Copies that a controller keeps of what is judged itself. They may lack the labels, and make no Pods.
    plain("kueue.x-k8s.io", &["Workload"], &[]),
    plain("argoproj.io", &["WorkflowTaskSet"], &[]),
];
