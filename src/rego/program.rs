//! A set that is compiled and can be asked.
//!
//! Invariant: it answers with an [`Outcome`] whatever the input; it is made of nothing that the checks refuse.

use std::collections::{BTreeMap, BTreeSet};

use regorus::Value;
use serde::{Deserialize, Serialize};

use crate::policy::Phase;
use crate::rego::engine::{Budget, Interpreter};
use crate::rego::input::Input;
use crate::rego::lint::rules::{Entry, RuleKind};
use crate::rego::lint::{self, Report, brackets};
use crate::rego::outcome::{Failure, Outcome};
use crate::rego::problem::Problem;
use crate::rego::screen::Screen;
use crate::rego::set::{InputShape, Role, Set};
use crate::rego::unit::Unit;
use crate::rego::value::Keys;

/// The name of the data document that rules read as `input.parameters`.
const PARAMETERS: &str = "parameters";

/// A compiled set.
pub struct Program {
    interpreter: Interpreter,
    entries: Vec<Entry>,
    screen: Screen,
    parameters: Value,
    shape: InputShape,
}

/// What a set asks to be evaluated for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Speaks {
    /// It refuses or warns.
    pub validates: bool,
    /// It completes objects.
    pub mutates: bool,
}

impl Program {
    /// Parses, checks and prepares a set. The report comes with the program or instead of it.
    pub fn compile(unit: &Unit) -> (Option<Self>, Report) {
        let mut report = Report { errors: unit.set.errors.clone(), warnings: unit.set.warnings.clone() };
        report
            .errors
            .extend(unit.modules().chain(unit.tests()).flat_map(|(file, _, text)| brackets::check(file, text)));
        if !report.errors.is_empty() {
            return (None, report);
        }
        let program = Self::checked(unit, &mut report);
        (program.filter(|_| report.errors.is_empty()), report)
    }

    /// What it has to say anything about.
    pub fn speaks(&self) -> Speaks {
        let any = |phase| self.entries.iter().any(|entry| concerns(entry.kind, phase));
        Speaks { validates: any(Phase::Validate), mutates: any(Phase::Mutate) }
    }

    /// The rules that it is asked for, as `data.package.rule`.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// What can be told of it without the engine.
    pub fn screen(&self) -> &Screen {
        &self.screen
    }

    /// Judges one request.
    pub fn evaluate(&mut self, phase: Phase, input: &Input, budget: Budget<'_>) -> Outcome {
        let mut outcome = Outcome::default();
        self.interpreter.set_input(input.of(self.shape, &self.parameters));
        for entry in self.entries.iter().filter(|entry| concerns(entry.kind, phase)) {
            // A rule that gives an object by its keys has no single rule behind its path.
            let value = if entry.is_set {
                self.interpreter.rule(&entry.path(), budget)
            } else {
                self.interpreter.query(&entry.path(), budget)
            };
            let taken = value.and_then(|value| take(&mut outcome, entry, phase, &value));
            if let Err(failure) = taken {
                outcome.error = Some(failure);
                break;
            }
        }
        outcome
    }

    fn checked(unit: &Unit, report: &mut Report) -> Option<Self> {
        let data: BTreeMap<String, Value> = match documents(&unit.set) {
            Ok(data) => data,
            Err(problem) => {
                report.errors.push(problem);
                return None;
            }
        };
        let whole = Value::from(
            data.iter().map(|(name, value)| (Value::from(name.as_str()), value.clone())).collect::<BTreeMap<_, _>>(),
        );
        let strict = unit.set.settings.strict;
        let parsed = Interpreter::new(unit.modules().chain(unit.tests()), whole.clone(), strict);
        let mut parsed = match parsed {
            Ok(parsed) => parsed,
            Err(problems) => {
                report.errors.extend(problems);
                return None;
            }
        };
        let libraries: BTreeSet<String> = unit.libraries.iter().map(|library| library.file.clone()).collect();
        let tests: BTreeSet<String> = unit.set.tests.keys().cloned().collect();
        let modules = parsed.modules();
        let shape = unit.set.settings.input;
        let checked = lint::Unit {
            modules: &modules,
            libraries: &libraries,
            tests: &tests,
            is_library: unit.set.role == Role::Library,
            suffixes_everywhere: shape == InputShape::Object,
            data: &data,
        };
        let found = lint::check(&checked);
        report.errors.extend(found.errors);
        report.warnings.extend(found.warnings);
        if !report.errors.is_empty() {
            return None;
        }
        let entries = lint::rules::entries(&checked);
        let screen = lint::screen::screen(&checked, &entries, concerns);
        // Without its tests, which no request needs.
        let mut interpreter =
            Interpreter::new(unit.modules(), whole, strict).map_err(|problems| report.errors.extend(problems)).ok()?;
        interpreter.prepare().map_err(|problem| report.errors.push(problem)).ok()?;
        let parameters = data.get(PARAMETERS).cloned().unwrap_or_else(Value::new_object);
        Some(Self { interpreter, entries, screen, parameters, shape })
    }
}

/// Whether a rule is asked for in this call.
fn concerns(kind: RuleKind, phase: Phase) -> bool {
    match kind {
        RuleKind::Deny | RuleKind::Violation | RuleKind::Warn => phase == Phase::Validate,
        RuleKind::Patch => phase == Phase::Mutate,
        RuleKind::Main => true,
    }
}

fn take(outcome: &mut Outcome, entry: &Entry, phase: Phase, value: &Value) -> Result<(), Failure> {
    let taken = match (entry.kind, phase) {
        (RuleKind::Deny | RuleKind::Violation, _) => {
            outcome.take_complaints(&entry.rule, false, value);
            Ok(())
        }
        (RuleKind::Warn, _) => {
            outcome.take_complaints(&entry.rule, true, value);
            Ok(())
        }
        (RuleKind::Patch, _) => outcome.take_patch(value),
        (RuleKind::Main, phase) => {
            let mut whole = Outcome::default();
            let taken = whole.take_answer(value);
            match phase {
                Phase::Validate => outcome.complaints.extend(whole.complaints),
                Phase::Mutate => outcome.patch.extend(whole.patch),
            }
            taken
        }
    };
    taken.map_err(|message| {
        let (file, line) = (entry.file.clone(), entry.line);
        Failure::Error(Problem { file, line, column: 0, message })
    })
}

/// The data documents in the engine's form.
pub(super) fn documents(set: &Set) -> Result<BTreeMap<String, Value>, Problem> {
    let documents = set.data.iter().map(|(name, document)| {
        let text = document.to_string();
        let read = crate::json::parse(text.as_bytes()).map_err(|error| error.to_string());
        let read = read.and_then(|tree| crate::rego::value::value(&tree, &mut Keys::default()));
        Ok((name.clone(), read.map_err(|message| Problem::of_file(&format!("data.{name}"), message))?))
    });
    documents.collect()
}
