//! Paths into an object, as a person and as a JSON pointer writes them.
//!
//! Invariant: both forms name the same place, whatever the keys hold.

use std::fmt::{self, Write as _};

use crate::json::Json;

/// A step of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<'r> {
    /// A member of an object.
    Key(&'r str),
    /// An element of an array.
    Index(usize),
}

/// A place in an object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Path<'r>(Vec<Step<'r>>);

impl Step<'_> {
    /// What stands one step below a value.
    pub fn of<'j>(&self, value: &'j Json<'j>) -> Option<&'j Json<'j>> {
        match self {
            Self::Key(key) => value.get(key),
            Self::Index(index) => value.as_array().and_then(|elements| elements.get(*index)),
        }
    }
}

impl<'r> Path<'r> {
    /// The object itself.
    pub fn root() -> Self {
        Self(Vec::new())
    }

    /// The member `key` of what stands here.
    #[must_use]
    pub fn key(&self, key: &'r str) -> Self {
        self.step(Step::Key(key))
    }

    /// The element `index` of what stands here.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.step(Step::Index(index))
    }

    /// The steps from the object to the place.
    pub fn steps(&self) -> &[Step<'r>] {
        &self.0
    }

    /// What stands at the place in an object.
    pub fn resolve<'j>(&self, root: &'j Json<'j>) -> Option<&'j Json<'j>> {
        self.0.iter().try_fold(root, |value, step| step.of(value))
    }

    /// The JSON pointer of RFC 6901.
    pub fn pointer(&self) -> String {
        let mut pointer = String::new();
        for step in &self.0 {
            match step {
                Step::Key(key) => push_token(&mut pointer, key),
                Step::Index(index) => {
                    let _ = write!(pointer, "/{index}");
                }
            }
        }
        pointer
    }

    /// One step further.
    #[must_use]
    pub fn step(&self, step: Step<'r>) -> Self {
        let mut steps = Vec::with_capacity(self.0.len().saturating_add(3));
        steps.extend_from_slice(&self.0);
        steps.push(step);
        Self(steps)
    }
}

/// Appends one token of a JSON pointer, escaped.
pub fn push_token(pointer: &mut String, token: &str) {
    pointer.push('/');
    for character in token.chars() {
        match character {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            other => pointer.push(other),
        }
    }
}

/// The fields whose members are keys of the user's own and no fields.
const MAPS: [&str; 7] = ["annotations", "labels", "limits", "matchLabels", "nodeSelector", "overhead", "requests"];

/// The form of Kubernetes' own field errors (`k8s.io/apimachinery/pkg/util/validation/field`): members after a point, and
/// elements, the keys of maps and whatever is no plain name in brackets.
impl fmt::Display for Path<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before = None;
        for step in &self.0 {
            let in_map = matches!(before, Some(Step::Key(field)) if MAPS.contains(&field));
            match step {
                Step::Index(index) => write!(out, "[{index}]")?,
                Step::Key(key) if is_plain(key) && !in_map => {
                    write!(out, "{}{key}", if before.is_none() { "" } else { "." })?;
                }
                Step::Key(key) => write!(out, "[{key}]")?,
            }
            before = Some(*step);
        }
        Ok(())
    }
}

fn is_plain(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_name_the_place() {
        let path = Path::root().key("spec").key("containers").index(0).key("limits").key("nvidia.com/gpu~x");
        assert_eq!(path.to_string(), "spec.containers[0].limits[nvidia.com/gpu~x]");
        assert_eq!(path.pointer(), "/spec/containers/0/limits/nvidia.com~1gpu~0x");
        assert_eq!((Path::root().to_string(), Path::root().pointer()), (String::new(), String::new()));
    }
}
