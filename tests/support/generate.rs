//! Generated Pods, for properties and for the comparison with Kubernetes' own code.
//!
//! Invariant: every value that a strategy makes is JSON that the API server could have been sent; hostile spellings and
//! contradictions are as frequent as sound ones.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// The resources that generated containers ask for.
pub const RESOURCES: [&str; 5] =
    ["nvidia.com/gpu.shared", "nvidia.com/gpu", "nvidia.com/mig-1g.10gb.shared", "amd.com/gpu", "cpu"];

/// Texts that are quantities, or nearly.
pub fn quantity_text() -> impl Strategy<Value = String> {
    let digits = "[0-9]{0,24}";
    let suffix = prop::sample::select(vec![
        "", "", "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "K", "e", "ki",
    ]);
    let grammar = ("[+-]?", digits, "(\\.[0-9]{0,12})?", suffix).prop_map(|(a, b, c, d)| format!("{a}{b}{c}{d}"));
    let exponent =
        ("[+-]?[0-9]{1,4}", "(\\.[0-9]{1,3})?", "[eE][+-]?[0-9]{1,3}").prop_map(|(a, b, c)| format!("{a}{b}{c}"));
    let known = prop::sample::select(vec![
        "1",
        "2",
        "0",
        "-1",
        "1e0",
        "1e3",
        "1000m",
        "1999999u",
        "0.5",
        "1.",
        ".5",
        "01",
        "+1",
        "-0",
        " 1",
        "2 ",
        "1 2",
        "",
        "0x1",
        "NaN",
        "1_0",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551617",
        "1e30",
        "1e400",
        "1e2147483647",
        "1e-2147483648",
        "1e4294967296",
        "0.0009765625Ki",
        "1.0000000001",
        "100000000000000000000n",
        "0.1n",
        "5e-10",
        "9.5Ei",
        "99999999999999999999999999999999999999",
    ])
    .prop_map(str::to_owned);
    prop_oneof![4 => grammar, 3 => exponent, 3 => known, 1 => "[0-9eE.+\\-nmkKi ]{0,8}"]
}

/// Whole numbers of devices, as an API server stores them.
pub fn count() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["0", "1", "1", "1", "2", "3", "1000m", "1e0", "2e0", "1k"]).prop_map(str::to_owned)
}

/// Containers of one list, with names that begin with a letter of their own.
pub fn containers<Q>(letter: &'static str, quantity: Q, sizes: std::ops::Range<usize>) -> impl Strategy<Value = Value>
where
    Q: Strategy<Value = String> + Clone + 'static,
{
    let side = || prop::collection::btree_map(prop::sample::select(RESOURCES.to_vec()), quantity.clone(), 0..3);
    let one = (side(), side(), prop::bool::weighted(0.3), prop::bool::weighted(0.1)).prop_map(
        move |(limits, requests, sidecar, bypass)| {
            let mut container =
                json!({"image": "registry.example.test/work:1", "resources": {"limits": limits, "requests": requests}});
            if sidecar && letter == "i" {
                container["restartPolicy"] = "Always".into();
            }
            if bypass {
                container["env"] = json!([{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]);
            }
            container
        },
    );
    prop::collection::vec(one, sizes).prop_map(move |list| {
        let named = list.into_iter().enumerate().map(|(place, mut container)| {
            container["name"] = format!("{letter}{place}").into();
            container
        });
        named.collect()
    })
}

/// Label maps that a Node or a nodeSelector may have.
pub fn labels() -> impl Strategy<Value = Value> {
    let key = prop::sample::select(vec!["gpu-mode", "zone", "cards", "example.test/rack"]);
    let value = prop::sample::select(vec!["shared", "exclusive", "a", "b", "4", "007", "-3", ""]);
    prop::collection::btree_map(key, value, 0..4).prop_map(|labels| json!(labels))
}

/// Required node affinity, sound or not.
pub fn affinity() -> impl Strategy<Value = Value> {
    let key = prop::sample::select(vec!["gpu-mode", "zone", "cards", "example.test/rack", "no key", "-x", ""]);
    let operator = prop::sample::select(vec!["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Unheard"]);
    let value = prop::sample::select(vec!["shared", "exclusive", "a", "4", "3", "-3", "+5", "x y", ""]);
    let expression = (key, operator, prop::collection::vec(value, 0..3))
        .prop_map(|(key, operator, values)| json!({"key": key, "operator": operator, "values": values}));
    let field = (
        prop::sample::select(vec!["metadata.name", "spec.x"]),
        prop::sample::select(vec!["In", "NotIn", "Exists"]),
        prop::collection::vec(prop::sample::select(vec!["n1", "n2"]), 0..3),
    )
        .prop_map(|(key, operator, values)| json!({"key": key, "operator": operator, "values": values}));
    let term = (prop::collection::vec(expression, 0..3), prop::collection::vec(field, 0..2))
        .prop_map(|(expressions, fields)| json!({"matchExpressions": expressions, "matchFields": fields}));
    prop::collection::vec(term, 0..3).prop_map(|terms| {
        json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}})
    })
}

