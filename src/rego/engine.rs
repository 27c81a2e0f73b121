//! The engine, set up the one way in which it tells the truth: the interpreter, with errors that are errors.
//!
//! Invariant: whatever ended in an error is thrown away, since the engine keeps traces of what it was in the middle of; and time
//! is counted by the caller's clock, not by the wall.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::time::Duration;

use regorus::unstable::Module;
use regorus::utils::limits::{ExecutionTimerConfig, LimitError};
use regorus::{Engine, Value};

use crate::rego::outcome::Failure;
use crate::rego::problem::Problem;
use crate::rego::set::Syntax;

/// How many steps the engine takes between two looks at the clock.
const STEPS: NonZeroU32 = NonZeroU32::MIN.saturating_add(255);

/// How much processor time this thread has used, by a clock that stands still while the thread does.
pub type Clock<'c> = &'c dyn Fn() -> Duration;

/// What one evaluation may take.
#[derive(Clone, Copy)]
pub struct Budget<'c> {
    /// The processor time.
    pub limit: Duration,
    /// When it began, by the clock. Several rules may share one budget.
    pub started: Duration,
    /// The clock that it is taken from.
    pub clock: Clock<'c>,
}

impl<'c> Budget<'c> {
    /// A budget that begins now.
    pub fn new(limit: Duration, clock: Clock<'c>) -> Self {
        Self { limit, started: clock(), clock }
    }

    /// The same anew.
    #[must_use]
    pub fn again(self) -> Self {
        Self::new(self.limit, self.clock)
    }

    /// Whether it is used up.
    fn is_over(&self) -> bool {
        (self.clock)().saturating_sub(self.started) >= self.limit
    }
}

/// An engine that can be asked again and again.
pub struct Interpreter {
    /// As it was made; never evaluated.
    pristine: Engine,
    /// The one that is asked.
    working: Engine,
    /// What it sees.
    input: Value,
    /// What the evaluations were seen to do, where somebody wants to know.
    seen: Option<Seen>,
}

/// What evaluations did beside giving a value.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Seen {
    /// The texts that were printed, each with its file and line.
    pub prints: Vec<String>,
    /// The lines that were evaluated, by file; only where coverage was asked for.
    pub covered: BTreeMap<String, BTreeSet<u32>>,
    /// The lines of the same files that could have been.
    pub not_covered: BTreeMap<String, BTreeSet<u32>>,
}

