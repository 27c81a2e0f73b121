//! The command line of `slicegate check`, and what it shares with `explain`.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;

use super::bounds::positive;
use crate::duration;
use crate::names;

/// Judge manifests as the cluster would
///
/// Reads YAML and JSON, one or many documents, Lists and AdmissionReviews, and tells of each object what the webhooks would
/// answer to its creation. It is judged by the configuration, the policies and the facts that are named here, by Namespace,
/// Node and PriorityClass manifests in the input itself, or by those of a cluster.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  slicegate check deploy/
      every manifest below a folder
  kustomize build overlays/prod | slicegate check -
      what comes from a pipe
  slicegate check --config config.yaml --policies policies/ --format sarif deploy/ > slicegate.sarif
      in CI
  slicegate check --fix --write deploy/
      mend what has exactly one right repair

Exit codes:
  0  everything would be let through
  1  something would be refused, or is warned of with --fail-on warn
  2  the command line is wrong, or something cannot be read")]
pub struct Check {
    /// Files and folders of manifests, - for standard input [default: - where that is no terminal]
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,

    /// What they are judged by.
    #[command(flatten)]
    pub judged_by: JudgedBy,

    /// How the outcome is written to standard output
    #[arg(long, env = "SLICEGATE_CHECK_FORMAT", value_name = "FORMAT", default_value = "text")]
    pub format: CheckFormat,

    /// From which action on a finding makes the exit code 1
    #[arg(long, env = "SLICEGATE_CHECK_FAIL_ON", value_name = "ACTION", default_value = "deny")]
    pub fail_on: FailOn,

    /// Show only what would be refused or is warned of, and no sum
    #[arg(short, long)]
    pub quiet: bool,

    /// Mend what has exactly one right repair; shown as a diff (on standard error beside other formats than text), unless
    /// --write is given
    #[arg(long)]
    pub fix: bool,

    /// With --fix, write the repair into the files
    #[arg(long, requires = "fix")]
    pub write: bool,

    /// When to use colours
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
}

/// What manifests are judged by.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Judged by")]
pub struct JudgedBy {
    /// The configuration, as YAML [default: one shared pool, or the cluster's with --cluster]
    #[arg(long, env = "SLICEGATE_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Rego policies: manifests of labelled ConfigMaps, or folders of .rego files
    #[arg(long, env = "SLICEGATE_POLICIES", value_name = "PATH")]
    pub policies: Option<PathBuf>,

    /// Manifests of Namespaces, Nodes and PriorityClasses, a file or a folder, beside those in the input
    #[arg(long, env = "SLICEGATE_FACTS", value_name = "PATH")]
    pub facts: Option<PathBuf>,

    /// Judge by the facts, the configuration and the policies of the cluster, which is only read
    #[arg(long, env = "SLICEGATE_CHECK_CLUSTER")]
    pub cluster: bool,

    /// With --cluster: its kubeconfig [default: that of kubectl]
    #[arg(long, env = "SLICEGATE_KUBECONFIG", value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// With --cluster: slicegate's own namespace [default: slicegate-system]
    #[arg(long, env = "SLICEGATE_NAMESPACE", value_name = "NAME")]
    pub slicegate_namespace: Option<String>,

    /// With --cluster: a namespace whose labelled ConfigMaps are policies too; give it again for each further one
    #[arg(long, env = "SLICEGATE_POLICY_NAMESPACE", value_name = "NAME", value_delimiter = ',')]
    pub policy_namespace: Vec<String>,

    /// The namespace of objects that name none
    #[arg(short, long, env = "SLICEGATE_CHECK_NAMESPACE", value_name = "NAME", default_value = "default", value_parser = namespace)]
    pub namespace: String,

    /// The user whose requests they are, for exemptions
    #[arg(long = "as", value_name = "USER", default_value = "")]
    pub user: String,

    /// A group of that user; give it again for each further one
    #[arg(long = "as-group", value_name = "GROUP")]
    pub groups: Vec<String>,

    /// How long one object, or the cluster's first answer, may take
    #[arg(long, env = "SLICEGATE_CHECK_TIMEOUT", value_name = "DURATION", value_parser = positive, default_value = "30s")]
    pub timeout: Duration,

    /// The processor time that one policy set may take for one object
    #[arg(long, env = "SLICEGATE_REGO_BUDGET", value_name = "DURATION", value_parser = duration::parse, default_value = "20ms")]
    pub rego_budget: Duration,
}

/// How the outcome is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CheckFormat {
    /// For people, with the lines of the files.
    Text,
    /// One JSON object.
    Json,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
    /// JUnit's XML.
    Junit,
    /// Annotations of GitHub Actions.
    Github,
}

/// The least action that fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// What would be refused.
    Deny,
    /// What is warned of, too.
    Warn,
}

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// In any case.
    Always,
    /// In no case.
    Never,
}

fn namespace(text: &str) -> Result<String, String> {
    names::dns_label(text).map(|()| text.to_owned())
}
