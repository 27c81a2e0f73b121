//! Reads which rules are simple enough to be told silent without the engine.
//!
//! Invariant: what is not understood to the last detail becomes [`Step::Unknown`], which leaves it to the engine. Statements are
//! kept in the order of the text, which is the engine's own for all that is understood here: it takes the first one whose
//! variables are there, and a statement is only understood where those before it set all its variables.

use std::collections::BTreeMap;

use regorus::Value;
use regorus::unstable::{Expr, Query, Rule, RuleHead};

use super::Unit;
use super::model::{Definition, Model, Origin, Path, below};
use super::rules::{Entry, RuleKind};
use super::walk;
use crate::policy::Phase;
use crate::rego::screen::{Body, Screen, Step};

mod body;

use body::Reader;

/// The most bodies of one set, helpers, and helpers of helpers that are understood.
const MAX_BODIES: usize = 100;
const MAX_HELPERS: usize = 50;
const MAX_NESTED: usize = 6;

/// Reads what can be told of a set's rules.
pub fn screen(unit: &Unit<'_>, entries: &[Entry], concerns: impl Fn(RuleKind, Phase) -> bool) -> Screen {
    let model = Model::of(unit);
    let mut helpers = Helpers { unit, model: &model, bodies: Vec::new(), known: BTreeMap::new(), nested: 0 };
    let mut of_phase = |phase| {
        let mut bodies = Vec::new();
        for entry in entries.iter().filter(|entry| concerns(entry.kind, phase)) {
            if entry.kind == RuleKind::Main || !entry.is_set {
                return None;
            }
            bodies.extend(of_entry(&mut helpers, entry)?);
        }
        // A set whose every request would go to the engine anyway is not walked for nothing.
        let useless = bodies.iter().any(|body: &Body| matches!(body.first(), None | Some(Step::Unknown)));
        (bodies.len() <= MAX_BODIES && !useless).then_some(bodies)
    };
    let (validate, mutate) = (of_phase(Phase::Validate), of_phase(Phase::Mutate));
    Screen { validate, mutate, helpers: helpers.bodies }
}

/// The bodies of one rule, wherever they are defined; nothing where there is more to it than a set's bodies.
fn of_entry(helpers: &mut Helpers<'_, '_>, entry: &Entry) -> Option<Vec<Body>> {
    let mut bodies = Vec::new();
    let model = helpers.model;
    for rule in model.rules.iter().filter(|rule| model.origin(rule) != Origin::Test) {
        let same = super::rules::written(model.package(rule.part)) == entry.package;
        if !same || walk::path(rule.refr).is_none_or(|(name, _)| name != entry.rule) {
            continue;
        }
        let Rule::Spec { head: RuleHead::Set { key: Some(_), .. }, .. } = rule.rule else { return None };
        if !rule.steps.is_empty() {
            return None;
        }
        let queries = queries(rule)?;
        if queries.is_empty() {
            // It always has something to say.
            bodies.push(Vec::new());
        }
        for query in queries {
            bodies.push(Reader::new(helpers, rule.part, &[]).body(query));
        }
    }
    Some(bodies)
}

/// The bodies of a definition, where they are alternatives and no `else` gives another value.
fn queries<'a>(rule: &Definition<'a>) -> Option<Vec<&'a Query>> {
    let Rule::Spec { bodies, .. } = rule.rule else { return None };
    let plain = bodies.iter().all(|body| !body.is_else && body.assign.is_none());
    plain.then(|| bodies.iter().map(|body| body.query.as_ref()).collect())
}

/// The rules and functions beside those that are asked.
struct Helpers<'h, 'm> {
    unit: &'h Unit<'m>,
    model: &'h Model<'m>,
    /// The bodies of those that say whether something is so.
    bodies: Vec<Vec<Body>>,
    /// Which of them stands where, by the number of arguments that it is asked with; nothing for what is not understood. A
    /// function that is asked with another number of arguments, or with none, is another thing to the engine.
    known: BTreeMap<(Path, Option<usize>), Option<usize>>,
    /// How deep in each other those are that are being read.
    nested: usize,
}

impl<'m> Helpers<'_, 'm> {
    /// The definitions of a rule of a package, where nothing else stands at its path or below it.
    fn definitions(&self, part: usize, name: &str) -> Option<Vec<&Definition<'m>>> {
        let mut path = self.model.package(part).to_vec();
        path.push(name.to_owned());
        let rules = self.model.by_path.get(&path)?;
        let alone = below(&self.model.by_path, &path).count() == 1 && self.model.alias(part, name).is_none();
        let rules = rules.iter().filter_map(|place| self.model.rules.get(*place));
        let rules: Vec<_> = rules.filter(|rule| self.model.origin(rule) != Origin::Test).collect();
        (alone && !rules.is_empty() && rules.iter().all(|rule| rule.steps.is_empty())).then_some(rules)
    }

    /// Where the bodies stand of a rule, or of a function with so many arguments, that only ever is `true`.
    fn place(&mut self, part: usize, name: &str, arity: Option<usize>) -> Option<usize> {
        let mut path = self.model.package(part).to_vec();
        path.push(name.to_owned());
        let key = (path, arity);
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        self.nested = self.nested.checked_add(1).filter(|nested| *nested <= MAX_NESTED)?;
        let bodies = self.read(part, name, arity);
        self.nested = self.nested.saturating_sub(1);
        let place = bodies.filter(|_| self.bodies.len() < MAX_HELPERS).map(|bodies| {
            self.bodies.push(bodies);
            self.bodies.len().saturating_sub(1)
        });
        self.known.insert(key, place);
        place
    }

    fn read(&mut self, part: usize, name: &str, arity: Option<usize>) -> Option<Vec<Body>> {
        let mut read = Vec::new();
        for rule in self
            .definitions(part, name)?
            .into_iter()
            .map(|rule| (rule.part, rule.rule, queries(rule)))
            .collect::<Vec<_>>()
        {
            let (part, rule, queries) = rule;
            let Rule::Spec { head, .. } = rule else { return None };
            let (arguments, assign) = match (head, arity) {
                (RuleHead::Compr { assign, .. }, None) => (&[][..], assign),
                (RuleHead::Func { args, assign, .. }, Some(arity)) if args.len() == arity => (args.as_slice(), assign),
                _ => return None,
            };
            let is_true = |value: &Expr| matches!(value, Expr::Bool { value, .. } if *value == Value::from(true));
            if assign.as_ref().is_some_and(|assign| !is_true(&assign.value)) {
                return None;
            }
            for query in queries? {
                let reader = Reader::new(self, part, arguments);
                if !reader.has_arguments(arguments.len()) {
                    return None;
                }
                read.push(reader.body(query));
            }
        }
        Some(read)
    }
}
