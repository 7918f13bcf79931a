//! Which resources are served: the built-in ones, and those that definitions add while the server runs.

use crate::{
    custom::Custom,
    discovery::Listed,
    live::{Fold, Live},
    served::{Kind, Served, StoredAs, join},
    stored::Stored,
};
use api::status::Status;
use kinds::definition::Definition;
use schema::types::Types;
use serde::Deserialize;
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::Arc};
use store::Store;

/// By path: `apps/v1/deployments`, `/v1/pods`.
type ByPath = BTreeMap<String, Arc<Served>>;

#[derive(Debug)]
pub(crate) struct Registry {
    built_in: ByPath,
    pub(crate) types: &'static Types,
    custom: Live<Definitions>,
}

/// The custom resources at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Customs {
    /// Grows whenever what is served changes.
    pub(crate) generation: u64,
    served: Arc<ByPath>,
}

/// Definitions folded into what they make the server serve.
#[derive(Debug, Default)]
struct Definitions {
    customs: Customs,
    /// All of them by name, served or not.
    all: BTreeMap<String, Known>,
}

#[derive(Debug)]
struct Known {
    definition: Arc<Definition>,
    /// The names that it has got, in the place where a definition tells them.
    accepted: Arc<Value>,
    /// What it is behind.
    paths: Vec<String>,
}

// Kubernetes: where definitions are kept.
const DEFINITIONS: &str = "/registry/apiextensions.k8s.io/customresourcedefinitions/";

impl Registry {
    pub(crate) fn built_in() -> Registry {
        let types = kinds::types();
        let mut built_in = BTreeMap::new();
        for resource in kinds::resources() {
            let Some((of, _)) = types.kind(&resource.group, &resource.version, &resource.kind) else {
                continue;
            };
            let stored = resource.storage.as_ref().map(|storage| {
                let stored = types.kind(&storage.group, &storage.version, &resource.kind).map(|(id, _)| id);
                let prefix = storage.prefix.clone();
                match stored.filter(|stored| *stored != of) {
                    Some(other) => StoredAs {
                        group: storage.group.clone(),
                        version: storage.version.clone(),
                        of: Some(other),
                        prefix,
                    },
                    // A storage version that is not served has no type of its own; its shape is the same.
                    None => StoredAs {
                        group: resource.group.clone(),
                        version: resource.version.clone(),
                        of: None,
                        prefix,
                    },
                }
            });
            let key = path(&resource.group, &resource.version, &resource.name);
            let kind = Kind::BuiltIn { types, of };
            built_in.insert(key, Arc::new(Served { resource: resource.clone(), stored, kind }));
        }
        Registry { built_in, types, custom: Live::new(DEFINITIONS, Definitions::default()) }
    }

    /// Whether a version of a group is built in.
    pub(crate) fn has(&self, group: &str, version: &str) -> bool {
        self.group_versions().any(|built_in| built_in == (group, version))
    }

    /// A built-in resource.
    pub(crate) fn find(&self, group: &str, version: &str, name: &str) -> Option<&Arc<Served>> {
        self.built_in.get(&path(group, version, name))
    }

    /// Any resource, as of now.
    pub(crate) async fn served(
        &self,
        store: &dyn Store,
        group: &str,
        version: &str,
        name: &str,
    ) -> Result<Option<Arc<Served>>, Status> {
        if let Some(built_in) = self.find(group, version, name) {
            return Ok(Some(Arc::clone(built_in)));
        }
        let path = path(group, version, name);
        let found =
            self.custom.look(store, |definitions| definitions.customs.served.get(&path).cloned()).await;
        found.map_err(|error| crate::verbs::store_failed(&error))
    }

    /// The custom resources as of now.
    pub(crate) async fn customs(&self, store: &dyn Store) -> Result<Customs, Status> {
        let found = self.custom.look(store, |definitions| definitions.customs.clone()).await;
        found.map_err(|error| crate::verbs::store_failed(&error))
    }

    /// All of them, as discovery tells them.
    pub(crate) fn listed<'a>(&'a self, customs: &'a Customs) -> Vec<Listed<'a>> {
        let built_in = kinds::resources().iter().map(Listed::from);
        built_in.chain(customs.all().map(Listed::custom)).collect()
    }

    /// The names of all definitions.
    pub(crate) async fn definition_names(&self, store: &dyn Store) -> Result<Vec<String>, Status> {
        self.definitions(store, |_| true).await
    }

