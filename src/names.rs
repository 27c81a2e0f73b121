//! What Kubernetes takes for a label key, a label value and a DNS name.
//!
//! Invariant: every check is linear in the text, and says what is wrong.

/// Nothing, or what is wrong with a name: lower case, no full stop.
pub(crate) type Verdict = Result<(), String>;

/// A label key: an optional DNS subdomain and a slash, then a name.
pub(crate) fn label_key(text: &str) -> Verdict {
    let (prefix, name) = match text.split_once('/') {
        None => (None, text),
        Some((prefix, name)) => (Some(prefix), name),
    };
    if let Some(prefix) = prefix {
        subdomain(prefix).map_err(|why| format!("before the slash, {why}"))?;
    }
    label_name(name)
}

/// A label value: empty, or like the name of a label key.
pub(crate) fn label_value(text: &str) -> Verdict {
    if text.is_empty() { Ok(()) } else { label_name(text) }
}

/// A DNS label by RFC 1123.
pub(crate) fn dns_label(text: &str) -> Verdict {
    let inner = |character: char| matches!(character, 'a'..='z' | '0'..='9' | '-');
    bounded(text, 63)?;
    made_of(text, inner, "lower-case letters, digits and -")?;
    begins_and_ends(text, |character| character != '-', "a letter or a digit")
}

/// A DNS subdomain by RFC 1123.
pub(crate) fn subdomain(text: &str) -> Verdict {
    bounded(text, 253)?;
    made_of(
        text,
        |character| matches!(character, 'a'..='z' | '0'..='9' | '-' | '.'),
        "lower-case letters, digits, - and .",
    )?;
    let alone = |part: &str| !part.is_empty() && !part.starts_with('-') && !part.ends_with('-');
    if text.split('.').all(alone) {
        Ok(())
    } else {
        Err("each part between dots must begin and end with a letter or a digit".to_owned())
    }
}

fn label_name(text: &str) -> Verdict {
    bounded(text, 63)?;
    let inner = |character: char| character.is_ascii_alphanumeric() || matches!(character, '-' | '_' | '.');
    made_of(text, inner, "letters, digits, -, _ and .")?;
    begins_and_ends(text, |character| character.is_ascii_alphanumeric(), "a letter or a digit")
}

/// Not empty, and at most so many characters.
pub(crate) fn bounded(text: &str, most: usize) -> Verdict {
    if text.is_empty() {
        return Err("it is empty".to_owned());
    }
    if text.chars().count() > most { Err(format!("it is longer than {most} characters")) } else { Ok(()) }
}

/// Made of characters of one sort.
pub(crate) fn made_of(text: &str, inner: impl Fn(char) -> bool, what: &str) -> Verdict {
    match text.chars().find(|character| !inner(*character)) {
        None => Ok(()),
        Some(other) => Err(format!("it holds '{}', and may hold {what} only", other.escape_debug())),
    }
}

/// With one sort of characters at both ends.
pub(crate) fn begins_and_ends(text: &str, edge: impl Fn(char) -> bool, what: &str) -> Verdict {
    if text.starts_with(&edge) && text.ends_with(&edge) {
        Ok(())
    } else {
        Err(format!("it must begin and end with {what}"))
    }
}
