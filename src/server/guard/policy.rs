//! The check of a policy or a library that is about to be written.
//!
//! What it does: has the set compiled, tried and tested, with the libraries in force, in a process that serves nobody; has the
//! sets that import a library checked with its new text. Invariant: the check is the one that decides over loading it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::write::Write;
use crate::rego::lint::Report;
use crate::rego::problem::Problem;
use crate::rego::program::Speaks;
use crate::rego::set::{Key, Role, Set};
use crate::rego::testing::{self, TestResult};
use crate::rego::unit::Unit;
use crate::review::guard::Complaint;
use crate::server::{App, Rules};
use crate::workers::protocol::{Check, Checked as Found};

/// How long a library that is imported may be on its way, where both are written together.
const PATIENCE: Duration = Duration::from_secs(2);

/// A write of a policy, and all that it is judged by.
pub(super) struct Edit<'e> {
    pub(super) app: &'e Arc<App>,
    pub(super) rules: &'e Rules,
    pub(super) write: &'e Write,
    pub(super) deadline: Instant,
}

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Checked {
    pub(super) complaints: Vec<Complaint>,
    /// What the write does beside what it says.
    pub(super) notes: Vec<String>,
    /// Weaknesses.
    pub(super) warnings: Vec<String>,
    pub(super) digest: Option<String>,
    /// Which sets judge otherwise from now on.
    pub(super) changes: Vec<Change>,
}

/// A set that judges otherwise from now on.
#[derive(Debug, Clone)]
pub(super) struct Change {
    /// Its name in messages.
    pub(super) name: Arc<str>,
    pub(super) old: Old,
    /// What it will be; nothing where it is gone.
    pub(super) new: Option<(Arc<Unit>, Speaks)>,
    /// Whether it is another set than the one that is written.
    pub(super) dependent: bool,
}

/// What a set was before.
#[derive(Debug, Clone)]
pub(super) enum Old {
    /// Nothing is in force.
    Nothing,
    /// It is bad, and obeys its `on-error`.
    Broken(Arc<crate::rego::set::Settings>),
    /// This is in force.
    InForce(Arc<Unit>, Speaks),
}

