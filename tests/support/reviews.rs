//! Reviews to send.

/// A GPU of no pool: let through, once the labels of the Namespace are known.
pub const GPU: &str = r#"{"nvidia.com/gpu":"1"}"#;

/// A review of a new Pod without GPUs, which is let through.
pub fn plain_pod(uid: &str) -> String {
    pod(uid, "team-blue", "{}")
}

/// A review of a new Pod, whose container has these limits.
pub fn pod(uid: &str, namespace: &str, limits: &str) -> String {
    review(
        uid,
        namespace,
        &format!(
            r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"web","namespace":"{namespace}"}},"spec":{{"containers":[{{"name":"main","image":"registry.example/web:1","resources":{{"limits":{limits}}}}}]}}}}"#
        ),
    )
}

/// A review of a new Pod, as this JSON.
pub fn review(uid: &str, namespace: &str, object: &str) -> String {
    format!(
        r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"{uid}","kind":{{"group":"","version":"v1","kind":"Pod"}},"name":"web","namespace":"{namespace}","operation":"CREATE","userInfo":{{"username":"kim"}},"object":{object},"oldObject":null,"dryRun":false}}}}"#
    )
}

/// A review of a plain Pod that is this many bytes long.
pub fn of_size(uid: &str, bytes: usize) -> String {
    let padded = |pad: usize| {
        let object =
            format!(r#"{{"metadata":{{"annotations":{{"pad":"{}"}}}},"spec":{{"containers":[]}}}}"#, "x".repeat(pad));
        review(uid, "team-blue", &object)
    };
    padded(bytes - padded(0).len())
}
