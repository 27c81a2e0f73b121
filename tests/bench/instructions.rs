//! How many instructions the processor takes from a review's bytes to its answer's, as callgrind counts them: the same number
//! whatever else the machine does. Held against tests/bench/instructions.txt with
//! `cargo test --release --all-features --test instructions`; `UPDATE_INSTRUCTIONS=1` writes that file.
//!
//! The program starts itself under valgrind twice for each sort of review, once without judging them, and counts the difference.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::print_stdout,
    reason = "a measurement that goes wrong stops, and what it counts is small"
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use jiff::Timestamp;
use slicegate::config::Config;
use slicegate::facts::Facts;
use slicegate::policy::{Phase, Policy, decide};
use slicegate::review::response::encode;
use slicegate::review::{Refused, decode};

#[allow(unreachable_pub, dead_code, reason = "each bench uses a part of it")]
#[path = "bodies.rs"]
mod bodies;

/// By how many percent a number may grow before that is a mistake.
const MOST: u64 = 10;

/// How often each review is judged while it is counted.
const ROUNDS: u64 = 20;

/// What tells the program that it is the one that is counted: a sort of reviews and how often to judge them.
const COUNTED: &str = "SLICEGATE_COUNTED";

fn main() -> ExitCode {
    if let Ok(told) = std::env::var(COUNTED) {
        let (sort, rounds) = told.split_once(' ').unwrap();
        judge(&reviews(sort), rounds.parse().unwrap());
        return ExitCode::SUCCESS;
    }
    // The harness is asked what tests there are by some runners.
    if std::env::args().any(|flag| flag == "--list") {
        return ExitCode::SUCCESS;
    }
    if cfg!(debug_assertions) {
        println!("instructions: nothing is counted without optimisation; add --release");
        return ExitCode::SUCCESS;
    }
    if Command::new("valgrind").arg("--version").stdout(Stdio::null()).status().is_err() {
        println!("instructions: NOT COUNTED, since valgrind is not there; Debian's package valgrind has it");
        return ExitCode::SUCCESS;
    }
    let counted = count();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bench/instructions.txt");
    if std::env::var_os("UPDATE_INSTRUCTIONS").is_some() {
        fs::write(&file, written(&counted)).unwrap();
        println!("instructions: {} was written", file.display());
        return ExitCode::SUCCESS;
    }
    compare(&recorded(&file), &counted)
}

/// The reviews of a sort.
fn reviews(sort: &str) -> Vec<Vec<u8>> {
    match sort {
        "pod" => vec![bodies::pod()],
        "deployment" => vec![bodies::deployment()],
        "pod-of-200-containers" => vec![bodies::pod_of(200)],
        "recorded" => {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/admission-reviews");
            let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
            files.sort();
            files.iter().map(|file| fs::read(file).unwrap()).collect()
        }
        other => unreachable!("{other}"),
    }
}

const SORTS: [&str; 4] = ["recorded", "pod", "deployment", "pod-of-200-containers"];

/// What is counted: both calls of each review.
fn judge(reviews: &[Vec<u8>], rounds: u64) {
    let policy = Policy { config: Config::default(), digest: "default".to_owned() };
    let facts = Facts::default();
    for _ in 0..rounds {
        for body in reviews {
            for phase in [Phase::Mutate, Phase::Validate] {
                match decode(black_box(body)) {
                    Ok(request) => {
                        let decision = decide(phase, &request, &policy, &facts, &[], Timestamp::UNIX_EPOCH);
                        black_box(encode(phase, &request, &decision, &policy.digest));
                    }
                    Err(Refused::BadRequest(why) | Refused::Unreadable { reason: why, .. }) => unreachable!("{why}"),
                }
            }
        }
    }
}

/// The instructions of one call of one review, by sort.
fn count() -> BTreeMap<String, u64> {
    let one = |sort: &str| {
        let calls = u64::try_from(reviews(sort).len()).unwrap() * 2 * ROUNDS;
        (run(sort, ROUNDS) - run(sort, 0)) / calls
    };
    SORTS.iter().map(|sort| ((*sort).to_owned(), one(sort))).collect()
}

/// The instructions of one run of this program.
fn run(sort: &str, rounds: u64) -> u64 {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe().unwrap())
        .env(COUNTED, format!("{sort} {rounds}"))
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    let line = told.lines().find_map(|line| line.split_once("Collected : "));
    line.and_then(|(_, number)| number.trim().parse().ok()).unwrap_or_else(|| panic!("no count in {told}"))
}

fn written(counted: &BTreeMap<String, u64>) -> String {
    let mut text = "# Instructions of one call, as callgrind counts them: UPDATE_INSTRUCTIONS=1 cargo test --release --all-features --test instructions\n".to_owned();
    for (sort, number) in counted {
        writeln!(text, "{sort} {number}").unwrap();
    }
    text
}

fn recorded(file: &Path) -> BTreeMap<String, u64> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| line.split_once(' ').map(|(sort, number)| (sort.to_owned(), number.parse().unwrap())).unwrap())
        .collect()
}

/// Says both numbers of each sort, and fails where one grew too much or is not recorded.
fn compare(recorded: &BTreeMap<String, u64>, counted: &BTreeMap<String, u64>) -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    println!("{:<24} {:>10} {:>10} {:>8}", "instructions of a call", "recorded", "now", "percent");
    for (sort, now) in counted {
        let Some(before) = recorded.get(sort) else {
            println!("{sort:<24} {:>10} {now:>10}   not recorded: run it with UPDATE_INSTRUCTIONS=1", "-");
            code = ExitCode::FAILURE;
            continue;
        };
        let percent = now * 100 / before;
        let grew = percent > 100 + MOST;
        let note = match percent {
            _ if grew => "  FAILED: mend it, or record it with UPDATE_INSTRUCTIONS=1 and say why",
            0..90 => "  better: record it with UPDATE_INSTRUCTIONS=1",
            _ => "",
        };
        println!("{sort:<24} {before:>10} {now:>10} {percent:>8}{note}");
        if grew {
            code = ExitCode::FAILURE;
        }
    }
    code
}
