//! Cuts a set off for the Namespace whose requests it failed on, again and again.
//!
//! What it does: after [`TRIPS`] costly failures within [`WINDOW`], the set is not run for that Namespace for a while; then one
//! request tries it, and success closes the breaker. Invariant: other Namespaces and other sets are not touched, and a breaker
//! closes by itself.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::protocol::Id;

/// How many failures open it.
pub const TRIPS: u32 = 3;

/// The time in which they have to happen.
pub const WINDOW: Duration = Duration::from_mins(1);

/// How long it is open at first, and at most.
const OPEN: [Duration; 2] = [Duration::from_secs(15), Duration::from_mins(4)];

/// The most pairs of a set and a Namespace that are remembered.
const MOST: usize = 10_000;

#[derive(Debug, Clone, Copy)]
struct State {
    failures: u32,
    since: Instant,
    until: Option<Instant>,
    open_for: Duration,
}

/// All breakers.
#[derive(Debug, Default)]
pub struct Breaker(Mutex<HashMap<Id, HashMap<String, State>>>);

impl Breaker {
    /// Whether the set may run for this Namespace. One that was open for long enough lets one request try it.
    pub fn allows(&self, set: Id, namespace: &str) -> bool {
        let mut sets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(state) = sets.get_mut(&set).and_then(|states| states.get_mut(namespace)) else { return true };
        let Some(until) = state.until else { return true };
        let now = Instant::now();
        if now < until {
            return false;
        }
        // The others wait until this one has told how it went, or did not for as long again.
        state.until = Some(now.checked_add(state.open_for).unwrap_or(now));
        true
    }

    /// Whether it is open for this Namespace, or half so.
    pub fn is_open(&self, set: Id, namespace: &str) -> bool {
        let sets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let state = sets.get(&set).and_then(|states| states.get(namespace));
        state.is_some_and(|state| state.until.is_some())
    }

    /// A set has failed in a way that costs. Says whether that opened the breaker.
    pub fn failed(&self, set: Id, namespace: &str) -> bool {
        let mut sets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sets.values().map(HashMap::len).fold(0, usize::saturating_add) > MOST {
            sets.clear();
        }
        let now = Instant::now();
        let [first, most] = OPEN;
        let fresh = State { failures: 0, since: now, until: None, open_for: first };
        let state = sets.entry(set).or_default().entry(namespace.to_owned()).or_insert(fresh);
        if state.until.is_some() {
            state.open_for = state.open_for.saturating_mul(2).min(most);
            state.until = now.checked_add(state.open_for);
            return true;
        }
        if now.duration_since(state.since) > WINDOW {
            (state.failures, state.since) = (0, now);
        }
        state.failures = state.failures.saturating_add(1);
        if state.failures >= TRIPS {
            state.until = now.checked_add(state.open_for);
        }
        state.until.is_some()
    }

    /// A set was run to its end. Says whether that closed the breaker.
    pub fn succeeded(&self, set: Id, namespace: &str) -> bool {
        let mut sets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The usual case is that nothing is remembered, and it costs next to nothing.
        if let Some(states) = sets.get_mut(&set)
            && states.get(namespace).is_some_and(|state| state.until.is_some())
        {
            states.remove(namespace);
            return true;
        }
        false
    }

    /// A set is gone.
    pub fn forget(&self, set: Id) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&set);
    }

    /// How many are open.
    pub fn open(&self) -> usize {
        let sets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sets.values().flat_map(HashMap::values).filter(|state| state.until.is_some()).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_opens_tries_again_and_closes() {
        let breaker = Breaker::default();
        assert!(!breaker.failed(1, "a") && !breaker.failed(1, "a") && breaker.allows(1, "a"));
        assert!(breaker.failed(1, "a"));
        assert!(!breaker.allows(1, "a") && breaker.allows(1, "b") && breaker.allows(2, "a"));
        assert_eq!(breaker.open(), 1);
        tokio::time::advance(OPEN[0]).await;
        assert!(breaker.allows(1, "a"), "one tries");
        assert!(!breaker.allows(1, "a"), "and only one");
        assert!(breaker.failed(1, "a"));
        tokio::time::advance(OPEN[0]).await;
        assert!(!breaker.allows(1, "a"), "it stays open for longer");
        tokio::time::advance(OPEN[0]).await;
        assert!(breaker.allows(1, "a"));
        breaker.succeeded(1, "a");
        assert!(breaker.allows(1, "a") && breaker.allows(1, "a"));
        assert_eq!(breaker.open(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn failures_far_apart_do_not_add_up() {
        let breaker = Breaker::default();
        for _ in 0..10 {
            assert!(!breaker.failed(1, "a"));
            tokio::time::advance(WINDOW).await;
            tokio::time::advance(Duration::from_millis(1)).await;
        }
    }
}
