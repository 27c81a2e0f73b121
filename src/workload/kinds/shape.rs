//! Templates of kinds that nobody described, found by their shape.
//!
//! What looks like a PodSpec is an object with a `containers` array that has an element with `name` and `image`. Where it
//! is the `spec` of an object with metadata, or of one that holds nothing else, that object is the PodTemplateSpec.
//! Invariant: every value of the object is looked at once at most, and none deeper than [`DEEPEST`] steps.

use super::MOST_TEMPLATES;
use crate::json::{Json, Object};
use crate::workload::path::{Path, Step};
use crate::workload::template::{pod_spec, pod_template};
use crate::workload::{Placed, Template};

/// How many steps from the object a PodSpec may stand.
const DEEPEST: usize = 12;

/// Members that hold no templates, or whose templates are the PodSpec's own business.
const CLOSED: &[&str] = &["metadata", "status", "containers", "initContainers", "ephemeralContainers", "volumes"];

/// All templates of an object of an unknown kind.
pub(super) fn templates<'r>(object: &'r Json<'r>) -> Vec<Template<'r>> {
    let mut search = Search { object, found: Vec::new() };
    search.look(&Placed::new(Path::root(), object), None);
    search.found
}

struct Search<'r> {
    object: &'r Json<'r>,
    found: Vec<Template<'r>>,
}

impl<'r> Search<'r> {
    fn look(&mut self, here: &Placed<'r>, parent: Option<&Placed<'r>>) {
        match here.value {
            Json::Object(members) => {
                if self.found.len() <= MOST_TEMPLATES && is_pod_spec(here.value) {
                    self.take(here, parent);
                }
                if here.path.steps().len() < DEEPEST {
                    let open = members.iter().filter(|(key, value)| is_open(value) && !CLOSED.contains(key));
                    for (key, value) in open {
                        self.look(&Placed::new(here.path.key(key), value), Some(here));
                    }
                }
            }
            Json::Array(elements) if here.path.steps().len() < DEEPEST => {
                for (index, value) in elements.iter().enumerate().filter(|(_, value)| is_open(value)) {
                    self.look(&Placed::new(here.path.index(index), value), None);
                }
            }
            _ => {}
        }
    }

    /// Labels are known only where there is a place for them; a kind of which nothing is known may hand down its own. So
    /// the object itself is no PodTemplateSpec: whether its labels are those of its Pods cannot be seen.
    fn take(&mut self, spec: &Placed<'r>, parent: Option<&Placed<'r>>) {
        let is_spec = spec.path.steps().last() == Some(&Step::Key("spec"));
        let full = parent.filter(|parent| is_spec && !parent.path.steps().is_empty() && is_template(parent.value));
        let template = match full {
            Some(parent) => {
                let declared_elsewhere = parent.value.get("metadata").is_none();
                Template { declared_elsewhere, ..pod_template(self.object, parent) }
            }
            None => Template { declared_elsewhere: true, ..pod_spec(self.object, spec) },
        };
        self.found.push(template);
    }
}

fn is_open(value: &Json<'_>) -> bool {
    matches!(value, Json::Object(_) | Json::Array(_))
}

fn is_pod_spec(value: &Json<'_>) -> bool {
    value
        .list("containers")
        .iter()
        .any(|container| container.text("name").is_some() && container.text("image").is_some())
}

/// Whether an object around a `spec` is a PodTemplateSpec: it has metadata, or nothing else than the spec.
fn is_template(value: &Json<'_>) -> bool {
    let only_spec = |object: &Object<'_>| object.iter().all(|(key, _)| key == "spec");
    value.get("metadata").is_some() || value.as_object().is_some_and(only_spec)
}
