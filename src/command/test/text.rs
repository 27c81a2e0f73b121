//! The outcome of tests for people.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::Examined;
use super::shown::{excerpt, file, harmless, place};
use super::summary::{Lines, Summary};
use crate::args::Test;
use crate::rego::problem::Problem;
use crate::rego::testing::{TestOutcome, TestResult};

/// What is wrong with the sets themselves, each problem with its line.
pub(super) fn problems(examined: &[Examined], quiet: bool) -> String {
    let mut out = String::new();
    for set in examined {
        let warnings = set.report.warnings.iter().filter(|_| !quiet);
        let all = set.report.errors.iter().map(|problem| ("error", problem));
        for (word, problem) in all.chain(warnings.map(|problem| ("warning", problem))) {
            let _ = writeln!(out, "{}: {word}: {}", place(set, problem), harmless(&problem.message));
            out.push_str(&excerpt(set, problem));
        }
    }
    out
}

/// How the tests went.
pub(super) fn results(options: &Test, examined: &[Examined], summary: &Summary) -> String {
    let mut out = String::new();
    for set in examined {
        let Some(tests) = &set.tests else { continue };
        for result in &tests.results {
            if options.verbose || result.outcome.is_bad() {
                one(&mut out, set, result);
            }
        }
    }
    if !options.quiet {
        for set in examined {
            let own = Summary::of([set], false);
            let words = match &set.tests {
                None => "cannot be loaded".to_owned(),
                Some(_) if own.tests() == 0 => "no tests".to_owned(),
                Some(_) => own.words(),
            };
            let _ = writeln!(out, "{}: {words}", set.found.shown(""));
        }
        let _ = writeln!(out, "{}", summary.words());
        coverage(&mut out, examined, summary);
    }
    out
}

fn one(out: &mut String, set: &Examined, result: &TestResult) {
    let word = match result.outcome {
        TestOutcome::Passed => "passed",
        TestOutcome::Failed(_) => "FAILED",
        TestOutcome::Error(_) => "ERROR",
        TestOutcome::Skipped => "skipped",
    };
    let here = Problem { file: result.file.clone(), line: result.line, column: 0, message: String::new() };
    let _ = write!(out, "{}: {word} {}", place(set, &here), result.full_name());
    if result.outcome != TestOutcome::Skipped {
        let _ = write!(out, " ({})", took(result.micros));
    }
    let Some(problem) = result.outcome.problem() else {
        out.push('\n');
        return prints(out, result);
    };
    let _ = writeln!(out, ": {}", harmless(&problem.message));
    if (&problem.file, problem.line) != (&here.file, here.line) {
        let _ = writeln!(out, "  {}", place(set, problem));
    }
    out.push_str(&excerpt(set, problem));
    prints(out, result);
}

fn prints(out: &mut String, result: &TestResult) {
    for line in &result.prints {
        let _ = writeln!(out, "    {}", harmless(line));
    }
}

fn coverage(out: &mut String, examined: &[Examined], summary: &Summary) {
    let Some(lines) = summary.coverage else { return };
    let _ = writeln!(out, "coverage: {} ({} of {} lines)", lines.percent(), lines.covered, lines.all);
    for set in examined {
        let files = set.tests.iter().filter_map(|tests| tests.coverage.as_ref()).flat_map(|coverage| &coverage.files);
        for (name, found) in files {
            let lines = Lines { covered: found.covered.len(), all: found.lines() };
            let _ = write!(out, "  {}: {}", file(set, name), lines.percent());
            if !found.not_covered.is_empty() {
                let _ = write!(out, ", not covered: {}", ranges(&found.not_covered));
            }
            out.push('\n');
        }
    }
}

/// Numbers in short: `3, 5-8`.
fn ranges(lines: &BTreeSet<u32>) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for line in lines {
        match ranges.last_mut() {
            Some((_, last)) if last.saturating_add(1) == *line => *last = *line,
            _ => ranges.push((*line, *line)),
        }
    }
    let shown =
        ranges.iter().map(|(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") });
    shown.collect::<Vec<_>>().join(", ")
}

fn took(micros: u64) -> String {
    let (whole, rest) = (micros / 1000, micros % 1000);
    if whole == 0 { format!("{micros}us") } else { format!("{whole}.{}ms", rest / 100) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_times_are_short() {
        assert_eq!(ranges(&BTreeSet::from([1, 3, 4, 5, 9])), "1, 3-5, 9");
        assert_eq!((took(120), took(1250)), ("120us".to_owned(), "1.2ms".to_owned()));
    }
}
