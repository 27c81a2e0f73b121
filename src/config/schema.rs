//! The JSON Schema of the configuration, for editors and for checks before a cluster is asked.
//!
//! What it does: says in JSON Schema 2020-12 what [`super::parse()`] reads. Field names and words are the parser's own tables,
//! defaults are those of [`Config::default`]. Invariant: what the parser reads, the schema takes. The reverse does not hold where
//! a schema cannot say what is wrong: places compared with each other, such as two pools that claim one resource.

use serde_json::{Value, json};

use super::glob::Glob;
use super::parse::{self, exemptions, nodes, pools, rules, workloads};
use super::{Config, Pool};
use crate::policy::decision::RuleId;
use forms::{Names, described, list, object, or_null, text, with_default, words};

mod entries;
mod forms;
mod pool;

/// The schema.
pub fn schema() -> Value {
    let mut schema = object(&parse::FIELDS, &["apiVersion", "kind"], field);
    if let Some(members) = schema.as_object_mut() {
        members.insert("$schema".to_owned(), "https://json-schema.org/draft/2020-12/schema".into());
        members.insert("title".to_owned(), "slicegate's configuration".into());
    }
    let about = "What slicegate enforces, from --config or from the key config.yaml of the ConfigMap slicegate-config. A field that \
                 is left out, or null, has its default.";
    described(schema, about)
}

fn field(name: &str) -> Value {
    let config = Config::default();
    match name {
        "apiVersion" => described(words(&[parse::API_VERSION]), "The version of the configuration."),
        "kind" => described(words(&[parse::KIND]), "What the document is."),
        "enforcement" => {
            let known = parse::ENFORCEMENT.map(super::Action::as_str);
            let about = "No finding goes further than this, whatever its own action; warn is how to begin.";
            setting(words(&known), config.enforcement.as_str(), about)
        }
        "existing" => {
            let about = "Keep: what an object had before is only warned of, and so is what built-in controllers make, except in a \
                         Closed pool.";
            setting(words(&parse::EXISTING.map(|(word, _)| word)), word(&parse::EXISTING, &config.existing), about)
        }
        "declarations" => {
            let keys = object(&parse::DECLARATIONS, &[], declaration);
            described(or_null(keys), "The label keys by which workloads declare their class; two different ones.")
        }
        "latencyCritical" => described(
            or_null(object(&parse::LATENCY_CRITICAL, &[], |_| {
                let about =
                    "PriorityClasses or globs of some; a workload with one is latency-critical whatever it declares.";
                setting(list(&text(Names::SubdomainGlob)), json!([]), about)
            })),
            "What makes a workload latency-critical beside its declaration.",
        ),
        "pools" => {
            let pools = json!({"type": "array", "maxItems": pools::MOST, "items": pool::schema()});
            let default: Vec<Value> = config.pools.iter().map(written).collect();
            setting(pools, default, "The sets of nodes that advertise GPUs in one way; [] is no pool at all.")
        }
        "rules" => setting(entries::rules(), json!({}), "Actions of built-in rules, by their ids."),
        "exemptions" => {
            let items = json!({"type": "array", "maxItems": parse::globs::MOST, "items": entries::exemption()});
            setting(items, json!([]), "Findings that do not refuse: whose, until when, and why.")
        }
        "workloads" => {
            let items = json!({"type": "array", "maxItems": parse::globs::MOST, "items": entries::workload()});
            setting(items, json!([]), "Further kinds that carry Pod templates; built-in ones are a mistake.")
        }
        "gpuResources" | "controllers" => globs(name, &config),
        "onDeadline" => {
            let about = "The answer when the API server's deadline comes before the verdict; allow in any case where enforcement \
                         is not deny.";
            setting(
                words(&parse::ON_DEADLINE.map(|(word, _)| word)),
                word(&parse::ON_DEADLINE, &config.on_deadline),
                about,
            )
        }
        _ => Value::Null,
    }
}

/// The lists of globs, which say what is built in.
fn globs(name: &str, config: &Config) -> Value {
    let (built_in, names, about) = if name == "controllers" {
        let about = "Users or globs of some that count as controllers for existing: Keep, beside";
        (&config.controllers, Names::AnyGlob, about)
    } else {
        let about = "Extended resources or globs of some that stand for GPUs, beside those of pools and";
        (&config.gpu_resources, Names::ResourceGlob, about)
    };
    let built_in: Vec<&str> = built_in.iter().map(Glob::as_str).collect();
    setting(list(&text(names)), json!([]), &format!("{about} {}.", built_in.join(", ")))
}

fn declaration(name: &str) -> Value {
    let config = Config::default();
    match name {
        "latency" => {
            setting(text(Names::LabelKey), config.latency_label, "The label that declares critical or tolerant.")
        }
        "checkpoint" => {
            let about = "The label that declares true, stateless or false.";
            setting(text(Names::LabelKey), config.checkpoint_label, about)
        }
        _ => Value::Null,
    }
}

/// A field that may be left out.
fn setting(schema: Value, default: impl Into<Value>, about: &str) -> Value {
    described(with_default(or_null(schema), default.into()), about)
}

/// The word that stands for a meaning.
fn word<T: PartialEq>(words: &[(&'static str, T)], meaning: &T) -> &'static str {
    words.iter().find(|(_, known)| known == meaning).map(|(word, _)| *word).unwrap_or_default()
}

/// A pool as its author would write it.
fn written(pool: &Pool) -> Value {
    let texts = |globs: &[Glob]| globs.iter().map(|glob| glob.as_str().to_owned()).collect::<Vec<_>>();
    let tolerations = pool.tolerations.iter().map(|toleration| {
        let fields = nodes::TOLERATION.iter().zip([
            &toleration.key,
            &toleration.operator,
            &toleration.value,
            &toleration.effect,
        ]);
        fields
            .filter(|(_, text)| !text.is_empty())
            .map(|(name, text)| ((*name).to_owned(), Value::from(text.as_str())))
            .collect::<Value>()
    });
    json!({
        "name": pool.name,
        "sharing": word(&pools::SHARING, &pool.sharing),
        "resources": texts(&pool.resources),
        "nodes": {"selector": pool.node_selector, "tolerations": tolerations.collect::<Vec<Value>>()},
    })
}

#[cfg(test)]
mod tests;
