//! The command line of `slicegate explain`.

use std::path::PathBuf;

use clap::ValueEnum;

use super::JudgedBy;

/// Tell step by step how a verdict comes about
///
/// Shows for each object which templates of Pods were found, what each container asks for and how that adds up, what is
/// declared and where, which pools it leads to, what each rule says and why, which policies were asked and which of their
/// lines were reached, and what would be added.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  slicegate explain trainer.yaml
      one manifest, by the default configuration
  slicegate explain --config config.yaml --policies policies/ trainer.yaml
      with your own
  kubectl get deployment trainer -o yaml | slicegate explain --cluster -
      what runs, by what is in force in the cluster

Exit codes:
  0  every object was explained, whatever its verdict
  2  the command line is wrong, or something cannot be read")]
pub struct Explain {
    /// Files and folders of manifests, - for standard input [default: - where that is no terminal]
    #[arg(value_name = "OBJECT")]
    pub paths: Vec<PathBuf>,

    /// What they are judged by.
    #[command(flatten)]
    pub judged_by: JudgedBy,

    /// How the explanation is written to standard output
    #[arg(long, env = "SLICEGATE_EXPLAIN_FORMAT", value_name = "FORMAT", default_value = "text")]
    pub format: ExplainFormat,
}

/// How an explanation is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExplainFormat {
    /// For people.
    Text,
    /// One JSON array with an element for each object.
    Json,
}
