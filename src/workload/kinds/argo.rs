//! Argo's Workflows and Rollouts.
//!
//! A Workflow's template makes a Pod where it has containers; templates stand in a list, and inline in steps and tasks of
//! others. What a template does not say comes from `templateDefaults`, then from the Workflow: labels add up and the
//! template's win; of the scheduling fields the nearest counts as a whole. Invariant: what all templates share is searched
//! once, and carried to as many of them as [`sharing`] says.

use crate::json::Json;
use crate::workload::template::{container, empty, init_containers, pod_template};
use crate::workload::{Container, Note, Placed, Role, Template};

use super::{MOST_TEMPLATES, name_at, object_at, pattern, sharing};

/// What a patch in the form of a text may do.
const PATCH: &str = "names GPUs but cannot be judged before the Pod is made; the Pod itself will be";

/// Words by which a text is taken to be about GPUs.
const WORDS: &[&str] = &["gpu", "nvidia.com", "amd.com", "habana.ai", "huawei.com"];

/// How many containers of `templateDefaults` are added to each template.
const DEFAULT_CONTAINERS: usize = 16;

/// The templates of a Workflow's spec that make Pods.
pub(super) fn workflow<'r>(object: &'r Json<'r>, spec: &Placed<'r>) -> Vec<Template<'r>> {
    let mut reader = Reader { object, shared: Shared::of(spec), found: Vec::new() };
    for piece in pattern::written(spec, "templates/*") {
        reader.walk(&piece);
    }
    reader.found
}

/// A Rollout's template, absent where another object holds it. The labels of its stages are put on Pods over the
/// template's own.
pub(super) fn rollout<'r>(object: &'r Json<'r>, spec: &Placed<'r>) -> Vec<Template<'r>> {
    const STAGES: [[&str; 2]; 4] = [
        ["canary", "stableMetadata"],
        ["canary", "canaryMetadata"],
        ["blueGreen", "activeMetadata"],
        ["blueGreen", "previewMetadata"],
    ];
    let read = |piece: Placed<'r>| {
        let mut template = pod_template(object, &piece);
        let strategy = object_at(spec, "strategy");
        let stages = STAGES.iter().filter_map(|stage| strategy.as_ref()?.descend(stage)?.member("labels"));
        for labels in stages {
            template.parts.push(labels.value);
            template.labels.push(labels);
        }
        template
    };
    pattern::written(spec, "template").into_iter().map(read).collect()
}

/// What the templates of a Workflow have in common.
struct Shared<'r> {
    defaults: Option<Placed<'r>>,
    metadata: Option<Placed<'r>>,
    aliases: Vec<(&'static str, Placed<'r>)>,
    notes: Vec<Note<'r>>,
    /// How many templates get it.
    most: usize,
    /// Labels come from the template that another object holds, or from parameters.
    declared_elsewhere: bool,
}

impl<'r> Shared<'r> {
    fn of(spec: &Placed<'r>) -> Self {
        let defaults = object_at(spec, "templateDefaults");
        let metadata = object_at(spec, "podMetadata");
        let mut aliases = Vec::new();
        let steers = |field: &str| spec.value.list("templates").iter().any(|template| steers(template, field));
        for field in ["nodeSelector", "affinity", "tolerations"] {
            // A template of steps hands its own on to those it calls, ahead of the Workflow's. Which calls which is not
            // followed: then the Workflow's may not count, and the Pod will tell.
            let here = spec.member(field).filter(|_| !steers(field));
            aliases.extend(here.map(|piece| (field, piece)));
        }
        aliases.extend(spec.member("volumes").map(|piece| ("volumes", piece)));
        aliases.extend(name_at(spec, "podPriorityClassName").map(|piece| ("priorityClassName", piece)));
        aliases.extend(spec.member("podResources").map(|piece| ("resources", piece)));
        let pieces = defaults.iter().chain(&metadata).chain(aliases.iter().map(|(_, piece)| piece));
        let most = sharing(pieces.map(|piece| piece.value));
        let patches = [Some(spec), defaults.as_ref()].into_iter().flatten();
        let labels =
            [metadata.as_ref(), defaults.as_ref().and_then(|defaults| object_at(defaults, "metadata")).as_ref()]
                .into_iter()
                .flatten()
                .any(has_parameters);
        Self {
            notes: patches.filter_map(note).collect(),
            declared_elsewhere: labels || spec.value.get("workflowTemplateRef").is_some(),
            most,
            defaults,
            metadata,
            aliases,
        }
    }
}

struct Reader<'r> {
    object: &'r Json<'r>,
    shared: Shared<'r>,
    found: Vec<Template<'r>>,
}

impl<'r> Reader<'r> {
    /// Reads a template, and those that stand inline in it. Documents nest no deeper than the reader of JSON allows.
    fn walk(&mut self, piece: &Placed<'r>) {
        if self.found.len() > MOST_TEMPLATES {
            return;
        }
        if makes_pod(piece.value) {
            let template = self.read(piece);
            self.found.push(template);
        }
        for inline in pattern::written(piece, "steps/*/*/inline") {
            self.walk(&inline);
        }
        for inline in pattern::written(piece, "dag/tasks/*/inline") {
            self.walk(&inline);
        }
    }

