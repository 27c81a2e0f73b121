//! What Kubernetes takes for a name of each sort, and what is wrong with a text that is none.
//!
//! Invariant: every check is linear in the text. Where globs are allowed, `*` stands for any run of characters, so a glob is
//! right when some name could fit it.

use crate::names::{Verdict, bounded, label_key, made_of, subdomain};

/// The most stars of a resource's glob: globs of pools are compared with each other, which takes the longer the more stars
/// there are.
pub(in crate::config) const MOST_STARS: usize = 4;

/// A glob of DNS subdomains, such as names of Namespaces and PriorityClasses.
pub(super) fn subdomain_glob(text: &str) -> Verdict {
    subdomain(&filled(text))
}

/// A glob of extended resources: a domain that is not Kubernetes' own, a slash, and a name.
pub(super) fn resource_glob(text: &str) -> Verdict {
    let example = filled(text);
    if text.matches('*').count() > MOST_STARS {
        return Err(format!("it has more than {MOST_STARS} stars"));
    }
    let Some((domain, name)) = example.split_once('/') else {
        let native = matches!(text, "cpu" | "memory" | "storage" | "ephemeral-storage" | "pods");
        let why = if native { "this is a resource of Kubernetes itself" } else { "there is no domain and slash" };
        return Err(format!("{why}; extended resources look like nvidia.com/gpu.shared"));
    };
    label_key(&example)?;
    if domain == "kubernetes.io" || domain.ends_with(".kubernetes.io") {
        return Err("resources of kubernetes.io are not extended ones".to_owned());
    }
    if domain.starts_with("requests.") || name.starts_with("requests.") {
        return Err("requests. is the form of a ResourceQuota; write the resource's own name".to_owned());
    }
    Ok(())
}

/// A name or a glob of anything else, such as users: not empty, no blanks at its ends, no control characters.
pub(super) fn any_glob(text: &str) -> Verdict {
    bounded(text, 1024)?;
    if text.trim() != text {
        return Err("it begins or ends with a blank".to_owned());
    }
    if text.chars().any(char::is_control) {
        return Err("it holds a control character".to_owned());
    }
    Ok(())
}

/// A rule of a policy set, or a glob of some: the ConfigMap's name, with its namespace before it where that is not slicegate's
/// own, and the rule's name.
pub(super) fn policy_rule_glob(text: &str) -> Verdict {
    let (set, rule) = text.rsplit_once('/').unwrap_or(("", text));
    if set.matches('/').count() > 1 {
        return Err("it has more than two slashes; write policy/rule or namespace/policy/rule".to_owned());
    }
    set.split('/').try_for_each(subdomain_glob)?;
    let rule = filled(rule);
    bounded(&rule, 253)?;
    made_of(&rule, |character| character.is_ascii_alphanumeric() || character == '_', "letters, digits and underscores")
}

/// A kind: letters and digits, a capital first.
pub(super) fn kind(text: &str) -> Verdict {
    bounded(text, 63)?;
    made_of(text, |character| character.is_ascii_alphanumeric(), "letters and digits")?;
    if text.starts_with(|first: char| first.is_ascii_uppercase()) {
        Ok(())
    } else {
        Err("kinds begin with a capital letter, such as Deployment".to_owned())
    }
}

/// A glob of objects, `Kind/name`.
pub(super) fn workload_glob(text: &str) -> Verdict {
    let form = "write Kind/name, such as Deployment/trainer, Job/nightly-* or */trainer";
    let Some((kind_glob, name)) = text.split_once('/') else {
        return Err(format!("there is no kind; {form}"));
    };
    if name.contains('/') {
        return Err(format!("there is more than one slash; {form}"));
    }
    // A glob may begin with a star where a kind begins with a capital.
    let star_first = kind_glob.starts_with('*');
    let example = if star_first { format!("K{}", filled(kind_glob)) } else { filled(kind_glob) };
    kind(&example).map_err(|why| format!("before the slash, {why}"))?;
    subdomain_glob(name).map_err(|why| format!("behind the slash, {why}"))
}

/// An API group; empty is the core group.
pub(super) fn group(text: &str) -> Verdict {
    if text.is_empty() {
        return Ok(());
    }
    if let Some((group, _)) = text.split_once('/') {
        return Err(format!("the version does not belong to it; write {group}"));
    }
    if matches!(text, "v1" | "core") {
        return Err("the core group is the empty text; write \"\"".to_owned());
    }
    subdomain(text)
}

/// The tokens of a JSON pointer, unescaped.
pub(super) fn pointer(text: &str) -> Result<Vec<String>, String> {
    let Some(tokens) = text.strip_prefix('/') else {
        let path = text.trim_start_matches(['.', '$']).replace("[]", "/*").replace("[*]", "/*").replace('.', "/");
        return Err(format!("a JSON pointer begins with a slash; write /{path}"));
    };
    bounded(tokens, 1024).map_err(|_| "it must name a field".to_owned())?;
    tokens.split('/').map(unescaped).collect()
}

fn unescaped(token: &str) -> Result<String, String> {
    if token.is_empty() {
        return Err("there is nothing between two slashes, or behind the last".to_owned());
    }
    let mut out = String::new();
    let mut characters = token.chars();
    while let Some(character) = characters.next() {
        match (character, character == '~') {
            (plain, false) => out.push(plain),
            (_, true) => match characters.next() {
                Some('0') => out.push('~'),
                Some('1') => out.push('/'),
                _ => return Err("behind ~ stands 0 (for ~) or 1 (for /)".to_owned()),
            },
        }
    }
    Ok(out)
}

/// Some name that the glob fits, for checks of names.
fn filled(glob: &str) -> String {
    glob.replace('*', "x")
}
