//! Lists of globs, which half of the configuration consists of.

use super::super::glob::Glob;
use super::value::Value;
use super::words::shown;

/// The most elements of a list: far beyond any use, and what keeps comparisons of all with all short.
pub(in crate::config) const MOST: usize = 1000;

/// A glob and the value that it was read from.
pub(super) type Located<'t> = (Value<'t>, Glob);

/// Reads a list of globs that fit the check; `each` says what one of them is. The same one twice is a mistake.
pub(super) fn read<'t>(list: &Value<'t>, each: &str, check: fn(&str) -> Result<(), String>) -> Vec<Located<'t>> {
    let items = list.items(&format!("a list, each element {each}")).unwrap_or_default();
    if items.len() > MOST {
        list.mistake(&format!("{} elements are more than {MOST}", items.len()));
        return Vec::new();
    }
    let mut globs: Vec<Located<'t>> = Vec::new();
    for item in items {
        let Some(text) = item.checked(each, check) else { continue };
        if globs.iter().any(|(_, glob)| glob.as_str() == text) {
            item.mistake(&format!("{} is in the list twice", shown(text)));
        } else {
            globs.push((item, Glob::new(text)));
        }
    }
    globs
}

/// The same without the places.
pub(super) fn plain(list: &Value<'_>, each: &str, check: fn(&str) -> Result<(), String>) -> Vec<Glob> {
    read(list, each, check).into_iter().map(|(_, glob)| glob).collect()
}

/// The built-in globs, then the further ones that are not among them.
pub(super) fn beside(built_in: Vec<Glob>, further: Vec<Glob>) -> Vec<Glob> {
    let mut globs = built_in;
    for glob in further {
        if !globs.contains(&glob) {
            globs.push(glob);
        }
    }
    globs
}
