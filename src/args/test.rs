//! The command line of `slicegate test`.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use regex::Regex;

use crate::duration;

/// Run the tests of policy sets
///
/// A set is a folder that directly holds .rego files, its annotations in policy.yaml; or a ConfigMap with the label
/// slicegate.io/policy in a manifest. Folders of folders are walked. Single .rego files are one set together. A library among
/// the paths can be imported by all sets. Tests are the rules test_… of a set; those in files *_test.rego are never evaluated
/// for requests; todo_test_… are skipped.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  slicegate test policies/
      every set below a folder
  slicegate test --coverage-min 90 --format junit policies/ > tests.xml
      in CI
  slicegate test -v --run quota policies/quota
      some tests, each with its time and what it prints

Exit codes:
  0  every test passed
  1  a test failed, or fewer lines are covered than --coverage-min asks for
  2  the command line is wrong, a set cannot be loaded, or there is no test")]
pub struct Test {
    /// Folders of sets, manifests, .rego files
    #[arg(value_name = "PATH", default_value = ".")]
    pub paths: Vec<PathBuf>,

    /// Show each test with its time and what it printed
    #[arg(short, long, conflicts_with = "quiet")]
    pub verbose: bool,

    /// Show only what failed
    #[arg(short, long)]
    pub quiet: bool,

    /// Run only the tests in whose full name, such as data.quota_test.test_over, this regular expression finds something
    #[arg(long, env = "SLICEGATE_TEST_RUN", value_name = "REGEX", value_parser = regex)]
    pub run: Option<String>,

    /// Show which lines of the sets the tests reach
    #[arg(long, env = "SLICEGATE_TEST_COVERAGE")]
    pub coverage: bool,

    /// Fail where fewer lines are reached, in percent of all; with --coverage
    #[arg(long, env = "SLICEGATE_TEST_COVERAGE_MIN", value_name = "PERCENT", value_parser = percent)]
    pub coverage_min: Option<f64>,

    /// How the outcome is written to standard output
    #[arg(long, env = "SLICEGATE_TEST_FORMAT", value_name = "FORMAT", default_value = "text")]
    pub format: TestFormat,

    /// The processor time that one test may take
    #[arg(long, env = "SLICEGATE_TEST_BUDGET", value_name = "DURATION", value_parser = budget, default_value = "20ms")]
    pub budget: Duration,
}

/// How the outcome of tests is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TestFormat {
    /// For people.
    Text,
    /// One JSON object.
    Json,
    /// JUnit's XML.
    Junit,
}

fn regex(text: &str) -> Result<String, String> {
    match Regex::new(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse::<f64>();
    number.ok().filter(|number| (0.0..=100.0).contains(number)).ok_or_else(|| "write a number from 0 to 100".to_owned())
}

fn budget(text: &str) -> Result<Duration, String> {
    duration::parse(text)
        .and_then(|value| if value.is_zero() { Err("must be more than 0s".to_owned()) } else { Ok(value) })
}
