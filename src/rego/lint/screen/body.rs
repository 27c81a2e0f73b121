//! Reads the statements of one body.
//!
//! Invariant: a variable is understood only behind the statement that sets it.

use std::collections::BTreeMap;

use regorus::Value;
use regorus::unstable::{AssignOp, BoolOp, Expr, Literal, LiteralStmt, Query, Ref, Rule, RuleHead};

use super::super::walk;
use super::Helpers;
use crate::rego::screen::{Body, Builtin, Comparison, Root, Step, Term};
use crate::rego::value::member;

/// The most statements of one body, and levels of one expression that are understood.
const MAX_STEPS: usize = 40;
const MAX_LEVELS: usize = 8;

/// Reads one body.
pub(super) struct Reader<'h, 'r, 'm> {
    helpers: &'h mut Helpers<'r, 'm>,
    part: usize,
    /// The variables that are set so far.
    locals: BTreeMap<&'m str, usize>,
    /// How many there are, those without a name included.
    count: usize,
}

impl<'h, 'r, 'm> Reader<'h, 'r, 'm> {
    /// Reads a body of a function with these arguments.
    pub(super) fn new(helpers: &'h mut Helpers<'r, 'm>, part: usize, arguments: &'m [Ref<Expr>]) -> Self {
        let mut reader = Self { helpers, part, locals: BTreeMap::new(), count: 0 };
        for argument in arguments {
            reader.pattern(argument);
        }
        reader
    }

    /// Whether each argument is a variable.
    pub(super) fn has_arguments(&self, count: usize) -> bool {
        self.count == count
    }

    pub(super) fn body(mut self, query: &'m Query) -> Body {
        let mut steps = Vec::new();
        for statement in &query.stmts {
            let Some(read) =
                self.statement(statement).filter(|read| read.len().saturating_add(steps.len()) < MAX_STEPS)
            else {
                // Nothing behind it is ever reached.
                steps.push(Step::Unknown);
                break;
            };
            steps.extend(read);
        }
        steps
    }

    /// The steps of a statement, if it is understood.
    fn statement(&mut self, statement: &'m LiteralStmt) -> Option<Vec<Step>> {
        if !statement.with_mods.is_empty() {
            return None;
        }
        let mut steps = Vec::new();
        match &statement.literal {
            Literal::SomeIn { key, value, collection, .. } => {
                let of = self.term(collection, 0, None)?;
                let key = match key {
                    Some(key) => Some(self.pattern(key)?),
                    None => None,
                };
                let element = self.pattern(value)?;
                steps.push(Step::Each { of, key, element, strict: true });
            }
            Literal::Expr { expr, .. } => {
                if let Expr::AssignExpr { op: AssignOp::ColEq, lhs, rhs, .. } = expr.as_ref() {
                    // The engine takes these as patterns of both sides.
                    if matches!(rhs.as_ref(), Expr::Var { .. } | Expr::Array { .. } | Expr::Object { .. }) {
                        return None;
                    }
                    let value = self.term(rhs, 0, Some(&mut steps))?;
                    let local = self.pattern(lhs)?;
                    steps.push(Step::Let(local, value));
                } else {
                    let holds = self.term(expr, 0, Some(&mut steps))?;
                    steps.push(Step::Holds(holds));
                }
            }
            Literal::NotExpr { expr, .. } => steps.push(Step::Fails(self.term(expr, 0, None)?)),
            Literal::SomeVars { .. } | Literal::Every { .. } => return None,
        }
        Some(steps)
    }

    /// The new variable that a pattern is; nothing where the pattern is another one.
    fn pattern(&mut self, expr: &'m Ref<Expr>) -> Option<usize> {
        let Expr::Var { span, .. } = expr.as_ref() else { return None };
        let name = span.text();
        if name == "_" {
            return Some(self.fresh());
        }
        let taken = self.locals.contains_key(name) || matches!(name, "input" | "data") || self.is_global(name);
        if taken {
            return None;
        }
        let local = self.fresh();
        self.locals.insert(name, local);
        Some(local)
    }

    fn fresh(&mut self) -> usize {
        let local = self.count;
        self.count = local.saturating_add(1);
        local
    }

    /// Whether a name means something in the whole package: a rule, a function, an import.
    fn is_global(&self, name: &str) -> bool {
        let model = self.helpers.model;
        let mut path = model.package(self.part).to_vec();
        path.push(name.to_owned());
        model.rule_at_or_below(&path) || model.alias(self.part, name).is_some()
    }