    /// What the other definitions of a group have got, each no more of itself than that.
    pub(crate) async fn neighbours(
        &self,
        store: &dyn Store,
        group: &str,
        name: &str,
    ) -> Result<Vec<Arc<Value>>, Status> {
        let found = self.custom.look(store, |definitions| {
            let all = definitions.all.values();
            let others = all.filter(|it| it.definition.group == group && it.definition.name != name);
            others.map(|it| Arc::clone(&it.accepted)).collect()
        });
        found.await.map_err(|error| crate::verbs::store_failed(&error))
    }

    /// Those of a group that have not got all the names they ask for.
    pub(crate) async fn waiting_in(&self, store: &dyn Store, group: &str) -> Result<Vec<String>, Status> {
        let waits = |definition: &Definition| definition.group == group && !definition.state.names_accepted;
        self.definitions(store, waits).await
    }

    async fn definitions(
        &self,
        store: &dyn Store,
        wanted: impl Fn(&Definition) -> bool,
    ) -> Result<Vec<String>, Status> {
        let found = self.custom.look(store, |definitions| {
            let all = definitions.all.values().map(|known| &known.definition);
            all.filter(|definition| wanted(definition)).map(|definition| definition.name.clone()).collect()
        });
        found.await.map_err(|error| crate::verbs::store_failed(&error))
    }

    /// Built-in ones whose objects are kept.
    pub(crate) fn kept(&self) -> impl Iterator<Item = &Served> {
        self.built_in.values().map(|served| &**served).filter(|served| served.stored.is_some())
    }

    pub(crate) fn group_versions(&self) -> impl Iterator<Item = (&str, &str)> {
        self.built_in.values().map(|served| (&*served.resource.group, &*served.resource.version))
    }
}

impl Customs {
    pub(crate) fn all(&self) -> impl Iterator<Item = &Served> {
        self.served.values().map(|served| &**served)
    }

    /// Any version of what a definition serves.
    pub(crate) fn of_definition(&self, name: &str) -> Option<Arc<Served>> {
        let is_it = |served: &&Arc<Served>| served.custom().is_some_and(|it| it.definition.name == name);
        self.served.values().find(is_it).cloned()
    }
}

impl Definitions {
    /// Takes a definition out, and returns what it had made.
    fn forget(&mut self, key: &str) -> Option<Arc<Served>> {
        let known = self.all.remove(key)?;
        let served = Arc::make_mut(&mut self.customs.served);
        let mut before = None;
        for path in &known.paths {
            before = served.remove(path).or(before);
        }
        self.customs.generation += 1;
        before
    }
}

impl Fold for Definitions {
    fn clear(&mut self) {
        let generation = self.customs.generation + 1;
        *self = Definitions::default();
        self.customs.generation = generation;
    }

    fn put(&mut self, key: &str, object: Stored) {
        let before = self.forget(key);
        let definition = match Definition::parse(&object.json) {
            Ok(definition) => Arc::new(definition),
            Err(error) => {
                tracing::warn!(key, %error, "a stored definition cannot be read");
                return;
            }
        };
        let mut paths = Vec::new();
        let served = Arc::make_mut(&mut self.customs.served);
        let before = before.as_ref().and_then(|before| before.custom());
        let versions = match definition.is_served() {
            true => Custom::versions(&definition, object.revision, before),
            false => Vec::new(),
        };
        for custom in versions {
            let resource = &custom.resource;
            let path = path(&resource.group, &resource.version, &resource.name);
            served.insert(path.clone(), Arc::new(custom));
            paths.push(path);
        }
        let accepted = Arc::new(accepted(&object));
        self.all.insert(key.to_owned(), Known { definition, accepted, paths });
        self.customs.generation += 1;
    }

    fn remove(&mut self, key: &str) {
        self.forget(key);
    }
}

fn accepted(object: &Stored) -> Value {
    #[derive(Deserialize)]
    struct Told {
        spec: Spec,
        #[serde(default)]
        status: Status,
    }
    #[derive(Deserialize)]
    struct Spec {
        group: String,
    }
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Status {
        accepted_names: Value,
    }
    let told: Option<Told> = serde_json::from_slice(&object.json).ok();
    told.map(|told| {
        json!({"spec": {"group": told.spec.group}, "status": {"acceptedNames": told.status.accepted_names}})
    })
    .unwrap_or_default()
}

fn path(group: &str, version: &str, resource: &str) -> String {
    format!("{}/{resource}", join(group, version))
}
