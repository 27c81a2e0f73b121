//! `slicegate test`: finds policy sets, runs their tests, says how they went.
//!
//! Invariant: success means that there were tests, that all of them passed, and that every set that was found can be loaded.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;

use crate::args::{Test, TestFormat};
use crate::files::policies::{self, Found, NAMESPACE};
use crate::rego::lint::Report;
use crate::rego::set::{Key, LABEL, Role, Set};
use crate::rego::testing::{self, Tests};
use crate::rego::unit::Unit;
use crate::workers::child::Settings;
use crate::workers::meter::Meter;
use crate::workers::protocol::{Check, Checked};
use crate::workers::{self, Workers};

mod json;
mod junit;
mod shown;
mod summary;
mod text;

use summary::Summary;

/// What ends the program with 2.
const UNUSABLE: u8 = 2;

/// A set, and what came of it.
struct Examined {
    found: Found,
    unit: Unit,
    report: Report,
    /// Nothing where it cannot be loaded.
    tests: Option<Tests>,
}

/// Runs the tests below the paths.
pub(super) fn run(options: &Test) -> anyhow::Result<ExitCode> {
    let found = match gather(&options.paths) {
        Ok(found) => found,
        Err(why) => return refuse(&why),
    };
    let libraries: BTreeMap<Key, Set> = found
        .iter()
        .filter(|found| found.set.role == Role::Library)
        .map(|found| (found.set.key.clone(), found.set.clone()))
        .collect();
    let asked =
        testing::Options { coverage: options.coverage || options.coverage_min.is_some(), filter: options.run.clone() };
    let workers = workers(options.budget);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    let examined = runtime.block_on(async {
        let mut examined = Vec::new();
        for found in found {
            let unit = Unit::new(found.set.clone(), &libraries);
            let Checked { report, tests, .. } = run_tests(&workers, &unit, &asked).await;
            examined.push(Examined { found, unit, report, tests });
        }
        examined
    });
    let summary = Summary::of(&examined, asked.coverage);
    report(options, &examined, &summary)?;
    conclude(options, &examined, &summary)
}

/// Whoever runs the tests: the process that checks sets for the server as well, which a set can end and this program survives.
fn workers(budget: Duration) -> Workers {
    let options = workers::Options::default();
    let settings = Settings { budget, ..options.settings };
    Workers::new(workers::Options { settings, ..options }, Meter::default())
}

/// Compiles one set and runs its tests: nothing of them where it cannot be loaded.
async fn run_tests(workers: &Workers, unit: &Unit, options: &testing::Options) -> Checked {
    workers.check(&Check { tests: Some(options.clone()), ..Check::of(unit.clone()) }).await
}

/// Every set below the paths, each once; single modules are one set.
fn gather(paths: &[PathBuf]) -> Result<Vec<Found>, String> {
    let is_module = |path: &&PathBuf| path.extension().is_some_and(|ending| ending == "rego") && !path.is_dir();
    let modules: Vec<PathBuf> = paths.iter().filter(is_module).cloned().collect();
    let mut all = Vec::new();
    if !modules.is_empty() {
        all.push(policies::of_modules(&modules, NAMESPACE).map_err(|error| error.to_string())?);
    }
    let mut seen = BTreeSet::new();
    for path in paths.iter().filter(|path| !is_module(path)) {
        let found = policies::find(path, NAMESPACE).map_err(|error| error.to_string())?;
        if found.is_empty() {
            return Err(format!(
                "{}: no policy set in it; a set is a folder that directly holds .rego files, or a ConfigMap with the label {LABEL}",
                path.display()
            ));
        }
        // A path may lie below another one.
        let new = |found: &Found| seen.insert((fs::canonicalize(&found.path).ok(), found.set.key.clone()));
        all.extend(found.into_iter().filter(new));
    }
    // Other sets may share a name, as folders of several teams do; a library is known by it.
    let libraries: Vec<Found> = all.iter().filter(|found| found.set.role == Role::Library).cloned().collect();
    policies::told_apart(&libraries).map_err(|error| error.to_string())?;
    Ok(all)
}

/// Writes what was found out: what is wrong with sets to standard error, how tests went to standard output.
fn report(options: &Test, examined: &[Examined], summary: &Summary) -> anyhow::Result<()> {
    let told = text::problems(examined, options.quiet);
    std::io::stderr().lock().write_all(told.as_bytes()).context("cannot write to standard error")?;
    let written = match options.format {
        TestFormat::Text => text::results(options, examined, summary),
        TestFormat::Json => json::results(examined, summary)?,
        TestFormat::Junit => junit::results(examined)?,
    };
    let mut out = std::io::stdout().lock();
    out.write_all(written.as_bytes()).and_then(|()| out.flush()).context("cannot write to standard output")
}

/// The exit code, and why it is none of success where the outcome itself does not say so.
fn conclude(options: &Test, examined: &[Examined], summary: &Summary) -> anyhow::Result<ExitCode> {
    if examined.iter().any(|set| set.tests.is_none()) {
        return Ok(ExitCode::from(UNUSABLE));
    }
    if summary.tests() == 0 {
        return refuse(&match &options.run {
            Some(regex) => {
                format!("no test has a name that matches {regex:?}; names look like data.quota_test.test_over")
            }
            None => {
                "there is no test; write one into a file that ends in _test.rego, such as\n\n  package quota_test\n\n  \
                     test_over if count(data.quota.deny) == 1 with input as {\"request\": {}}\n"
                    .to_owned()
            }
        });
    }
    if summary.is_bad() {
        return Ok(ExitCode::FAILURE);
    }
    match (options.coverage_min, &summary.coverage) {
        (Some(least), Some(coverage)) if coverage.exact() < least => {
            tell(&format!("{} of lines are covered, and --coverage-min asks for {least}%", coverage.percent()))?;
            Ok(ExitCode::FAILURE)
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}

fn refuse(why: &str) -> anyhow::Result<ExitCode> {
    tell(why)?;
    Ok(ExitCode::from(UNUSABLE))
}

fn tell(what: &str) -> anyhow::Result<()> {
    writeln!(std::io::stderr(), "slicegate: {what}").context("cannot write to standard error")
}