impl Edit<'_> {
    /// Checks what is written.
    pub(super) async fn check(&self) -> Checked {
        let mut checked = Checked::default();
        match &self.write.set {
            Some(set) if !set.is_empty() => self.loads(set, &mut checked).await,
            Some(set) => {
                checked.complaints.extend(set.errors.iter().map(|problem| self.complaint(problem, None)));
                checked.warnings.extend(set.warnings.iter().map(Problem::to_string));
                if checked.complaints.is_empty() {
                    self.unloads("it holds no module any more", &mut checked);
                }
            }
            None => self.unloads("its label is gone", &mut checked),
        }
        if checked.complaints.is_empty() {
            self.dependents(&mut checked).await;
        }
        checked
    }

    async fn loads(&self, set: &Set, checked: &mut Checked) {
        let mut libraries = Arc::clone(&self.rules.sets.libraries);
        let mut unit = Unit::new(set.clone(), &libraries);
        let mut found = self.found(&unit).await;
        let imports = set.modules.values().any(|text| text.contains("data.lib"));
        if !found.report.errors.is_empty()
            && imports
            && let Some(later) = self.later_libraries(&libraries).await
        {
            libraries = later;
            unit = Unit::new(set.clone(), &libraries);
            found = self.found(&unit).await;
        }
        let Found { report: Report { errors, warnings }, speaks, tests, .. } = found;
        let problems = errors.iter().map(|problem| self.complaint(problem, Some(&unit)));
        let tests = tests.map(|tests| tests.results).unwrap_or_default();
        checked.complaints.extend(problems.chain(tests.iter().filter_map(|test| self.failed(test, &unit))));
        checked.warnings.extend(warnings.iter().map(Problem::to_string));
        checked.digest = Some(unit.digest.clone());
        if set.role == Role::Policy {
            checked.changes.push(self.change(Some((Arc::new(unit), speaks))));
        } else if self.was_policy() {
            checked.changes.push(self.change(None));
        }
    }

    /// Waits a moment for other libraries to be in force.
    async fn later_libraries(&self, now: &Arc<BTreeMap<Key, Set>>) -> Option<Arc<BTreeMap<Key, Set>>> {
        let mut changes = self.app.sets_changed.subscribe();
        let patience = Instant::now().checked_add(PATIENCE)?;
        let waiting = async {
            loop {
                let later = Arc::clone(&self.app.rules().sets.libraries);
                if later != *now {
                    return Some(later);
                }
                changes.changed().await.ok()?;
            }
        };
        timeout_at(patience.min(self.deadline), waiting).await.ok().flatten()
    }

    async fn found(&self, unit: &Unit) -> Found {
        let check = Check { unit: unit.clone(), tests: Some(testing::Options::default()), samples: Vec::new() };
        self.app.workers.try_out(&check).await
    }

    fn unloads(&self, why: &str, checked: &mut Checked) {
        let name = &self.write.key;
        if self.in_force().is_some() || self.was_policy() {
            checked.notes.push(format!(
                "the policy {name} is unloaded by this, since {why}: nothing of it is enforced any more"
            ));
            checked.changes.push(self.change(None));
        }
    }

    /// Checks the sets that import the library that is written, with its new text or without it.
    async fn dependents(&self, checked: &mut Checked) {
        let now = &self.rules.sets.libraries;
        let key = &self.write.key;
        let mut then = now.as_ref().clone();
        then.remove(key);
        if let Some(set) = self.write.set.as_ref().filter(|set| set.role == Role::Library && !set.is_empty()) {
            then.insert(key.clone(), set.clone());
        }
        if then.get(key) == now.get(key) {
            return;
        }
        // Taking a library away is not refused, as its deletion could not be.
        let goes = !then.contains_key(key);
        for (old, new) in self.importers(now, &then) {
            let name = self.shown(&new.set);
            let found = self.found(&new).await;
            let tests = found.tests.map(|tests| tests.results).unwrap_or_default();
            let tests = tests.iter().filter_map(|test| self.failed(test, &new));
            let mut problems =
                found.report.errors.iter().map(|problem| self.complaint(problem, Some(&new))).chain(tests);
            match problems.next() {
                Some(_) if goes => checked.notes.push(format!(
                    "policy {name} imports this library: its last good form stays in force, and it cannot be changed before \
                     it imports the library no more"
                )),
                Some(first) => {
                    let complaints = std::iter::once(first).chain(problems).map(|problem| Complaint {
                        key: String::new(),
                        message: format!("policy {name} imports this library and would break: {}", problem.message),
                        ..problem
                    });
                    checked.complaints.extend(complaints);
                }
                None => {
                    let old = Old::InForce(old, found.speaks);
                    let new = Some((Arc::new(new), found.speaks));
                    checked.changes.push(Change { name, old, new, dependent: true });
                }
            }
        }
    }

    /// The sets in force to which it makes a difference, as they are and as they would be. One that does without what is
    /// offered now, since it would be bad with it, is in nobody's way.
    fn importers(&self, now: &BTreeMap<Key, Set>, then: &BTreeMap<Key, Set>) -> Vec<(Arc<Unit>, Unit)> {
        let in_force = self.rules.sets.reports.iter().filter_map(|report| report.in_force.as_ref());
        let importing = in_force.filter(|unit| {
            let set = &unit.set;
            let mut texts = set.modules.values().chain(set.tests.values());
            set.role == Role::Policy && set.key != self.write.key && texts.any(|text| text.contains("data.lib"))
        });
        let pairs = importing.filter_map(|unit| {
            let new = Unit::new(unit.set.clone(), then);
            let differs = new.digest != unit.digest && Unit::new(unit.set.clone(), now).digest == unit.digest;
            differs.then(|| (Arc::clone(unit), new))
        });
        pairs.collect()
    }

    fn in_force(&self) -> Option<&Arc<Unit>> {
        let reports = &self.rules.sets.reports;
        reports.iter().find(|report| report.key == self.write.key).and_then(|report| report.in_force.as_ref())
    }

    fn was_policy(&self) -> bool {
        matches!(self.old(), Old::InForce(..) | Old::Broken(_))
    }

    fn old(&self) -> Old {
        let name = self.name();
        let active = self.rules.sets.active.iter().find(|active| *active.name == *name);
        active.map_or(Old::Nothing, |active| match &active.installed {
            Some(installed) => Old::InForce(Arc::clone(installed.unit()), active.speaks),
            None => Old::Broken(Arc::clone(&active.settings)),
        })
    }

    fn change(&self, new: Option<(Arc<Unit>, Speaks)>) -> Change {
        Change { name: self.name(), old: self.old(), new, dependent: false }
    }

    fn name(&self) -> Arc<str> {
        let Key { namespace, name } = &self.write.key;
        if *namespace == self.home() { name.as_str().into() } else { self.write.key.to_string().into() }
    }

    fn shown(&self, set: &Set) -> Arc<str> {
        set.shown_name(&self.home()).into()
    }

    fn home(&self) -> String {
        self.app.scope.get().cloned().unwrap_or_default().home
    }

    /// A test that did not pass.
    fn failed(&self, test: &TestResult, unit: &Unit) -> Option<Complaint> {
        let problem = test.outcome.problem()?;
        let message = format!("{}:{}: test {} fails: ", test.file, test.line, test.full_name());
        // Where the problem is elsewhere than the test, both places are told.
        let place = Problem { file: test.file.clone(), line: test.line, column: 0, message: String::new() };
        let why = if (&problem.file, problem.line) == (&place.file, place.line) {
            problem.message.clone()
        } else {
            problem.to_string()
        };
        Some(Complaint { message: format!("{message}{why}"), ..self.complaint(&place, Some(unit)) })
    }

    fn complaint(&self, problem: &Problem, unit: Option<&Unit>) -> Complaint {
        let texts = &self.write.texts;
        let own = unit.is_none_or(|unit| unit.set.key == self.write.key);
        let text = unit.and_then(|unit| unit.text(&problem.file));
        let text = text.or_else(|| texts.get(&problem.file).filter(|_| own).map(String::as_str));
        let line = usize::try_from(problem.line).ok().and_then(|line| line.checked_sub(1));
        let excerpt = line.and_then(|line| text?.lines().nth(line));
        let column = usize::try_from(problem.column).unwrap_or_default();
        Complaint {
            key: if own { problem.file.clone() } else { String::new() },
            message: problem.to_string(),
            excerpt: excerpt.map(|line| (line.to_owned(), column)),
        }
    }
}
