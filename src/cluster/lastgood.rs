//! The last good forms of policy sets and of the configuration, each in a Secret beside its ConfigMap.
//!
//! What it does: keeps them, reads them at the start, and forgets those whose ConfigMap is gone or no policy any more. What it
//! does not: judge them; what is read was good for the program that wrote it. Invariant: a Secret counts only for the ConfigMap
//! that owns it, by name and uid, and one that is broken or too large costs itself alone.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, Preconditions};
use kube::{Api, Client, Error};
use ring::digest::{SHA256, digest};
use thiserror::Error as ThisError;
use tokio::time::timeout;
use tracing::{info, warn};

use super::CONFIG_MAP;
use super::watch::explained;
use crate::rego::set::{Key, LABEL};
use crate::rego::unit::Unit;

mod packed;

/// The label of all these Secrets.
pub(super) const KEPT: &str = "slicegate.io/last-good";
/// Their type.
const TYPE: &str = "slicegate.io/last-good";
/// The annotation that says what is kept, without a look into it.
const DIGEST: &str = "slicegate.io/digest";
/// The Secret of the configuration. No policy's can be called so.
const CONFIG_SECRET: &str = "slicegate-config-last-good";
/// The beginning of the names of the others.
const PREFIX: &str = "slicegate-last-good-";
const UNIT_FILE: &str = "unit.json.gz";
const CONFIG_FILE: &str = "config.yaml.gz";

/// What a Secret can hold, less a little for its keys.
const LARGEST_PACKED: usize = 1_000_000;
/// The most that one may hold decompressed: a set of a megabyte whose libraries are several.
const LARGEST: usize = 16 << 20;
/// The most that all may hold decompressed.
const LARGEST_ALL: usize = 64 << 20;
/// The longest that reading all of them may take.
const READ: Duration = Duration::from_secs(20);
const PAGE: u32 = 50;
const OWNERS_PAGE: u32 = 500;

/// What was in force before.
#[derive(Debug, Clone, Default)]
pub struct LastGood {
    /// The sets.
    pub units: BTreeMap<Key, Unit>,
    /// The text of the configuration.
    pub config: Option<String>,
}

/// The last good forms could not be read.
#[derive(Debug, ThisError)]
pub enum LastGoodError {
    /// The API server refused, or cannot be reached.
    #[error("the last good policies cannot be read: {}", explained(.0))]
    Failed(#[from] Error),
    /// The API server is too slow.
    #[error("the last good policies cannot be read: no answer within {READ:?}")]
    Late,
}

impl LastGoodError {
    /// Whether the API server says that they may not be read, so that trying again is of no use.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Failed(error) if Self::is_refused(error))
    }

    fn is_refused(error: &Error) -> bool {
        matches!(error, Error::Api(status) if status.code == 403)
    }
}

/// Whether a form is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    /// It is, as it was before.
    Already,
    /// It is, from now on.
    Now,
    /// It has so many bytes, which is more than a Secret can hold.
    TooLarge(usize),
}

/// The Secrets of some namespaces.
#[derive(Clone)]
pub(super) struct Store {
    client: Client,
    home: String,
    namespaces: Vec<String>,
}

/// A ConfigMap that owns a Secret.
struct Owner<'o> {
    namespace: &'o str,
    name: &'o str,
    uid: &'o str,
}

impl Store {
    /// slicegate's own namespace, and all in which policies may stand.
    pub(super) fn new(client: Client, home: &str, namespaces: &[String]) -> Self {
        Self { client, home: home.to_owned(), namespaces: namespaces.to_vec() }
    }

    /// Reads all of them.
    pub(super) async fn read(&self) -> Result<LastGood, LastGoodError> {
        timeout(READ, self.read_all()).await.map_err(|_| LastGoodError::Late)?
    }

    async fn read_all(&self) -> Result<LastGood, LastGoodError> {
        let mut found = LastGood::default();
        let mut left = LARGEST_ALL;
        for namespace in &self.namespaces {
            let owners = match self.owners(namespace).await {
                Err(error) if *namespace != self.home && LastGoodError::is_refused(&error) => {
                    warn!(namespace, problem = %error, "Last good forms of this namespace cannot be read");
                    continue;
                }
                owners => owners?,
            };
            let secrets: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
            let mut params = ListParams::default().labels(KEPT).limit(PAGE);
            loop {
                let page = secrets.list(&params).await?;
                for secret in page.items {
                    let name = secret.metadata.name.clone().unwrap_or_default();
                    if let Err(problem) = self.take(namespace, secret, &owners, &mut left, &mut found) {
                        warn!(namespace, secret = name, problem, "Last good form left out");
                    }
                }
                params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
                if params.continue_token.is_none() {
                    break;
                }
            }
        }
        info!(sets = found.units.len(), configuration = found.config.is_some(), "Last good forms read");
        Ok(found)
    }

