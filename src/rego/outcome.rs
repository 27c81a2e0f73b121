//! What the evaluation of one set on one request came to.
//!
//! What it does: reads the values that rules give, whatever shape their author chose. Invariant: no value is silence; whatever
//! stands in `deny` or `violation` and is not `false` refuses, with a text that names the rule where the author gave none.

use std::fmt::Write as _;

use regorus::Value;
use serde::{Deserialize, Serialize};

use crate::rego::problem::Problem;
use crate::rego::value::{member, text};

/// The most complaints of one set that are kept; the last one says how many were left out.
const MAX_COMPLAINTS: usize = 100;

/// The most bytes that are kept of one text of a policy.
const MAX_TEXT: usize = 8 << 10;

/// The most patch operations of one set, and the most bytes and levels of one.
const MAX_OPERATIONS: usize = 100;
const MAX_OPERATION: usize = 32 << 10;
const MAX_DEPTH: usize = 48;

/// What one set said.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// What it complains about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub complaints: Vec<Complaint>,
    /// The operations of its `patch`, as JSON values in a stable order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patch: Vec<serde_json::Value>,
    /// Why it could not be evaluated to its end. Its complaints up to there stand beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
}

/// One element of a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Complaint {
    /// The rule's name, such as `deny` or `warn_owner`.
    pub rule: String,
    /// Whether it only warns.
    pub warns: bool,
    /// What is wrong, in the author's words.
    pub message: String,
    /// The field, as the author gave it.
    pub path: String,
    /// What to do, as the author gave it.
    pub fix: String,
}

/// Why a set could not be evaluated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Failure {
    /// An error of the policy on this input.
    Error(Problem),
    /// It used up its time.
    Budget,
    /// The worker ended while it ran.
    Died,
    /// It is cut off for a while after it failed again and again.
    CutOff,
    /// It could not be loaded, and there is no last good form of it.
    NotLoaded,
    /// The request's time was up before it came to its turn.
    Deadline,
}

impl Failure {
    /// The failure in words, as a sentence whose subject is the policy.
    pub fn explain(&self) -> String {
        match self {
            Self::Error(problem) => format!("failed on this object: {problem}"),
            Self::Budget => "used up its time on this object".to_owned(),
            Self::Died => "ended the process that evaluates it, by memory, depth or time".to_owned(),
            Self::CutOff => {
                "is cut off for a while, since it failed again and again on requests like this one".to_owned()
            }
            Self::NotLoaded => "cannot be loaded".to_owned(),
            Self::Deadline => "was not reached before the deadline".to_owned(),
        }
    }

    /// The word for metrics.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Error(_) => "error",
            Self::Budget => "budget",
            Self::Died => "died",
            Self::CutOff => "cut-off",
            Self::NotLoaded => "not-loaded",
            Self::Deadline => "deadline",
        }
    }

    /// Whether it counts towards cutting the set off.
    pub fn is_costly(&self) -> bool {
        matches!(self, Self::Budget | Self::Died)
    }
}

impl Outcome {
    /// Takes in what a rule of complaints came to.
    pub fn take_complaints(&mut self, rule: &str, warns: bool, value: &Value) {
        let complaint = |value: &Value| complaint(rule, warns, value);
        let found: Vec<Complaint> = match value {
            Value::Undefined | Value::Bool(false) => Vec::new(),
            Value::Set(elements) => elements.iter_sorted().map(complaint).collect(),
            Value::Array(elements) => elements.iter().map(complaint).collect(),
            Value::Object(members) if member(value, "msg").is_none() => {
                members.iter_sorted().map(|(key, value)| keyed(rule, warns, key, value)).collect()
            }
            other => vec![complaint(other)],
        };
        self.add(rule, warns, found);
    }

    /// Takes in what a `patch` came to.
    ///
    /// # Errors
    /// It is no set of operations, or too many of them.
    pub fn take_patch(&mut self, value: &Value) -> Result<(), String> {
        let operations: Vec<&Value> = match value {
            Value::Undefined | Value::Bool(false) => Vec::new(),
            Value::Set(elements) => elements.iter_sorted().collect(),
            Value::Array(elements) => elements.iter().collect(),
            _ => {
                return Err(
                    "patch is no set of operations; write `patch contains {\"op\": \"add\", …} if …`".to_owned()
                );
            }
        };
        if operations.len() > MAX_OPERATIONS {
            return Err(format!(
                "patch holds {} operations, and more than {MAX_OPERATIONS} are not applied",
                operations.len()
            ));
        }
        for operation in operations {
            self.patch.push(json(operation)?);
        }
        Ok(())
    }

