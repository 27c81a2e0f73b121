//! References to input: fields that are never there.

use std::collections::BTreeSet;

use super::model::{Model, Origin};
use super::position::at_expr;
use super::walk::{Purpose, names};
use super::{Report, Unit};

/// Fields of the input of a review.
const REVIEW: [&str; 6] = ["request", "review", "parameters", "slicegate", "kind", "apiVersion"];

/// Checks the first field of each reference to the input, once per file and field.
pub(super) fn check(unit: &Unit<'_>, model: &Model<'_>, report: &mut Report) {
    let mut seen = BTreeSet::new();
    for rule in &model.rules {
        if model.origin(rule) == Origin::Test {
            continue;
        }
        for reference in rule.facts.references.iter().filter(|it| it.purpose == Purpose::Read) {
            let mut path = names(reference.root, &reference.steps);
            if let Some(alias) = model.alias(rule.part, reference.root) {
                path.splice(..1, alias.path.iter().cloned());
            }
            let (Some("input"), Some(field)) = (path.first().map(String::as_str), path.get(1)) else { continue };
            let Some(message) = missing(unit, field) else { continue };
            if seen.insert((reference.expr.span().source.file(), field.clone())) {
                report.warnings.push(at_expr(reference.expr, message));
            }
        }
    }
}

fn missing(unit: &Unit<'_>, field: &str) -> Option<String> {
    if unit.suffixes_everywhere {
        let review = matches!(field, "request" | "review" | "slicegate");
        return review.then(|| {
            format!("`input.{field}` is not there, since this set asks for the bare object; remove the annotation `input: object`")
        });
    }
    if field == "parameters" && !unit.data.contains_key("parameters") && !unit.is_library {
        return Some("`input.parameters` is empty: this set has no data document `parameters`".to_owned());
    }
    (!REVIEW.contains(&field)).then(|| {
        format!(
            "`input.{field}` is never there: the input is a review; write `input.request.object.{field}`, \
             or mark the set with `input: object`"
        )
    })
}
