//! Reviews of the sizes that API servers send.

use serde_json::{Value, json};

/// A review of a new Pod of about 3.3 kB, as a training controller makes it; it is let through.
pub fn pod() -> Vec<u8> {
    review(
        "Pod",
        "",
        "v1",
        &json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata("trainer-5d9c-x2x9v"), "spec": spec(1)}),
    )
}

/// A review of a new Deployment with the same Pod in its template.
pub fn deployment() -> Vec<u8> {
    let template = json!({"metadata": metadata("embedder"), "spec": spec(1)});
    let spec = json!({"replicas": 3, "selector": {"matchLabels": {"app": "embedder"}}, "template": template});
    let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata("embedder"), "spec": spec});
    review("Deployment", "apps", "v1", &object)
}

/// A review of a Pod with this many containers.
pub fn pod_of(containers: usize) -> Vec<u8> {
    let object = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata("large"), "spec": spec(containers)});
    review("Pod", "", "v1", &object)
}

fn review(kind: &str, group: &str, version: &str, object: &Value) -> Vec<u8> {
    let kind = json!({"group": group, "version": version, "kind": kind});
    let request = json!({
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": kind, "requestKind": kind,
        "resource": {"group": group, "version": version, "resource": "pods"},
        "name": object["metadata"]["name"], "namespace": "team-blue", "operation": "CREATE",
        "userInfo": {"username": "system:serviceaccount:kube-system:replicaset-controller", "uid": "0c0c",
            "groups": ["system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"]},
        "object": object, "oldObject": null, "dryRun": false,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    });
    let review = json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request});
    review.to_string().into_bytes()
}

fn metadata(name: &str) -> Value {
    let fields = json!({"f:metadata": {"f:labels": {".": {}, "f:app": {}, "f:pod-template-hash": {}}},
        "f:spec": {"f:containers": {"k:{\"name\":\"c0\"}": {".": {}, "f:image": {}, "f:name": {}, "f:resources": {}}}}});
    json!({
        "name": name, "namespace": "team-blue",
        "labels": {"app": "embedder", "pod-template-hash": "5d9c", "slicegate.io/checkpoint": "true", "team": "blue"},
        "annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "9090"},
        "managedFields": [{"manager": "kube-controller-manager", "operation": "Update", "apiVersion": "v1",
            "time": "2026-11-30T10:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": fields}],
    })
}

fn spec(containers: usize) -> Value {
    let containers: Vec<Value> = (0..containers).map(container).collect();
    json!({
        "containers": containers,
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}, {"name": "cache", "emptyDir": {}},
            {"name": "token", "projected": {"sources": [{"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}}], "defaultMode": 420}}],
        "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
        "serviceAccountName": "default", "schedulerName": "default-scheduler", "securityContext": {},
        "nodeSelector": {"gpu-mode": "shared"},
        "tolerations": [
            {"key": "nvidia.com/gpu.shared", "operator": "Exists", "effect": "NoSchedule"},
            {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
            {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}],
        "priority": 0, "enableServiceLinks": true, "preemptionPolicy": "PreemptLowerPriority",
    })
}

/// Only the first container asks for a share, so that Pods of any size are let through.
fn container(place: usize) -> Value {
    let mut limits = json!({"cpu": "4", "memory": "16Gi"});
    if place == 0 {
        limits["nvidia.com/gpu.shared"] = "1".into();
    }
    json!({
        "name": format!("c{place}"), "image": "registry.example/team-blue/embedder:1.4.2",
        "command": ["python", "-m", "embedder.serve"], "args": ["--model", "/data/model", "--batch", "32"],
        "env": [{"name": "HF_HOME", "value": "/cache"}, {"name": "OMP_NUM_THREADS", "value": "4"},
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}}],
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "resources": {"limits": limits, "requests": limits},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}, {"name": "cache", "mountPath": "/cache"},
            {"name": "token", "readOnly": true, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}],
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10},
        "terminationMessagePath": "/dev/termination-log", "imagePullPolicy": "IfNotPresent",
    })
}
