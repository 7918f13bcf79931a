//! The served resources: built-in ones, and custom ones that definitions add at run time.

use crate::{
    custom::{Custom, Schemas},
    live::{Fold, Live},
    refusal::Refusal,
    served::{Kind, Served, StoredAs},
    stored::Stored,
};
use kinds::{
    definition::{Definition, InUse},
    resources::Resource,
};
use schema::types::Types;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, atomic::AtomicBool},
};
use store::ReadStore;

/// By path: `apps/v1/deployments`, `/v1/pods`.
type ByPath = BTreeMap<String, Arc<Served>>;

#[derive(Debug)]
pub(crate) struct Registry {
    /// Sorted by name.
    built_in: Vec<Arc<Served>>,
    /// Group and version of what clients do not see. The server itself uses it as ever.
    hidden: Vec<(String, String)>,
    pub(crate) types: &'static Types,
    custom: Live<Definitions>,
    /// Whether a task will retry definitions whose status could not be written.
    pub(crate) is_retrying: AtomicBool,
}

/// The custom resources at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Customs {
    /// Incremented when the served resources change.
    pub(crate) generation: u64,
    served: Arc<ByPath>,
}

/// Definitions, folded into the resources that they serve.
#[derive(Debug, Default)]
struct Definitions {
    customs: Customs,
    /// All definitions by key, served or not.
    all: BTreeMap<String, KnownDefinition>,
    groups: BTreeMap<String, GroupDefinitions>,
    /// Names of definitions whose status may need an update.
    unreconciled: BTreeSet<String>,
    schemas: Arc<Schemas>,
}

#[derive(Debug)]
struct KnownDefinition {
    definition: Arc<Definition>,
    /// The paths that it serves.
    paths: Vec<String>,
}

/// What the definitions of a group must know of each other.
#[derive(Debug, Default)]
struct GroupDefinitions {
    in_use: InUse,
    /// Names of definitions without all of their requested names.
    waiting: BTreeSet<String>,
}

// Kubernetes: the key prefix of definitions.
const DEFINITIONS: &str = "/registry/apiextensions.k8s.io/customresourcedefinitions/";

impl Registry {
    pub(crate) fn built_in() -> Registry {
        let types = kinds::types();
        let mut built_in = Vec::new();
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
                    // A storage version that is not served has no type of its own; its fields are the same.
                    None => StoredAs {
                        group: resource.group.clone(),
                        version: resource.version.clone(),
                        of: None,
                        prefix,
                    },
                }
            });
            let kind = Kind::BuiltIn { types, of };
            built_in.push(Arc::new(Served { resource: resource.clone(), stored, kind }));
        }
        built_in.sort_by(|one, other| names(one).cmp(&names(other)));
        Registry {
            built_in,
            hidden: Vec::new(),
            types,
            custom: Live::new(DEFINITIONS, Definitions::default()),
            is_retrying: AtomicBool::new(false),
        }
    }

    /// Without these versions of built-in groups.
    pub(crate) fn hiding(self, hidden: Vec<(String, String)>) -> Registry {
        Registry { hidden, ..self }
    }

    pub(crate) fn is_hidden(&self, group: &str, version: &str) -> bool {
        self.hidden.iter().any(|hidden| (&*hidden.0, &*hidden.1) == (group, version))
    }

    /// Whether a group has a built-in version.
    pub(crate) fn has_group(&self, group: &str) -> bool {
        self.group_versions().any(|(built_in, _)| built_in == group)
    }

    /// A built-in resource.
    pub(crate) fn find(&self, group: &str, version: &str, name: &str) -> Option<&Arc<Served>> {
        let at = self.built_in.binary_search_by(|served| names(served).cmp(&[group, version, name]));
        self.built_in.get(at.ok()?)
    }

    /// Any resource that clients see.
    pub(crate) async fn served(
        &self,
        store: &dyn ReadStore,
        group: &str,
        version: &str,
        name: &str,
    ) -> Result<Option<Arc<Served>>, Refusal> {
        if let Some(built_in) = self.find(group, version, name).filter(|_| !self.is_hidden(group, version)) {
            return Ok(Some(Arc::clone(built_in)));
        }
        let path = path(group, version, name);
        self.look(store, |definitions| definitions.customs.served.get(&path).cloned()).await
    }

    /// The current custom resources.
    pub(crate) async fn customs(&self, store: &dyn ReadStore) -> Result<Customs, Refusal> {
        self.look(store, |definitions| definitions.customs.clone()).await
    }

    /// Names of definitions whose status may need an update.
    pub(crate) async fn unreconciled(&self, store: &dyn ReadStore) -> Result<Vec<String>, Refusal> {
        self.look(store, |definitions| definitions.unreconciled.iter().cloned().collect()).await
    }

    /// A definition whose status may need an update; `None` if it does not, or does not exist.
    pub(crate) async fn to_reconcile(
        &self,
        store: &dyn ReadStore,
        name: &str,
    ) -> Result<Option<Arc<Definition>>, Refusal> {
        self.look(store, |definitions| {
            definitions.unreconciled.get(name)?;
            let known = definitions.all.get(&format!("{DEFINITIONS}{name}"))?;
            Some(Arc::clone(&known.definition))
        })
        .await
    }

    /// Reads the names that the definitions of a group have.
    pub(crate) async fn names_in_use<R>(
        &self,
        store: &dyn ReadStore,
        group: &str,
        read: impl Fn(&InUse) -> R,
    ) -> Result<R, Refusal> {
        let nothing = InUse::default();
        self.look(store, |definitions| {
            read(definitions.groups.get(group).map_or(&nothing, |group| &group.in_use))
        })
        .await
    }

    /// Definitions of a group without all of their requested names.
    pub(crate) async fn waiting_in(
        &self,
        store: &dyn ReadStore,
        group: &str,
    ) -> Result<Vec<String>, Refusal> {
        self.look(store, |definitions| {
            definitions.groups.get(group).into_iter().flat_map(|group| &group.waiting).cloned().collect()
        })
        .await
    }

    /// Any served version of a definition.
    pub(crate) async fn of_definition(
        &self,
        store: &dyn ReadStore,
        name: &str,
    ) -> Result<Option<Arc<Served>>, Refusal> {
        let key = format!("{DEFINITIONS}{name}");
        self.look(store, |definitions| {
            let path = definitions.all.get(&key)?.paths.first()?;
            definitions.customs.served.get(path).cloned()
        })
        .await
    }

    async fn look<R>(&self, store: &dyn ReadStore, read: impl Fn(&Definitions) -> R) -> Result<R, Refusal> {
        self.custom.look(store, read).await.map_err(Refusal::from)
    }

    /// Built-in resources whose objects are stored.
    pub(crate) fn kept(&self) -> impl Iterator<Item = &Served> {
        self.built_in.iter().map(|served| &**served).filter(|served| served.stored.is_some())
    }

    pub(crate) fn group_versions(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.built_in.iter().map(|served| (&*served.resource.group, &*served.resource.version));
        all.filter(|(group, version)| !self.is_hidden(group, version))
    }
}

