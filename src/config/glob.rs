//! Patterns of names, in which `*` stands for any run of characters, the empty one included.
//!
//! Invariant: matching takes time in the product of both lengths at most, whatever the pattern.

use std::fmt;

/// A pattern of names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Glob(String);

impl Glob {
    /// A pattern from its text; every text is one.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The pattern's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the pattern holds no star.
    pub fn is_literal(&self) -> bool {
        !self.0.contains('*')
    }

    /// Whether the pattern is this very name and nothing else.
    pub fn is_exact(&self, name: &str) -> bool {
        self.is_literal() && self.0 == name
    }

    /// Whether the name fits the pattern.
    pub fn matches(&self, name: &str) -> bool {
        match self.0.split_once('*') {
            None => self.0 == name,
            Some((start, rest)) => name.strip_prefix(start).is_some_and(|name| tail_matches(rest, name)),
        }
    }

    /// Whether some name fits both patterns.
    pub fn overlaps(&self, other: &Self) -> bool {
        let (left, right): (Vec<char>, Vec<char>) = (self.0.chars().collect(), other.0.chars().collect());
        // The places in `right` that can be reached while reading `left`; a star on either side may stay where it is.
        let mut reached = closure(&right, vec![0]);
        for character in left {
            let mut next: Vec<usize> = Vec::new();
            if character == '*' {
                let from = reached.iter().min().copied().unwrap_or(usize::MAX);
                next.extend(from..=right.len());
            } else {
                for place in &reached {
                    match right.get(*place) {
                        Some('*') => next.push(*place),
                        Some(other) if *other == character => next.push(place.saturating_add(1)),
                        _ => {}
                    }
                }
            }
            reached = closure(&right, next);
        }
        reached.contains(&right.len())
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// What follows a star: each further piece at its first place, the last one at the end. The first place is enough, since a
/// star follows.
fn tail_matches(mut pattern: &str, mut name: &str) -> bool {
    while let Some((piece, rest)) = pattern.split_once('*') {
        let Some((_, after)) = name.split_once(piece) else { return false };
        (pattern, name) = (rest, after);
    }
    name.ends_with(pattern)
}

/// A star may stand for nothing: whoever is at one is behind it as well.
fn closure(pattern: &[char], mut places: Vec<usize>) -> Vec<usize> {
    let mut index = 0;
    while let Some(place) = places.get(index).copied() {
        let behind = place.saturating_add(1);
        if pattern.get(place) == Some(&'*') && !places.contains(&behind) {
            places.push(behind);
        }
        index = index.saturating_add(1);
    }
    places.sort_unstable();
    places.dedup();
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_match_any_run() {
        for (pattern, name, matches) in [
            ("nvidia.com/gpu", "nvidia.com/gpu", true),
            ("nvidia.com/gpu", "nvidia.com/gpu.shared", false),
            ("nvidia.com/mig-*.shared", "nvidia.com/mig-1g.10gb.shared", true),
            ("nvidia.com/mig-*.shared", "nvidia.com/mig-1g.10gb", false),
            ("*", "", true),
            ("a*a", "a", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("*ab", "aab", true),
            ("", "", true),
            ("", "x", false),
        ] {
            assert_eq!(Glob::new(pattern).matches(name), matches, "{pattern} {name}");
        }
    }

    #[test]
    fn overlap_is_found_both_ways() {
        for (left, right, overlaps) in [
            ("a*", "ab", true),
            ("a*", "b*", false),
            ("*a", "b*", true),
            ("a*b", "a*c", false),
            ("*", "*", true),
            ("a", "a", true),
            ("a", "b", false),
            ("nvidia.com/mig-*.shared", "nvidia.com/mig-*", true),
            ("a*b", "ab", true),
            ("x*y*z", "xz", false),
        ] {
            let (left, right) = (Glob::new(left), Glob::new(right));
            assert_eq!((left.overlaps(&right), right.overlaps(&left)), (overlaps, overlaps), "{left} {right}");
        }
    }
}
