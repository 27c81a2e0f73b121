//! Which lines of a set its tests reach.
//!
//! Invariant: every module of the set counts, also one that no test touches; tests and libraries do not.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use regorus::Value;
use serde::{Deserialize, Serialize};

use super::find::Source;
use crate::rego::engine::{Budget, Interpreter};
use crate::rego::problem::Problem;
use crate::rego::set::Syntax;
use crate::rego::unit::Unit;

/// A rule that is added to each module to find out which lines it has.
const MARK: &str = "slicegate_reached__";

/// The lines that tests reached.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Coverage {
    /// The modules of the set, by the name of their file.
    pub files: BTreeMap<String, FileCoverage>,
}

/// The lines of one module that hold something to evaluate.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FileCoverage {
    /// Those that were evaluated.
    pub covered: BTreeSet<u32>,
    /// Those that were not.
    pub not_covered: BTreeSet<u32>,
}

impl Coverage {
    /// The lines that were reached, and how many there are.
    pub fn counts(&self) -> (usize, usize) {
        let sum = |count: fn(&FileCoverage) -> usize| self.files.values().map(count).fold(0, usize::saturating_add);
        (sum(|file| file.covered.len()), sum(FileCoverage::lines))
    }

    /// What there is to reach, and nothing of it reached.
    pub(super) fn of_nothing(unit: &Unit, texts: &[Source], data: Value, strict: bool) -> Result<Self, Vec<Problem>> {
        let own = |file: &str| unit.set.modules.contains_key(file);
        let marked: Vec<(&str, Syntax, String)> = texts
            .iter()
            .map(|Source { file, syntax, text }| {
                let mark = if own(file) { format!("\n\n{MARK} := true\n") } else { String::new() };
                (file.as_str(), *syntax, format!("{text}{mark}"))
            })
            .collect();
        let modules = marked.iter().map(|(file, syntax, text)| (*file, *syntax, text.as_str()));
        let mut interpreter = Interpreter::new(modules, data, strict)?;
        let packages: BTreeSet<String> = interpreter
            .modules()
            .iter()
            .filter(|module| own(module.package.span.source.file()))
            .map(|module| module.package.refr.span().text().to_owned())
            .collect();
        interpreter.prepare().map_err(|problem| vec![problem])?;
        interpreter.observe(true);
        // The mark is a constant, so that nothing is run out of.
        let budget = Budget::new(Duration::from_secs(1), &|| Duration::ZERO);
        for package in packages {
            let _ = interpreter.rule(&format!("data.{package}.{MARK}"), budget);
        }
        let seen = interpreter.take_seen();
        let files = unit.set.modules.iter().map(|(file, text)| {
            let mut not_covered = seen.not_covered.get(file).cloned().unwrap_or_default();
            let end = u32::try_from(text.lines().count()).unwrap_or(u32::MAX);
            not_covered.retain(|line| *line <= end);
            (file.clone(), FileCoverage { covered: BTreeSet::new(), not_covered })
        });
        Ok(Self { files: files.collect() })
    }

    /// Takes in what one test reached.
    pub(super) fn add(&mut self, covered: &BTreeMap<String, BTreeSet<u32>>) {
        for (file, lines) in covered {
            let Some(file) = self.files.get_mut(file) else { continue };
            for line in lines {
                file.not_covered.remove(line);
                file.covered.insert(*line);
            }
        }
    }
}

impl FileCoverage {
    /// How many lines there are to reach.
    pub fn lines(&self) -> usize {
        self.covered.len().saturating_add(self.not_covered.len())
    }
}
