//! Reads which rules are simple enough to be told silent without the engine.
//!
//! Invariant: what is not understood to the last detail becomes [`Step::Unknown`], which leaves it to the engine. Statements are
//! kept in the order of the text, which is the engine's own for all that is understood here: it takes the first one whose
//! variables are there, and a statement is only understood where those before it set all its variables.

use std::collections::BTreeMap;

use regorus::Value;
use regorus::unstable::{AssignOp, BoolOp, Expr, Literal, LiteralStmt, Query, Ref, Rule, RuleHead};

use super::Unit;
use super::model::Model;
use super::rules::{Entry, RuleKind};
use super::walk;
use crate::policy::Phase;
use crate::rego::screen::{Body, Builtin, Comparison, Root, Screen, Step, Term};

/// The most bodies of one set, statements of one body, and levels of one expression that are understood.
const MAX_BODIES: usize = 100;
const MAX_STEPS: usize = 40;
const MAX_LEVELS: usize = 8;

/// Reads what can be told of a set's rules.
pub fn screen(unit: &Unit<'_>, entries: &[Entry], concerns: impl Fn(RuleKind, Phase) -> bool) -> Screen {
    let model = Model::of(unit);
    let bodies = |phase| {
        let mut bodies = Vec::new();
        for entry in entries.iter().filter(|entry| concerns(entry.kind, phase)) {
            if entry.kind == RuleKind::Main || !entry.is_set {
                return None;
            }
            bodies.extend(of_entry(unit, &model, entry)?);
        }
        (bodies.len() <= MAX_BODIES).then_some(bodies)
    };
    // A set whose every request would go to the engine anyway is not walked for nothing.
    let useful = |bodies: &Vec<Body>| !bodies.iter().any(|body| matches!(body.first(), None | Some(Step::Unknown)));
    Screen { validate: bodies(Phase::Validate).filter(useful), mutate: bodies(Phase::Mutate).filter(useful) }
}

/// The bodies of one rule, wherever they are defined; nothing where there is more to it than a set's bodies.
fn of_entry(unit: &Unit<'_>, model: &Model<'_>, entry: &Entry) -> Option<Vec<Body>> {
    let mut bodies = Vec::new();
    let here = |part: usize| model.parts.get(part);
    let same = |part: usize| super::rules::written(model.package(part)) == entry.package;
    for rule in model.rules.iter().filter(|rule| same(rule.part)) {
        if walk::path(rule.refr).is_none_or(|(name, _)| name != entry.rule) {
            continue;
        }
        if here(rule.part).is_some_and(|part| unit.tests.contains(part.module.package.span.source.file())) {
            continue;
        }
        let Rule::Spec { head: RuleHead::Set { key: Some(_), .. }, bodies: of_rule, .. } = rule.rule else {
            return None;
        };
        if !rule.steps.is_empty() || of_rule.iter().any(|body| body.is_else || body.assign.is_some()) {
            return None;
        }
        if of_rule.is_empty() {
            // It always has something to say.
            bodies.push(Vec::new());
        }
        for body in of_rule {
            bodies.push(Reader { unit, model, part: rule.part, locals: BTreeMap::new(), count: 0 }.body(&body.query));
        }
    }
    Some(bodies)
}

/// Reads one body.
struct Reader<'r, 'm> {
    unit: &'r Unit<'m>,
    model: &'r Model<'m>,
    part: usize,
    /// The variables that are set so far.
    locals: BTreeMap<&'r str, usize>,
    /// How many there are, those without a name included.
    count: usize,
}

impl<'r> Reader<'r, '_> {
    fn body(mut self, query: &'r Query) -> Body {
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
    fn statement(&mut self, statement: &'r LiteralStmt) -> Option<Vec<Step>> {
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
    fn pattern(&mut self, expr: &'r Ref<Expr>) -> Option<usize> {
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
        let mut path = self.model.package(self.part).to_vec();
        path.push(name.to_owned());
        self.model.rule_at_or_below(&path) || self.model.alias(self.part, name).is_some()
    }

    /// A term, if it is understood. What stands for each element of something goes to `loops`, where it may.
    fn term(&mut self, expr: &'r Ref<Expr>, level: usize, mut loops: Option<&mut Vec<Step>>) -> Option<Term> {
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
            Expr::Call { fcn, params, .. } => {
                let Expr::Var { span, .. } = fcn.as_ref() else { return None };
                let (builtin, arity) = builtin(span.text())?;
                if self.is_global(span.text()) || params.len() != arity {
                    return None;
                }
                let arguments = params.iter().map(|param| self.term(param, level, loops.as_deref_mut()));
                Some(Term::Call(builtin, arguments.collect::<Option<_>>()?))
            }
            _ => None,
        }
    }

    /// A path below a variable or the input.
    fn reference(&mut self, expr: &'r Ref<Expr>, mut loops: Option<&mut Vec<Step>>) -> Option<Term> {
        let (name, keys) = keys(expr)?;
        let (mut root, keys) = match self.locals.get(name) {
            Some(local) => (Root::Local(*local), keys.as_slice()),
            None if name == "input" && !self.is_global(name) => self.input(&keys)?,
            None => return None,
        };
        let mut path = Vec::new();
        for key in keys {
            if let Some(key) = key {
                path.push((*key).to_owned());
                continue;
            }
            let (of, element) = (Term::At(root, std::mem::take(&mut path)), self.fresh());
            loops.as_deref_mut()?.push(Step::Each { of, key: None, element, strict: false });
            root = Root::Local(element);
        }
        Some(Term::At(root, path))
    }

    /// Where a path below the input begins, and what is left of it.
    fn input<'k>(&self, keys: &'k [Option<&'r str>]) -> Option<(Root, &'k [Option<&'r str>])> {
        if self.unit.suffixes_everywhere {
            return Some((Root::Input, keys));
        }
        let (Some("request" | "review"), rest) = keys.split_first().map(|(key, rest)| (*key, rest))? else {
            return None;
        };
        match rest {
            [Some("object"), rest @ ..] => Some((Root::Object, rest)),
            [Some("oldObject"), rest @ ..] => Some((Root::OldObject, rest)),
            [Some("operation")] => Some((Root::Operation, &[])),
            [Some("namespace")] => Some((Root::Namespace, &[])),
            [Some("name")] => Some((Root::Name, &[])),
            [Some("kind"), Some("kind")] => Some((Root::Kind, &[])),
            [Some("userInfo"), Some("username")] => Some((Root::User, &[])),
            _ => None,
        }
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
        _ => None,
    }
}