    /// The uids of the ConfigMaps that may own a last good form, by name.
    async fn owners(&self, namespace: &str) -> Result<BTreeMap<String, String>, Error> {
        let maps = self.maps(namespace);
        let mut params = ListParams::default().labels(LABEL).limit(OWNERS_PAGE);
        let mut owners = BTreeMap::new();
        loop {
            let page = maps.list_metadata(&params).await?;
            owners.extend(page.items.into_iter().filter_map(|map| map.metadata.name.zip(map.metadata.uid)));
            params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
            if params.continue_token.is_none() {
                break;
            }
        }
        if namespace == self.home
            && let Some(map) = maps.get_metadata_opt(CONFIG_MAP).await?
        {
            owners.extend(map.metadata.name.zip(map.metadata.uid));
        }
        Ok(owners)
    }

    /// Takes what a Secret holds, or says why it does not count.
    fn take(
        &self,
        namespace: &str,
        secret: Secret,
        owners: &BTreeMap<String, String>,
        left: &mut usize,
        found: &mut LastGood,
    ) -> Result<(), String> {
        let owner = owner(&secret.metadata).ok_or("no ConfigMap owns it")?;
        if owners.get(&owner.name) != Some(&owner.uid) {
            return Err("the ConfigMap that owns it is gone".to_owned());
        }
        let key = Key { namespace: namespace.to_owned(), name: owner.name };
        let name = secret.metadata.name.unwrap_or_default();
        let file = |file: &str| secret.data.as_ref().and_then(|data| data.get(file)).ok_or(format!("it has no {file}"));
        let mut unpack = |packed: &ByteString| {
            let text = packed::unpack(&packed.0, LARGEST.min(*left))?;
            *left = left.saturating_sub(text.len());
            Ok::<_, String>(text)
        };
        if name == CONFIG_SECRET && key.namespace == self.home && key.name == CONFIG_MAP {
            let text = unpack(file(CONFIG_FILE)?)?;
            found.config = Some(String::from_utf8(text).map_err(|error| error.to_string())?);
            return Ok(());
        }
        if name != secret_name(&key.name) {
            return Err(format!("it is not called {}", secret_name(&key.name)));
        }
        let text = unpack(file(UNIT_FILE)?)?;
        let unit: Unit = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
        if unit.set.key != key {
            return Err(format!("it holds the form of another set, {}", unit.set.key));
        }
        found.units.insert(key, unit);
        Ok(())
    }

    /// Keeps a set for the ConfigMap of this uid.
    pub(super) async fn keep_unit(&self, unit: &Arc<Unit>, uid: &str) -> Result<Kept, Error> {
        let key = &unit.set.key;
        let owner = Owner { namespace: &key.namespace, name: &key.name, uid };
        let whole = Arc::clone(unit);
        let text = move || serde_json::to_vec(&*whole).map_err(Error::SerdeError);
        self.keep(&secret_name(&key.name), &owner, &unit.digest, UNIT_FILE, text).await
    }

    /// Keeps the text of the configuration, as long as its ConfigMap is there.
    pub(super) async fn keep_config(&self, text: &str) -> Result<Option<Kept>, Error> {
        let map = self.maps(&self.home).get_metadata_opt(CONFIG_MAP).await?;
        let Some(uid) = map.and_then(|map| map.metadata.uid) else { return Ok(None) };
        let owner = Owner { namespace: &self.home, name: CONFIG_MAP, uid: &uid };
        let digest = hex(text.as_bytes());
        let text = text.as_bytes().to_vec();
        self.keep(CONFIG_SECRET, &owner, &digest, CONFIG_FILE, move || Ok(text)).await.map(Some)
    }

