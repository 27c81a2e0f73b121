//! Data-driven tests of the wire: every file under `cases` and every recorded review is one test, posted to a real server
//! over TLS.
//!
//! Invariant: a file that did not run fails the whole; so does a field, a check or a transform that the harness does not know.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test that panics fails, and what it prints is for whoever runs it"
)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};

use libtest_mimic::{Arguments, Failed, Trial};
use slicegate::policy::decision::RuleId;

#[path = "golden/body.rs"]
mod body;
#[path = "golden/case.rs"]
mod case;
#[path = "golden/check.rs"]
mod check;
#[path = "golden/contract.rs"]
mod contract;
#[path = "golden/memory.rs"]
mod memory;
#[path = "golden/recorded.rs"]
mod recorded;
#[path = "golden/rounds.rs"]
mod rounds;
#[path = "golden/run.rs"]
mod run;
#[path = "golden/scene.rs"]
mod scene;
#[path = "golden/servers.rs"]
mod servers;
#[path = "golden/sets.rs"]
mod sets;
#[path = "golden/wire.rs"]
mod wire;

#[path = "support"]
#[allow(unreachable_pub, dead_code, reason = "each test binary uses a part of the support")]
mod support {
    pub mod certificates;
    pub mod server;
}

/// Cases of other kinds, and the test that runs each.
const ELSEWHERE: [(&str, &str); 3] = [
    ("config/config-010-relist-no-gap.yaml", "e2e: policies"),
    ("config/config-016-request-before-first-read.yaml", "e2e: policies"),
    ("config/config-030-webhook-configuration.yaml", "integration: manifests"),
];

/// How many files were run to their end.
static RAN: AtomicUsize = AtomicUsize::new(0);

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut files = files_below(&tests.join("cases"));
    files.retain(|file| !ELSEWHERE.iter().any(|(name, _)| *file == tests.join("cases").join(name)));
    let recorded = match recorded::all(&tests.join("fixtures")) {
        Ok(recorded) => recorded,
        Err(error) => return fail(&error),
    };
    let expected = files.len() + recorded.len();
    let mut trials: Vec<Trial> = files.iter().map(|file| case_trial(&tests, file.clone())).collect();
    trials.extend(
        recorded
            .into_iter()
            .map(|(file, line)| Trial::test(name(&tests, &file), move || counted(recorded::run(&file, &line)))),
    );
    trials.extend(RuleId::ALL.map(|rule| {
        let folder = tests.join("cases").join(rule.as_str());
        Trial::test(format!("{rule} has an allow and a deny"), move || {
            both_outcomes(rule, &folder).map_err(Failed::from)
        })
    }));
    let conclusion = libtest_mimic::run(&arguments, trials);
    let whole = !arguments.list && conclusion.num_filtered_out == 0 && arguments.filter.is_none();
    if whole && (RAN.load(Ordering::SeqCst) != expected || conclusion.num_ignored != 0) {
        return fail(&format!("{expected} files, but {} ran", RAN.load(Ordering::SeqCst)));
    }
    conclusion.exit_code()
}

fn case_trial(tests: &Path, file: PathBuf) -> Trial {
    Trial::test(name(tests, &file), move || counted(case::read(&file).and_then(|case| run::run(&case))))
}

fn counted(outcome: Result<(), String>) -> Result<(), Failed> {
    RAN.fetch_add(1, Ordering::SeqCst);
    outcome.map_err(Failed::from)
}

/// A rule's own folder shows it letting something pass and refusing something.
fn both_outcomes(rule: RuleId, folder: &Path) -> Result<(), String> {
    let (mut allows, mut refuses) = (false, false);
    for file in files_below(folder) {
        let case = case::read(&file)?;
        let complains = [&case.expect.denied_by, &case.expect.warned_by]
            .into_iter()
            .flatten()
            .flatten()
            .any(|id| id == rule.as_str());
        let rows = case.matrix.iter().flat_map(|matrix| &matrix.rows).flatten();
        let (some_pass, some_fail) =
            rows.fold((false, false), |(pass, fail), row| (pass || row.allowed, fail || !row.allowed));
        refuses |= complains || some_fail;
        allows |= some_pass || (case.expect.allowed == Some(true) && !complains);
    }
    if allows && refuses { Ok(()) } else { Err(format!("allow: {allows}, deny: {refuses}")) }
}

/// All files below a folder, whatever their ending, in a stable order.
fn files_below(folder: &Path) -> BTreeSet<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { BTreeSet::from([path]) }).collect()
}

fn name(tests: &Path, file: &Path) -> String {
    file.strip_prefix(tests).unwrap_or(file).display().to_string()
}

fn fail(error: &str) -> ExitCode {
    eprintln!("golden: {error}");
    ExitCode::FAILURE
}
