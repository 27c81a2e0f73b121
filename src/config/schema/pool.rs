//! A pool.

use serde_json::{Value, json};

use super::forms::{Names, described, flag, list, object, or_null, some, text, words};
use super::{nodes, pools, setting, word};
use crate::config::{Pool, Sharing};

/// A pool. The defaults are those of pools that share GPUs; the texts tell those of others.
pub(super) fn schema() -> Value {
    let about = "A set of nodes that advertise GPUs in one way.";
    described(object(&pools::FIELDS, &["name", "sharing", "resources"], field), about)
}

fn defaults() -> Pool {
    Pool::with_defaults(Sharing::TimeSlicing)
}

fn field(name: &str) -> Value {
    match name {
        "name" => described(text(Names::DnsLabel), "Its name in messages, unique."),
        "sharing" => {
            let about =
                "How its GPUs are shared; Exclusive has no limits and asks for no class where nothing else is said.";
            described(words(&pools::SHARING.map(|(word, _)| word)), about)
        }
        "state" => {
            let about = "Draining: nothing new enters and nothing grows, controllers go on. Closed: no new Pods.";
            setting(words(&pools::STATES.map(|(word, _)| word)), word(&pools::STATES, &defaults().state), about)
        }
        "resources" => {
            let about = "The extended resources, or globs of some, that lead to it.";
            described(some(list(&text(Names::ResourceGlob))), about)
        }
        "nodes" => described(or_null(object(&nodes::FIELDS, &[], of_nodes)), "What tells its nodes."),
        "limits" => {
            let about = "The most units of its resources; perPod is at least perContainer.";
            described(or_null(object(&pools::LIMITS, &[], limit)), about)
        }
        "inject" => described(or_null(object(&pools::INJECT, &[], inject)), "What mutation adds to workloads in it."),
        "admit" => described(or_null(object(&pools::ADMIT, &[], admit)), "Whom it admits."),
        "default" => {
            let about =
                "Whether it takes the demand that placement does not tell, where several pools have one resource.";
            setting(flag(), defaults().default, about)
        }
        _ => Value::Null,
    }
}

fn of_nodes(name: &str) -> Value {
    match name {
        "selector" => {
            let keys = json!({"allOf": [text(Names::LabelKey), {"not": {"enum": nodes::NO_LABELS}}]});
            let labels =
                json!({"type": "object", "propertyNames": keys, "additionalProperties": text(Names::LabelValue)});
            setting(labels, json!({}), "The labels of its nodes, as in a nodeSelector.")
        }
        "tolerations" => {
            let items = toleration();
            setting(list(&items), json!([]), "What the taints of its nodes ask for, as in a Pod.")
        }
        _ => Value::Null,
    }
}

fn toleration() -> Value {
    let mut schema = object(&nodes::TOLERATION, &[], |name| match name {
        "key" => described(or_null(text(Names::LabelKeyOrNone)), "The taint's key; none, with Exists, is every key."),
        "operator" => setting(
            words(&nodes::OPERATORS.map(|(word, _)| word)),
            word(&nodes::OPERATORS, &false),
            "How the value counts.",
        ),
        "value" => described(or_null(text(Names::LabelValue)), "The taint's value; none with Exists."),
        "effect" => {
            let known: Vec<&str> = nodes::EFFECTS.into_iter().chain([""]).collect();
            described(or_null(words(&known)), "The taint's effect; none is every effect.")
        }
        "tolerationSeconds" => {
            let seconds = json!({"type": "integer", "minimum": i64::MIN, "maximum": i64::MAX});
            described(or_null(seconds), "How long a NoExecute taint is tolerated; none is for ever.")
        }
        _ => Value::Null,
    });
    let has_key = json!({"required": ["key"], "properties": {"key": {"type": "string", "minLength": 1}}});
    let exists = json!({"required": ["operator"], "properties": {"operator": {"const": "Exists"}}});
    let no_value = json!({"properties": {"value": {"enum": ["", null]}}});
    let timed = json!({"required": ["tolerationSeconds"], "properties": {"tolerationSeconds": {"type": "integer"}}});
    let no_execute = json!({"required": ["effect"], "properties": {"effect": {"const": "NoExecute"}}});
    let conditions =
        json!([{"if": has_key, "else": exists}, {"if": exists, "then": no_value}, {"if": timed, "then": no_execute}]);
    if let Some(members) = schema.as_object_mut() {
        members.insert("allOf".to_owned(), conditions);
    }
    schema
}

fn limit(name: &str) -> Value {
    let limit = json!({"type": "integer", "minimum": 1, "maximum": i64::MAX});
    let (default, of) = match name {
        "perContainer" => (defaults().per_container, "one container"),
        "perPod" => (defaults().per_pod, "one Pod"),
        _ => return Value::Null,
    };
    setting(
        limit,
        default,
        &format!("The most units that {of} may ask for; null is no limit, the default of Exclusive."),
    )
}

fn inject(name: &str) -> Value {
    let inject = defaults().inject;
    match name {
        "tolerations" => setting(flag(), inject.tolerations, "Whether it adds the pool's tolerations."),
        "nodeSelector" => setting(flag(), inject.node_selector, "Whether it adds the labels of the pool's nodes."),
        "into" => {
            let about = "Which objects it adds to: Pods, also Jobs that are created suspended, or every template.";
            setting(words(&pools::INTO.map(|(word, _)| word)), word(&pools::INTO, &inject.into), about)
        }
        _ => Value::Null,
    }
}

fn admit(name: &str) -> Value {
    match name {
        "latencyCritical" => {
            let about = "Whether latency-critical workloads may enter; true by default where sharing is Exclusive.";
            setting(flag(), defaults().admits_latency_critical, about)
        }
        "requireCheckpoint" => {
            let about =
                "Whether checkpoint must be declared true or stateless; false by default where sharing is Exclusive.";
            setting(flag(), defaults().requires_checkpoint, about)
        }
        _ => Value::Null,
    }
}