    fn read(&self, piece: &Placed<'r>) -> Template<'r> {
        let mut template = empty(self.object, piece);
        template.levels.push(piece.clone());
        template.aliases.extend(piece.member("podResources").map(|resources| ("resources", resources)));
        template.notes.extend(note(piece));
        let own = object_at(piece, "metadata");
        template.declared_elsewhere = own.as_ref().is_some_and(has_parameters);
        if self.found.len() < self.shared.most {
            self.share(&mut template, piece);
        } else {
            template.containers = own_containers(piece, None);
            template.declared_elsewhere = true;
        }
        let own = own.into_iter();
        template.annotations.extend(own.clone().filter_map(|metadata| metadata.member("annotations")));
        template.labels.extend(own.filter_map(|metadata| metadata.member("labels")));
        template
    }

    /// Adds what the template has in common with the others.
    fn share(&self, template: &mut Template<'r>, piece: &Placed<'r>) {
        let Shared { defaults, metadata, aliases, notes, most: _, declared_elsewhere } = &self.shared;
        let defaults = defaults.as_ref();
        let above = metadata.clone().into_iter().chain(defaults.and_then(|defaults| object_at(defaults, "metadata")));
        template.annotations.extend(above.clone().filter_map(|metadata| metadata.member("annotations")));
        template.labels.extend(above.filter_map(|metadata| metadata.member("labels")));
        template.levels.extend(defaults.cloned());
        let resources = defaults.and_then(|defaults| defaults.member("podResources"));
        template.aliases.extend(resources.map(|resources| ("resources", resources)));
        template.aliases.extend(aliases.iter().cloned());
        if self.found.is_empty() {
            template.notes.extend(notes.iter().cloned());
        }
        template.declared_elsewhere |= declared_elsewhere;
        template.containers = own_containers(piece, defaults);
        template.parts.extend(template.labels.iter().map(|labels| labels.value).collect::<Vec<_>>());
        template.parts.extend(defaults.map(|defaults| defaults.value));
        template.parts.extend(aliases.iter().map(|(_, piece)| piece.value));
    }
}

/// Whether a template makes a Pod of its own that may ask for GPUs: the other kinds run in the executor alone.
fn makes_pod(template: &Json<'_>) -> bool {
    ["container", "script", "containerSet", "initContainers", "sidecars"].iter().any(|key| template.get(key).is_some())
}

/// Whether a template that calls others has a scheduling field, which they take from it.
fn steers(template: &Json<'_>, field: &str) -> bool {
    (template.get("steps").is_some() || template.get("dag").is_some()) && template.get(field).is_some()
}

/// The containers of a template, init containers first; those of the defaults join where none has their name.
fn own_containers<'r>(piece: &Placed<'r>, defaults: Option<&Placed<'r>>) -> Vec<Container<'r>> {
    let mut all: Vec<_> = init_containers(piece).collect();
    add_defaults(&mut all, defaults.into_iter().flat_map(init_containers));
    for key in ["container", "script"] {
        let Some(main) = object_at(piece, key) else { continue };
        let mut main = container(main, Role::Main, "main");
        let fallback = defaults.and_then(|defaults| defaults.descend(&[key, "resources"]));
        main.resources = main.resources.or(fallback);
        all.push(main);
    }
    all.extend(object_at(piece, "containerSet").iter().flat_map(|set| running(set, "containers")));
    let mut sidecars: Vec<_> = running(piece, "sidecars").collect();
    add_defaults(&mut sidecars, defaults.into_iter().flat_map(|defaults| running(defaults, "sidecars")));
    all.extend(sidecars);
    all
}

fn add_defaults<'r>(all: &mut Vec<Container<'r>>, defaults: impl Iterator<Item = Container<'r>>) {
    let further = defaults.take(DEFAULT_CONTAINERS);
    let further: Vec<_> = further.filter(|one| all.iter().all(|other| other.name != one.name)).collect();
    all.extend(further);
}

/// The containers of a list that run beside each other, as a Workflow's sidecars do, too.
fn running<'r>(piece: &Placed<'r>, key: &'static str) -> impl Iterator<Item = Container<'r>> + use<'r> {
    piece.elements(key).map(|one| container(one, Role::Main, ""))
}

/// Whether labels hold a parameter, so that what they say is not known yet.
fn has_parameters(metadata: &Placed<'_>) -> bool {
    metadata.value.members("labels").any(|(_, value)| value.as_str().is_some_and(|text| text.contains("{{")))
}

fn note<'r>(piece: &Placed<'r>) -> Option<Note<'r>> {
    let patch = piece.member("podSpecPatch")?;
    let is_about_gpus = |text: &str| WORDS.iter().any(|word| text.contains(word));
    patch.value.as_str().is_some_and(is_about_gpus).then_some(Note { path: patch.path, text: PATCH })
}
