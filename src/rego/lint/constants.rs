//! Constant arguments and operands that fail each time, or that end or stall the process.

use regorus::Value;
use regorus::unstable::{ArithOp, BUILTINS, Expr, Ref};

use super::Report;
use super::model::Model;
use super::position::at_expr;
use super::walk::{Call, constant};

/// Numbers in a range, and characters that a format pads to. The engine makes a range of 1e9 numbers by asking for 24 GB.
const MAX_RANGE: f64 = 100_000.0;
const MAX_WIDTH: u32 = 4096;

/// Checks what calls and divisions are given.
pub(super) fn check(model: &Model<'_>, report: &mut Report) {
    for rule in &model.rules {
        for call in &rule.facts.calls {
            let shadowed = model.resolve(rule.part, &call.path).is_some_and(|path| model.functions.contains_key(&path));
            if !shadowed {
                report.errors.extend(failing(call));
            }
        }
        for quotient in &rule.facts.quotients {
            if let Expr::ArithExpr { op: ArithOp::Div | ArithOp::Mod, rhs, .. } = quotient.as_ref()
                && number(rhs) == Some(0.0)
            {
                report.errors.push(at_expr(rhs, "division by zero fails each time"));
            }
        }
    }
}

fn failing(call: &Call<'_>) -> Option<super::Problem> {
    let name = call.path.join(".");
    let params = call.params;
    match name.as_str() {
        "regex.match" | "regex.find_n" | "regex.find_all_string_submatch_n" | "regex.split" => pattern(params.first()?),
        "regex.replace" => pattern(params.get(1)?),
        "glob.match" => glob(call),
        "sprintf" => format(params.first()?, params.get(1)?),
        "numbers.range" | "numbers.range_step" => range(params),
        _ => None,
    }
}

fn pattern(expr: &Ref<Expr>) -> Option<super::Problem> {
    let error = regex::Regex::new(constant(expr)?).err()?;
    let text = error.to_string();
    let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ").trim();
    let hint = if reason.contains("look-around") {
        "; instead of look-ahead, use a second `regex.match` with `not`"
    } else if reason.contains("backreference") {
        "; compare the parts in Rego"
    } else {
        ""
    };
    Some(at_expr(expr, format!("this regular expression fails each time: {reason}{hint}")))
}

/// Asks the engine itself, since what it takes for a glob is its own.
fn glob(call: &Call<'_>) -> Option<super::Problem> {
    // The engine's function takes for granted that it has three; a fourth one is the place for the result.
    let params = call.params.get(..3)?;
    let [pattern, delimiters, _] = params else { return None };
    let text = constant(pattern)?;
    let delimiters = match delimiters.as_ref() {
        Expr::Array { items, .. } => {
            let texts: Option<Vec<Value>> = items.iter().map(|item| constant(item).map(Value::from)).collect();
            Value::from(texts?)
        }
        Expr::Null { .. } => Value::Null,
        _ => Value::from(Vec::<Value>::new()),
    };
    let arguments = [Value::from(text), delimiters, Value::from("a")];
    let (function, _) = BUILTINS.get("glob.match")?;
    let error = function(pattern.span(), params, &arguments, true).err()?;
    let reason = error.to_string();
    let reason = reason.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
    Some(at_expr(pattern, format!("this glob fails each time: {reason}")))
}

fn format(expr: &Ref<Expr>, values: &Ref<Expr>) -> Option<super::Problem> {
    let text = constant(expr)?;
    let mut verbs = 0_usize;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '%' {
            continue;
        }
        let mut digits = String::new();
        while let Some(c) = chars.next_if(|c| c.is_ascii_digit() || "+-# .".contains(*c)) {
            if c.is_ascii_digit() {
                digits.push(c);
            } else {
                digits.clear();
            }
            if digits.parse::<u32>().is_ok_and(|width| width > MAX_WIDTH) || digits.len() > 9 {
                let message = format!("a width or precision above {MAX_WIDTH} stalls or ends the process");
                return Some(at_expr(expr, message));
            }
        }
        match chars.next() {
            Some('%') => {}
            Some('*') => return Some(at_expr(expr, "a width of `*` is not understood; write the number")),
            Some(_) => verbs = verbs.saturating_add(1),
            None => {
                return Some(at_expr(
                    expr,
                    "this format ends within a verb and fails each time; write `%%` for a percent sign",
                ));
            }
        }
    }
    let Expr::Array { items, .. } = values.as_ref() else { return None };
    let given = items.len();
    (given != verbs).then(|| {
        at_expr(expr, format!("this format has {verbs} verbs and is given {given} values, which fails each time"))
    })
}

fn range(params: &[Ref<Expr>]) -> Option<super::Problem> {
    if let Some(step) = params.get(2)
        && number(step).is_some_and(|value| value <= 0.0)
    {
        return Some(at_expr(step, "a step that is not positive fails each time or ends the process"));
    }
    let (from, to) = (number(params.first()?)?, number(params.get(1)?)?);
    let step = params.get(2).and_then(number).unwrap_or(1.0);
    let wide = ((to - from) / step).abs() > MAX_RANGE || !from.is_finite() || !to.is_finite();
    wide.then(|| {
        at_expr(params.first()?, format!("a range of more than {MAX_RANGE} numbers takes more memory than there is"))
            .into()
    })
    .flatten()
}

fn number(expr: &Ref<Expr>) -> Option<f64> {
    match expr.as_ref() {
        Expr::Number { value, .. } => value.as_f64().ok(),
        Expr::UnaryExpr { expr, .. } => number(expr).map(|value| -value),
        _ => None,
    }
}