    /// A term, if it is understood. What stands for each element of something goes to `loops`, where it may.
    fn term(&mut self, expr: &'m Ref<Expr>, level: usize, mut loops: Option<&mut Vec<Step>>) -> Option<Term> {
        let level = level.checked_add(1).filter(|level| *level <= MAX_LEVELS)?;
        if let Some(constant) = constant(expr) {
            return Some(constant);
        }
        match expr.as_ref() {
            Expr::Array { items, .. } | Expr::Set { items, .. } => {
                items.iter().map(constant).collect::<Option<_>>().map(Term::List)
            }
            Expr::Var { .. } | Expr::RefDot { .. } | Expr::RefBrack { .. } => self.reference(expr, loops),
            Expr::BoolExpr { op, lhs, rhs, .. } => {
                let left = self.term(lhs, level, loops.as_deref_mut())?;
                let right = self.term(rhs, level, loops)?;
                Some(Term::Compare(comparison(op), Box::new(left), Box::new(right)))
            }
            Expr::Membership { key: None, value, collection, .. } => {
                let element = self.term(value, level, loops.as_deref_mut())?;
                let collection = self.term(collection, level, loops)?;
                Some(Term::In(Box::new(element), Box::new(collection)))
            }
            Expr::Call { fcn, params, .. } => self.call(fcn, params, level, loops),
            _ => None,
        }
    }

    fn call(
        &mut self,
        fcn: &'m Ref<Expr>,
        params: &'m [Ref<Expr>],
        level: usize,
        mut loops: Option<&mut Vec<Step>>,
    ) -> Option<Term> {
        let (root, steps) = walk::path(fcn)?;
        let global = self.is_global(root) || self.locals.contains_key(root);
        let mut arguments = Vec::new();
        for param in params {
            arguments.push(self.term(param, level, loops.as_deref_mut())?);
        }
        if global {
            let helper = steps.is_empty().then(|| self.helpers.place(self.part, root, Some(params.len())))??;
            return Some(Term::Ask(helper, arguments));
        }
        let (builtin, arity) = builtin(&walk::names(root, &steps).join("."))?;
        (params.len() == arity).then_some(Term::Call(builtin, arguments))
    }

    /// A path below a variable, a rule or the input.
    fn reference(&mut self, expr: &'m Ref<Expr>, mut loops: Option<&mut Vec<Step>>) -> Option<Term> {
        let (name, keys) = keys(expr)?;
        let (mut term, keys) = self.begin(name, &keys)?;
        for key in keys {
            match (key, &mut term) {
                (Some(key), Term::At(_, path)) => path.push((*key).to_owned()),
                (Some(_), _) => return None,
                (None, _) => {
                    let element = self.fresh();
                    let of = std::mem::replace(&mut term, Term::At(Root::Local(element), Vec::new()));
                    loops.as_deref_mut()?.push(Step::Each { of, key: None, element, strict: false });
                }
            }
        }
        Some(term)
    }

