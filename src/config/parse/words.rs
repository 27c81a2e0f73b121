//! Words in messages: quoting, lists, and the nearest known word.

/// The most characters of a user's text in a message.
const LONGEST: usize = 60;
/// Longer words have no nearest one: nobody misspells that much.
const LONGEST_WORD: usize = 64;

/// A user's text in quotes: control and direction characters escaped, and cut where it is long.
pub(super) fn shown(text: &str) -> String {
    let mut out = String::from("\"");
    for (place, character) in text.chars().enumerate() {
        if place == LONGEST {
            out.push('…');
            break;
        }
        match character {
            '\'' => out.push('\''),
            _ => out.extend(character.escape_debug()),
        }
    }
    out.push('"');
    out
}

/// Words with commas between them.
pub(super) fn listed<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    words.into_iter().collect::<Vec<_>>().join(", ")
}

/// The known word that was most likely meant: the same but for case and separators, or else the closest within a third of
/// its letters.
pub(super) fn nearest<'w>(word: &str, known: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    if word.len() > LONGEST_WORD {
        return None;
    }
    let plain = simplified(word);
    let distances = known.into_iter().map(|candidate| (distance(&plain, &simplified(candidate)), candidate));
    let (distance, best) = distances.min_by_key(|(distance, _)| *distance)?;
    (distance <= plain.chars().count().max(2).div_ceil(3)).then_some(best)
}

/// A suggestion to stand behind a message, or nothing.
pub(super) fn suggestion<'w>(word: &str, known: impl IntoIterator<Item = &'w str>) -> String {
    nearest(word, known).map(|word| format!("; did you mean {word}?")).unwrap_or_default()
}

fn simplified(word: &str) -> String {
    word.chars().filter(|character| !matches!(character, '-' | '_' | ' ' | '.')).flat_map(char::to_lowercase).collect()
}

/// How many letters must be added, taken away or replaced to make one word the other.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (place, from) in left.chars().enumerate() {
        let mut next = vec![place.saturating_add(1)];
        for (to, above) in right.iter().zip(row.windows(2)) {
            let [diagonal, above] = *above else { continue };
            let replaced = diagonal.saturating_add(usize::from(from != *to));
            let before = next.last().copied().unwrap_or(0);
            next.push(replaced.min(above.saturating_add(1)).min(before.saturating_add(1)));
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}
