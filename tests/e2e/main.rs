//! Tests against a real control plane, and against Kubernetes' own code.

#![cfg(test)]

#[path = "../support/cluster.rs"]
mod cluster;
#[allow(unreachable_pub, dead_code, reason = "support is written for several test binaries")]
#[path = "../support/generate.rs"]
mod generate;

mod agreement;
mod configuration;
mod existing;
mod kinds;
mod oracle;
mod outage;
mod placement;
mod smoke;
mod verdicts;
mod watches;
mod workloads;