/// A toleration.
pub fn toleration() -> impl Strategy<Value = Value> {
    let key = prop::option::of(prop::sample::select(vec!["nvidia.com/gpu.shared", "team", ""]));
    let operator = prop::option::of(prop::sample::select(vec!["Exists", "Equal", ""]));
    let value = prop::option::of(prop::sample::select(vec!["true", "blue", ""]));
    let effect = prop::option::of(prop::sample::select(vec!["NoSchedule", "PreferNoSchedule", "NoExecute", ""]));
    let seconds = prop::option::weighted(0.3, prop::sample::select(vec![0_i64, 1, 300, -1]));
    (key, operator, value, effect, seconds).prop_map(|(key, operator, value, effect, seconds)| {
        let mut toleration = Map::new();
        for (name, text) in [("key", key), ("operator", operator), ("value", value), ("effect", effect)] {
            toleration.extend(text.map(|text| (name.to_owned(), text.into())));
        }
        toleration.extend(seconds.map(|seconds| ("tolerationSeconds".to_owned(), seconds.into())));
        toleration.into()
    })
}

/// A whole Pod.
pub fn pod() -> impl Strategy<Value = Value> {
    let word = || {
        prop::option::weighted(
            0.8,
            prop::sample::select(vec!["critical", "tolerant", "true", "stateless", "false", "yes"]),
        )
    };
    let metadata = (word(), word(), prop::bool::ANY).prop_map(|(latency, checkpoint, annotated)| {
        let mut labels = Map::new();
        labels.extend(latency.map(|word| ("slicegate.io/latency".to_owned(), word.into())));
        labels.extend(checkpoint.map(|word| ("slicegate.io/checkpoint".to_owned(), word.into())));
        let annotations = if annotated { json!({"note.example.test/a~b": "kept"}) } else { Value::Null };
        json!({"name": "generated", "labels": labels, "annotations": annotations})
    });
    let quantity = prop_oneof![6 => count(), 1 => quantity_text()].boxed();
    let lists = (
        containers("i", quantity.clone(), 0..3),
        containers("m", quantity.clone(), 1..4),
        containers("e", quantity, 0..2),
    );
    let placement = (
        prop::option::of(labels()),
        prop::option::weighted(0.3, affinity()),
        prop::option::weighted(0.5, prop::collection::vec(toleration(), 0..4)),
        prop::option::weighted(0.2, prop::sample::select(vec!["n1", "n2", "n3"])),
    );
    (metadata, lists, placement).prop_map(
        |(metadata, (init, main, ephemeral), (selector, affinity, tolerations, node))| {
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {
            "initContainers": init, "containers": main, "ephemeralContainers": ephemeral,
            "nodeSelector": selector, "affinity": affinity, "tolerations": tolerations, "nodeName": node}})
        },
    )
}
