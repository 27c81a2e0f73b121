//! References to data: whether a module, a library or a data document provides it.

use std::collections::BTreeMap;

use regorus::Value;

use super::model::{Definition, Model, Origin};
use super::position::{at, at_expr};
use super::walk::{Purpose, Reference, names};
use super::{Problem, Report, Unit, rules};

/// Documents that other products fill with objects of the cluster.
const OF_CLUSTER: [&str; 2] = ["inventory", "kubernetes"];

/// Checks imports, references, and documents that would hide rules.
pub(super) fn check(unit: &Unit<'_>, model: &Model<'_>, report: &mut Report) {
    for alias in model.aliases.values().flatten() {
        if provided(unit, model, &alias.path) {
            continue;
        }
        let message = of_cluster(&alias.path).unwrap_or_else(|| {
            format!("`{}` is imported, and no module, library or data document provides it", alias.path.join("."))
        });
        report.errors.push(at(&alias.import.span, message));
    }
    for rule in &model.rules {
        for reference in &rule.facts.references {
            reference_is_provided(unit, model, rule, reference, report);
        }
    }
    shadows(unit, model, report);
}

fn reference_is_provided(
    unit: &Unit<'_>,
    model: &Model<'_>,
    rule: &Definition<'_>,
    reference: &Reference<'_>,
    report: &mut Report,
) {
    let by_alias = model.alias(rule.part, reference.root).is_some_and(|alias| !provided(unit, model, &alias.path));
    let test = model.origin(rule) == Origin::Test;
    if by_alias || test || reference.purpose == Purpose::Replaced {
        return;
    }
    let Some(path) = model.resolve(rule.part, &names(reference.root, &reference.steps)) else { return };
    if path.len() < 2 || provided(unit, model, &path) {
        return;
    }
    let shown = path.join(".");
    if let Some(message) = of_cluster(&path) {
        report.errors.push(at_expr(reference.expr, message));
    } else if path.get(1).map(String::as_str) == Some("lib") {
        let message =
            format!("`{shown}` is in no library that this set can import; see the ConfigMaps marked as `library`");
        report.errors.push(at_expr(reference.expr, message));
    } else {
        report.warnings.push(never(unit, model, rule, reference, &shown));
    }
}

fn never(unit: &Unit<'_>, model: &Model<'_>, rule: &Definition<'_>, reference: &Reference<'_>, shown: &str) -> Problem {
    let (name, package) = (rule.path.last().map_or("", String::as_str), model.package(rule.part));
    let asked = rules::kind(package, name, unit.suffixes_everywhere).is_some();
    let effect =
        if asked { format!(", so this `{name}` can never fire") } else { ", so it is always undefined".to_owned() };
    at_expr(reference.expr, format!("neither a module nor a data document provides `{shown}`{effect}"))
}

fn of_cluster(path: &[String]) -> Option<String> {
    let name = path.get(1).filter(|_| path.first().map(String::as_str) == Some("data"))?;
    OF_CLUSTER.contains(&name.as_str()).then(|| {
        format!(
            "`data.{name}` is not there: other objects of the cluster are not available to policies; \
             decide by the request alone, or put what is needed into a data document"
        )
    })
}

/// Whether anything is at this path, above it or below it.
fn provided(unit: &Unit<'_>, model: &Model<'_>, path: &[String]) -> bool {
    path.first().map(String::as_str) != Some("data")
        || model.rule_at_or_below(path)
        || model.rule_above(path)
        || model.package_at_or_below(path)
        || in_document(unit.data, path)
}

fn in_document(data: &BTreeMap<String, Value>, path: &[String]) -> bool {
    let Some((name, rest)) = path.get(1..).and_then(<[String]>::split_first) else { return true };
    let Some(mut value) = data.get(name) else { return false };
    for name in rest {
        match value.as_object().ok().and_then(|object| object.get(&Value::from(name.as_str()))) {
            Some(inner) => value = inner,
            None => return false,
        }
    }
    true
}

/// Seen in the engine: where a document has a value at a rule's path, the rule is not evaluated, without a word.
fn shadows(unit: &Unit<'_>, model: &Model<'_>, report: &mut Report) {
    for rule in &model.rules {
        let Some(name) = rule.path.get(1) else { continue };
        let Some(document) = unit.data.get(name) else { continue };
        if hides(document, rule.path.get(2..).unwrap_or_default()) {
            let message = format!(
                "the data document `{name}` has a value at `{}`, which would hide this rule; rename the document or the package",
                rule.path.join(".")
            );
            report.errors.push(at_expr(rule.refr, message));
        }
    }
}

fn hides(document: &Value, path: &[String]) -> bool {
    let mut value = document;
    for name in path {
        let Ok(object) = value.as_object() else { return true };
        match object.get(&Value::from(name.as_str())) {
            Some(inner) => value = inner,
            None => return false,
        }
    }
    true
}
