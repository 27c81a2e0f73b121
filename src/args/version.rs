//! The command line of `slicegate version`.

use clap::ValueEnum;

/// Print the versions of the program and of what it is made of
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  slicegate version
  slicegate version --output json
      the same as /version of the admin port

Exit codes:
  0  they were printed
  1  they could not be written
  2  the command line is wrong")]
pub struct Version {
    /// How they are printed
    #[arg(short, long, env = "SLICEGATE_VERSION_OUTPUT", value_name = "FORMAT", default_value = "text")]
    pub output: VersionOutput,
}

/// How versions are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum VersionOutput {
    /// For people.
    Text,
    /// One JSON object.
    Json,
}