impl Customs {
    pub(crate) fn all(&self) -> impl Iterator<Item = &Served> {
        self.served.values().map(|served| &**served)
    }

    /// The custom resources of one version; of all versions or all groups where these are empty.
    pub(crate) fn of<'a>(&'a self, group: &str, version: &str) -> impl Iterator<Item = &'a Served> + use<'a> {
        let start = match (group, version) {
            ("", "") => String::new(),
            (group, "") => format!("{group}/"),
            (group, version) => path(group, version, ""),
        };
        let all = self.served.range(start.clone()..).take_while(move |(path, _)| path.starts_with(&start));
        all.map(|(_, served)| &**served)
    }
}

impl Definitions {
    /// Removes a definition, and returns it with a resource that it served.
    fn forget(&mut self, key: &str) -> Option<(Arc<Definition>, Option<Arc<Served>>)> {
        let KnownDefinition { definition, paths } = self.all.remove(key)?;
        let served = Arc::make_mut(&mut self.customs.served);
        let mut before = None;
        for path in &paths {
            before = served.remove(path).or(before);
        }
        if let Some(group) = self.groups.get_mut(&definition.group) {
            group.in_use.remove(&definition.accepted);
            group.waiting.remove(&definition.name);
            if group.in_use.is_empty() && group.waiting.is_empty() {
                self.groups.remove(&definition.group);
            }
        }
        self.unreconciled.remove(&definition.name);
        self.customs.generation += 1;
        Some((definition, before))
    }

    fn remember(&mut self, key: &str, definition: Arc<Definition>, paths: Vec<String>) {
        let state = &definition.state;
        if !state.settled {
            self.unreconciled.insert(definition.name.clone());
        }
        if !self.groups.contains_key(&definition.group) {
            self.groups.insert(definition.group.clone(), GroupDefinitions::default());
        }
        let group = self.groups.get_mut(&definition.group).expect("created above");
        group.in_use.add(&definition.accepted);
        if !state.names_accepted {
            group.waiting.insert(definition.name.clone());
        }
        self.all.insert(key.to_owned(), KnownDefinition { definition, paths });
        self.customs.generation += 1;
    }
}

impl Fold for Definitions {
    fn clear(&mut self) {
        let generation = self.customs.generation + 1;
        *self = Definitions { schemas: Arc::clone(&self.schemas), ..Definitions::default() };
        self.customs.generation = generation;
    }

    fn put(&mut self, key: &str, object: Stored) {
        let (known, before) = self.forget(key).unzip();
        let read = match known {
            Some(known) => known.parse_next(&object.json),
            None => Definition::parse(&object.json),
        };
        let definition = match read {
            Ok(definition) => Arc::new(definition),
            Err(error) => {
                tracing::warn!(key, %error, "cannot decode stored definition");
                return;
            }
        };
        let mut paths = Vec::new();
        let served = Arc::make_mut(&mut self.customs.served);
        let before = before.as_ref().and_then(|before| before.as_ref()?.custom());
        let versions = match definition.is_served() {
            true => Custom::versions(&definition, object.revision, before, &self.schemas),
            false => Vec::new(),
        };
        for custom in versions.into_iter().map(Served::of_custom) {
            let resource = &custom.resource;
            let path = path(&resource.group, &resource.version, &resource.name);
            served.insert(path.clone(), Arc::new(custom));
            paths.push(path);
        }
        self.remember(key, definition, paths);
    }

    fn remove(&mut self, key: &str) {
        self.forget(key);
    }
}

fn names(served: &Served) -> [&str; 3] {
    let Resource { group, version, name, .. } = &served.resource;
    [group, version, name]
}

fn path(group: &str, version: &str, resource: &str) -> String {
    let slash = if group.is_empty() { "" } else { "/" };
    [group, slash, version, "/", resource].concat()
}