    /// What a path begins with, and what is left of it.
    fn begin<'k>(&mut self, name: &'m str, keys: &'k [Option<&'m str>]) -> Option<(Term, &'k [Option<&'m str>])> {
        if let Some(local) = self.locals.get(name) {
            return Some((Term::At(Root::Local(*local), Vec::new()), keys));
        }
        if name == "input" && !self.is_global(name) {
            return self.input(keys);
        }
        let rules = self.helpers.definitions(self.part, name)?;
        // Another name for a constant or a path.
        if let [rule] = rules.as_slice()
            && let Rule::Spec { head: RuleHead::Compr { assign: Some(assign), .. }, bodies, .. } = rule.rule
            && bodies.is_empty()
        {
            let part = rule.part;
            let mut reader = Reader::new(self.helpers, part, &[]);
            let term = constant(&assign.value).or_else(|| match assign.value.as_ref() {
                Expr::Array { .. } | Expr::Set { .. } => reader.term(&assign.value, 0, None),
                Expr::RefDot { .. } | Expr::RefBrack { .. } => reader.path(&assign.value),
                _ => None,
            })?;
            return Some((term, keys));
        }
        let helper = keys.is_empty().then(|| self.helpers.place(self.part, name, None))??;
        Some((Term::Ask(helper, Vec::new()), keys))
    }

    /// A path below the input without anything in between.
    fn path(&mut self, expr: &'m Ref<Expr>) -> Option<Term> {
        let (name, keys) = keys(expr)?;
        let below_input = name == "input" && !self.is_global(name) && keys.iter().all(Option::is_some);
        below_input.then(|| self.reference(expr, None))?
    }

    /// Where a path below the input begins, and what is left of it.
    fn input<'k>(&self, keys: &'k [Option<&'m str>]) -> Option<(Term, &'k [Option<&'m str>])> {
        let at = |root| Term::At(root, Vec::new());
        if self.helpers.unit.suffixes_everywhere {
            return Some((at(Root::Input), keys));
        }
        match keys {
            [Some("parameters"), rest @ ..] => self.parameter(rest),
            [Some("request" | "review"), rest @ ..] => match rest {
                [Some("object"), rest @ ..] => Some((at(Root::Object), rest)),
                [Some("oldObject"), rest @ ..] => Some((at(Root::OldObject), rest)),
                [Some("operation")] => Some((at(Root::Operation), &[])),
                [Some("namespace")] => Some((at(Root::Namespace), &[])),
                [Some("name")] => Some((at(Root::Name), &[])),
                [Some("kind"), Some("kind")] => Some((at(Root::Kind), &[])),
                [Some("userInfo"), Some("username")] => Some((at(Root::User), &[])),
                _ => None,
            },
            _ => None,
        }
    }

    /// What the parameters hold at a path.
    fn parameter<'k>(&self, keys: &'k [Option<&'m str>]) -> Option<(Term, &'k [Option<&'m str>])> {
        keys.first()?;
        let mut value = self.helpers.unit.data.get("parameters");
        let mut rest = keys;
        while let Some((Some(key), after)) = rest.split_first() {
            value = value.and_then(|value| member(value, key));
            rest = after;
        }
        Some((value.map_or(Some(Term::Undefined), written)?, rest))
    }
}

/// A scalar, or a list of them, of a document.
fn written(value: &Value) -> Option<Term> {
    let scalar = |value: &Value| match value {
        Value::Null => Some(Term::Null),
        Value::Bool(value) => Some(Term::Bool(*value)),
        Value::Number(_) => value.as_i64().ok().map(Term::Number),
        Value::String(text) => Some(Term::Text(text.as_ref().to_owned())),
        _ => None,
    };
    match value {
        Value::Array(elements) => elements.iter().map(scalar).collect::<Option<_>>().map(Term::List),
        other => scalar(other),
    }
}

/// The variable that a reference begins with, and its keys; nothing stands for each element.
fn keys(expr: &Ref<Expr>) -> Option<(&str, Vec<Option<&str>>)> {
    let (mut keys, mut at) = (Vec::new(), expr);
    loop {
        match at.as_ref() {
            Expr::RefDot { refr, field, .. } => {
                keys.push(Some(field.0.text()));
                at = refr;
            }
            Expr::RefBrack { refr, index, .. } => {
                let each = matches!(index.as_ref(), Expr::Var { span, .. } if span.text() == "_");
                keys.push(if each { None } else { Some(walk::constant(index)?) });
                at = refr;
            }
            Expr::Var { span, .. } => {
                keys.reverse();
                return Some((span.text(), keys));
            }
            _ => return None,
        }
    }
}

/// A scalar that is written out.
fn constant(expr: &Ref<Expr>) -> Option<Term> {
    match expr.as_ref() {
        Expr::Null { .. } => Some(Term::Null),
        Expr::Bool { value: Value::Bool(value), .. } => Some(Term::Bool(*value)),
        Expr::Number { span, .. } => span.text().parse().ok().map(Term::Number),
        Expr::String { .. } | Expr::RawString { .. } => walk::constant(expr).map(|text| Term::Text(text.to_owned())),
        _ => None,
    }
}

fn comparison(operator: &BoolOp) -> Comparison {
    match operator {
        BoolOp::Eq => Comparison::Eq,
        BoolOp::Ne => Comparison::Ne,
        BoolOp::Lt => Comparison::Lt,
        BoolOp::Le => Comparison::Le,
        BoolOp::Gt => Comparison::Gt,
        BoolOp::Ge => Comparison::Ge,
    }
}

/// A builtin that is understood, and the number of its arguments.
fn builtin(name: &str) -> Option<(Builtin, usize)> {
    match name {
        "startswith" => Some((Builtin::StartsWith, 2)),
        "endswith" => Some((Builtin::EndsWith, 2)),
        "contains" => Some((Builtin::Contains, 2)),
        "count" => Some((Builtin::Count, 1)),
        "is_array" => Some((Builtin::IsArray, 1)),
        "is_boolean" => Some((Builtin::IsBoolean, 1)),
        "is_null" => Some((Builtin::IsNull, 1)),
        "is_number" => Some((Builtin::IsNumber, 1)),
        "is_object" => Some((Builtin::IsObject, 1)),
        "is_string" => Some((Builtin::IsString, 1)),
        "object.get" => Some((Builtin::Get, 3)),
        "to_number" => Some((Builtin::ToNumber, 1)),
        _ => None,
    }
}
