use pretty_assertions::assert_eq;
use serde_json::json;

use super::*;

const BOTH: Speaks = Speaks { validates: true, mutates: true };
const VALIDATES: Speaks = Speaks { validates: true, mutates: false };

fn rule(groups: &[&str], operations: &[&str], resources: &[&str], scope: &str) -> serde_json::Value {
    json!({"apiGroups": groups, "apiVersions": ["v1"], "operations": operations, "resources": resources, "scope": scope})
}

fn document() -> Option<Vec<Resource>> {
    let resource = |name: &str, group: &str, kind: &str, scope: &str, subresources: serde_json::Value| {
        json!({"resource": name, "scope": scope, "subresources": subresources,
            "responseKind": {"group": group, "version": "v1", "kind": kind}})
    };
    let sub = |name: &str, group: &str, kind: &str| json!({"subresource": name, "responseKind": {"group": group, "version": "v1", "kind": kind}});
    let pods = json!([
        sub("exec", "", "PodExecOptions"),
        sub("ephemeralcontainers", "", "Pod"),
        sub("eviction", "policy", "Eviction"),
        sub("status", "", "Pod")
    ]);
    let core = [
        resource("pods", "", "Pod", "Namespaced", pods),
        resource("configmaps", "", "ConfigMap", "Namespaced", json!([])),
        resource("services", "", "Service", "Namespaced", json!([])),
        resource("namespaces", "", "Namespace", "Cluster", json!([])),
        resource("events", "", "Event", "Namespaced", json!([])),
    ];
    let apps =
        [resource("deployments", "apps", "Deployment", "Namespaced", json!([sub("scale", "autoscaling", "Scale")]))];
    let events = [resource("events", "events.k8s.io", "Event", "Namespaced", json!([]))];
    let group = |name: &str, resources: serde_json::Value| {
        let metadata = if name.is_empty() { json!({}) } else { json!({"name": name}) };
        json!({"metadata": metadata, "versions": [{"version": "v1", "resources": resources}, {"version": "v2", "resources": resources}]})
    };
    let items = [group("", json!(core)), group("apps", json!(apps)), group("events.k8s.io", json!(events))];
    served(&json!({"kind": "APIGroupDiscoveryList", "items": items}))
}

/// What is shipped, in short.
fn routes(further: &[serde_json::Value]) -> Routes {
    let mut rules = vec![
        rule(&[""], &["CREATE", "UPDATE"], &["pods"], "Namespaced"),
        rule(&[""], &["UPDATE"], &["pods/ephemeralcontainers"], "Namespaced"),
        rule(&["apps"], &["CREATE", "UPDATE"], &["deployments"], "Namespaced"),
        rule(&["kubeflow.org"], &["CREATE", "UPDATE"], &["pytorchjobs"], "Namespaced"),
    ];
    rules.extend(further.iter().cloned());
    let mutating = json!({"webhooks": [{"rules": [rule(&[""], &["CREATE"], &["pods"], "*")]}]});
    Routes {
        validating: Some(configuration(&json!({"webhooks": [{"rules": rules}]}))),
        mutating: Some(configuration(&mutating)),
        served: document(),
    }
}

fn judged(routes: &Routes, matches: &str, speaks: Speaks) -> (bool, Vec<String>) {
    let Verdict { none, warnings } = verdict(routes, &Match::parse(matches).unwrap(), speaks);
    (none, warnings.into_iter().map(|warning| warning.message).collect())
}

fn says(routes: &Routes, matches: &str, speaks: Speaks, none: bool, wanted: &[&str]) {
    let (is_none, told) = judged(routes, matches, speaks);
    assert_eq!(is_none, none, "{matches}: {told:?}");
    assert_eq!(told.len(), wanted.len(), "{matches}: {told:?}");
    for (told, wanted) in told.iter().zip(wanted) {
        assert!(told.contains(wanted), "{matches}: {told}");
    }
}

#[test]
fn what_is_sent_is_silent() {
    for matches in [
        "",
        "kinds: [Pod, Deployment.apps]",
        "kinds: [Pod]\noperations: [UPDATE]",
        "kinds: ['*']",
        "kinds: ['*.apps']",
        "kinds: [PyTorchJob]",
        "namespaces: [nowhere]",
    ] {
        says(&routes(&[]), matches, VALIDATES, false, &[]);
    }
    says(&routes(&[]), "kinds: [Pod]", BOTH, false, &[]);
    says(&routes(&[]), "", BOTH, false, &[]);
}

