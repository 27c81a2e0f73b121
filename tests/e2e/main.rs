//! Tests against a real control plane, and against Kubernetes' own code.

#[path = "../support/cluster.rs"]
mod cluster;
#[allow(unreachable_pub, dead_code, reason = "support is written for several test binaries")]
#[path = "../support/generate.rs"]
mod generate;

mod agreement;
mod oracle;
mod smoke;
