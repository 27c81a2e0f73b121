//! Rules, exemptions and further kinds.

use serde_json::{Value, json};

use super::forms::{Names, any_list, described, either, list, object, or_null, some, text, words};
use super::{RuleId, exemptions, rules as parser, setting, workloads};

/// The settings of rules.
pub(super) fn rules() -> Value {
    let ids = RuleId::ALL.map(RuleId::as_str);
    object(&ids, &[], |id| {
        let default =
            RuleId::ALL.into_iter().find(|rule| rule.as_str() == id).map(|rule| rule.default_action().as_str());
        or_null(object(&parser::FIELDS, &[], |name| match name {
            "action" => setting(actions(), default, "What its findings lead to; dryrun is recorded only."),
            "namespaces" => {
                let names = text(Names::SubdomainGlob);
                let map = json!({"type": "object", "propertyNames": names, "additionalProperties": actions()});
                let about = "Other actions in namespaces or globs of some; a name counts before a glob, a longer glob before a \
                             shorter one.";
                setting(map, json!({}), about)
            }
            _ => Value::Null,
        }))
    })
}

fn actions() -> Value {
    words(&parser::ACTIONS.map(crate::policy::decision::Action::as_str))
}

/// An exemption.
pub(super) fn exemption() -> Value {
    let schema = object(&exemptions::FIELDS, &["reason"], |name| match name {
        "rules" => {
            let ids = words(&RuleId::ALL.map(RuleId::as_str));
            let globs = json!({"type": "string", "pattern": r"^[^/]*\*[^/]*$", "maxLength": 1024});
            let rule = either(&[ids, globs, text(Names::PolicyRuleGlob)]);
            let about = "Ids of rules or globs of some; those of policies as policy/rule or namespace/policy/rule. Every rule where \
                         it is left out.";
            names(&rule, about)
        }
        "namespaces" => names(&text(Names::SubdomainGlob), "Namespaces or globs of some; all where it is left out."),
        "users" => {
            let about = "Requesting users or globs of some; all where it is left out. Does not reach the Pods that controllers make.";
            names(&text(Names::AnyGlob), about)
        }
        "groups" => {
            let about = "Groups of the requesting user or globs of some; all where it is left out. Does not reach the Pods that \
                         controllers make.";
            names(&text(Names::AnyGlob), about)
        }
        "workloads" => {
            names(&text(Names::WorkloadGlob), "Objects as Kind/name, both may be globs; all where it is left out.")
        }
        "until" => {
            let about = "From when it no longer counts: a date, which counts to its end in UTC, or a timestamp. For ever where it \
                         is left out.";
            described(or_null(text(Names::Moment)), about)
        }
        "reason" => described(json!({"type": "string", "pattern": r"\S"}), "Why; shown wherever it counts."),
        _ => Value::Null,
    });
    described(
        any_list(schema, &exemptions::LISTS),
        "All that is given must match, and at least one list must be given.",
    )
}

fn names(each: &Value, about: &str) -> Value {
    described(or_null(some(list(each))), about)
}

/// A further kind.
pub(super) fn workload() -> Value {
    let pointers = ["templates", "podSpecs"];
    let schema = object(&workloads::FIELDS, &["group", "kind"], |name| match name {
        "group" => described(text(Names::Group), "The API group without version; \"\" is the core group."),
        "kind" => described(text(Names::Kind), "The kind."),
        "templates" => names(&text(Names::Pointer), "JSON pointers to PodTemplateSpecs; * is every element or key."),
        "podSpecs" => names(&text(Names::Pointer), "JSON pointers to bare PodSpecs; * is every element or key."),
        _ => Value::Null,
    });
    described(any_list(schema, &pointers), "A kind, and where Pod templates stand in it.")
}
