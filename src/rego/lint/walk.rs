//! What a rule refers to and calls, found in one walk.
//!
//! Invariant: recursion follows the depth of the text's brackets and operators, which `brackets` has limited.

use std::collections::BTreeSet;

use regorus::unstable::{AssignOp, Expr, Literal, LiteralStmt, Query, Ref, Rule, RuleBody, RuleHead, Span};

/// One step of a path: a name, or something that is known only at run time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    Name(String),
    Any,
}

/// What a reference is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Read,
    /// `with <reference> as …`
    Replaced,
    /// `with … as <reference>`
    Replacement,
}

/// A reference that begins with a name which the rule itself does not declare.
pub(super) struct Reference<'a> {
    pub(super) root: &'a str,
    pub(super) steps: Vec<Step>,
    pub(super) expr: &'a Ref<Expr>,
    pub(super) purpose: Purpose,
}

/// A call of a function by its name.
pub(super) struct Call<'a> {
    pub(super) path: Vec<String>,
    pub(super) fcn: &'a Ref<Expr>,
    pub(super) params: &'a [Ref<Expr>],
    /// Whether the call is a statement, which may hold one argument more: the place for its result.
    pub(super) statement: bool,
}

/// All that a rule does.
#[derive(Default)]
pub(super) struct Facts<'a> {
    pub(super) references: Vec<Reference<'a>>,
    pub(super) calls: Vec<Call<'a>>,
    /// Signs before something that is not a number.
    pub(super) signs: Vec<&'a Ref<Expr>>,
    /// Names that `some … in` and `every` declare.
    pub(super) iterated: Vec<(&'a str, &'a Span)>,
    /// Divisions.
    pub(super) quotients: Vec<&'a Ref<Expr>>,
    /// Statements that are just `false`.
    pub(super) never: Vec<&'a Ref<Expr>>,
    /// Queries with their number of statements.
    pub(super) queries: Vec<&'a Ref<Query>>,
    /// Names in the head that the rule does not declare.
    pub(super) head: Vec<(&'a str, &'a Ref<Expr>)>,
    /// The names that occur in bodies or are declared.
    pub(super) names: BTreeSet<&'a str>,
    /// How deep its expressions are.
    pub(super) depth: usize,
}

/// Walks one rule.
pub(super) fn facts(rule: &Rule) -> Facts<'_> {
    let mut walker = Walker { facts: Facts::default(), scopes: Vec::new(), level: 0, in_head: false };
    walker.rule(rule);
    walker.facts
}

/// The path that an expression spells, where it is a reference: its root and the steps after it.
pub(super) fn path(expr: &Ref<Expr>) -> Option<(&str, Vec<Step>)> {
    let mut steps = Vec::new();
    let mut at = expr;
    loop {
        match at.as_ref() {
            Expr::RefDot { refr, field, .. } => {
                steps.push(Step::Name(field.0.text().to_owned()));
                at = refr;
            }
            Expr::RefBrack { refr, index, .. } => {
                steps.push(constant(index).map_or(Step::Any, |name| Step::Name(name.to_owned())));
                at = refr;
            }
            Expr::Var { span, .. } => {
                steps.reverse();
                return Some((span.text(), steps));
            }
            _ => return None,
        }
    }
}

/// The text of a string literal.
pub(super) fn constant(expr: &Ref<Expr>) -> Option<&str> {
    match expr.as_ref() {
        Expr::String { value, .. } | Expr::RawString { value, .. } => value.as_string().ok().map(AsRef::as_ref),
        _ => None,
    }
}

/// The names at the head of a path.
pub(super) fn names(root: &str, steps: &[Step]) -> Vec<String> {
    let fixed = steps.iter().map_while(|step| match step {
        Step::Name(name) => Some(name.clone()),
        Step::Any => None,
    });
    std::iter::once(root.to_owned()).chain(fixed).collect()
}

struct Walker<'a> {
    facts: Facts<'a>,
    scopes: Vec<BTreeSet<&'a str>>,
    level: usize,
    in_head: bool,
}

impl<'a> Walker<'a> {
    fn rule(&mut self, rule: &'a Rule) {
        match rule {
            Rule::Default { refr, args, value, .. } => {
                self.head_path(refr);
                self.scoped(args, |this| this.expr(value));
            }
            Rule::Spec { head, bodies, .. } => self.spec(head, bodies),
        }
    }

