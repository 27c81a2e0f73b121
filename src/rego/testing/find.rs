//! Which rules of a set are tests.
//!
//! Invariant: each body of a test is a test of its own, as in OPA, so that one that holds hides none that does not. The engine
//! knows a rule by its name alone; so the second body of a name gets another name of the same length, which moves no line and
//! no column.

use std::collections::{BTreeMap, BTreeSet};

use regorus::unstable::{Expr, Module, Ref, Rule, RuleHead, Span};

use crate::rego::set::Syntax;
use crate::rego::unit::Unit;

/// How the name of a test begins.
const PREFIX: &str = "test_";

/// How the name of a test begins that is not run.
pub(super) const SKIPPED: &str = "todo_test_";

const FUNCTION: &str = "it takes arguments, and a test takes none; name a helper so that it does not begin with test_";

const SET: &str = "it is a set, and a test is true or not; write `test_x if { … }`";

const CASES: &str = "it is a table of cases, of which one that fails leaves no trace here; write `test_x if { every case in cases { … } }`";

/// One test.
pub(super) struct Found {
    pub(super) file: String,
    pub(super) line: u32,
    pub(super) column: u32,
    /// Without `data.`.
    pub(super) package: String,
    /// As it is shown.
    pub(super) name: String,
    /// What the engine is asked for.
    pub(super) path: String,
    /// Why it cannot be a test.
    pub(super) unfit: Option<&'static str>,
    /// The name that stands in its place in what the engine reads.
    pub(super) alias: Option<String>,
    /// Where the name stands in the text.
    name_at: (usize, usize),
}

/// A module as the engine reads it.
pub(super) struct Source {
    pub(super) file: String,
    pub(super) syntax: Syntax,
    pub(super) text: String,
}

impl Found {
    pub(super) fn full_name(&self) -> String {
        format!("data.{}.{}", self.package, self.name)
    }
}

impl Source {
    pub(super) fn as_module(&self) -> (&str, Syntax, &str) {
        (&self.file, self.syntax, &self.text)
    }
}

/// The tests of a set's own modules and of its test modules, in the order of files and lines.
pub(super) fn tests(unit: &Unit, modules: &[Ref<Module>]) -> Vec<Found> {
    let libraries: BTreeSet<&str> = unit.libraries.iter().map(|library| library.file.as_str()).collect();
    let own = modules.iter().filter(|module| !libraries.contains(module.package.span.source.file().as_str()));
    let mut found: Vec<Found> = own.flat_map(|module| in_module(module)).collect();
    found.sort_by(|one, other| (&one.file, one.line, one.column).cmp(&(&other.file, other.line, other.column)));
    name_apart(unit, &mut found);
    found
}

/// The modules with the names that keep the bodies of one test apart.
pub(super) fn texts(unit: &Unit, found: &[Found]) -> Vec<Source> {
    let modules = unit.modules().chain(unit.tests());
    modules
        .map(|(file, syntax, text)| {
            let mut text = text.to_owned();
            for test in found.iter().filter(|test| test.file == file) {
                let (start, end) = test.name_at;
                if let Some(alias) = test.alias.as_ref().filter(|_| text.get(start..end).is_some()) {
                    // Of the same length, so that what comes after stays where it is.
                    text.replace_range(start..end, alias);
                }
            }
            Source { file: file.to_owned(), syntax, text }
        })
        .collect()
}

fn in_module(module: &Module) -> Vec<Found> {
    let package = module.package.refr.span().text().to_owned();
    let file = module.package.span.source.file().clone();
    let rules = module.policy.iter().filter_map(|rule| match rule.as_ref() {
        Rule::Spec { head, span, .. } => Some((head, span)),
        Rule::Default { .. } => None,
    });
    rules
        .filter_map(|(head, span)| {
            let (RuleHead::Compr { refr, .. } | RuleHead::Set { refr, .. } | RuleHead::Func { refr, .. }) = head;
            let mut parts = Vec::new();
            flatten(refr, &mut parts);
            let place = parts.iter().position(|part| is_test(&part.name))?;
            let part = parts.get(place)?;
            let unfit = match head {
                RuleHead::Func { .. } => Some(FUNCTION),
                _ if parts.len() > place.saturating_add(1) => Some(CASES),
                RuleHead::Set { .. } => Some(SET),
                RuleHead::Compr { .. } => None,
            };
            let above: Vec<&str> = parts.iter().take(place).map(|part| part.name.as_str()).collect();
            let package = [&[package.as_str()], &above[..]].concat().join(".");
            let path = format!("data.{package}.{}", part.name);
            let (file, name) = (file.clone(), part.name.clone());
            let (line, column, name_at) = (span.line, span.col, part.at);
            Some(Found { file, line, column, package, name, path, unfit, alias: None, name_at })
        })
        .collect()
}

/// One step of the path that a rule's head names.
struct Part {
    name: String,
    at: (usize, usize),
}

fn flatten(refr: &Expr, parts: &mut Vec<Part>) {
    match refr {
        Expr::Var { span, .. } => parts.push(part(span, span.text())),
        Expr::RefDot { refr, field, .. } => {
            flatten(refr, parts);
            parts.push(part(&field.0, field.0.text()));
        }
        Expr::RefBrack { refr, index, .. } => {
            flatten(refr, parts);
            // What is no text names no rule, and is there all the same.
            let name = if matches!(index.as_ref(), Expr::String { .. }) { index.span().text() } else { "" };
            parts.push(part(index.span(), name.trim_matches('"')));
        }
        _ => {}
    }
}

fn part(span: &Span, name: &str) -> Part {
    let start = usize::try_from(span.start).unwrap_or_default();
    let inner = span.text().find(name).unwrap_or_default();
    let start = start.saturating_add(inner);
    Part { name: name.to_owned(), at: (start, start.saturating_add(name.len())) }
}

fn is_test(name: &str) -> bool {
    name.starts_with(PREFIX) || name.starts_with(SKIPPED)
}

/// Gives the second and every further body of a name a number, as OPA does, and a name of its own.
fn name_apart(unit: &Unit, found: &mut [Found]) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut number = 0_usize;
    for test in found {
        let count = seen.entry(test.path.clone()).or_default();
        let place = *count;
        *count = count.saturating_add(1);
        if place == 0 || test.unfit.is_some() || test.name.starts_with(SKIPPED) {
            continue;
        }
        let Some(alias) = alias(unit, test.name.len(), &mut number) else { continue };
        let above = test.path.strip_suffix(test.name.as_str()).unwrap_or_default();
        test.path = format!("{above}{alias}");
        test.name = format!("{}#{place:02}", test.name);
        test.alias = Some(alias);
    }
}

/// A name of this length that stands nowhere in the set.
fn alias(unit: &Unit, length: usize, number: &mut usize) -> Option<String> {
    let width = length.checked_sub(1)?;
    loop {
        *number = number.saturating_add(1);
        let name = format!("x{number:0width$}");
        if name.len() > length {
            return None;
        }
        let taken = unit.modules().chain(unit.tests()).any(|(_, _, text)| text.contains(&name));
        if !taken {
            return Some(name);
        }
    }
}
