//! Volcano's Jobs, and what holds a Job's spec.
//!
//! The tasks hold full templates; a priority class on the Job is that of every task whose template names none.

use crate::json::Json;
use crate::workload::template::pod_template;
use crate::workload::{Placed, Template};

use super::{MOST_TEMPLATES, name_at, pattern};

/// The tasks of a Job's spec.
pub(super) fn job<'r>(object: &'r Json<'r>, spec: &Placed<'r>) -> Vec<Template<'r>> {
    let priority = name_at(spec, "priorityClassName");
    let tasks = pattern::written(spec, "tasks/*/template").into_iter();
    let task = |piece: Placed<'r>| {
        let mut template = pod_template(object, &piece);
        if let Some(priority) = &priority {
            template.parts.push(priority.value);
            template.aliases.push(("priorityClassName", priority.clone()));
        }
        template
    };
    tasks.map(task).take(MOST_TEMPLATES.saturating_add(1)).collect()
}
