//! One resource as discovery lists it, built-in or custom, and the order of all resources.

use crate::served::Served;
use api::kind::compare_versions;
use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kinds::resources::{Resource, Scope, Storage};
use schema::types::Name;

/// A resource in discovery.
#[derive(Clone, Debug)]
pub(crate) struct Listed<'a> {
    /// Empty for the core group.
    pub(crate) group: &'a str,
    pub(crate) version: &'a str,
    pub(crate) name: &'a str,
    pub(crate) singular: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) list_kind: String,
    pub(crate) is_namespaced: bool,
    pub(crate) verbs: Vec<&'a str>,
    pub(crate) short_names: Vec<&'a str>,
    pub(crate) categories: Vec<&'a str>,
    /// See [`storage_version_hash`]; empty where nothing is stored.
    pub(crate) storage_version_hash: String,
    pub(crate) subresources: Vec<ListedSubresource<'a>>,
    /// Kubernetes: custom resources are described in other words than built-in ones.
    pub(crate) is_custom: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct ListedSubresource<'a> {
    pub(crate) name: &'a str,
    /// Group and version of its kind, if they differ from the resource's.
    pub(crate) foreign: Option<(&'a str, &'a str)>,
    pub(crate) kind: &'a str,
    pub(crate) verbs: Vec<&'a str>,
}

impl<'a> From<&'a Resource> for Listed<'a> {
    fn from(it: &'a Resource) -> Self {
        // Kubernetes: the storage version of definitions is no longer served.
        let is_definition = &*it.group == "apiextensions.k8s.io";
        let version = |at: &'a Storage| if is_definition { "v1beta1" } else { &*at.version };
        let hash = it.storage.as_ref().map(|at| storage_version_hash(&at.group, version(at), &it.kind));
        let subresources = it.subresources.iter().map(|sub| ListedSubresource {
            name: &sub.name,
            foreign: Some((&*sub.group, &*sub.version)).filter(|at| *at != (&*it.group, &*it.version)),
            kind: &sub.kind,
            verbs: texts(&sub.verbs),
        });
        Listed {
            group: &it.group,
            version: &it.version,
            name: &it.name,
            singular: &it.singular,
            kind: &it.kind,
            list_kind: format!("{}List", it.kind),
            is_namespaced: it.scope == Scope::Namespaced,
            verbs: texts(&it.verbs),
            short_names: texts(&it.short_names),
            categories: texts(&it.categories),
            storage_version_hash: hash.unwrap_or_default(),
            subresources: subresources.collect(),
            is_custom: false,
        }
    }
}

impl<'a> Listed<'a> {
    /// A custom resource.
    pub(crate) fn custom(served: &'a Served) -> Self {
        let resource = &served.resource;
        let stored = served.stored.as_ref();
        let hash = stored.map(|at| storage_version_hash(&at.group, &at.version, &resource.kind));
        Listed {
            list_kind: served.list_kind().into_owned(),
            storage_version_hash: hash.unwrap_or_default(),
            is_custom: true,
            ..Listed::from(resource)
        }
    }
}

fn texts(names: &[Name]) -> Vec<&str> {
    names.iter().map(|name| &**name).collect()
}

/// Changes with the storage version, so that clients know when to migrate objects.
pub(crate) fn storage_version_hash(group: &str, version: &str, kind: &str) -> String {
    let digest = digest(&SHA256, format!("{group}/{version}/{kind}").as_bytes());
    STANDARD.encode(&digest.as_ref()[..8])
}

/// Groups in discovery order, each with its versions, preferred first: built-in groups in their order, then
/// custom groups by name.
pub(super) fn groups<'a>(all: &'a [Listed<'a>]) -> Vec<(&'a str, Vec<&'a str>)> {
    let mut groups: Vec<(bool, &str, Vec<&str>)> = Vec::new();
    for it in all {
        match groups.iter_mut().find(|(_, group, _)| *group == it.group) {
            Some((_, _, versions)) if versions.contains(&it.version) => {}
            Some((_, _, versions)) => versions.push(it.version),
            None => groups.push((it.is_custom, it.group, vec![it.version])),
        }
    }
    groups.sort_by_key(|(is_custom, group, _)| (*is_custom, if *is_custom { *group } else { "" }));
    for (_, _, versions) in groups.iter_mut().filter(|(is_custom, ..)| *is_custom) {
        versions.sort_by(|left, right| compare_versions(right, left));
    }
    groups.into_iter().map(|(_, group, versions)| (group, versions)).collect()
}

/// The resources of a version, built-in ones first.
pub(super) fn of_version<'a>(all: &'a [Listed<'a>], group: &str, version: &str) -> Vec<&'a Listed<'a>> {
    let mut found: Vec<_> = all.iter().filter(|it| (it.group, it.version) == (group, version)).collect();
    found.sort_by_key(|it| it.is_custom);
    found
}
