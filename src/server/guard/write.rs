//! What a write of a ConfigMap changes, if it changes anything that is read.
//!
//! Invariant: pure. What is left alone is told from the request alone, so that no state of this program can stand in the way
//! of a write that is none of its business.

use std::collections::BTreeMap;

use super::Scope;
use crate::cluster::CONFIG_MAP;
use crate::json::Json;
use crate::rego::set::{ANNOTATIONS, Key, LABEL, PREFIX, Set};
use crate::review::{self, Operation, Refused, Request};

/// The label by which an installation says which version its objects are for.
const VERSION: &str = "app.kubernetes.io/version";

/// A review, read.
#[derive(Debug)]
pub(super) enum Read {
    /// Nothing that is read changes.
    LeftAlone {
        /// The request's.
        uid: String,
        /// What its author should know all the same.
        warnings: Vec<String>,
    },
    /// Something does.
    Judged(Box<Write>),
}

/// A write that changes what is read.
#[derive(Debug)]
pub(super) struct Write {
    pub(super) uid: String,
    pub(super) key: Key,
    pub(super) operation: Operation,
    pub(super) user: String,
    pub(super) dry_run: bool,
    /// What it is as a policy from now on.
    pub(super) set: Option<Set>,
    /// Whether it was one before.
    pub(super) was_set: bool,
    /// Whether it is the configuration.
    pub(super) is_configuration: bool,
    /// The version that it is labelled with.
    pub(super) version: Option<String>,
    /// The texts that problems speak of, by key or annotation.
    pub(super) texts: BTreeMap<String, String>,
}

/// Reads a review.
pub(super) fn read(body: &[u8], scope: &Scope) -> Result<Read, Refused> {
    let request = review::decode(body)?;
    let alone = |warnings| Ok(Read::LeftAlone { uid: request.uid.to_string(), warnings });
    let writes = matches!(request.operation, Operation::Create | Operation::Update) && request.sub_resource.is_empty();
    if !writes || !request.kind.group.is_empty() || request.kind.kind != "ConfigMap" {
        return alone(Vec::new());
    }
    let labelled = |object: &Json<'_>| label(object).is_some();
    let (is_set, was_set) = (labelled(&request.object), labelled(&request.old_object));
    let namespace = request.namespace.as_ref();
    let is_configuration = scope.configuration && namespace == scope.home && request.name == CONFIG_MAP;
    if !(is_set || was_set || is_configuration) || !changes(&request) {
        return alone(Vec::new());
    }
    if !is_configuration && !scope.namespaces.iter().any(|read| read == namespace) {
        let read = scope.namespaces.join(", ");
        let warning = format!(
            "this policy is not loaded: policies are read in {read} and not in {namespace}; slicegate serve \
             --policy-namespace adds a namespace"
        );
        return alone(if is_set { vec![warning] } else { Vec::new() });
    }
    Ok(Read::Judged(Box::new(write(&request, is_set, was_set, is_configuration))))
}

fn write(request: &Request<'_>, is_set: bool, was_set: bool, is_configuration: bool) -> Write {
    let object = &request.object;
    let key = Key { namespace: request.namespace.to_string(), name: request.shown_name() };
    let set = is_set.then(|| Set::of_config_map(&object.to_value())).flatten();
    let texts = object.members("data").filter_map(|(key, text)| Some((key.to_owned(), text.as_str()?.to_owned())));
    let notes =
        annotations(object).map(|(name, text)| (format!("{PREFIX}{name}"), text.unwrap_or_default().to_owned()));
    Write {
        uid: request.uid.to_string(),
        set: set.map(|set| Set { key: key.clone(), ..set }),
        was_set,
        key,
        operation: request.operation,
        user: request.user.name.to_string(),
        dry_run: request.dry_run,
        is_configuration,
        version: object.at(&["metadata", "labels", VERSION]).and_then(Json::as_str).map(str::to_owned),
        texts: texts.chain(notes).collect(),
    }
}

