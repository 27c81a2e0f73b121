//! Calls: of functions that are not there, that are refused, or with the wrong number of arguments.

use regorus::unstable::BUILTINS;

use super::Report;
use super::builtins::refused;
use super::model::{Definition, Model, shown};
use super::position::at_expr;
use super::walk::{Call, Purpose, names};

/// Checks every call of every rule, and what `with` replaces functions by.
pub(super) fn check(model: &Model<'_>, report: &mut Report) {
    for rule in &model.rules {
        for call in &rule.facts.calls {
            if let Some(message) = wrong(model, rule, call) {
                report.errors.push(at_expr(call.fcn, message));
            }
        }
        for reference in &rule.facts.references {
            if reference.purpose == Purpose::Read {
                continue;
            }
            let path = names(reference.root, &reference.steps);
            let name = path.join(".");
            let known = path.len() > 1 && model.resolve(rule.part, &path).is_some();
            if !known && let Some(reason) = unusable(&name) {
                report.errors.push(at_expr(reference.expr, reason));
            }
        }
        // Seen in the engine: a sign before anything but a number is an error at run time, where OPA negates the value.
        for sign in &rule.facts.signs {
            let message = "a sign is only understood before a number; write `0 - …`";
            report.errors.push(at_expr(sign, message));
        }
    }
}

fn wrong(model: &Model<'_>, rule: &Definition<'_>, call: &Call<'_>) -> Option<String> {
    let name = call.path.join(".");
    let resolved = model.resolve(rule.part, &call.path);
    if let Some(arity) = resolved.as_ref().and_then(|path| model.functions.get(path)) {
        return arguments(&name, *arity, call);
    }
    if let Some((_, arity)) = BUILTINS.get(name.as_str()) {
        if let Some(reason) = refused(&name) {
            return Some(format!("`{name}` cannot be used: {reason}"));
        }
        // The engine reads `print` and a few others with any number.
        return arguments(&name, usize::from(*arity), call);
    }
    if name == "print" {
        return None;
    }
    // Seen in the engine: a reference and a group on the next line, two statements in OPA, are one call here.
    if on_next_line(call) {
        return Some(format!(
            "`{name}` and the parentheses on the next line are read as one call; end the first statement with `;`"
        ));
    }
    let Some(path) = resolved else {
        return Some(unusable(&name).unwrap_or_else(|| unknown(&name)));
    };
    let package = model.package(rule.part);
    if model.by_path.contains_key(&path) {
        return Some(format!("`{}` is a rule and no function; use it without arguments", shown(&path, package)));
    }
    if let Some(reason) = unusable(&name) {
        return Some(reason);
    }
    Some(format!("there is no function `{}` in this set or in the libraries that it imports", path.join(".")))
}

fn on_next_line(call: &Call<'_>) -> bool {
    let span = call.fcn.span();
    let end = usize::try_from(span.end).unwrap_or(usize::MAX);
    let rest = span.source.contents().get(end..).unwrap_or_default();
    rest.split('(').next().is_some_and(|blank| blank.contains('\n'))
}

fn arguments(name: &str, wanted: usize, call: &Call<'_>) -> Option<String> {
    let given = call.params.len();
    let extra = call.statement && Some(given) == wanted.checked_add(1);
    if given == wanted || extra {
        return None;
    }
    let plural = if wanted == 1 { "" } else { "s" };
    Some(format!("`{name}` takes {wanted} argument{plural} and is given {given}"))
}

fn unusable(name: &str) -> Option<String> {
    refused(name).map(|reason| format!("`{name}` cannot be used: {reason}"))
}

fn unknown(name: &str) -> String {
    format!("there is no function `{name}`: neither a builtin of this engine nor a rule of this set or an import")
}
