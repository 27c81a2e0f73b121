//! What this program is, and what it is made of.

use serde::Serialize;

/// The versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Version {
    /// The program's name.
    pub name: &'static str,
    /// The program's own version.
    pub version: &'static str,
    /// The commit that it was built from, where the build says (`SLICEGATE_REVISION`).
    pub revision: &'static str,
    /// The compiler that built it.
    pub rust: &'static str,
    /// The newest Kubernetes whose API types it knows.
    pub kubernetes: &'static str,
    /// The one version of admission reviews that it speaks.
    pub admission: &'static str,
    /// The one version of the configuration that it reads.
    pub configuration: &'static str,
    /// The engine that evaluates policies.
    pub regorus: &'static str,
}

/// Those of this program.
pub const VERSION: Version = Version {
    name: "slicegate",
    version: env!("CARGO_PKG_VERSION"),
    revision: match option_env!("SLICEGATE_REVISION") {
        Some(revision) => revision,
        None => "unknown",
    },
    rust: env!("SLICEGATE_RUST"),
    kubernetes: env!("SLICEGATE_KUBERNETES"),
    admission: crate::review::API_VERSION,
    configuration: crate::config::parse::API_VERSION,
    regorus: env!("SLICEGATE_REGORUS"),
};
