//! The server as its clients see it: over real TLS on loopback.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "what is not as it should be fails the test"
)]

#[path = "../support"]
#[allow(unreachable_pub, dead_code, reason = "each test binary uses a part of the support")]
mod support {
    pub mod certificates;
    pub mod client;
    pub mod generate;
    pub mod namespaces;
    pub mod reviews;
    pub mod running;
    pub mod server;
}

mod admin;
mod binary;
mod certs;
mod check;
mod clients;
mod deadline;
mod drain;
mod explain;
mod guard;
mod limits;
mod manifests;
mod metrics;
mod protocol;
mod registry;
mod reload;
mod testing;
mod verbs;
mod workers;
