//! What rules find under `input`.
//!
//! What it does: on the server's side, writes the normal form of the workloads; on the worker's side, brings it together with
//! the request. Invariant: it is made once for a request, however many sets look at it, and holds the request as the API
//! server sent it, but for `managedFields`.

use std::collections::BTreeMap;

use regorus::Value;
use serde::{Deserialize, Serialize};

use crate::facts::Labels;
use crate::json;
use crate::policy::judge::{Judged, Scene};
use crate::rego::set::InputShape;
use crate::rego::value::{Keys, at, member, value};

/// What the server knows beside the body: `input.slicegate`, and the Namespace.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Context {
    /// The name of the Namespace; empty for what is cluster-wide.
    pub namespace: String,
    /// Its labels.
    pub labels: Labels,
    /// The workloads in their normal form.
    pub workloads: Vec<Workload>,
}

/// One workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workload {
    /// Where its template stands, as the user writes it.
    pub path: String,
    /// Where the metadata of its Pods stands, as a JSON pointer into the object.
    pub metadata: String,
    /// Where their spec stands, likewise.
    pub spec: String,
    /// The labels that its Pods will carry, where they do not simply stand in the metadata.
    pub labels: Option<Labels>,
    /// `critical` or `tolerant`.
    pub latency: Option<String>,
    /// `true`, `stateless` or `false`.
    pub checkpoint: Option<String>,
    /// The pools that its demand leads to.
    pub pools: Vec<String>,
    /// What a Pod of it demands of each GPU resource: decimal numbers.
    pub demand: BTreeMap<String, String>,
}

impl Context {
    /// Writes down what the scene knows.
    pub fn of(scene: &Scene<'_>, templates: &[Judged<'_>]) -> Self {
        let namespace = scene.request.namespace.to_string();
        let labels = scene.facts.namespace(&namespace).cloned().unwrap_or_default();
        Self { namespace, labels, workloads: templates.iter().map(|judged| workload(scene, judged)).collect() }
    }
}

fn workload(scene: &Scene<'_>, judged: &Judged<'_>) -> Workload {
    let template = &judged.template;
    let here = template.path.key("metadata");
    let plain = matches!(template.labels.as_slice(), [only] if only.path == here.key("labels"));
    let carried =
        template.labels.iter().flat_map(|labels| labels.value.as_object().into_iter().flat_map(json::Object::iter));
    let labels = carried.filter_map(|(key, value)| Some((key.to_owned(), value.as_str()?.to_owned()))).collect();
    let pools = judged.pools.iter().filter_map(|pool| scene.pool(pool.pool));
    let latency = judged.class.critical().map(|_| "critical".to_owned());
    Workload {
        path: template.path.to_string(),
        metadata: here.pointer(),
        spec: template.levels.first().map(|level| level.path.pointer()).unwrap_or_default(),
        labels: (!plain && !template.labels.is_empty()).then_some(labels),
        latency: latency.or_else(|| judged.class.latency.as_ref().map(|declared| declared.word.to_owned())),
        checkpoint: judged.class.checkpoint.as_ref().map(|declared| declared.word.to_owned()),
        pools: pools.map(|pool| pool.name.clone()).collect(),
        demand: judged.demands().collect(),
    }
}

/// What the rules of one request see, whatever set they belong to.
#[derive(Debug, Clone)]
pub struct Input {
    request: Value,
    review: Value,
    slicegate: Value,
    object: Value,
}

impl Input {
    /// Brings a review's bytes together with what the server knows.
    ///
    /// # Errors
    /// The body is no review that rules could work with.
    pub fn new(body: &[u8], context: &Context, keys: &mut Keys) -> Result<Self, String> {
        let tree = json::parse(body).map_err(|error| error.to_string())?;
        let request = value(tree.get("request").ok_or("the review holds no request")?, keys)?;
        let null = |name: &str| member(&request, name).cloned().unwrap_or(Value::Null);
        let object = match null("object") {
            Value::Null => null("oldObject"),
            object => object,
        };
        let labels = labels(&context.labels);
        let mut review = request.clone();
        if let Ok(review) = review.as_object_mut()
            && !context.namespace.is_empty()
        {
            let metadata = [("name", Value::from(context.namespace.as_str())), ("labels", labels.clone())];
            let namespace =
                [("apiVersion", "v1".into()), ("kind", "Namespace".into()), ("metadata", members(metadata))];
            review.insert("namespaceObject".into(), members(namespace));
        }
        let text = |value: Option<&Value>| value.cloned().unwrap_or(Value::from(""));
        let kind = member(&request, "kind").and_then(|kind| member(kind, "kind"));
        let workloads: Vec<Value> = context.workloads.iter().map(|workload| normal_form(workload, &object)).collect();
        let slicegate = members([
            ("kind", text(kind)),
            ("operation", text(member(&request, "operation"))),
            ("dryRun", member(&request, "dryRun").cloned().unwrap_or(Value::from(false))),
            ("namespaceLabels", labels),
            ("workloads", workloads.into()),
        ]);
        Ok(Self { request, review, slicegate, object })
    }

    /// What the rules of one set see.
    pub fn of(&self, shape: InputShape, parameters: &Value) -> Value {
        match shape {
            InputShape::Object => self.object.clone(),
            InputShape::Review => members([
                ("apiVersion", "admission.k8s.io/v1".into()),
                ("kind", "AdmissionReview".into()),
                ("request", self.request.clone()),
                ("review", self.review.clone()),
                ("parameters", parameters.clone()),
                ("slicegate", self.slicegate.clone()),
            ]),
        }
    }
}

fn normal_form(workload: &Workload, object: &Value) -> Value {
    let piece = |pointer: &str| at(object, pointer).cloned().unwrap_or_else(Value::new_object);
    let mut metadata = piece(&workload.metadata);
    if let (Some(own), Ok(metadata)) = (&workload.labels, metadata.as_object_mut()) {
        metadata.insert("labels".into(), labels(own));
    }
    let word = |word: &Option<String>| word.as_deref().map_or(Value::Null, Value::from);
    let demand =
        workload.demand.iter().map(|(resource, count)| (Value::from(resource.as_str()), Value::from(count.as_str())));
    members([
        ("path", workload.path.as_str().into()),
        ("metadata", metadata),
        ("spec", piece(&workload.spec)),
        ("class", members([("latency", word(&workload.latency)), ("checkpoint", word(&workload.checkpoint))])),
        ("pools", workload.pools.iter().map(|pool| Value::from(pool.as_str())).collect::<Vec<_>>().into()),
        ("demand", Value::from(demand.collect::<BTreeMap<_, _>>())),
    ])
}

fn labels(labels: &Labels) -> Value {
    let members = labels.iter().map(|(key, value)| (Value::from(key.as_str()), Value::from(value.as_str())));
    Value::from(members.collect::<BTreeMap<_, _>>())
}

fn members<const N: usize>(members: [(&str, Value); N]) -> Value {
    Value::from(members.into_iter().map(|(key, value)| (Value::from(key), value)).collect::<BTreeMap<_, _>>())
}