    /// Takes in the answer of `data.system.main`, the convention of OPA's own server.
    ///
    /// # Errors
    /// It is no answer.
    pub fn take_answer(&mut self, answer: &Value) -> Result<(), String> {
        if *answer == Value::Undefined {
            return Ok(());
        }
        let response = member(answer, "response").ok_or("main gives no response")?;
        for warning in member(response, "warnings")
            .and_then(|warnings| warnings.as_array().ok())
            .into_iter()
            .flat_map(|all| all.iter())
        {
            let found = complaint("main", true, warning);
            self.add("main", true, vec![found]);
        }
        if member(response, "allowed") == Some(&Value::from(true)) {
            return self.take_encoded_patch(response);
        }
        let status = member(response, "status");
        let said = |name| {
            status
                .and_then(|status| member(status, name))
                .filter(|said| text(said).is_some_and(|said| !said.trim().is_empty()))
        };
        let value = said("message").or_else(|| said("reason")).cloned().unwrap_or(Value::Null);
        self.add("main", false, vec![complaint("main", false, &value)]);
        Ok(())
    }

    fn take_encoded_patch(&mut self, response: &Value) -> Result<(), String> {
        use base64::Engine as _;
        let Some(encoded) = member(response, "patch").and_then(text) else { return Ok(()) };
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(encoded)
            .map_err(|error| format!("its patch is no base64: {error}"))?;
        let operations: Vec<serde_json::Value> =
            serde_json::from_slice(&bytes).map_err(|error| format!("its patch is no list of operations: {error}"))?;
        let operations: Vec<Value> = operations.into_iter().map(Value::from).collect();
        self.take_patch(&Value::from(operations))
    }

    fn add(&mut self, rule: &str, warns: bool, found: Vec<Complaint>) {
        let room = MAX_COMPLAINTS.saturating_sub(self.complaints.len());
        let left_out = found.len().saturating_sub(room);
        self.complaints.extend(found.into_iter().take(room));
        if left_out > 0 {
            let message = format!("and {left_out} more that are not shown");
            self.complaints.push(Complaint {
                rule: rule.to_owned(),
                warns,
                message,
                path: String::new(),
                fix: String::new(),
            });
        }
    }
}

/// One element of a set.
fn complaint(rule: &str, warns: bool, value: &Value) -> Complaint {
    let part = |name: &str| member(value, name).map(shown).unwrap_or_default();
    let message = match value {
        Value::String(text) => text.to_string(),
        Value::Object(_) => part("msg"),
        Value::Bool(true) | Value::Null => String::new(),
        other => shown(other),
    };
    let message = if message.trim().is_empty() { stand_in(rule, warns, value) } else { message };
    Complaint { rule: rule.to_owned(), warns, message: cut(message), path: cut(part("path")), fix: cut(part("fix")) }
}

/// One member of an object, `deny["key"] := value`.
fn keyed(rule: &str, warns: bool, key: &Value, value: &Value) -> Complaint {
    if text(value).is_some_and(|text| !text.trim().is_empty()) || member(value, "msg").is_some() {
        return complaint(rule, warns, value);
    }
    complaint(rule, warns, key)
}

/// The text where the author gave none.
fn stand_in(rule: &str, warns: bool, value: &Value) -> String {
    let does = if warns { "warns" } else { "refuses this" };
    match value {
        Value::Object(members) if !members.is_empty() => {
            format!("rule {rule} {does} and gives no msg, only {}", shown(value))
        }
        _ => format!("rule {rule} {does} and gives no reason"),
    }
}

/// A value in a message: a string as it is, anything else as JSON.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.to_string(),
        Value::Undefined => String::new(),
        other => serde_json::to_string(other).unwrap_or_else(|_| "a value that is no JSON".to_owned()),
    }
}

/// An operation as JSON, no deeper and no larger than an object could take.
fn json(value: &Value) -> Result<serde_json::Value, String> {
    if !is_flat(value, MAX_DEPTH) {
        return Err(format!("an operation of its patch nests deeper than {MAX_DEPTH} levels"));
    }
    let value = serde_json::to_value(value).map_err(|error| error.to_string())?;
    let size = value.to_string().len();
    if size > MAX_OPERATION {
        return Err(format!(
            "an operation of its patch has {size} bytes, and more than {MAX_OPERATION} are not applied"
        ));
    }
    Ok(value)
}

/// Whether a value has no more levels than this.
fn is_flat(value: &Value, levels: usize) -> bool {
    let Some(below) = levels.checked_sub(1) else { return false };
    match value {
        Value::Array(elements) => elements.iter().all(|element| is_flat(element, below)),
        Value::Set(elements) => elements.iter().all(|element| is_flat(element, below)),
        Value::Object(members) => members.iter().all(|(_, member)| is_flat(member, below)),
        _ => true,
    }
}

/// The start of a long text, at the boundary of a character, and how much was left out.
fn cut(mut text: String) -> String {
    if text.len() > MAX_TEXT {
        let mut end = MAX_TEXT;
        while !text.is_char_boundary(end) {
            end = end.saturating_sub(1);
        }
        let left_out = text.len().saturating_sub(end);
        text.truncate(end);
        // Writing into a text cannot fail.
        let _ = write!(text, "… ({left_out} bytes more)");
    }
    text
}

#[cfg(test)]
mod tests;
