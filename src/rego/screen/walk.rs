//! The walk over the bodies of one set.
//!
//! Invariant: it ends after a bounded number of steps, and is sure only of what the engine would find too.

use super::{Body, Builtin, Comparison, Root, Step, Term};
use crate::json::{Json, Object};
use crate::review::Request;

/// How many steps it takes for one set and request before it leaves that to the engine, whose budget is far above what takes so
/// many of its own.
const STEPS: usize = 2_000;

/// How many bytes of text are looked at in one step.
const STRIDE: usize = 64;

/// What the engine has to decide.
#[derive(Debug)]
pub(super) struct Unsure;

pub(super) type Sure<T> = Result<T, Unsure>;

/// A value of the request or of the rule.
#[derive(Debug, Clone, Copy)]
enum Value<'v> {
    Null,
    Bool(bool),
    Number(Option<i64>),
    Text(&'v str),
    Array(&'v [Json<'v>]),
    Object(&'v Object<'v>),
    List(&'v [Term]),
}

impl<'v> From<&'v Json<'v>> for Value<'v> {
    fn from(json: &'v Json<'v>) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(literal) => Self::Number(literal.parse().ok()),
            Json::String(text) => Self::Text(text),
            Json::Array(elements) => Self::Array(elements),
            Json::Object(members) => Self::Object(members),
        }
    }
}

/// One set on one request.
pub(super) struct Walk<'v> {
    request: &'v Request<'v>,
    helpers: &'v [Vec<Body>],
    locals: Vec<Option<Value<'v>>>,
    left: usize,
}

impl<'v> Walk<'v> {
    pub(super) fn new(request: &'v Request<'v>, helpers: &'v [Vec<Body>]) -> Self {
        Self { request, helpers, locals: Vec::new(), left: STEPS }
    }

    /// Whether some values let these statements come to their end. All are tried, since the engine may try them all.
    pub(super) fn run(&mut self, steps: &'v [Step]) -> Sure<bool> {
        let mut rest = steps;
        while let Some((step, after)) = rest.split_first() {
            self.spend(1)?;
            let goes_on = match step {
                Step::Each { of, key, element, strict } => {
                    return self.each(of, (*key, *element), *strict, after);
                }
                Step::Let(local, term) => {
                    let value = self.value(term)?;
                    self.set(*local, value);
                    value.is_some()
                }
                Step::Holds(term) => self.holds(term)?,
                Step::Fails(term) => !self.holds(term)?,
                Step::Unknown => return Err(Unsure),
            };
            if !goes_on {
                return Ok(false);
            }
            rest = after;
        }
        Ok(true)
    }

    fn each(
        &mut self,
        of: &'v Term,
        (key, element): (Option<usize>, usize),
        strict: bool,
        then: &'v [Step],
    ) -> Sure<bool> {
        let mut found = false;
        match self.value(of)? {
            Some(Value::Array(elements)) => {
                for (index, value) in elements.iter().enumerate() {
                    if let Some(key) = key {
                        self.set(key, Some(Value::Number(i64::try_from(index).ok())));
                    }
                    self.set(element, Some(value.into()));
                    found |= self.run(then)?;
                }
            }
            Some(Value::Object(members)) => {
                for (name, value) in members.iter() {
                    if let Some(key) = key {
                        self.set(key, Some(Value::Text(name)));
                    }
                    self.set(element, Some(value.into()));
                    found |= self.run(then)?;
                }
            }
            Some(Value::List(terms)) if key.is_none() => {
                for term in terms {
                    let value = self.value(term)?;
                    self.set(element, value);
                    found |= self.run(then)?;
                }
            }
            Some(Value::List(_)) => return Err(Unsure),
            Some(_) if strict => return Err(Unsure),
            _ => {}
        }
        Ok(found)
    }

    /// Whether a helper says so of these arguments.
    fn ask(&mut self, helper: usize, arguments: &'v [Term]) -> Sure<bool> {
        let mut frame = Vec::with_capacity(arguments.len());
        for argument in arguments {
            frame.push(self.value(argument)?);
        }
        // A function of something undefined is not looked into.
        if frame.iter().any(Option::is_none) {
            return Ok(false);
        }
        let outside = std::mem::take(&mut self.locals);
        let mut found = false;
        for body in self.helpers.get(helper).ok_or(Unsure)? {
            self.locals.clone_from(&frame);
            found |= self.run(body)?;
        }
        self.locals = outside;
        Ok(found)
    }

