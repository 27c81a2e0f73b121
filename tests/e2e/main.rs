//! Tests against a real control plane, and against Kubernetes' own code.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::arithmetic_side_effects,
    reason = "what is not as it should be fails the test"
)]

#[path = "../support/balancer.rs"]
mod balancer;
#[allow(unreachable_pub, dead_code, reason = "support is written for several test binaries")]
#[path = "../support/certificates.rs"]
mod certificates;
#[path = "../support/cluster.rs"]
mod cluster;
#[allow(unreachable_pub, dead_code, reason = "support is written for several test binaries")]
#[path = "../support/generate.rs"]
mod generate;
#[allow(unreachable_pub, dead_code, reason = "support is written for several test binaries")]
#[path = "../support/pairs.rs"]
mod pairs;

mod agreement;
mod certs;
mod check;
mod configuration;
mod direct;
mod existing;
mod guard;
mod hostile;
mod kinds;
mod leading;
mod live;
mod opa;
mod oracle;
mod outage;
mod placement;
mod policies;
mod replicas;
mod smoke;
mod verdicts;
mod watches;
mod workloads;
