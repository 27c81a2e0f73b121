//! Names that mean two things, and bodies that are too long.

use std::collections::BTreeMap;

use regorus::unstable::Rule;

use super::Report;
use super::model::{Model, Origin, Path, shown};
use super::position::{at, at_expr};
use super::walk::Step;

/// Statements of one body. The engine's time to order them grows with the square: 1,000 were seen to take 0.1 s, 4,000 2 s.
const MAX_STATEMENTS: usize = 600;

/// Checks defaults, imports, loop variables and the length of bodies.
pub(super) fn check(model: &Model<'_>, report: &mut Report) {
    defaults(model, report);
    aliases(model, report);
    for rule in &model.rules {
        let package = model.package(rule.part);
        for (name, span) in &rule.facts.iterated {
            let mut path = package.to_vec();
            path.push((*name).to_owned());
            // Seen in the engine: the loop is not scheduled and the whole set fails, where OPA lets the loop's name win.
            if model.rule_at_or_below(&path) {
                let message =
                    format!("`{name}` is a rule of this package too, which this engine takes for a cycle; rename one");
                report.errors.push(at(span, message));
            }
        }
        for query in &rule.facts.queries {
            if let Some(statement) = query.stmts.get(MAX_STATEMENTS) {
                let message = format!(
                    "a body of more than {MAX_STATEMENTS} statements takes the engine too long; split it into several rules"
                );
                report.errors.push(at(&statement.span, message));
            }
        }
    }
}

fn defaults(model: &Model<'_>, report: &mut Report) {
    let mut seen: BTreeMap<(&Path, &[Step]), u32> = BTreeMap::new();
    for rule in &model.rules {
        if !matches!(rule.rule, Rule::Default { .. }) || model.origin(rule) == Origin::Test {
            continue;
        }
        let first = *seen.entry((&rule.path, &rule.steps)).or_insert(rule.rule.span().line);
        if first != rule.rule.span().line {
            let name = shown(&rule.path, model.package(rule.part));
            let message = format!("`{name}` has a second default, the first is on line {first}; keep one of them");
            report.errors.push(at_expr(rule.refr, message));
        }
    }
}

/// The engine keeps imports by package: the last meaning of a name wins in all its modules, without a word.
fn aliases(model: &Model<'_>, report: &mut Report) {
    for ((package, name), aliases) in &model.aliases {
        let Some(first) = aliases.first() else { continue };
        for other in aliases.iter().filter(|other| other.path != first.path) {
            let message = format!(
                "`{name}` is imported as `{}` here and as `{}` in {}, and this engine keeps one meaning for all of package `{}`; \
                 give one another name with `as`",
                other.path.join("."),
                first.path.join("."),
                first.import.span.source.file(),
                shown(package, &["data".to_owned()]),
            );
            report.errors.push(at(&other.import.span, message));
        }
    }
}