    async fn keep(
        &self,
        name: &str,
        of: &Owner<'_>,
        digest: &str,
        file: &str,
        text: impl FnOnce() -> Result<Vec<u8>, Error> + Send + 'static,
    ) -> Result<Kept, Error> {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), of.namespace);
        if let Some(there) = secrets.get_metadata_opt(name).await? {
            let same =
                there.metadata.annotations.as_ref().and_then(|all| all.get(DIGEST)).is_some_and(|is| is == digest);
            if same && owner(&there.metadata).is_some_and(|owner| owner.uid == of.uid) {
                return Ok(Kept::Already);
            }
        }
        // A large one takes long enough to hold up the requests that this thread would answer.
        let packed = tokio::task::spawn_blocking(move || {
            let text = text()?;
            let packed = packed::pack(&text).map_err(|error| Error::Service(Box::new(error)))?;
            let fits = text.len() <= LARGEST && packed.len() <= LARGEST_PACKED;
            Ok::<_, Error>(if fits { Ok(packed) } else { Err(packed.len()) })
        });
        let packed = match packed.await.map_err(|error| Error::Service(Box::new(error)))?? {
            Ok(packed) => packed,
            Err(size) => return Ok(Kept::TooLarge(size)),
        };
        let one = |key: &str, value: &str| Some(BTreeMap::from([(key.to_owned(), value.to_owned())]));
        let secret = Secret {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                labels: one(KEPT, "true"),
                annotations: one(DIGEST, digest),
                owner_references: Some(vec![OwnerReference {
                    api_version: "v1".to_owned(),
                    kind: CONFIG_MAP_KIND.to_owned(),
                    name: of.name.to_owned(),
                    uid: of.uid.to_owned(),
                    ..OwnerReference::default()
                }]),
                ..ObjectMeta::default()
            },
            type_: Some(TYPE.to_owned()),
            data: Some(BTreeMap::from([(file.to_owned(), ByteString(packed))])),
            ..Secret::default()
        };
        secrets.patch(name, &PatchParams::apply(super::MANAGER).force(), &Patch::Apply(&secret)).await?;
        Ok(Kept::Now)
    }

    /// Forgets the last good form of a set, where there is one.
    pub(super) async fn forget(&self, key: &Key) -> Result<(), Error> {
        self.delete(&key.namespace, &secret_name(&key.name)).await
    }

    async fn delete(&self, namespace: &str, name: &str) -> Result<(), Error> {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        let Some(there) = secrets.get_metadata_opt(name).await? else { return Ok(()) };
        if !there.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(KEPT)) {
            return Ok(());
        }
        let same = Preconditions { uid: there.metadata.uid, ..Preconditions::default() };
        match secrets.delete(name, &DeleteParams::default().preconditions(same)).await {
            Err(Error::Api(status)) if status.code == 404 || status.code == 409 => Ok(()),
            other => other.map(drop),
        }
    }

    /// Forgets those whose ConfigMap went, or lost its label, while nobody looked. It goes by the API server's word alone.
    pub(super) async fn prune(&self) -> Result<(), Error> {
        for namespace in &self.namespaces {
            // Secrets first: one that is made in between has an owner that is seen.
            let secrets: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
            let kept = secrets.list_metadata(&ListParams::default().labels(KEPT)).await?;
            if kept.items.is_empty() {
                continue;
            }
            let owners = self.owners(namespace).await?;
            for secret in kept.items {
                let Some(name) = secret.metadata.name.clone() else { continue };
                let owned = owner(&secret.metadata).is_some_and(|owner| owners.get(&owner.name) == Some(&owner.uid));
                if !owned {
                    info!(namespace, secret = name, "Last good form forgotten: its ConfigMap is no policy any more");
                    self.delete(namespace, &name).await?;
                }
            }
        }
        Ok(())
    }

    fn maps(&self, namespace: &str) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), namespace)
    }
}

const CONFIG_MAP_KIND: &str = "ConfigMap";

struct OwnedBy {
    name: String,
    uid: String,
}

fn owner(metadata: &ObjectMeta) -> Option<OwnedBy> {
    let mut owners = metadata.owner_references.iter().flatten();
    let owner = owners.find(|owner| owner.kind == CONFIG_MAP_KIND && owner.api_version == "v1")?;
    Some(OwnedBy { name: owner.name.clone(), uid: owner.uid.clone() })
}

/// The Secret of a ConfigMap. A name that would be too long is cut and told apart by its digest.
fn secret_name(map: &str) -> String {
    const LONGEST: usize = 253;
    let name = format!("{PREFIX}{map}");
    if name.len() <= LONGEST {
        return name;
    }
    let digest: String = hex(map.as_bytes()).chars().take(16).collect();
    let kept: String = name.chars().take(LONGEST.saturating_sub(17)).collect();
    format!("{}-{digest}", kept.trim_end_matches(['.', '-']))
}

fn hex(bytes: &[u8]) -> String {
    let mut hex = String::with_capacity(64);
    for byte in digest(&SHA256, bytes).as_ref() {
        // Writing into a text cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}
