//! Kubeflow's notebooks: the Notebook, and the kinds of workspaces of its second version.
//!
//! A Notebook's template has no metadata; the labels of the Notebook itself are those of its Pod.

use crate::json::Json;
use crate::workload::path::Path;
use crate::workload::template::{container, empty, pod_spec};
use crate::workload::{Placed, Role, Template};

use super::{object_annotations, object_labels, pattern, sharing};

/// A notebook's PodSpec.
pub(super) fn notebook<'r>(object: &'r Json<'r>, spec: &Placed<'r>) -> Vec<Template<'r>> {
    let mut template = pod_spec(object, spec);
    template.labels.extend(object_labels(object));
    template.label_path = Path::root().key("metadata").key("labels");
    template.annotations.extend(object_annotations(object));
    template.parts.extend(template.labels.iter().map(|labels| labels.value).collect::<Vec<_>>());
    vec![template]
}

/// The options that a kind of workspaces offers. Each holds the resources of the one container, and scheduling fields.
pub(super) fn workspace_kind<'r>(object: &'r Json<'r>, template: &Placed<'r>) -> Vec<Template<'r>> {
    let labels = template.descend(&["podMetadata", "labels"]);
    let most = sharing(labels.iter().map(|labels| labels.value));
    let option = |(place, spec): (usize, Placed<'r>)| {
        let mut option = empty(object, &spec);
        option.label_path = template.path.key("podMetadata").key("labels");
        if let Some(labels) = labels.clone().filter(|_| place < most) {
            option.parts.push(labels.value);
            option.labels.push(labels);
        }
        // The option is no level: its `resources` are the container's, and would pass for those of the whole Pod.
        let fields = ["nodeSelector", "affinity", "tolerations"].into_iter();
        option.aliases = fields.filter_map(|name| Some((name, spec.member(name)?))).collect();
        option.containers.push(container(spec, Role::Main, "main"));
        option
    };
    pattern::written(template, "options/podConfig/values/*/spec").into_iter().enumerate().map(option).collect()
}
