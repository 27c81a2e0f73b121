//! From a piece of the object to a [`Template`]: a full PodTemplateSpec, a bare PodSpec.
//!
//! Invariant: containers come in one order, init containers first, whatever the order of the fields.

use crate::json::Json;
use crate::workload::path::{Path, Step};
use crate::workload::{Container, Placed, Role, Template};

/// Reads a PodTemplateSpec, `{metadata, spec}`; a Pod is one that stands at the root.
pub fn pod_template<'r>(root: &'r Json<'r>, piece: &Placed<'r>) -> Template<'r> {
    let spec = piece.member("spec");
    let mut template = empty(root, piece);
    template.labels.extend(piece.descend(&["metadata", "labels"]));
    template.annotations.extend(piece.descend(&["metadata", "annotations"]));
    if let Some(spec) = spec {
        template.containers = containers(&spec);
        template.levels.push(spec);
    }
    template
}

/// Reads a bare PodSpec, whose labels stand elsewhere or nowhere.
pub fn pod_spec<'r>(root: &'r Json<'r>, piece: &Placed<'r>) -> Template<'r> {
    let mut template = empty(root, piece);
    template.containers = containers(piece);
    template.levels.push(piece.clone());
    template
}

/// A template at a place, without labels, levels and containers yet.
pub fn empty<'r>(root: &'r Json<'r>, piece: &Placed<'r>) -> Template<'r> {
    Template {
        identity: identity(root, &piece.path),
        path: piece.path.clone(),
        labels: Vec::new(),
        annotations: Vec::new(),
        label_path: piece.path.key("metadata").key("labels"),
        levels: Vec::new(),
        aliases: Vec::new(),
        containers: Vec::new(),
        parts: vec![piece.value],
        declared_elsewhere: false,
        notes: Vec::new(),
    }
}

/// All containers of a PodSpec.
pub fn containers<'r>(spec: &Placed<'r>) -> Vec<Container<'r>> {
    let main = spec.elements("containers").map(|piece| container(piece, Role::Main, ""));
    let ephemeral = spec.elements("ephemeralContainers").map(|piece| container(piece, Role::Ephemeral, ""));
    init_containers(spec).chain(main).chain(ephemeral).collect()
}

/// The init containers of a PodSpec, or of what has the same list.
pub fn init_containers<'r>(spec: &Placed<'r>) -> impl Iterator<Item = Container<'r>> + use<'r> {
    spec.elements("initContainers").map(|piece| {
        let always = piece.value.text("restartPolicy") == Some("Always");
        container(piece, if always { Role::Sidecar } else { Role::Init }, "")
    })
}

/// One container, with the name that it gets where it has none.
pub fn container<'r>(piece: Placed<'r>, role: Role, default_name: &'r str) -> Container<'r> {
    Container {
        role,
        name: piece.value.text("name").unwrap_or(default_name),
        resources: piece.member("resources"),
        object: piece.value,
        path: piece.path,
        gpu: None,
    }
}

/// A path in which an element of a list that has a name stands by it, so that removing one group leaves the identity of the
/// others.
fn identity<'r>(root: &'r Json<'r>, path: &Path<'r>) -> String {
    let mut identity = String::new();
    let mut here = Some(root);
    for step in path.steps() {
        identity.push('/');
        here = here.and_then(|value| step.of(value));
        let name = here.and_then(|value| value.text("name").or_else(|| value.text("groupName")));
        match (step, name) {
            (Step::Key(key), _) => identity.push_str(key),
            (Step::Index(_), Some(name)) => identity.push_str(name),
            (Step::Index(index), None) => identity.push_str(&index.to_string()),
        }
    }
    identity
}
