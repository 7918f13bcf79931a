//! An object with its owners and with everything below it, found through ownerReferences.

use super::{
    api::{Api, METADATA},
    catalog::{Catalog, ServedResource},
    failure::ClientResult,
    follow::{self, Selection},
};
use futures::{StreamExt, stream};
use serde_json::Value;
use std::collections::BTreeMap;

/// Events are told apart; the others are deprecated, with a warning for each list.
const SKIPPED: [&str; 3] = ["componentstatuses", "endpoints", "events"];
/// How many lists or reads run at once.
const AT_ONCE: usize = 8;
/// Owners of owners: more than any chain of controllers has, and the end of a circle.
const MAX_OWNERS: usize = 16;
/// How many objects below are read: enough to see what is wrong, and few enough to read at once.
const MAX_BELOW: usize = 500;

/// Whole objects around one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Family {
    /// The owner, its owner, and so on.
    pub(crate) owners: Vec<Value>,
    /// Everything below, owners before what they own.
    pub(crate) below: Vec<Value>,
    /// Whether there is more below than was read.
    pub(crate) is_cut: bool,
    /// Types that the caller may not list.
    pub(crate) unlisted: Vec<String>,
}

/// What a list in metadata form says of an object.
struct Relative {
    resource: ServedResource,
    namespace: Option<String>,
    name: String,
    uid: String,
}

pub(crate) async fn find(api: &Api, catalog: &Catalog, subject: &Value) -> ClientResult<Family> {
    let (owners, (relatives, unlisted)) =
        futures::join!(owners(api, catalog, subject), relatives(api, catalog, subject));
    let mut below = Vec::new();
    let mut is_cut = false;
    let own = text(&subject["metadata"]["uid"]);
    let mut parents = vec![own.clone()];
    while let Some(parent) = parents.pop() {
        for relative in relatives.get(&parent).into_iter().flatten() {
            is_cut |= below.len() == MAX_BELOW;
            // An object may have two owners, and owners may stand in a circle: each object is there once.
            let is_known =
                relative.uid == own || below.iter().any(|known: &&Relative| known.uid == relative.uid);
            if below.len() < MAX_BELOW && !is_known {
                below.push(relative);
                parents.push(relative.uid.clone());
            }
        }
    }
    let paths = below
        .iter()
        .map(|relative| relative.resource.object_path(relative.namespace.as_deref(), &relative.name));
    let read: Vec<_> =
        stream::iter(paths).map(|path| async move { api.get(&path).await }).buffered(AT_ONCE).collect().await;
    // Objects that have gone in the meantime are left out.
    Ok(Family { owners, below: read.into_iter().flatten().collect(), is_cut, unlisted })
}

/// The chain of owners, as far as they can be read.
async fn owners(api: &Api, catalog: &Catalog, subject: &Value) -> Vec<Value> {
    let namespace = subject["metadata"]["namespace"].as_str().map(str::to_owned);
    let mut owners: Vec<Value> = Vec::new();
    let mut current = subject.clone();
    while owners.len() < MAX_OWNERS {
        let Some(owner) = owner_of(&current) else { break };
        let (api_version, kind) = (text(&owner["apiVersion"]), text(&owner["kind"]));
        let Some(resource) = catalog.for_kind(&api_version, &kind) else { break };
        let path = resource.object_path(namespace.as_deref(), &text(&owner["name"]));
        let Ok(object) = api.get(&path).await else { break };
        if object["metadata"]["uid"] != owner["uid"] {
            break;
        }
        owners.push(object.clone());
        current = object;
    }
    owners
}

/// The owner that controls an object, or its first.
pub(crate) fn owner_of(object: &Value) -> Option<&Value> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    owners.iter().find(|owner| owner["controller"] == true).or_else(|| owners.first())
}

/// Everything that has an owner, by the UID of the owner, and the types that cannot be listed.
async fn relatives(
    api: &Api,
    catalog: &Catalog,
    subject: &Value,
) -> (BTreeMap<String, Vec<Relative>>, Vec<String>) {
    let namespace = subject["metadata"]["namespace"].as_str();
    let listed = catalog.preferred().filter(|resource| {
        resource.can("list")
            && !SKIPPED.contains(&resource.plural.as_str())
            && (namespace.is_none() || resource.is_namespaced)
    });
    let lists: Vec<_> = stream::iter(listed)
        .map(|resource| async move {
            let path = resource.path(namespace);
            (resource, follow::list(api, &path, METADATA, &Selection::default()).await)
        })
        .buffered(AT_ONCE)
        .collect()
        .await;
    let mut relatives: BTreeMap<String, Vec<Relative>> = BTreeMap::new();
    let mut unlisted = Vec::new();
    for (resource, list) in lists {
        let Ok(list) = list else {
            unlisted.push(resource.plural.clone());
            continue;
        };
        for item in list["items"].as_array().into_iter().flatten() {
            let metadata = &item["metadata"];
            for owner in metadata["ownerReferences"].as_array().into_iter().flatten() {
                relatives.entry(text(&owner["uid"])).or_default().push(Relative {
                    resource: resource.clone(),
                    namespace: metadata["namespace"].as_str().map(str::to_owned),
                    name: text(&metadata["name"]),
                    uid: text(&metadata["uid"]),
                });
            }
        }
    }
    (relatives, unlisted)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
