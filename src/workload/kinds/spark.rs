//! Spark applications: the driver and the executors.
//!
//! Each is an object with fields of its own and, below `template`, a full template that they override. Spark's container
//! has no resources here; its GPUs are the count in `gpu: {name, quantity}`. The labels of the application reach both Pods,
//! between those of the template and those of the role.

use std::collections::BTreeSet;

use crate::json::Json;
use crate::workload::template::{container, containers, empty, init_containers};
use crate::workload::{Container, Note, Placed, Role, Template};

use super::{object_at, object_labels};

/// A role: its member, the names by which its main container is found, and the settings that count its GPUs.
struct Kind {
    member: &'static str,
    names: &'static [&'static str],
    settings: &'static [&'static str],
}

const DRIVER: Kind = Kind {
    member: "driver",
    names: &["spark-kubernetes-driver"],
    settings: &["spark.driver.resource.gpu.amount", "spark.kubernetes.driver.podTemplateFile"],
};

const EXECUTOR: Kind = Kind {
    member: "executor",
    names: &["spark-kubernetes-executor", "executor"],
    settings: &["spark.executor.resource.gpu.amount", "spark.kubernetes.executor.podTemplateFile"],
};

/// What an application is told beside its fields, in Spark's own words.
const SETTING: &str =
    "can give the Pods GPUs, which cannot be judged before they are made; the Pods themselves will be";

/// The driver and the executors of an application's spec.
pub(super) fn application<'r>(object: &'r Json<'r>, spec: &Placed<'r>) -> Vec<Template<'r>> {
    let roles = [DRIVER, EXECUTOR].into_iter();
    roles.filter_map(|kind| Some(role(object, spec, &object_at(spec, kind.member)?, &kind, true))).collect()
}

/// The server and the executors of a long-running connection. The server's Pod is the operator's work, which takes the
/// template as it is; the executors are Spark's, which is told the object's labels.
pub(super) fn connect<'r>(object: &'r Json<'r>, spec: &Placed<'r>) -> Vec<Template<'r>> {
    let server = Kind { member: "server", ..DRIVER };
    let roles = [(server, false), (EXECUTOR, true)].into_iter();
    let read = |(kind, labelled): (Kind, bool)| {
        let mut template = role(object, spec, &object_at(spec, kind.member)?, &kind, labelled);
        template.label_path = template.path.key("template").key("metadata").key("labels");
        Some(template)
    };
    roles.filter_map(read).collect()
}

fn role<'r>(object: &'r Json<'r>, spec: &Placed<'r>, piece: &Placed<'r>, kind: &Kind, labelled: bool) -> Template<'r> {
    let mut template = empty(object, piece);
    let inner = object_at(piece, "template");
    let pod = inner.as_ref().and_then(|inner| object_at(inner, "spec"));
    let of_object = object_labels(object).filter(|_| labelled);
    template.parts.extend(of_object.iter().map(|labels| labels.value));
    template.labels.extend(inner.as_ref().and_then(|inner| inner.descend(&["metadata", "labels"])));
    template.labels.extend(of_object);
    template.labels.extend(piece.member("labels"));
    template.label_path = piece.path.key("labels");
    template.annotations.extend(inner.as_ref().and_then(|inner| inner.descend(&["metadata", "annotations"])));
    template.annotations.extend(piece.member("annotations"));
    template.levels.push(piece.clone());
    template.levels.extend(pod.clone());
    for shared in ["nodeSelector", "volumes"] {
        if let Some(field) = spec.member(shared) {
            template.parts.push(field.value);
            template.aliases.push((shared, field));
        }
    }
    template.containers = all_containers(piece, pod.as_ref(), kind);
    template.notes = notes(spec, kind);
    template
}

/// Init containers first: the template's, then the role's; likewise the others. A sidecar whose name the template has
/// already is not added.
fn all_containers<'r>(piece: &Placed<'r>, pod: Option<&Placed<'r>>, kind: &Kind) -> Vec<Container<'r>> {
    let of_template = pod.map(containers).unwrap_or_default();
    let (mut all, mut running): (Vec<_>, Vec<_>) =
        of_template.into_iter().partition(|container| container.role.is_init());
    all.extend(init_containers(piece));
    let gpu = gpu(piece);
    let main = running.iter().position(|container| kind.names.contains(&container.name)).unwrap_or(0);
    match running.get_mut(main) {
        Some(main) => main.gpu = gpu,
        None => running.push(main_container(piece, kind, gpu)),
    }
    let names: BTreeSet<&str> = running.iter().map(|container| container.name).collect();
    let sidecars = piece.elements("sidecars").map(|sidecar| container(sidecar, Role::Main, ""));
    let sidecars: Vec<_> = sidecars.filter(|sidecar| !names.contains(sidecar.name)).collect();
    all.extend(running);
    all.extend(sidecars);
    all
}

/// Spark's own container, which stands nowhere as such. The role's object holds its `env`.
fn main_container<'r>(piece: &Placed<'r>, kind: &Kind, gpu: Option<(&'r str, Placed<'r>)>) -> Container<'r> {
    let name = kind.names.first().copied().unwrap_or(kind.member);
    Container { role: Role::Main, path: piece.path.clone(), name, object: piece.value, resources: None, gpu }
}

/// The operator ignores a count without a name.
fn gpu<'r>(piece: &Placed<'r>) -> Option<(&'r str, Placed<'r>)> {
    let gpu = object_at(piece, "gpu")?;
    let name = gpu.value.text("name").filter(|name| !name.is_empty())?;
    Some((name, gpu.member("quantity")?))
}

fn notes<'r>(spec: &Placed<'r>, kind: &Kind) -> Vec<Note<'r>> {
    let settings = object_at(spec, "sparkConf").into_iter();
    let named = settings.flat_map(|all| kind.settings.iter().filter_map(move |name| all.member(name)));
    named.map(|setting| Note { path: setting.path, text: SETTING }).collect()
}
