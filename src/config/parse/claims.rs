//! Who claims which resource: no demand may lead to two pools unless placement can tell them apart.
//!
//! Invariant: two pools that claim one name are told apart by the labels of their nodes, a key of both selectors with two
//! values. Names win over globs, so that only names of one text and globs of overlapping ones are compared.

use std::collections::BTreeMap;

use super::super::Pool;
use super::super::glob::Glob;
use super::globs::Located;
use super::value::Value;
use super::words::shown;

/// The most globs in all pools. Each is compared with each.
const MOST_GLOBS: usize = 64;

/// A pool, with the places of what it claims.
pub(super) struct Claimant<'t> {
    /// The pool as it was read.
    pub(super) pool: Pool,
    /// Its resources.
    pub(super) claims: Vec<Located<'t>>,
    /// Its `default: true`.
    pub(super) default: Option<Value<'t>>,
    /// Whether it was read without a mistake: others would only lead to further ones.
    pub(super) sure: bool,
}

/// One claim of one pool.
#[derive(Clone, Copy)]
struct Claim<'c, 't> {
    claimant: &'c Claimant<'t>,
    /// The claimant's place in the list.
    place: usize,
    value: &'c Value<'t>,
    glob: &'c Glob,
}

/// Notes every pair of claims that nothing tells apart, and every second default.
pub(super) fn check(claimants: &[Claimant<'_>]) {
    let sure = claimants.iter().enumerate().filter(|(_, claimant)| claimant.sure);
    let claims = sure.flat_map(|(place, claimant)| {
        claimant.claims.iter().map(move |(value, glob)| Claim { claimant, place, value, glob })
    });
    let (names, globs): (Vec<_>, Vec<_>) = claims.partition(|claim| claim.glob.is_literal());
    let mut same: BTreeMap<&str, Vec<Claim<'_, '_>>> = BTreeMap::new();
    for claim in names {
        same.entry(claim.glob.as_str()).or_default().push(claim);
    }
    // Pools whose default was found to be a second one: one mistake each is enough.
    let mut told = Vec::new();
    for claims in same.values() {
        compare(claims, &mut told, |_, _| true);
    }
    if let Some(claim) = globs.get(MOST_GLOBS) {
        claim.value.mistake(&format!("the pools have more than {MOST_GLOBS} globs in all; write names"));
    } else {
        compare(&globs, &mut told, Glob::overlaps);
    }
}

fn compare(claims: &[Claim<'_, '_>], told: &mut Vec<usize>, meet: impl Fn(&Glob, &Glob) -> bool) {
    for (count, later) in claims.iter().enumerate() {
        let mut earlier = claims.iter().take(count).filter(|earlier| meet(earlier.glob, later.glob));
        if let Some(earlier) = earlier.clone().find(|earlier| !apart(earlier, later)) {
            later.value.mistake(&conflict(earlier, later));
            continue;
        }
        let Some(default) = later.claimant.default.as_ref().filter(|_| !told.contains(&later.place)) else { continue };
        if let Some(earlier) = earlier.find(|earlier| earlier.claimant.pool.default) {
            told.push(later.place);
            let (resource, pool) = (shown(later.glob.as_str()), shown(&earlier.claimant.pool.name));
            default.mistake(&format!("the pool {pool} is the default for {resource} already; only one can be"));
        }
    }
}

/// Whether no Node can belong to both pools.
fn apart(left: &Claim<'_, '_>, right: &Claim<'_, '_>) -> bool {
    let (left, right) = (&left.claimant.pool.node_selector, &right.claimant.pool.node_selector);
    left.iter().any(|(key, value)| right.get(key).is_some_and(|other| other != value))
}

fn conflict(earlier: &Claim<'_, '_>, later: &Claim<'_, '_>) -> String {
    let (text, other) = (shown(later.glob.as_str()), shown(earlier.glob.as_str()));
    if earlier.place == later.place {
        return format!("{text} overlaps {other} of the same pool; one glob, or names, would be clear");
    }
    let (pool, line) = (shown(&earlier.claimant.pool.name), earlier.value.line());
    let what = if earlier.glob == later.glob {
        format!("the pool {pool} has {text} as well (line {line})")
    } else {
        format!("{text} overlaps {other} of the pool {pool} (line {line})")
    };
    format!(
        "{what}, and a Node can belong to both pools; give their selectors one key with two values, or name other resources"
    )
}
