//! What the fuzz targets do with bytes: plain functions, which the tests of the core run too.
//!
//! Invariant: a body panics where the program breaks a promise, and for nothing else. Bytes that are more than one text are cut
//! at 0xFF, which stands in no UTF-8.

#![allow(dead_code, reason = "each fuzz target uses one of the bodies")]

#[path = "bodies/answer.rs"]
pub mod answer;
#[path = "bodies/configuration.rs"]
pub mod configuration;
#[path = "bodies/patch.rs"]
pub mod patch;
#[path = "bodies/policy.rs"]
pub mod policy;
#[path = "bodies/quantity.rs"]
pub mod quantity;
#[path = "bodies/review.rs"]
pub mod review;
#[path = "bodies/scenes.rs"]
pub mod scenes;

/// The parts of some bytes.
fn parts(data: &[u8]) -> impl Iterator<Item = &[u8]> {
    data.split(|byte| *byte == 0xFF)
}
