//! Tests of the pure core and of the house rules, without a server.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::arithmetic_side_effects,
    reason = "what is not as it should be fails the test"
)]

#[allow(unreachable_pub, reason = "the fuzz targets use them too")]
#[path = "../fuzz/bodies.rs"]
mod bodies;
#[allow(unreachable_pub, reason = "support is written for several test binaries")]
#[path = "../support/generate.rs"]
mod generate;
#[allow(unreachable_pub, dead_code, reason = "support is written for several test binaries")]
#[path = "../support/pairs.rs"]
mod pairs;

mod fuzz;
mod judging;
mod kinds;
mod properties;
mod rego;
mod schema;
mod seeds;
mod tidy;
