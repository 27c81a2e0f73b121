//! The tests of all sets in numbers.

use crate::rego::testing::{Coverage, TestOutcome};

use super::Examined;

/// How all tests went.
#[derive(Debug, Default)]
pub(super) struct Summary {
    pub(super) passed: usize,
    pub(super) failed: usize,
    pub(super) errors: usize,
    pub(super) skipped: usize,
    /// The lines of all sets, where that was asked for.
    pub(super) coverage: Option<Lines>,
}

/// How many lines were reached.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Lines {
    pub(super) covered: usize,
    pub(super) all: usize,
}

impl Summary {
    /// Of some sets.
    pub(super) fn of<'e>(examined: impl IntoIterator<Item = &'e Examined>, coverage: bool) -> Self {
        let mut summary = Self { coverage: coverage.then(Lines::default), ..Self::default() };
        for tests in examined.into_iter().filter_map(|set| set.tests.as_ref()) {
            for result in &tests.results {
                let count = match result.outcome {
                    TestOutcome::Passed => &mut summary.passed,
                    TestOutcome::Failed(_) => &mut summary.failed,
                    TestOutcome::Error(_) => &mut summary.errors,
                    TestOutcome::Skipped => &mut summary.skipped,
                };
                *count = count.saturating_add(1);
            }
            if let (Some(lines), Some(coverage)) = (&mut summary.coverage, &tests.coverage) {
                let more = Lines::of(coverage);
                lines.covered = lines.covered.saturating_add(more.covered);
                lines.all = lines.all.saturating_add(more.all);
            }
        }
        summary
    }

    /// How many tests there are.
    pub(super) fn tests(&self) -> usize {
        [self.passed, self.failed, self.errors, self.skipped].into_iter().fold(0, usize::saturating_add)
    }

    /// Whether one did not pass.
    pub(super) fn is_bad(&self) -> bool {
        self.failed > 0 || self.errors > 0
    }

    /// In words; what there is none of is left out, but for what passed.
    pub(super) fn words(&self) -> String {
        let mut words = vec![format!("{} passed", self.passed)];
        for (count, word) in [(self.failed, "failed"), (self.errors, "with an error"), (self.skipped, "skipped")] {
            if count > 0 {
                words.push(format!("{count} {word}"));
            }
        }
        words.join(", ")
    }
}

impl Lines {
    /// Of one set.
    pub(super) fn of(coverage: &Coverage) -> Self {
        let (covered, all) = coverage.counts();
        Self { covered, all }
    }

    /// The percentage; all, where there is nothing to reach.
    pub(super) fn exact(self) -> f64 {
        let float = |count: usize| u32::try_from(count).map_or(f64::MAX, f64::from);
        if self.all == 0 { 100.0 } else { float(self.covered) * 100.0 / float(self.all) }
    }

    /// The percentage with one digit, never more than it is.
    pub(super) fn rounded(self) -> f64 {
        (self.exact() * 10.0).floor() / 10.0
    }

    /// The same as a text.
    pub(super) fn percent(self) -> String {
        format!("{:.1}%", self.rounded())
    }
}
