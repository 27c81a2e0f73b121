//! Heads of rules: known rules in a shape that cannot be read, names that look like known ones, variables without a value.

use std::collections::{BTreeMap, BTreeSet};

use regorus::unstable::{Expr, Ref, Rule, RuleHead};

use super::model::{Definition, Model, Origin, Path, arguments, shown};
use super::position::{at, at_expr};
use super::walk::constant;
use super::{Report, Unit, rules};

/// Names that stand for a known rule elsewhere, or are written for one.
const NEAR: [(&str, &str); 14] = [
    ("denies", "deny"),
    ("denied", "deny"),
    ("denys", "deny"),
    ("deny_all", "deny"),
    ("reject", "deny"),
    ("violations", "violation"),
    ("violates", "violation"),
    ("violate", "violation"),
    ("voilation", "violation"),
    ("warning", "warn"),
    ("warnings", "warn"),
    ("warns", "warn"),
    ("patches", "patch"),
    ("mutate", "patch"),
];

/// Checks each rule's head, and that each package of the set is of use.
pub(super) fn check(unit: &Unit<'_>, model: &Model<'_>, report: &mut Report) {
    let used = used(model);
    for (index, rule) in model.rules.iter().enumerate() {
        unsafe_variables(model, rule, report);
        if model.origin(rule) != Origin::Own {
            continue;
        }
        let Some(name) = rule.path.get(model.package(rule.part).len()) else { continue };
        if let Some(kind) = rules::kind(model.package(rule.part), name, unit.suffixes_everywhere) {
            known(kind, name, rule, report);
        } else if !unit.is_library && !used.contains(&index) {
            near(unit, model, name, rule, report);
        }
    }
    packages(unit, model, &used, report);
}

/// OPA refuses a head whose variable has no value; the engine says so only when the body is true.
fn unsafe_variables(model: &Model<'_>, rule: &Definition<'_>, report: &mut Report) {
    for (name, expr) in &rule.facts.head {
        let bound = rule.facts.names.contains(name) || matches!(*name, "input" | "data");
        let mut path = model.package(rule.part).to_vec();
        path.push((*name).to_owned());
        if bound || model.rule_at_or_below(&path) || model.alias(rule.part, name).is_some() {
            continue;
        }
        let message = if *name == "_" {
            "`_` in a rule's head has no value".to_owned()
        } else {
            format!("`{name}` has no value: it is unsafe, since nothing in the rule's body sets it")
        };
        report.errors.push(at_expr(expr, message));
    }
}

/// A rule that is asked must have a shape that can be read.
fn known(kind: rules::RuleKind, name: &str, rule: &Definition<'_>, report: &mut Report) {
    if kind == rules::RuleKind::Main {
        return;
    }
    if arguments(rule.rule).is_some() {
        let message = format!("`{name}` is a function and would never be asked; write `{name} contains msg if …`");
        report.errors.push(at_expr(rule.refr, message));
        return;
    }
    let Rule::Spec { head, .. } = rule.rule else { return };
    match head {
        RuleHead::Set { key, .. } if rule.steps.is_empty() => {
            if let Some(key) = key {
                message_of(kind, name, key, report);
            }
        }
        // Seen in the engine: a rule below such a name is "not a valid rule path", and its elements are one level too deep.
        RuleHead::Set { .. } => {
            let message =
                format!("`{name}` must be a set itself, not hold sets by name; write `{name} contains msg if …`");
            report.errors.push(at_expr(rule.refr, message));
        }
        RuleHead::Compr { .. } if rule.steps.len() > 1 => {
            let message = format!("`{name}` must be a set, not an object of objects; write `{name} contains msg if …`");
            report.errors.push(at_expr(rule.refr, message));
        }
        RuleHead::Compr { assign: None, .. } if rule.steps.len() == 1 => {
            let message = format!(
                "in Rego v1 this makes an object with the value true, and its key is not read as the message; \
                 write `{name} contains msg if …`"
            );
            report.warnings.push(at_expr(rule.refr, message));
        }
        RuleHead::Compr { .. } => {
            let form = if rule.steps.is_empty() { "one value" } else { "an object" };
            let message =
                format!("`{name}` is {form}; a set of messages is the usual form: `{name} contains msg if …`");
            report.warnings.push(at_expr(rule.refr, message));
        }
        RuleHead::Func { .. } => {}
    }
    for never in &rule.facts.never {
        let message = format!("this `{name}` can never fire: its body demands `false`");
        report.warnings.push(at_expr(never, message));
    }
}

