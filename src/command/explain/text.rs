//! Explanations for people.

use std::fmt::Write as _;

use serde_json::Value;

use super::Explained;
use super::policies::Policy;
use crate::policy::explain::{Declaration, Template};
use crate::review::text::item;

/// All explanations, one below the other.
pub(super) fn shown(explained: &[Explained]) -> String {
    let texts: Vec<String> = explained.iter().map(object).collect();
    texts.join("\n")
}

fn object(explained: &Explained) -> String {
    let Explained { file, line, kind, namespace, name, verdict, .. } = explained;
    let namespace = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
    let mut text = format!("{} ({file}:{line}): {verdict}\n", item(&format!("{kind} {namespace}{name}")));
    if let Some(refusal) = &explained.refusal {
        row(&mut text, 2, "refused", refusal);
    }
    // Mutation comes first, and what follows is said of the object as it comes out of that.
    patch(&mut text, "added first", &explained.patch);
    if let Some(rules) = &explained.rules {
        if !rules.judged {
            row(&mut text, 2, "rules", "none of the built-in rules looks at such a request");
        } else if rules.templates.is_empty() {
            row(
                &mut text,
                2,
                "templates",
                "none: the object carries no template of Pods, so no built-in rule looks at it",
            );
        }
        rules.templates.iter().for_each(|one| template(&mut text, one));
    }
    policies(&mut text, &explained.policies);
    for note in &explained.notes {
        row(&mut text, 2, "warning", note);
    }
    for pods in &explained.pods {
        patch(&mut text, &format!("added to Pods of {}", pods.template), &pods.patch);
    }
    if explained.patch.is_empty() && explained.pods.is_empty() && explained.refusal.is_none() {
        row(&mut text, 2, "added", "nothing");
    }
    text
}

fn template(text: &mut String, template: &Template) {
    row(text, 2, "template", if template.path.is_empty() { "the Pod itself" } else { &template.path });
    for ask in &template.asks {
        let role = if ask.role.is_empty() || ask.role == "main" { String::new() } else { format!(" ({})", ask.role) };
        let written = if ask.written == ask.count { String::new() } else { format!(", written {:?}", ask.written) };
        row(
            text,
            4,
            "asks",
            &format!("{}{role} for {} of {}{written}, at {}", ask.who, ask.count, ask.resource, ask.field),
        );
    }
    for demand in &template.demand {
        row(text, 4, "demand", &format!("a Pod holds {} of {}: {}", demand.total, demand.resource, demand.arithmetic));
    }
    if template.demand.is_empty() {
        row(text, 4, "demand", "no GPU resource");
    }
    declaration(text, "latency", &template.latency);
    declaration(text, "checkpoint", &template.checkpoint);
    if let Some(by) = &template.critical_by {
        row(text, 4, "critical", &format!("by {by}"));
    }
    for pool in &template.pools {
        let resources = pool.resources.join(", ");
        row(
            text,
            4,
            "pool",
            &format!("in {}, to which {resources} leads; a Pod holds {} of it", pool.pool, pool.total),
        );
    }
    for resource in &template.unclear {
        row(text, 4, "pool", &format!("{resource} leads to several pools, and nothing says which is meant"));
    }
    for pool in &template.placed_on {
        row(text, 4, "placed", &format!("only nodes of pool {pool} can meet nodeSelector, affinity and nodeName"));
    }
    if template.pools.is_empty() && template.placed_on.is_empty() && template.unclear.is_empty() {
        row(text, 4, "pool", "none");
    }
    for rule in &template.rules {
        for (place, why) in rule.why.iter().enumerate() {
            let name = if place == 0 { rule.rule } else { "" };
            let _ = writeln!(
                text,
                "    {:<11} {:<7} {name:<22} {}",
                if place == 0 { "rule" } else { "" },
                rule.outcome,
                item(why)
            );
        }
    }
}

fn declaration(text: &mut String, name: &str, declaration: &Declaration) {
    let said = match &declaration.word {
        Some(word) => format!("{word}, declared at {}", declaration.source),
        None => declaration.source.clone(),
    };
    row(text, 4, name, &said);
    for ignored in &declaration.ignored {
        row(text, 4, "", &format!("does not count: {ignored}"));
    }
}

fn policies(text: &mut String, policies: &[Policy]) {
    for policy in policies {
        let said = match (policy.why, policy.findings.len()) {
            (Some(why), _) => format!("not asked: it {why}"),
            (None, 0) => format!("asked ({}), found nothing", policy.action),
            (None, _) => format!("asked ({})", policy.action),
        };
        row(text, 2, "policy", &format!("{}: {said}", policy.set));
        for finding in &policy.findings {
            row(text, 4, "found", finding);
        }
        for (file, lines) in &policy.reached {
            row(text, 4, "reached", &format!("{file}: lines {lines}"));
        }
    }
}

fn patch(text: &mut String, title: &str, operations: &[Value]) {
    for (place, operation) in operations.iter().enumerate() {
        if place == 0 {
            row(text, 2, title, "");
        }
        let pointer = operation.get("path").and_then(Value::as_str).unwrap_or_default();
        let value = operation.get("value").unwrap_or(&Value::Null);
        let _ = writeln!(text, "    + {}: {}", item(pointer), item(&value.to_string()));
    }
}

fn row(text: &mut String, indent: usize, title: &str, said: &str) {
    let line = format!("{:indent$}{title:<11} {}", "", item(said));
    let _ = writeln!(text, "{}", line.trim_end());
}
