//! The normal form of whatever asks for GPUs: a Pod, or any object that carries templates of Pods.
//!
//! What it does: finds the templates of an object ([`kinds`]) and gives each the same shape, whatever kind it came from, so
//! that a rule never asks which kind it looks at. What it does not: judge. Invariant: every path is the user's own, and
//! absent, null or oddly typed optional fields are read as absent.

use crate::json::Json;
use crate::workload::path::Path;

pub mod class;
pub mod demand;
pub mod growth;
pub mod kinds;
pub mod path;
pub mod placement;
pub mod template;

/// One template of Pods: where it stands and what its Pods will be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template<'r> {
    /// Where it stands in the object; empty for a Pod itself.
    pub path: Path<'r>,
    /// The path with list elements by their names, so that the same template is found again in the old object.
    pub identity: String,
    /// The label maps that its Pods will carry, each with its path; a later one wins over an earlier one.
    pub labels: Vec<Placed<'r>>,
    /// The annotation maps of its Pods, likewise.
    pub annotations: Vec<Placed<'r>>,
    /// Where a label that its Pods shall carry is written.
    pub label_path: Path<'r>,
    /// The objects that hold its scheduling fields (`nodeSelector`, `affinity`, `tolerations`, `priorityClassName`,
    /// `nodeName`, `volumes`, …), each with its path; the first that has a field wins.
    pub levels: Vec<Placed<'r>>,
    /// Scheduling fields that stand by themselves or under another name (the `podPriorityClassName` of a Workflow, say), in
    /// the words of a PodSpec; they count where no level has the field, the first one first.
    pub aliases: Vec<(&'static str, Placed<'r>)>,
    /// Its containers of every kind, in the order of the object, init containers first.
    pub containers: Vec<Container<'r>>,
    /// The pieces of the object that make it; it has changed when any of them has.
    pub parts: Vec<&'r Json<'r>>,
    /// Whether its labels or resources may come from another object that is not in sight (the runtime of a TrainJob, say).
    /// Its Pods are judged when they are made, so that what is not declared here is no finding.
    pub declared_elsewhere: bool,
    /// What cannot be read off the object, though it may concern GPUs.
    pub notes: Vec<Note<'r>>,
}

/// A place that cannot be judged before the Pods are made, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note<'r> {
    /// Where it stands.
    pub path: Path<'r>,
    /// Why it cannot be judged, as a sentence without its subject.
    pub text: &'static str,
}

/// A piece of the object and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed<'r> {
    /// Where it stands.
    pub path: Path<'r>,
    /// What stands there.
    pub value: &'r Json<'r>,
}

/// When a container runs, which decides how its demand adds up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Before the others, one after the other.
    Init,
    /// An init container with `restartPolicy: Always`: from its turn on, beside the others.
    Sidecar,
    /// All the time.
    Main,
    /// Added to a running Pod.
    Ephemeral,
}

impl Role {
    /// Whether it stands among the init containers.
    pub fn is_init(self) -> bool {
        matches!(self, Self::Init | Self::Sidecar)
    }
}

/// One container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container<'r> {
    /// When it runs.
    pub role: Role,
    /// Where it stands.
    pub path: Path<'r>,
    /// Its name, or the one that its kind's controller will give it.
    pub name: &'r str,
    /// The container itself, for `env` and the like.
    pub object: &'r Json<'r>,
    /// Its resources, with their path: an object with `limits` and `requests`.
    pub resources: Option<Placed<'r>>,
    /// A device count that stands outside of the resources, as Spark's `gpu: {name, quantity}` does: resource, value. It
    /// takes the place of a limit of the same name.
    pub gpu: Option<(&'r str, Placed<'r>)>,
}

impl<'r> Template<'r> {
    /// A scheduling field: the value at the first level that has it, with its path.
    pub fn field(&self, name: &'static str) -> Option<Placed<'r>> {
        self.fields(name).next()
    }

    /// The values of a field at all its levels, for fields that add up (`volumes`).
    pub fn fields(&self, name: &'static str) -> impl Iterator<Item = Placed<'r>> {
        let aliases = self.aliases.iter().filter(move |(alias, _)| *alias == name);
        self.levels.iter().filter_map(move |level| level.member(name)).chain(aliases.map(|(_, piece)| piece.clone()))
    }
}

impl<'r> Placed<'r> {
    /// A piece at a path.
    pub fn new(path: Path<'r>, value: &'r Json<'r>) -> Self {
        Self { path, value }
    }

    /// The member `key` of the piece, null counting as missing.
    pub fn member(&self, key: &'r str) -> Option<Self> {
        self.value.get(key).map(|value| Self { path: self.path.key(key), value })
    }

    /// The piece at a path of keys below this one.
    pub fn descend(&self, keys: &[&'r str]) -> Option<Self> {
        keys.iter().try_fold(self.clone(), |piece, key| piece.member(key))
    }

    /// The elements of the array at `key`, each with its path.
    pub fn elements(&self, key: &'r str) -> impl Iterator<Item = Self> + use<'r> {
        let path = self.path.key(key);
        self.value.list(key).iter().enumerate().map(move |(index, value)| Self { path: path.index(index), value })
    }

    /// The members of the object at `key`, each with its path.
    pub fn entries(&self, key: &'r str) -> impl Iterator<Item = (&'r str, Self)> + use<'r> {
        let path = self.path.key(key);
        self.value.members(key).map(move |(name, value)| (name, Self { path: path.key(name), value }))
    }
}
