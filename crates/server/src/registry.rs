//! Which resources are served, and where their objects are kept.

use crate::discovery::Listed;
use api::kind::{GroupKind, GroupResource};
use kinds::resources::{Resource, Scope, Subresource};
use schema::types::{TypeId, Types};
use serde_json::Value;
use std::collections::BTreeMap;

/// All resources by group, version and plural.
#[derive(Debug)]
pub(crate) struct Registry {
    /// By path: `apps/v1/deployments`, `/v1/pods`.
    resources: BTreeMap<String, Served>,
    pub(crate) types: &'static Types,
}

/// One resource in one version.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) resource: &'static Resource,
    /// The type of its objects in the version of the request.
    pub(crate) of: TypeId,
    /// The version in which they are kept, and its type.
    pub(crate) stored: Option<StoredAs>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct StoredAs {
    pub(crate) group: &'static str,
    pub(crate) version: &'static str,
    pub(crate) of: TypeId,
    prefix: &'static str,
}

impl Registry {
    pub(crate) fn built_in() -> Registry {
        let types = kinds::types();
        let mut resources = BTreeMap::new();
        for resource in kinds::resources() {
            let Some((of, _)) = types.kind(resource.group, resource.version, resource.kind) else { continue };
            let stored = resource.storage.map(|storage| {
                // A storage version that is not served has no type of its own; its shape is the same.
                let stored = types.kind(storage.group, storage.version, resource.kind).map(|(id, _)| id);
                match stored {
                    Some(of) => StoredAs {
                        group: storage.group,
                        version: storage.version,
                        of,
                        prefix: storage.prefix,
                    },
                    None => StoredAs {
                        group: resource.group,
                        version: resource.version,
                        of,
                        prefix: storage.prefix,
                    },
                }
            });
            let key = path(resource.group, resource.version, resource.name);
            resources.insert(key, Served { resource, of, stored });
        }
        Registry { resources, types }
    }

    pub(crate) fn find(&self, group: &str, version: &str, name: &str) -> Option<&Served> {
        self.resources.get(&path(group, version, name))
    }

    /// All of them, as discovery tells them.
    pub(crate) fn listed(&self) -> Vec<Listed<'_>> {
        kinds::resources().iter().map(Listed::from).collect()
    }

    pub(crate) fn group_versions(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.resources.values().map(|served| (served.resource.group, served.resource.version))
    }
}

impl Served {
    pub(crate) fn group_resource(&self) -> GroupResource {
        GroupResource::new(self.resource.group, self.resource.name)
    }

    pub(crate) fn group_kind(&self) -> GroupKind {
        GroupKind::new(self.resource.group, self.resource.kind)
    }

    pub(crate) fn api_version(&self) -> String {
        join(self.resource.group, self.resource.version)
    }

    pub(crate) fn is_namespaced(&self) -> bool {
        self.resource.scope == Scope::Namespaced
    }

    pub(crate) fn subresource(&self, name: &str) -> Option<&'static Subresource> {
        self.resource.subresources.iter().find(|sub| sub.name == name)
    }

    /// An object as it is kept, in the version of the request.
    pub(crate) fn in_version(&self, object: Value) -> Value {
        let resource = self.resource;
        match self.stored {
            Some(stored) if stored.of != self.of => {
                let (from, to) = ((stored.group, stored.version), (resource.group, resource.version));
                convert(object, from, to, resource.kind)
            }
            _ => object,
        }
    }

    /// An object in the version of the request, as it is kept.
    pub(crate) fn as_stored(&self, object: Value) -> Value {
        let resource = self.resource;
        match self.stored {
            Some(stored) if stored.of != self.of => {
                let (from, to) = ((resource.group, resource.version), (stored.group, stored.version));
                convert(object, from, to, resource.kind)
            }
            _ => object,
        }
    }

    /// The key of an object in the store.
    pub(crate) fn key(&self, namespace: &str, name: &str) -> String {
        format!("{}{name}", self.prefix(namespace))
    }

    /// What the keys of all objects, or all of a namespace, begin with.
    pub(crate) fn prefix(&self, namespace: &str) -> String {
        let prefix = self.stored.map_or(self.resource.name, |stored| stored.prefix);
        if namespace.is_empty() {
            format!("/registry/{prefix}/")
        } else {
            format!("/registry/{prefix}/{namespace}/")
        }
    }
}

fn path(group: &str, version: &str, resource: &str) -> String {
    format!("{group}/{version}/{resource}")
}

pub(crate) fn join(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// An object in another of its versions.
pub(crate) fn convert(object: Value, from: (&str, &str), to: (&str, &str), kind: &str) -> Value {
    kinds::convert::convert(object, from, to, kind)
}
