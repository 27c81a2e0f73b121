//! Which kinds carry templates, and where.
//!
//! What it does: answers the templates of an object by group and kind. Invariant: an object of any shape is answered; one
//! that carries nothing has no templates.

use crate::config::ExtraKind;
use crate::json::Json;
use crate::workload::path::Path;
use crate::workload::template::pod_template;
use crate::workload::{Placed, Template};

/// All templates of an object.
pub fn templates<'r>(group: &str, kind: &str, object: &'r Json<'r>, _extra: &[ExtraKind]) -> Vec<Template<'r>> {
    let root = Placed::new(Path::root(), object);
    let at: &[&str] = match (group, kind) {
        ("", "Pod") => &[],
        ("batch", "CronJob") => &["spec", "jobTemplate", "spec", "template"],
        ("", "PodTemplate") => &["template"],
        _ => &["spec", "template"],
    };
    root.descend(at).map(|piece| pod_template(object, &piece)).into_iter().collect()
}