/// An object that refuses should say why.
fn message_of(kind: rules::RuleKind, name: &str, key: &Ref<Expr>, report: &mut Report) {
    let Expr::Object { fields, .. } = key.as_ref() else { return };
    if kind == rules::RuleKind::Patch {
        return;
    }
    let mut keys = fields.iter().map(|(_, key, _)| constant(key));
    // A key that is computed may be `msg`.
    if !keys.any(|key| key.is_none_or(|key| key == "msg")) {
        let message = format!("this `{name}` has no `msg`, so it refuses with a stand-in text; add `\"msg\": …`");
        report.warnings.push(at_expr(key, message));
    }
}

/// A rule that nothing uses and whose name is close to a known one is one that its author thinks is in force.
fn near(unit: &Unit<'_>, model: &Model<'_>, name: &str, rule: &Definition<'_>, report: &mut Report) {
    if rules::suffixed(name).is_some() && !unit.suffixes_everywhere {
        let stem = name.split('_').next().unwrap_or(name);
        let message = format!(
            "`{name}` is never asked: suffixes count only in package `main` or with `input: object`; write `{stem} contains msg if …`"
        );
        report.warnings.push(at_expr(rule.refr, message));
        return;
    }
    let lower = name.to_lowercase();
    let meant = NEAR.iter().find(|(wrong, _)| *wrong == lower).map(|(_, meant)| *meant).or_else(|| {
        let known = ["deny", "violation", "warn", "patch"].into_iter();
        known.into_iter().find(|known| *known == lower || (known.len() > 4 && one_slip(known, &lower)))
    });
    if let Some(meant) = meant {
        let name = shown(&rule.path, model.package(rule.part));
        let message = format!("`{name}` is never asked; if it should be, call it `{meant}`");
        report.warnings.push(at_expr(rule.refr, message));
    }
}

/// Whether one letter was left out, put in or changed.
fn one_slip(known: &str, name: &str) -> bool {
    let (a, b): (Vec<char>, Vec<char>) = (known.chars().collect(), name.chars().collect());
    let start = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let rest = |text: &[char], skip: usize| text.iter().skip(start.saturating_add(skip)).copied().collect::<String>();
    a != b && (rest(&a, 1) == rest(&b, 1) || rest(&a, 1) == rest(&b, 0) || rest(&a, 0) == rest(&b, 1))
}

/// The rules that another rule refers to, or an import.
fn used(model: &Model<'_>) -> BTreeSet<usize> {
    // What each path is referred to by: the path of one rule, and whether there are others.
    let mut paths: BTreeMap<Path, (&Path, bool)> = BTreeMap::new();
    for (from, path) in model.uses() {
        let Some(from) = model.rules.get(from).map(|rule| &rule.path) else { continue };
        let by = paths.entry(path).or_insert((from, false));
        by.1 |= by.0 != from;
    }
    let imported = model.aliases.values().flatten().flat_map(|alias| model.touched(&alias.path));
    let mut used: BTreeSet<usize> = imported.collect();
    for (path, (from, others)) in &paths {
        used.extend(
            model
                .touched(path)
                .filter(|rule| *others || model.rules.get(*rule).is_some_and(|rule| rule.path != **from)),
        );
    }
    used
}

/// Packages without a rule that is asked and without one that is used, and sets without any.
fn packages(unit: &Unit<'_>, model: &Model<'_>, used: &BTreeSet<usize>, report: &mut Report) {
    let (mut asked, mut of_use) = (BTreeSet::new(), BTreeSet::new());
    for (index, rule) in model.rules.iter().enumerate().filter(|(_, rule)| model.origin(rule) == Origin::Own) {
        let package = model.package(rule.part);
        let name = rule.path.get(package.len());
        if name.is_some_and(|name| rules::kind(package, name, unit.suffixes_everywhere).is_some()) {
            asked.insert(package);
        }
        if used.contains(&index) {
            of_use.insert(package);
        }
    }
    let own = || model.parts.iter().filter(|part| part.origin == Origin::Own);
    if unit.is_library {
        for part in own().filter(|part| part.package.get(1).map(String::as_str) != Some("lib")) {
            let message = "a library's package must be below `lib`, as in `package lib.images`";
            report.errors.push(at_expr(&part.module.package.refr, message));
        }
        return;
    }
    if asked.is_empty() && own().next().is_some() {
        let message =
            "this set has no rule that is asked, so it does nothing; write a `deny`, `violation`, `warn` or `patch`";
        report.warnings.push(super::Problem::of_set(message));
    }
    for part in own() {
        let package = part.package.as_slice();
        if asked.contains(package) || of_use.contains(package) {
            continue;
        }
        let name = shown(package, &["data".to_owned()]);
        let message = format!(
            "package `{name}` has neither a rule that is asked (`deny`, `violation`, `warn`, `patch`) nor one that is used"
        );
        report.warnings.push(at(&part.module.package.span, message));
    }
}
