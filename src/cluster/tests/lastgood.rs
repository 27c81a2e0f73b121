//! What is read of last good forms: only what is whole, small enough, and the owner's.

use std::collections::BTreeMap;
use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{Scene, json_reply, page, query, status};
use crate::cluster::lastgood::{LastGood, LastGoodError, Store};
use crate::rego::set::{Key, Set};
use crate::rego::unit::Unit;

fn unit(namespace: &str, name: &str) -> Unit {
    let key = Key { namespace: namespace.to_owned(), name: name.to_owned() };
    let files = BTreeMap::from([("a.rego".to_owned(), "package a".to_owned())]);
    Unit::new(Set::of_files(key, "true", &BTreeMap::new(), files), &BTreeMap::new())
}

fn packed(text: &[u8]) -> String {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text).unwrap();
    STANDARD.encode(encoder.finish().unwrap())
}

/// A Secret of this name that a ConfigMap owns.
fn secret(name: &str, owner: (&str, &str), data: &Value) -> Value {
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": owner.0, "uid": owner.1});
    json!({"apiVersion": "v1", "kind": "Secret", "type": "slicegate.io/last-good", "data": data,
        "metadata": {"name": name, "namespace": "n", "ownerReferences": [owner]}})
}

fn kept(name: &str, unit: &Unit) -> Value {
    let data = json!({"unit.json.gz": packed(&serde_json::to_vec(unit).unwrap())});
    secret(&format!("slicegate-last-good-{name}"), (name, &format!("uid-{name}")), &data)
}

fn owner(name: &str) -> Value {
    json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
        "metadata": {"name": name, "namespace": "n", "uid": format!("uid-{name}")}})
}

/// Reads these Secrets where these ConfigMaps are; `slicegate-config` is one of them.
async fn read(owners: &[&str], secrets: Vec<Value>) -> LastGood {
    let (told, found) = tokio::sync::oneshot::channel();
    let mut scene = Scene::start(|client, _| async move {
        let store = Store::new(client, "n", &["n".to_owned()]);
        told.send(store.read().await.unwrap()).unwrap();
    });
    let (request, answer) = scene.asked().await;
    assert!(query(&request).contains("labelSelector=slicegate.io%2Fpolicy"), "{}", request.uri());
    answer.send_response(page("1", "", &owners.iter().map(|name| owner(name)).collect::<Vec<_>>()));
    let (request, answer) = scene.asked().await;
    assert_eq!(request.uri().path(), "/api/v1/namespaces/n/configmaps/slicegate-config");
    answer.send_response(json_reply(200, &owner("slicegate-config")));
    let (request, answer) = scene.asked().await;
    assert_eq!(request.uri().path(), "/api/v1/namespaces/n/secrets");
    assert!(query(&request).contains("labelSelector=slicegate.io%2Flast-good"), "{}", request.uri());
    answer.send_response(page("1", "", &secrets));
    found.await.unwrap()
}

#[tokio::test]
async fn what_is_whole_and_the_owners_is_read() {
    let config = "kind: Config\n";
    let data = json!({"config.yaml.gz": packed(config.as_bytes())});
    let secrets = vec![
        kept("a", &unit("n", "a")),
        secret("slicegate-config-last-good", ("slicegate-config", "uid-slicegate-config"), &data),
    ];
    let found = read(&["a", "b"], secrets).await;
    assert_eq!(found.units, BTreeMap::from([(unit("n", "a").set.key, unit("n", "a"))]));
    assert_eq!(found.config.as_deref(), Some(config));
}

#[tokio::test]
async fn one_that_is_broken_costs_itself_alone() {
    let file = |data: &str| json!({"unit.json.gz": data});
    let whole = packed(&serde_json::to_vec(&unit("n", "a")).unwrap());
    let mut unowned = kept("a", &unit("n", "a"));
    unowned["metadata"]["ownerReferences"] = json!([]);
    let named = |data: &str| secret("slicegate-last-good-a", ("a", "uid-a"), &file(data));
    let secrets = vec![
        // Made for a ConfigMap that was deleted, or that another one of its name replaced.
        kept("gone", &unit("n", "gone")),
        secret("slicegate-last-good-a", ("a", "uid-before"), &file(&whole)),
        unowned,
        // Another name, so that there is one for each set; another set's form; one of another namespace.
        secret("slicegate-last-good-x", ("a", "uid-a"), &file(&whole)),
        kept("a", &unit("n", "b")),
        kept("a", &unit("other", "a")),
        // No gzip, no form, none at all, and far more than it seems.
        named(&STANDARD.encode("package a")),
        named(&packed(b"{}")),
        secret("slicegate-last-good-a", ("a", "uid-a"), &json!({"other": whole})),
        named(&packed(&vec![b' '; 32 << 20])),
        kept("b", &unit("n", "b")),
    ];
    let found = read(&["a", "b"], secrets).await;
    assert_eq!(found.units, BTreeMap::from([(unit("n", "b").set.key, unit("n", "b"))]));
    assert_eq!(found.config, None);
}

#[tokio::test]
async fn all_of_them_together_are_bounded() {
    // Ten megabytes each, of which six fit.
    let mut large = unit("n", "a");
    large.set.modules.insert("b.rego".to_owned(), " ".repeat(10 << 20));
    let names: Vec<String> = (0..9).map(|number| format!("a{number}")).collect();
    let secrets = names.iter().map(|name| {
        large.set.key.name.clone_from(name);
        kept(name, &large)
    });
    let secrets = secrets.collect();
    let owners: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(read(&owners, secrets).await.units.len(), 6);
}

#[tokio::test]
async fn a_refusal_is_told_from_an_outage() {
    for (code, refused) in [(403, true), (500, false)] {
        let (told, found) = tokio::sync::oneshot::channel();
        let mut scene = Scene::start(|client, _| async move {
            let outcome = Store::new(client, "n", &["n".to_owned()]).read().await;
            told.send(outcome.unwrap_err()).unwrap();
        });
        scene.asked().await.1.send_response(json_reply(code, &status(code, "no")));
        let error: LastGoodError = found.await.unwrap();
        assert_eq!(error.is_refusal(), refused, "{error}");
    }
}