impl Interpreter {
    /// Parses modules and takes in data.
    ///
    /// # Errors
    /// The problems of all modules that cannot be parsed.
    pub fn new<'m>(
        modules: impl Iterator<Item = (&'m str, Syntax, &'m str)>,
        data: Value,
        strict: bool,
    ) -> Result<Self, Vec<Problem>> {
        let mut engine = Engine::new();
        engine.set_strict_builtin_errors(strict);
        engine.set_gather_prints(true);
        let mut problems = Vec::new();
        for (file, syntax, text) in modules {
            engine.set_rego_v0(syntax == Syntax::V0);
            if let Err(error) = engine.add_policy(file.to_owned(), text.to_owned()) {
                problems.push(syntax_hint(problem(&error.to_string(), file), syntax));
            }
        }
        if let Err(error) = engine.add_data(data) {
            problems.push(problem(&error.to_string(), ""));
        }
        if problems.is_empty() {
            Ok(Self { working: engine.clone(), pristine: engine, input: Value::Undefined, seen: None })
        } else {
            Err(problems)
        }
    }

    /// The modules as the parser read them.
    pub fn modules(&mut self) -> Vec<regorus::unstable::Ref<Module>> {
        self.pristine.get_modules().clone()
    }

    /// Works out what depends on no input, so that the first request does not wait for it.
    ///
    /// # Errors
    /// What the engine finds wrong with the modules as a whole.
    pub fn prepare(&mut self) -> Result<(), Problem> {
        // A query of no rule: only what comes before any evaluation is done, and it leaves nothing behind.
        self.pristine.eval_query("true".to_owned(), false).map_err(|error| problem(&error.to_string(), ""))?;
        self.working = self.pristine.clone();
        Ok(())
    }

    /// From now on keeps what evaluations print and, if wanted, which lines they reach.
    pub fn observe(&mut self, coverage: bool) {
        self.pristine.set_enable_coverage(coverage);
        self.working = self.pristine.clone();
        self.seen = Some(Seen::default());
    }

    /// Takes what was seen since the last time, and forgets everything that an evaluation may have left behind.
    pub fn take_seen(&mut self) -> Seen {
        self.note();
        self.working = self.pristine.clone();
        self.working.set_input(self.input.clone());
        self.seen.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Sets what the next evaluations see.
    pub fn set_input(&mut self, input: Value) {
        self.working.set_input(input.clone());
        self.input = input;
    }

    /// Evaluates one rule. The texts that it printed are dropped.
    ///
    /// # Errors
    /// Why there is no value.
    pub fn rule(&mut self, path: &str, budget: Budget<'_>) -> Result<Value, Failure> {
        self.evaluate(budget, |engine| engine.eval_rule(path.to_owned()))
    }

    /// Evaluates a query that names one value.
    ///
    /// # Errors
    /// Why there is no value.
    pub fn query(&mut self, path: &str, budget: Budget<'_>) -> Result<Value, Failure> {
        self.evaluate(budget, |engine| {
            let results = engine.eval_query(path.to_owned(), false)?;
            let first = results.result.into_iter().next();
            Ok(first
                .and_then(|result| result.expressions.into_iter().next())
                .map_or(Value::Undefined, |found| found.value))
        })
    }

    /// The engine's timer counts by the wall. When it rings early, since the machine did other work, the evaluation starts
    /// again with more. The clock is only looked at then.
    fn evaluate(
        &mut self,
        budget: Budget<'_>,
        ask: impl Fn(&mut Engine) -> anyhow::Result<Value>,
    ) -> Result<Value, Failure> {
        let mut limit = budget.limit;
        loop {
            self.working.set_execution_timer_config(ExecutionTimerConfig { limit, check_interval: STEPS });
            let error = match ask(&mut self.working) {
                Ok(value) => {
                    if self.seen.is_none() {
                        let _ = self.working.take_prints();
                    }
                    return Ok(value);
                }
                Err(error) => error,
            };
            let rang = is_out_of_time(&error);
            let again = rang && !budget.is_over();
            // What is begun anew prints anew.
            if !again {
                self.note();
            }
            self.working = self.pristine.clone();
            self.working.set_input(self.input.clone());
            if !rang {
                return Err(Failure::Error(problem(&error.to_string(), "")));
            }
            if !again {
                return Err(Failure::Budget);
            }
            limit = limit.saturating_mul(2);
        }
    }

    /// Writes down what the working engine did, before it is thrown away.
    fn note(&mut self) {
        let Some(seen) = &mut self.seen else { return };
        seen.prints.extend(self.working.take_prints().unwrap_or_default());
        for file in self.working.get_coverage_report().map(|report| report.files).unwrap_or_default() {
            seen.covered.entry(file.path.clone()).or_default().extend(file.covered);
            seen.not_covered.entry(file.path).or_default().extend(file.not_covered);
        }
    }
}

/// Whether the timer rang. On its way out of a function an error becomes a text.
fn is_out_of_time(error: &anyhow::Error) -> bool {
    error.downcast_ref::<LimitError>().is_some()
        || error.to_string().contains("execution exceeded time limit (elapsed=")
}

/// Reads the engine's text of an error: where it points to, and what it says.
pub fn problem(text: &str, file: &str) -> Problem {
    let place = text.lines().find_map(|line| line.trim().strip_prefix("--> "));
    let mut parts = place.unwrap_or_default().rsplitn(3, ':');
    let mut number = || parts.next().and_then(|part| part.trim().parse::<u32>().ok());
    let (column, line) = (number().unwrap_or(0), number().unwrap_or(0));
    let named = parts.next().map_or(file, |named| named);
    let says = |line: &str| line.trim().strip_prefix("error: ").map(str::to_owned);
    let message = text.lines().find_map(says).unwrap_or_else(|| text.trim().lines().collect::<Vec<_>>().join(" "));
    Problem { file: named.to_owned(), line, column, message }
}

/// A module in the other version of the language is told what would work.
fn syntax_hint(mut problem: Problem, syntax: Syntax) -> Problem {
    let lower = problem.message.to_lowercase();
    let old_form =
        lower.contains("`if` keyword") || lower.contains("`contains` keyword") || lower.contains("keyword is required");
    if syntax == Syntax::V1 && old_form {
        problem.message.push_str(
            "; in Rego v1 this is `deny contains msg if { … }`; a file in Rego v0 needs the annotation slicegate.io/syntax: v0",
        );
    }
    problem
}