    fn spec(&mut self, head: &'a RuleHead, bodies: &'a [RuleBody]) {
        let (refr, args, key, value) = match head {
            RuleHead::Compr { refr, assign, .. } => (refr, None, None, assign.as_ref().map(|assign| &assign.value)),
            RuleHead::Set { refr, key, .. } => (refr, None, key.as_ref(), None),
            RuleHead::Func { refr, args, assign, .. } => {
                (refr, Some(args), None, assign.as_ref().map(|assign| &assign.value))
            }
        };
        let args = args.map_or(&[] as &[Ref<Expr>], |args| args);
        self.scoped(args, |this| {
            let first = bodies.first().map(|body| body.query.as_ref());
            this.query_then(first, |this| {
                this.in_head = true;
                this.head_path(refr);
                for part in key.into_iter().chain(value) {
                    this.expr(part);
                }
                this.in_head = false;
            });
            for (index, body) in bodies.iter().enumerate() {
                // The first one's statements were walked with the head.
                let query = (index > 0).then_some(body.query.as_ref());
                if let Some(assign) = &body.assign {
                    this.query_then(query, |this| this.expr(&assign.value));
                } else if query.is_some() {
                    this.query_then(query, |_| {});
                }
                this.facts.queries.push(&body.query);
            }
        });
    }

    /// What is dynamic in the path of a rule's head.
    fn head_path(&mut self, refr: &'a Ref<Expr>) {
        let mut at = refr;
        loop {
            match at.as_ref() {
                Expr::RefDot { refr, .. } => at = refr,
                Expr::RefBrack { refr, index, .. } => {
                    self.expr(index);
                    at = refr;
                }
                _ => return,
            }
        }
    }

    fn scoped(&mut self, patterns: &'a [Ref<Expr>], then: impl FnOnce(&mut Self)) {
        let mut scope = BTreeSet::new();
        for pattern in patterns {
            variables(pattern, &mut scope);
        }
        self.facts.names.extend(scope.iter());
        self.scopes.push(scope);
        then(self);
        self.scopes.pop();
    }

    fn query_then(&mut self, query: Option<&'a Query>, then: impl FnOnce(&mut Self)) {
        let Some(query) = query else { return then(self) };
        let scope = self.declared(query);
        self.facts.names.extend(scope.iter());
        self.scopes.push(scope);
        for statement in &query.stmts {
            self.statement(statement);
        }
        then(self);
        self.scopes.pop();
    }

