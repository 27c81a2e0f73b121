//! The tests that a set's author wrote, by OPA's conventions.
//!
//! What it does: finds the rules `test_…` of a set, evaluates each by itself, and counts the lines that they reach. Invariant: a
//! test passes only where its value is `true`; whatever else happens is told, with the place where the test stands.

use std::time::Duration;

use regex::Regex;
use regorus::Value;
use serde::{Deserialize, Serialize};

use crate::duration;
use crate::rego::engine::{Budget, Interpreter};
use crate::rego::outcome::Failure;
use crate::rego::problem::Problem;
use crate::rego::program::documents;
use crate::rego::unit::Unit;

mod coverage;
mod find;

pub use coverage::{Coverage, FileCoverage};
use find::Found;

/// The most printed lines of one test that are kept, and the most bytes of each.
const MAX_PRINTS: usize = 100;
const MAX_PRINT: usize = 2 << 10;

/// What to run, and what to find out by it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Options {
    /// Whether to count the lines that the tests reach.
    pub coverage: bool,
    /// A regular expression; only tests whose full name it finds something in are run.
    pub filter: Option<String>,
}

/// What the tests of a set came to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tests {
    /// Each test, in the order of files and lines.
    pub results: Vec<TestResult>,
    /// The lines of the set that they reached, where that was asked for.
    pub coverage: Option<Coverage>,
}

/// One test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestResult {
    /// The file that it stands in.
    pub file: String,
    /// Its line, from 1.
    pub line: u32,
    /// Its package, without `data.`.
    pub package: String,
    /// The name of the rule; the second body of one name is `test_x#01`.
    pub name: String,
    /// How it ended.
    #[serde(flatten)]
    pub outcome: TestOutcome,
    /// The processor time that it took, in microseconds.
    pub micros: u64,
    /// What it printed, each line with its place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prints: Vec<String>,
}

/// How a test ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", content = "problem", rename_all = "lowercase")]
pub enum TestOutcome {
    /// Its value is `true`.
    Passed,
    /// Its value is something else, or it has none; why, and where the test stands.
    Failed(Problem),
    /// Its name begins with `todo_`.
    Skipped,
    /// It could not be evaluated.
    Error(Problem),
}

impl TestResult {
    /// The name in full, `data.package.test_x`.
    pub fn full_name(&self) -> String {
        format!("data.{}.{}", self.package, self.name)
    }
}

impl TestOutcome {
    /// Whether it keeps a set from being good.
    pub fn is_bad(&self) -> bool {
        self.problem().is_some()
    }

    /// Why it is bad.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Failed(problem) | Self::Error(problem) => Some(problem),
            Self::Passed | Self::Skipped => None,
        }
    }
}

/// Runs the tests of a set that compiles. The budget is that of each test.
///
/// # Errors
/// What keeps the tests from being run at all.
pub fn run(unit: &Unit, options: &Options, budget: Budget<'_>) -> Result<Tests, Vec<Problem>> {
    let filter = filter(options)?;
    let data = documents(&unit.set).map_err(|problem| vec![problem])?;
    let data = Value::from(
        data.into_iter().map(|(name, value)| (Value::from(name), value)).collect::<std::collections::BTreeMap<_, _>>(),
    );
    let strict = unit.set.settings.strict;
    let mut interpreter = Interpreter::new(unit.modules().chain(unit.tests()), data.clone(), strict)?;
    let found = find::tests(unit, &interpreter.modules());
    let texts = find::texts(unit, &found);
    if found.iter().any(|test| test.alias.is_some()) {
        interpreter = Interpreter::new(texts.iter().map(find::Source::as_module), data.clone(), strict)?;
    }
    interpreter.prepare().map_err(|problem| vec![problem])?;
    interpreter.observe(options.coverage);

    let mut coverage = if options.coverage { Some(Coverage::of_nothing(unit, &texts, data, strict)?) } else { None };
    let mut results = Vec::new();
    for test in &found {
        if filter.as_ref().is_some_and(|filter| !filter.is_match(&test.full_name())) {
            continue;
        }
        let budget = budget.again();
        let outcome = outcome(&mut interpreter, test, budget);
        let took = (budget.clock)().saturating_sub(budget.started);
        let seen = interpreter.take_seen();
        if let Some(coverage) = &mut coverage {
            coverage.add(&seen.covered);
        }
        results.push(TestResult {
            file: test.file.clone(),
            line: test.line,
            package: test.package.clone(),
            name: test.name.clone(),
            outcome,
            micros: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
            prints: bounded(seen.prints),
        });
    }
    Ok(Tests { results, coverage })
}

fn filter(options: &Options) -> Result<Option<Regex>, Vec<Problem>> {
    options.filter.as_deref().map(Regex::new).transpose().map_err(|error| {
        vec![Problem::of_set(format!("the tests to run are no regular expression: {}", last_line(&error.to_string())))]
    })
}

fn outcome(interpreter: &mut Interpreter, test: &Found, budget: Budget<'_>) -> TestOutcome {
    if test.name.starts_with(find::SKIPPED) {
        return TestOutcome::Skipped;
    }
    let here = |message: String| Problem { file: test.file.clone(), line: test.line, column: test.column, message };
    if let Some(reason) = test.unfit {
        return TestOutcome::Error(here(reason.to_owned()));
    }
    match interpreter.rule(&test.path, budget) {
        Ok(Value::Bool(true)) => TestOutcome::Passed,
        Ok(Value::Undefined) => {
            TestOutcome::Failed(here("it is undefined: one of its conditions does not hold".into()))
        }
        Ok(Value::Bool(false)) => TestOutcome::Failed(here("its value is false".into())),
        Ok(value) => {
            let shown = serde_json::to_string(&value).unwrap_or_else(|_| "no JSON".to_owned());
            TestOutcome::Failed(here(format!("its value is {}, and a test has to be true", cut(shown, 200))))
        }
        Err(Failure::Budget) => TestOutcome::Error(here(over(budget.limit))),
        Err(Failure::Error(mut problem)) => {
            if let Some(alias) = &test.alias {
                problem.message = problem.message.replace(alias, &test.name);
            }
            // An error without a place is the test's own.
            if problem.line == 0 { TestOutcome::Error(here(problem.message)) } else { TestOutcome::Error(problem) }
        }
        Err(other) => TestOutcome::Error(here(format!("the set {}", other.explain()))),
    }
}

fn over(limit: Duration) -> String {
    format!("it used up its budget of {} of processor time", duration::show(limit))
}

fn bounded(mut prints: Vec<String>) -> Vec<String> {
    let left_out = prints.len().saturating_sub(MAX_PRINTS);
    prints.truncate(MAX_PRINTS);
    let mut prints: Vec<String> = prints.into_iter().map(|line| cut(line, MAX_PRINT)).collect();
    if left_out > 0 {
        prints.push(format!("and {left_out} more that are not shown"));
    }
    prints
}

/// The start of a text, at the boundary of a character.
fn cut(mut text: String, most: usize) -> String {
    if text.len() > most {
        let mut end = most;
        while !text.is_char_boundary(end) {
            end = end.saturating_sub(1);
        }
        text.truncate(end);
        text.push('…');
    }
    text
}

fn last_line(text: &str) -> &str {
    text.lines().last().unwrap_or_default().trim_start_matches("error: ")
}

#[cfg(test)]
mod tests;