fn label<'j>(object: &'j Json<'_>) -> Option<&'j Json<'j>> {
    object.at(&["metadata", "labels", LABEL])
}

/// The annotations that are read, whether they are there or not.
fn annotations<'j>(object: &'j Json<'_>) -> impl Iterator<Item = (&'static str, Option<&'j str>)> {
    let all = object.at(&["metadata", "annotations"]);
    ANNOTATIONS.into_iter().map(move |name| (name, all.and_then(|all| all.text(&format!("{PREFIX}{name}")))))
}

/// Whether anything that is read differs. What is new always does.
fn changes(request: &Request<'_>) -> bool {
    let (new, old) = (&request.object, &request.old_object);
    request.operation == Operation::Create
        || ["data", "binaryData"].into_iter().any(|key| new.get(key) != old.get(key))
        || label(new) != label(old)
        || annotations(new).ne(annotations(old))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn object(label: &str, module: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cap", "namespace": "slicegate-system",
            "labels": {LABEL: label}, "annotations": {"slicegate.io/action": "warn"}}, "data": {"cap.rego": module}})
    }

    fn read_write(operation: &str, object: &Value, old: &Value) -> Read {
        let namespace = if object.is_null() { old } else { object }.pointer("/metadata/namespace").unwrap();
        let body = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u",
            "kind": {"group": "", "version": "v1", "kind": "ConfigMap"}, "operation": operation, "namespace": namespace,
            "name": object.pointer("/metadata/name"), "object": object, "oldObject": old}});
        read(body.to_string().as_bytes(), &Scope::default()).unwrap()
    }

    fn judged(operation: &str, object: &Value, old: &Value) -> bool {
        matches!(read_write(operation, object, old), Read::Judged(_))
    }

    #[test]
    fn whatever_a_set_is_made_of_is_judged_and_nothing_else() {
        let old = object("true", "package a");
        let with = |pointer: &str, value: Value| {
            let mut new = old.clone();
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            new.pointer_mut(parent).unwrap().as_object_mut().unwrap().insert(key.replace("~1", "/"), value);
            new
        };
        assert!(judged("CREATE", &old, &Value::Null));
        for new in [
            with("/data/cap.rego", json!("package b")),
            with("/data/more.json", json!("{}")),
            with("/binaryData", json!({"x.rego": "AA=="})),
            with("/metadata/labels/slicegate.io~1policy", json!("library")),
            with("/metadata/labels", json!({})),
            with("/metadata/annotations/slicegate.io~1match", json!("kinds: [Pod]")),
            with("/metadata/annotations", json!({})),
        ] {
            assert!(judged("UPDATE", &new, &old), "{new}");
        }
        for new in [
            old.clone(),
            with("/metadata/annotations/slicegate.io~1status", json!("{}")),
            with("/metadata/annotations/team", json!("ml")),
            with("/metadata/labels/team", json!("ml")),
            with("/metadata/finalizers", json!(["x"])),
        ] {
            assert!(!judged("UPDATE", &new, &old), "{new}");
        }
        assert!(!judged("DELETE", &Value::Null, &old));
    }

    #[test]
    fn what_is_no_policy_and_no_configuration_is_left_alone() {
        let mut plain = object("true", "package a");
        plain["metadata"]["labels"] = json!({});
        assert!(!judged("CREATE", &plain, &Value::Null));
        plain["metadata"]["name"] = json!("slicegate-config");
        assert!(judged("CREATE", &plain, &Value::Null));
        plain["metadata"]["namespace"] = json!("elsewhere");
        assert!(!judged("CREATE", &plain, &Value::Null));
        let mut elsewhere = object("true", "package a");
        elsewhere["metadata"]["namespace"] = json!("elsewhere");
        let Read::LeftAlone { warnings, .. } = read_write("CREATE", &elsewhere, &Value::Null) else { panic!("judged") };
        assert!(warnings[0].contains("is not loaded"), "{warnings:?}");
    }
}