    /// The names that a query declares for itself and what is within.
    fn declared(&mut self, query: &'a Query) -> BTreeSet<&'a str> {
        let mut scope = BTreeSet::new();
        for statement in &query.stmts {
            match &statement.literal {
                Literal::SomeVars { vars, .. } => scope.extend(vars.iter().map(Span::text)),
                Literal::SomeIn { key, value, .. } => {
                    for pattern in key.iter().chain([value]) {
                        variables(pattern, &mut scope);
                        if let Expr::Var { span, .. } = pattern.as_ref() {
                            self.facts.iterated.push((span.text(), span));
                        }
                    }
                }
                Literal::Expr { expr, .. } => {
                    if let Expr::AssignExpr { op: AssignOp::ColEq, lhs, .. } = expr.as_ref() {
                        variables(lhs, &mut scope);
                    }
                }
                Literal::NotExpr { .. } | Literal::Every { .. } => {}
            }
        }
        scope
    }

    fn statement(&mut self, statement: &'a LiteralStmt) {
        match &statement.literal {
            Literal::SomeVars { .. } => {}
            Literal::SomeIn { key, value, collection, .. } => {
                for expr in key.iter().chain([value, collection]) {
                    self.expr(expr);
                }
            }
            Literal::Expr { expr, .. } => {
                if matches!(expr.as_ref(), Expr::Bool { value, .. } if value == &regorus::Value::from(false)) {
                    self.facts.never.push(expr);
                }
                self.top(expr);
            }
            Literal::NotExpr { expr, .. } => self.top(expr),
            Literal::Every { key, value, domain, query, .. } => {
                self.expr(domain);
                let names: BTreeSet<&str> = key.iter().chain([value]).map(Span::text).collect();
                self.facts.names.extend(names.iter());
                self.scopes.push(names);
                self.facts.queries.push(query);
                self.query_then(Some(query), |_| {});
                self.scopes.pop();
            }
        }
        for with in &statement.with_mods {
            self.reference(&with.refr, Purpose::Replaced);
            match path(&with.r#as) {
                Some(_) => self.reference(&with.r#as, Purpose::Replacement),
                None => self.expr(&with.r#as),
            }
        }
    }

    /// An expression that is a statement.
    fn top(&mut self, expr: &'a Ref<Expr>) {
        match expr.as_ref() {
            Expr::Call { fcn, params, .. } => self.call(fcn, params, true),
            _ => self.expr(expr),
        }
    }

    fn call(&mut self, fcn: &'a Ref<Expr>, params: &'a [Ref<Expr>], statement: bool) {
        if let Some((root, steps)) = path(fcn) {
            self.facts.calls.push(Call { path: names(root, &steps), fcn, params, statement });
        }
        for param in params {
            self.expr(param);
        }
    }

    fn reference(&mut self, expr: &'a Ref<Expr>, purpose: Purpose) {
        let mut at = expr;
        while let Expr::RefDot { refr, .. } | Expr::RefBrack { refr, .. } = at.as_ref() {
            if let Expr::RefBrack { index, .. } = at.as_ref() {
                self.expr(index);
            }
            at = refr;
        }
        let Some((root, steps)) = path(expr) else { return self.expr(at) };
        if !self.in_head {
            self.facts.names.insert(root);
        }
        if !self.scopes.iter().any(|scope| scope.contains(root)) {
            if self.in_head {
                self.facts.head.push((root, expr));
            }
            self.facts.references.push(Reference { root, steps, expr, purpose });
        }
    }

    fn expr(&mut self, expr: &'a Ref<Expr>) {
        self.level = self.level.saturating_add(1);
        self.facts.depth = self.facts.depth.max(self.level);
        self.inside(expr);
        self.level = self.level.saturating_sub(1);
    }

    fn comprehension(&mut self, query: &'a Ref<Query>, terms: &[&'a Ref<Expr>]) {
        let in_head = std::mem::replace(&mut self.in_head, false);
        self.facts.queries.push(query);
        self.query_then(Some(query), |this| terms.iter().for_each(|term| this.expr(term)));
        self.in_head = in_head;
    }

    fn inside(&mut self, expr: &'a Ref<Expr>) {
        match expr.as_ref() {
            Expr::String { .. }
            | Expr::RawString { .. }
            | Expr::Number { .. }
            | Expr::Bool { .. }
            | Expr::Null { .. } => {}
            Expr::Var { .. } | Expr::RefDot { .. } | Expr::RefBrack { .. } => self.reference(expr, Purpose::Read),
            Expr::Array { items, .. } | Expr::Set { items, .. } => items.iter().for_each(|item| self.expr(item)),
            Expr::Object { fields, .. } => {
                for (_, key, value) in fields {
                    self.expr(key);
                    self.expr(value);
                }
            }
            Expr::ArrayCompr { term, query, .. } | Expr::SetCompr { term, query, .. } => {
                self.comprehension(query, &[term]);
            }
            Expr::ObjectCompr { key, value, query, .. } => self.comprehension(query, &[key, value]),
            Expr::Call { fcn, params, .. } => self.call(fcn, params, false),
            Expr::UnaryExpr { expr: operand, .. } => {
                if !matches!(operand.as_ref(), Expr::Number { .. }) {
                    self.facts.signs.push(expr);
                }
                self.expr(operand);
            }
            Expr::ArithExpr { lhs, rhs, .. } => {
                self.facts.quotients.push(expr);
                self.expr(lhs);
                self.expr(rhs);
            }
            Expr::BinExpr { lhs, rhs, .. } | Expr::BoolExpr { lhs, rhs, .. } | Expr::AssignExpr { lhs, rhs, .. } => {
                self.expr(lhs);
                self.expr(rhs);
            }
            Expr::Membership { key, value, collection, .. } => {
                for part in key.iter().chain([value, collection]) {
                    self.expr(part);
                }
            }
        }
    }
}

/// The variables of a pattern.
pub(super) fn variables<'a>(pattern: &'a Ref<Expr>, into: &mut BTreeSet<&'a str>) {
    match pattern.as_ref() {
        Expr::Var { span, .. } => {
            into.insert(span.text());
        }
        Expr::Array { items, .. } | Expr::Set { items, .. } => items.iter().for_each(|item| variables(item, into)),
        Expr::Object { fields, .. } => fields.iter().for_each(|(_, _, value)| variables(value, into)),
        _ => {}
    }
}
