//! Places in an object by a pattern of keys.
//!
//! A pattern is the tokens of a JSON pointer, in which `*` stands for every element of an array or every member of an
//! object. Invariant: every key in a path is the object's own, so that the pattern may go out of scope before the path.

use crate::json::Json;
use crate::workload::Placed;

/// The objects that the pattern leads to, in the order of the document. Empty objects and values of other types carry
/// nothing and are left out.
pub(super) fn pieces<'r, 't>(root: &Placed<'r>, tokens: impl Iterator<Item = &'t str>) -> Vec<Placed<'r>> {
    let mut here = vec![root.clone()];
    for token in tokens {
        let mut next = Vec::new();
        for piece in &here {
            step(piece, token, &mut next);
        }
        here = next;
    }
    here.retain(|piece| piece.value.as_object().is_some_and(|object| !object.is_empty()));
    here
}

/// The pieces of a pattern that is written with slashes, as in the table; the empty one leads to the object itself.
pub(super) fn written<'r>(root: &Placed<'r>, pattern: &str) -> Vec<Placed<'r>> {
    pieces(root, pattern.split('/').filter(|token| !token.is_empty()))
}

fn step<'r>(piece: &Placed<'r>, token: &str, next: &mut Vec<Placed<'r>>) {
    match piece.value {
        Json::Object(members) if token == "*" => {
            let members = members.iter().filter(|(_, value)| **value != Json::Null);
            next.extend(members.map(|(key, value)| Placed::new(piece.path.key(key), value)));
        }
        Json::Object(members) => {
            next.extend(members.get_entry(token).map(|(key, value)| Placed::new(piece.path.key(key), value)));
        }
        Json::Array(elements) if token == "*" => {
            let elements = elements.iter().enumerate();
            next.extend(elements.map(|(index, value)| Placed::new(piece.path.index(index), value)));
        }
        Json::Array(elements) => {
            let found = token.parse().ok().and_then(|index: usize| Some((index, elements.get(index)?)));
            next.extend(found.map(|(index, value)| Placed::new(piece.path.index(index), value)));
        }
        _ => {}
    }
}
