//! The options of `slicegate serve` that bound what it does.
//!
//! Invariant: none of them can be switched off by a value that looks like a bound.

use std::time::Duration;

use crate::duration;

/// What bounds the evaluation of policies.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Policies")]
#[allow(clippy::struct_field_names, reason = "the names of the fields are those of the flags")]
pub(super) struct Rego {
    /// How many processes evaluate policies, beside one that stands ready [default: one for each core]
    #[arg(long, env = "SLICEGATE_REGO_WORKERS", value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(super) rego_workers: Option<u16>,

    /// The processor time that one policy set may take for one request
    #[arg(long, env = "SLICEGATE_REGO_BUDGET", value_name = "DURATION", value_parser = positive, default_value = "20ms")]
    pub(super) rego_budget: Duration,

    /// The memory that one policy set may take for one request, beyond what all loaded sets take
    #[arg(long, env = "SLICEGATE_REGO_MEMORY", value_name = "SIZE", value_parser = size, default_value = "64MiB")]
    pub(super) rego_memory: usize,
}

/// What bounds the server.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Limits")]
pub(super) struct Bounds {
    /// The longest that a TLS handshake may take
    #[arg(long, env = "SLICEGATE_HANDSHAKE_TIMEOUT", value_name = "DURATION", value_parser = positive, default_value = "5s")]
    pub(super) handshake_timeout: Duration,

    /// The longest that the head of a request may take, from its first byte to its last
    #[arg(long, env = "SLICEGATE_HEADER_TIMEOUT", value_name = "DURATION", value_parser = positive, default_value = "10s")]
    pub(super) header_timeout: Duration,

    /// The longest that the body of a request may take; answered with 408
    #[arg(long, env = "SLICEGATE_BODY_TIMEOUT", value_name = "DURATION", value_parser = positive, default_value = "10s")]
    pub(super) body_timeout: Duration,

    /// How long a connection may rest between requests
    #[arg(long, env = "SLICEGATE_IDLE_TIMEOUT", value_name = "DURATION", value_parser = positive, default_value = "3m")]
    pub(super) idle_timeout: Duration,

    /// The age at which a connection is ended between requests, so that load moves to new replicas
    #[arg(long, env = "SLICEGATE_CONNECTION_AGE", value_name = "DURATION", value_parser = positive, default_value = "10m")]
    pub(super) connection_age: Duration,

    /// The largest body, such as 8MiB or 900KiB; beyond it 413
    #[arg(long, env = "SLICEGATE_MAX_BODY", value_name = "SIZE", value_parser = size, default_value = "8MiB")]
    pub(super) max_body: usize,

    /// The most memory for bodies of more than 64KiB that are read at a time; beyond it 429
    #[arg(long, env = "SLICEGATE_MAX_BODY_MEMORY", value_name = "SIZE", value_parser = size, default_value = "64MiB")]
    pub(super) max_body_memory: usize,

    /// The most connections at a time; beyond it they are closed at once
    #[arg(long, env = "SLICEGATE_MAX_CONNECTIONS", value_name = "COUNT", value_parser = count, default_value_t = 2_000)]
    pub(super) max_connections: usize,

    /// The most requests at a time; beyond it 429
    #[arg(long, env = "SLICEGATE_MAX_IN_FLIGHT", value_name = "COUNT", value_parser = count, default_value_t = 1_000)]
    pub(super) max_in_flight: usize,

    /// The most requests at a time on one HTTP/2 connection
    #[arg(long, env = "SLICEGATE_MAX_STREAMS", value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..), default_value_t = 250)]
    pub(super) max_streams: u32,
}

pub(super) fn positive(text: &str) -> Result<Duration, String> {
    duration::parse(text)
        .and_then(|value| if value.is_zero() { Err("must be more than 0s".to_owned()) } else { Ok(value) })
}

fn count(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|count| *count > 0).ok_or_else(|| format!("{text:?} is no number above 0"))
}

fn size(text: &str) -> Result<usize, String> {
    let units = [("MiB", 1_usize << 20), ("KiB", 1 << 10), ("", 1)];
    let found = units.iter().find_map(|(unit, size)| text.strip_suffix(unit).map(|number| (number, *size)));
    let size = found.and_then(|(number, size)| number.trim_end().parse::<usize>().ok()?.checked_mul(size));
    size.ok_or_else(|| format!("{text:?} is no size; write it like 8MiB, 900KiB or 4096"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!((size("8MiB"), size("900KiB"), size("4096")), (Ok(8 << 20), Ok(900 << 10), Ok(4096)));
        assert!(size("8MB").is_err() && size("-1").is_err() && size("").is_err());
    }
}
