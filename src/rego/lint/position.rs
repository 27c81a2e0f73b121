//! Where a problem is: line and column in characters, from what the engine's spans give.
//!
//! The engine's columns count bytes in strings and four for a tab, and those of an expression with an operator point at the
//! operator while the line may be another; so positions come from the first leaf of an expression, and columns are counted.

use regorus::unstable::{Expr, Ref, Span};

use crate::rego::problem::Problem;

/// A problem at the start of a span that the lexer made: a name, a field, a rule.
pub(super) fn at(span: &Span, message: impl Into<String>) -> Problem {
    Problem {
        file: span.source.file().clone(),
        line: span.line,
        column: column(span.source.contents(), span.start),
        message: message.into(),
    }
}

/// A problem at the start of an expression.
pub(super) fn at_expr(expr: &Ref<Expr>, message: impl Into<String>) -> Problem {
    let leaf = first_leaf(expr);
    let mut problem = at(leaf.span(), message);
    if matches!(leaf.as_ref(), Expr::String { .. } | Expr::RawString { .. }) {
        // The span begins after the quote.
        problem.column = problem.column.saturating_sub(1).max(1);
    }
    problem
}

/// The leaf that the text of an expression begins with.
fn first_leaf(expr: &Ref<Expr>) -> &Ref<Expr> {
    let mut leaf = expr;
    loop {
        leaf = match leaf.as_ref() {
            Expr::RefDot { refr, .. } | Expr::RefBrack { refr, .. } => refr,
            Expr::Call { fcn, .. } => fcn,
            Expr::BinExpr { lhs, .. }
            | Expr::BoolExpr { lhs, .. }
            | Expr::ArithExpr { lhs, .. }
            | Expr::AssignExpr { lhs, .. } => lhs,
            Expr::Membership { key, value, .. } => key.as_ref().unwrap_or(value),
            // The span of an object of several fields begins at its last one.
            Expr::Object { fields, .. } => match fields.first() {
                Some((_, key, _)) => key,
                None => return leaf,
            },
            _ => return leaf,
        };
    }
}

fn column(text: &str, start: u32) -> u32 {
    let start = usize::try_from(start).unwrap_or(usize::MAX);
    let before = text.get(..start).unwrap_or(text);
    let line = before.rsplit('\n').next().unwrap_or(before);
    u32::try_from(line.chars().count()).unwrap_or(u32::MAX).saturating_add(1)
}
