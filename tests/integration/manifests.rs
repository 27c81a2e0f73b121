//! The shipped manifests hold what the design and the case `config-030` demand of them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use clap::Parser as _;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use slicegate::args::Args;
use slicegate::rego::set::ANNOTATIONS;
use slicegate::workload::kinds::known;

fn manifests(file: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_saphyr::from_multiple(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn manifest(file: &str, kind: &str) -> Value {
    let found: Vec<_> = manifests(file).into_iter().filter(|object| object["kind"] == kind).collect();
    assert_eq!(found.len(), 1, "{kind} in {file}");
    found.into_iter().next().unwrap()
}

/// The one webhook of a configuration.
fn webhook(kind: &str) -> Value {
    let configuration = manifest("deploy/webhooks.yaml", kind);
    assert_eq!(configuration["metadata"]["name"], "slicegate");
    let webhooks = configuration["webhooks"].as_array().unwrap();
    assert_eq!(webhooks.len(), 1, "{kind}");
    webhooks[0].clone()
}

fn texts(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

/// Every (group, resource, operation) of a webhook's rules; one that stands twice is a mistake.
fn routes(webhook: &Value) -> BTreeSet<(String, String, String)> {
    let mut routes = BTreeSet::new();
    for rule in webhook["rules"].as_array().unwrap() {
        assert_eq!(rule["apiVersions"], json!(["*"]), "{rule}");
        for group in texts(&rule["apiGroups"]) {
            for resource in texts(&rule["resources"]) {
                assert!(!resource.contains('*'), "{resource}");
                let clusters = resource.starts_with("cluster") || resource == "workspacekinds";
                assert_eq!(rule["scope"], if clusters { "Cluster" } else { "Namespaced" }, "{resource}");
                for operation in texts(&rule["operations"]) {
                    let route = (group.to_owned(), resource.to_owned(), operation.to_owned());
                    assert!(routes.insert(route), "{group}/{resource} {operation} stands twice");
                }
            }
        }
    }
    routes
}

#[test]
fn webhooks_write_out_every_default() {
    for (kind, path) in [("ValidatingWebhookConfiguration", "/validate"), ("MutatingWebhookConfiguration", "/mutate")] {
        let mut webhook = webhook(kind);
        let fields = webhook.as_object_mut().unwrap();
        fields.remove("rules");
        let mut expected = json!({
            "name": if path == "/validate" { "validate.slicegate.io" } else { "mutate.slicegate.io" },
            "admissionReviewVersions": ["v1"],
            "clientConfig": {
                "service": {"namespace": "slicegate-system", "name": "slicegate", "path": path, "port": 443},
                "caBundle": "",
            },
            "failurePolicy": "Fail",
            "matchPolicy": "Equivalent",
            "sideEffects": "None",
            "timeoutSeconds": 5,
            "namespaceSelector": {"matchExpressions": [{
                "key": "kubernetes.io/metadata.name",
                "operator": "NotIn",
                "values": ["kube-system", "slicegate-system"],
            }]},
            "objectSelector": {},
            "matchConditions": [],
        });
        if path == "/mutate" {
            expected["reinvocationPolicy"] = json!("IfNeeded");
        }
        assert_eq!(webhook, expected);
    }
}

#[test]
fn the_guard_sees_edits_of_what_is_read_and_nothing_else() {
    let configuration = manifest("deploy/guard.yaml", "ValidatingWebhookConfiguration");
    assert_eq!(configuration["metadata"]["name"], "slicegate-guard");
    let mut webhook = configuration["webhooks"][0].clone();
    let conditions = webhook.as_object_mut().unwrap().remove("matchConditions").unwrap();
    let names: Vec<_> = conditions.as_array().unwrap().iter().map(|condition| &condition["name"]).collect();
    assert_eq!(names, ["is-read", "is-changed"]);
    // All annotations that are read are compared, and only those.
    let words = ANNOTATIONS.map(|name| format!("'{name}'")).join(", ");
    let changed = conditions[1]["expression"].as_str().unwrap();
    assert!(changed.contains(&format!("[{words}].exists")) && !changed.contains("status"), "{changed}");
    assert_eq!(
        webhook,
        json!({
            "name": "guard.slicegate.io",
            "admissionReviewVersions": ["v1"],
            "clientConfig": {
                "service": {"namespace": "slicegate-system", "name": "slicegate", "path": "/guard", "port": 443},
                "caBundle": "",
            },
            "failurePolicy": "Fail",
            "matchPolicy": "Equivalent",
            "sideEffects": "None",
            "timeoutSeconds": 10,
            "namespaceSelector": {"matchExpressions": [{
                "key": "kubernetes.io/metadata.name",
                "operator": "In",
                "values": ["slicegate-system"],
            }]},
            "objectSelector": {},
            "rules": [{
                "apiGroups": [""],
                "apiVersions": ["*"],
                "operations": ["CREATE", "UPDATE"],
                "resources": ["configmaps"],
                "scope": "Namespaced",
            }],
        })
    );
}

/// Every kind of the table of workloads, under its plural name, and of subresources the two that change what a Pod asks for.
#[test]
fn what_is_judged_is_routed_and_nothing_else() {
    let mut expected = BTreeSet::new();
    let mut expect = |group: &str, resource: &str, operations: &[&str]| {
        for operation in operations {
            expected.insert((group.to_owned(), resource.to_owned(), (*operation).to_owned()));
        }
    };
    for (group, kind) in known() {
        expect(group, &format!("{}s", kind.to_lowercase()), &["CREATE", "UPDATE"]);
    }
    for subresource in ["pods/ephemeralcontainers", "pods/resize"] {
        expect("", subresource, &["UPDATE"]);
    }
    assert_eq!(routes(&webhook("ValidatingWebhookConfiguration")), expected);
    let pods = [(String::new(), "pods".to_owned(), "CREATE".to_owned())];
    assert_eq!(routes(&webhook("MutatingWebhookConfiguration")), BTreeSet::from(pods));
}

/// The case is read from its file, so that an edit there counts here.
#[test]
fn the_case_on_webhook_configurations_holds() {
    let case = &manifests("tests/cases/config/config-030-webhook-configuration.yaml")[0];
    let checks = &case["expect"]["manifest_checks"];
    let (validating, mutating) = (webhook("ValidatingWebhookConfiguration"), webhook("MutatingWebhookConfiguration"));
    for webhook in [&validating, &mutating] {
        let need = &checks["webhooks_need"];
        for field in ["admissionReviewVersions", "sideEffects", "matchPolicy"] {
            assert_eq!(webhook[field], need[field]);
        }
        assert!(webhook["timeoutSeconds"].as_u64() <= need["timeoutSeconds_max"].as_u64());
        let selector = &webhook["namespaceSelector"]["matchExpressions"][0];
        let wanted = &checks["namespaceSelector"];
        assert_eq!((&selector["key"], &selector["operator"]), (&wanted["key"], &wanted["operator"]));
        for name in texts(&wanted["values_include"]) {
            assert!(texts(&selector["values"]).contains(&name), "{name}");
        }
    }
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/webhooks.yaml")).unwrap();
    assert!(text.contains("# - failurePolicy Fail: "), "failurePolicy has no reason");

    let need = &checks["validating_need"];
    let routed: BTreeSet<String> = routes(&validating).into_iter().map(|(_, resource, _)| resource).collect();
    for resource in texts(&need["resources_include"]) {
        assert!(routed.contains(resource), "{resource} is missing");
    }
    for resource in texts(&need["resources_exclude"]) {
        assert!(!routed.contains(resource), "{resource} must not be there");
    }
    let need = &checks["mutating_need"];
    assert_eq!(mutating["reinvocationPolicy"], need["reinvocationPolicy"]);
    let rule = &mutating["rules"][0];
    assert_eq!((&rule["operations"], &rule["resources"]), (&need["operations"], &need["resources"]));
}

#[test]
fn the_roles_are_as_narrow_as_rbac_can_say() {
    let core = json!([""]);
    assert_eq!(
        manifest("deploy/slicegate.yaml", "ClusterRole")["rules"],
        json!([
            {"apiGroups": core, "resources": ["namespaces"], "verbs": ["get", "list", "watch"]},
            {"apiGroups": core, "resources": ["nodes"], "verbs": ["list", "watch"]},
            {"apiGroups": ["scheduling.k8s.io"], "resources": ["priorityclasses"], "verbs": ["list", "watch"]},
            {
                "apiGroups": ["admissionregistration.k8s.io"],
                "resources": ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
                "resourceNames": ["slicegate"],
                "verbs": ["list", "watch"],
            },
        ])
    );
    assert_eq!(
        manifest("deploy/slicegate.yaml", "Role")["rules"],
        json!([
            {"apiGroups": core, "resources": ["configmaps"], "verbs": ["get", "list", "watch", "patch"]},
            {"apiGroups": core, "resources": ["secrets"], "verbs": ["get", "list", "create", "patch", "delete"]},
            {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create"]},
            {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]},
            {
                "apiGroups": ["coordination.k8s.io"],
                "resources": ["leases"],
                "resourceNames": ["slicegate"],
                "verbs": ["get", "update"],
            },
        ])
    );
    for (binding, role) in [("ClusterRoleBinding", "ClusterRole"), ("RoleBinding", "Role")] {
        let binding = manifest("deploy/slicegate.yaml", binding);
        assert_eq!(binding["roleRef"]["kind"], role);
        assert_eq!(binding["roleRef"]["name"], "slicegate");
        let subject = json!([{"kind": "ServiceAccount", "name": "slicegate", "namespace": "slicegate-system"}]);
        assert_eq!(binding["subjects"], subject);
    }
}

#[test]
fn the_pods_are_restricted_and_their_parts_fit() {
    let deployment = manifest("deploy/slicegate.yaml", "Deployment");
    let namespace = manifest("deploy/slicegate.yaml", "Namespace");
    assert_eq!(namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"], "restricted");
    assert_eq!(deployment["spec"]["replicas"], 2);
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_eq!(pod["securityContext"]["seccompProfile"], json!({"type": "RuntimeDefault"}));
    let container = &pod["containers"][0];
    assert_eq!(
        container["securityContext"],
        json!({"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]}})
    );
    for resource in ["cpu", "memory"] {
        assert!(container["resources"]["requests"][resource].is_string(), "{resource}");
    }

    // The certificate that is mounted is the one that the arguments name.
    assert_eq!(pod["volumes"][0]["secret"]["secretName"], "slicegate-tls");
    let mounted = container["volumeMounts"][0]["mountPath"].as_str().unwrap();
    assert_eq!(
        texts(&container["args"]),
        [
            "serve",
            &format!("--tls-cert={mounted}/tls.crt"),
            &format!("--tls-key={mounted}/tls.key"),
            "--rego-workers=2"
        ]
    );

    let line = ["slicegate"].into_iter().chain(texts(&container["args"]));
    Args::try_parse_from(line).unwrap();

    // Labels select, and ports have one name each.
    let labels = &deployment["spec"]["template"]["metadata"]["labels"];
    let service = manifest("deploy/slicegate.yaml", "Service");
    assert_eq!(&service["spec"]["selector"], labels);
    assert_eq!(&deployment["spec"]["selector"]["matchLabels"], labels);
    assert_eq!(&manifest("deploy/slicegate.yaml", "PodDisruptionBudget")["spec"]["selector"]["matchLabels"], labels);
    assert_eq!(service["spec"]["ports"][0], json!({"name": "webhook", "port": 443, "targetPort": "webhook"}));
    let ports = json!([{"name": "webhook", "containerPort": 8443}, {"name": "admin", "containerPort": 8080}]);
    assert_eq!(container["ports"], ports);
    for (probe, path) in [("livenessProbe", "/livez"), ("readinessProbe", "/readyz")] {
        assert_eq!(container[probe]["httpGet"], json!({"path": path, "port": "admin"}));
    }
}

#[test]
fn everything_of_a_namespace_is_in_slicegates_own() {
    let cluster_wide = ["Namespace", "ClusterRole", "ClusterRoleBinding"];
    for object in manifests("deploy/slicegate.yaml") {
        let kind = object["kind"].as_str().unwrap();
        let namespace = &object["metadata"]["namespace"];
        if cluster_wide.contains(&kind) {
            assert!(namespace.is_null(), "{kind}");
        } else {
            assert_eq!(namespace, "slicegate-system", "{kind}");
        }
        assert_eq!(object["metadata"]["labels"]["app.kubernetes.io/name"], "slicegate", "{kind}");
    }
}