    fn set(&mut self, local: usize, value: Option<Value<'v>>) {
        if self.locals.len() <= local {
            self.locals.resize(local.saturating_add(1), None);
        }
        if let Some(place) = self.locals.get_mut(local) {
            *place = value;
        }
    }

    /// Whether a statement is so: it has a value, and that is not `false`.
    fn holds(&mut self, term: &'v Term) -> Sure<bool> {
        Ok(!matches!(self.value(term)?, None | Some(Value::Bool(false))))
    }

    /// The value of a term; nothing where it is undefined.
    fn value(&mut self, term: &'v Term) -> Sure<Option<Value<'v>>> {
        Ok(Some(match term {
            Term::Null => Value::Null,
            Term::Bool(value) => Value::Bool(*value),
            Term::Number(value) => Value::Number(Some(*value)),
            Term::Text(text) => Value::Text(text),
            Term::List(terms) => Value::List(terms),
            Term::Undefined => return Ok(None),
            Term::At(root, path) => return self.at(*root, path),
            Term::Compare(comparison, left, right) => {
                let (left, right) = (self.value(left)?, self.value(right)?);
                let (Some(left), Some(right)) = (left, right) else { return Ok(None) };
                Value::Bool(self.compare(*comparison, left, right)?)
            }
            Term::In(element, collection) => {
                let (element, collection) = (self.value(element)?, self.value(collection)?);
                Value::Bool(self.is_in(element, collection)?)
            }
            Term::Call(builtin, arguments) => return self.call(*builtin, arguments),
            Term::Ask(helper, arguments) => return Ok(self.ask(*helper, arguments)?.then_some(Value::Bool(true))),
        }))
    }

    fn at(&mut self, root: Root, path: &'v [String]) -> Sure<Option<Value<'v>>> {
        let request = self.request;
        let (object, old) = (&request.object, &request.old_object);
        let json = match root {
            Root::OldObject => old,
            Root::Input if *object == Json::Null => old,
            Root::Object | Root::Input => object,
            _ => {
                let value = match root {
                    Root::Local(local) => self.locals.get(local).copied().flatten(),
                    Root::Operation => Some(Value::Text(request.operation.as_str())),
                    Root::Kind => Some(known(&request.kind.kind)?),
                    Root::Namespace => Some(known(&request.namespace)?),
                    Root::Name => Some(known(&request.name)?),
                    _ => Some(known(&request.user.name)?),
                };
                return self.below(value, path);
            }
        };
        // Whether it is null or not there makes no difference to what stands below it.
        if *json == Json::Null && path.is_empty() { Err(Unsure) } else { self.below(Some(json.into()), path) }
    }

    fn below(&mut self, value: Option<Value<'v>>, path: &'v [String]) -> Sure<Option<Value<'v>>> {
        let mut value = value;
        for key in path {
            self.spend(1)?;
            value = match value {
                Some(Value::Object(members)) => members.member(key).map(Value::from),
                // A set has its elements for keys.
                Some(Value::List(_)) => return Err(Unsure),
                _ => return Ok(None),
            };
        }
        Ok(value)
    }

    fn compare(&mut self, comparison: Comparison, left: Value<'v>, right: Value<'v>) -> Sure<bool> {
        let order = match (comparison, left, right) {
            (Comparison::Eq, ..) => return self.same(left, right),
            (Comparison::Ne, ..) => return Ok(!self.same(left, right)?),
            (_, Value::Number(Some(left)), Value::Number(Some(right))) => left.cmp(&right),
            (_, Value::Text(left), Value::Text(right)) => {
                self.read(left)?;
                left.cmp(right)
            }
            _ => return Err(Unsure),
        };
        Ok(match comparison {
            Comparison::Lt => order.is_lt(),
            Comparison::Le => order.is_le(),
            Comparison::Gt => order.is_gt(),
            _ => order.is_ge(),
        })
    }

    /// Whether two values are equal.
    fn same(&mut self, left: Value<'v>, right: Value<'v>) -> Sure<bool> {
        use Value::{Array, Bool, List, Null, Number, Object, Text};
        match (left, right) {
            (Null, Null) => Ok(true),
            (Bool(left), Bool(right)) => Ok(left == right),
            (Number(left), Number(right)) => Ok(left.ok_or(Unsure)? == right.ok_or(Unsure)?),
            (Text(left), Text(right)) => {
                self.read(left)?;
                Ok(left == right)
            }
            (Array(_) | Object(_) | List(_), Array(_) | Object(_) | List(_)) => Err(Unsure),
            _ => Ok(false),
        }
    }

    fn is_in(&mut self, element: Option<Value<'v>>, collection: Option<Value<'v>>) -> Sure<bool> {
        let Some(element) = element else { return Ok(false) };
        let mut found = false;
        match collection {
            Some(Value::Array(elements)) => {
                for candidate in elements {
                    self.spend(1)?;
                    found |= self.same(element, candidate.into())?;
                }
            }
            Some(Value::Object(members)) => {
                for (_, candidate) in members.iter() {
                    self.spend(1)?;
                    found |= self.same(element, candidate.into())?;
                }
            }
            Some(Value::List(terms)) => {
                for term in terms {
                    self.spend(1)?;
                    let candidate = self.value(term)?.ok_or(Unsure)?;
                    found |= self.same(element, candidate)?;
                }
            }
            _ => {}
        }
        Ok(found)
    }

    fn call(&mut self, builtin: Builtin, arguments: &'v [Term]) -> Sure<Option<Value<'v>>> {
        let mut undefined = false;
        let mut values = [Value::Null; 3];
        for (place, argument) in arguments.iter().enumerate() {
            // All are looked at, and one that is undefined makes the call so.
            match (self.value(argument)?, values.get_mut(place)) {
                (Some(value), Some(place)) => *place = value,
                (None, _) => undefined = true,
                (Some(_), None) => return Err(Unsure),
            }
        }
        if undefined {
            return Ok(None);
        }
        let [value, second, third] = values;
        Ok(Some(match (builtin, value, second) {
            (Builtin::Count, Value::Array(elements), _) => Value::Number(i64::try_from(elements.len()).ok()),
            (Builtin::Count, Value::Object(members), _) => Value::Number(i64::try_from(members.iter().count()).ok()),
            (Builtin::Get, Value::Object(members), Value::Text(key)) => members.member(key).map_or(third, Value::from),
            // Whether it is an array or a set is not kept.
            (_, Value::List(_), _) => return Err(Unsure),
            (Builtin::IsArray, ..) => Value::Bool(matches!(value, Value::Array(_))),
            (Builtin::IsBoolean, ..) => Value::Bool(matches!(value, Value::Bool(_))),
            (Builtin::IsNull, ..) => Value::Bool(matches!(value, Value::Null)),
            (Builtin::IsNumber, ..) => Value::Bool(matches!(value, Value::Number(_))),
            (Builtin::IsObject, ..) => Value::Bool(matches!(value, Value::Object(_))),
            (Builtin::IsString, ..) => Value::Bool(matches!(value, Value::Text(_))),
            (Builtin::ToNumber, Value::Number(_), _) => value,
            (Builtin::ToNumber, Value::Text(text), _) => Value::Number(Some(digits(text).ok_or(Unsure)?)),
            (_, Value::Text(text), Value::Text(part)) => {
                self.read(text)?;
                Value::Bool(match builtin {
                    Builtin::StartsWith => text.starts_with(part),
                    Builtin::EndsWith => text.ends_with(part),
                    Builtin::Contains => text.contains(part),
                    _ => return Err(Unsure),
                })
            }
            // An error of the set.
            _ => return Err(Unsure),
        }))
    }

    /// Counts the reading of a text.
    fn read(&mut self, text: &str) -> Sure<()> {
        self.spend(text.len() / STRIDE)
    }

    fn spend(&mut self, steps: usize) -> Sure<()> {
        self.left = self.left.checked_sub(steps).ok_or(Unsure)?;
        Ok(())
    }
}

/// A text that the request was read for; an empty one may not have been there at all.
fn known(text: &str) -> Sure<Value<'_>> {
    if text.is_empty() { Err(Unsure) } else { Ok(Value::Text(text)) }
}

/// A number that is written in a few digits, as every reader reads it.
fn digits(text: &str) -> Option<i64> {
    let plain = text == "0" || (text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0'));
    text.parse().ok().filter(|_| plain && text.len() < 16)
}