#[test]
fn what_is_sent_by_no_rule_is_told_with_what_to_add() {
    let wanted = "no rule of the ValidatingWebhookConfiguration slicegate sends CREATE and UPDATE of ConfigMap, Service; add \
                  {apiGroups: [\"\"], apiVersions: [\"*\"], operations: [CREATE, UPDATE], resources: [configmaps, services], \
                  scope: Namespaced} to it";
    says(&routes(&[]), "kinds: [Service, ConfigMap]", VALIDATES, true, &[wanted]);
    // Some are sent: what is in force stays so, and the rest is told.
    says(&routes(&[]), "kinds: [Pod, Service, ConfigMap]", VALIDATES, false, &[wanted]);
    let scope = ["resources: [namespaces], scope: Cluster}"];
    says(&routes(&[]), "kinds: [Namespace]\noperations: [DELETE]", VALIDATES, true, &scope);
    says(
        &routes(&[]),
        "kinds: [Pod]\noperations: [DELETE]",
        VALIDATES,
        true,
        &["operations: [DELETE], resources: [pods]"],
    );
    says(&routes(&[]), "kinds: [Pod]\noperations: ['*']", VALIDATES, false, &["sends DELETE of Pod"]);
    says(&routes(&[]), "kinds: ['*.batch']", VALIDATES, false, &[]);
    says(&routes(&[]), "kinds: ['*.events.k8s.io']", VALIDATES, true, &["apiGroups: [events.k8s.io]"]);
    // Known by the table, though the cluster serves no such thing yet.
    says(&routes(&[]), "kinds: [RayCluster]", VALIDATES, true, &["apiGroups: [ray.io]"]);
    let nothing = Routes { validating: Some(vec![]), ..routes(&[]) };
    says(&nothing, "", VALIDATES, true, &["sends CREATE and UPDATE of anything"]);
}

#[test]
fn wildcards_scopes_and_subresources_count_as_the_api_server_counts_them() {
    for (rule, matches, sent) in [
        (rule(&["*"], &["*"], &["*"], "*"), "kinds: [ConfigMap]", true),
        (rule(&["*"], &["*"], &["*/*"], "*"), "kinds: [ConfigMap]", true),
        (rule(&[""], &["*"], &["configmaps/*"], "Namespaced"), "kinds: [ConfigMap]", true),
        (rule(&["apps"], &["*"], &["*"], "*"), "kinds: [ConfigMap]", false),
        (rule(&["*"], &["*"], &["*"], "Cluster"), "kinds: [ConfigMap]", false),
        (rule(&["*"], &["*"], &["*"], "Cluster"), "kinds: [Namespace]", true),
        (rule(&["*"], &["CONNECT"], &["*"], "*"), "kinds: [PodExecOptions]\noperations: [CONNECT]", false),
        (rule(&["*"], &["CONNECT"], &["pods/exec"], "*"), "kinds: [PodExecOptions]\noperations: [CONNECT]", true),
        (rule(&["*"], &["*"], &["*/*"], "*"), "kinds: [Pod]\noperations: [CONNECT]", false),
        // Policies are not asked about these, whatever is sent.
        (rule(&["*"], &["*"], &["*/*"], "*"), "kinds: [Scale]", false),
        (rule(&["*"], &["*"], &["*/*"], "*"), "kinds: [Eviction.policy]", false),
    ] {
        let (none, told) = judged(&routes(std::slice::from_ref(&rule)), matches, VALIDATES);
        assert_eq!((none, told.is_empty()), (!sent, sent), "{rule} {matches}: {told:?}");
    }
    // Events of both groups come as those of one.
    let events = rule(&[""], &["*"], &["events"], "*");
    says(&routes(&[events]), "kinds: [Event]", VALIDATES, false, &[]);
}

#[test]
fn a_patch_needs_the_other_configuration() {
    let patch = Speaks { validates: false, mutates: true };
    let wanted =
        "no rule of the MutatingWebhookConfiguration slicegate sends CREATE of Deployment; add {apiGroups: [apps]";
    says(&routes(&[]), "kinds: [Deployment]", patch, true, &[wanted]);
    says(&routes(&[]), "kinds: [Deployment]", BOTH, false, &[wanted]);
    says(&routes(&[]), "kinds: [Pod]\noperations: [UPDATE]", patch, true, &["never asked"]);
}

#[test]
fn in_doubt_nothing_is_refused() {
    let unknown = Routes::default();
    says(&unknown, "kinds: [ConfigMap]", BOTH, false, &[]);
    let unserved = Routes { served: None, ..routes(&[]) };
    says(&unserved, "kinds: [ConfigMap, Pod]", VALIDATES, false, &[]);
    says(&unserved, "kinds: [RayCluster]", VALIDATES, true, &["resources: [rayclusters]"]);
    // A kind that nobody knows may come later; that it is misspelt is likelier.
    says(&routes(&[]), "kinds: [Deploymnet]", VALIDATES, false, &["the cluster serves no kind Deploymnet; check"]);
    says(&routes(&[]), "kinds: [Service.apps]", VALIDATES, false, &["group \"apps\", but in \"\"; check"]);
}

#[test]
fn another_document_is_no_discovery() {
    assert_eq!(served(&json!({"kind": "APIVersions", "versions": ["v1"]})), None);
    let odd = json!({"kind": "APIGroupDiscoveryList", "items": [{}, {"versions": [{"resources": [{}, 7]}]}]});
    assert_eq!(served(&odd), Some(vec![]));
    assert_eq!(configuration(&json!({"webhooks": [{"rules": ["x"]}, 7]})), vec![Rule::default()]);
}
