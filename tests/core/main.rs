//! Tests of the pure core and of the house rules, without a server.

#[allow(unreachable_pub, reason = "support is written for several test binaries")]
#[path = "../support/generate.rs"]
mod generate;

mod kinds;
mod properties;
mod tidy;
