//! File descriptors: as many as connections may need.
//!
//! Invariant: the process never promises more connections than the system lets it hold, so that probes still get theirs.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::server::Limits;

/// What is needed beside the webhook's connections: the admin port's, files, workers, the cluster.
const OTHERS: u64 = 200;

/// Raises this process's own limit as far as the system allows, and lowers the number of connections where that is not
/// enough.
pub(super) fn enough_for(limits: Limits) -> Limits {
    let present = getrlimit(Resource::Nofile);
    let wanted = u64::try_from(limits.max_connections).unwrap_or(u64::MAX).saturating_add(OTHERS);
    let Some(current) = present.current.filter(|current| *current < wanted) else { return limits };
    let raised = present.maximum.map_or(wanted, |maximum| maximum.min(wanted)).max(current);
    let allowed =
        if setrlimit(Resource::Nofile, Rlimit { current: Some(raised), ..present }).is_ok() { raised } else { current };
    let max_connections = connections(allowed, limits.max_connections);
    if max_connections < limits.max_connections {
        tracing::warn!(
            descriptors = allowed,
            max_connections,
            "fewer connections than --max-connections, for want of file descriptors"
        );
    }
    Limits { max_connections, ..limits }
}

/// How many connections so many descriptors are enough for: half of them where they are few.
fn connections(descriptors: u64, wanted: usize) -> usize {
    let room = descriptors.saturating_sub(OTHERS).max(descriptors.div_euclid(2));
    usize::try_from(room).unwrap_or(usize::MAX).clamp(1, wanted.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_descriptors_mean_few_connections() {
        assert_eq!((connections(2_200, 2_000), connections(1_024, 2_000), connections(40, 2_000)), (2_000, 824, 20));
        assert_eq!((connections(1, 2_000), connections(u64::MAX, 5)), (1, 5));
    }
}
