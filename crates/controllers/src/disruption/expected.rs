//! How many pods the controllers of some pods want.

use crate::{int_or_percent::NotAPercentage, pod};
use k8s_openapi::{
    api::{
        apps::v1::{Deployment, ReplicaSet, StatefulSet},
        core::v1::{Pod, ReplicationController},
    },
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::{
    Api, ResourceExt,
    core::{DynamicObject, GroupVersionKind},
};
use operator::{Context, Failure, Key, Kind, owner};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Why the expected number of pods is unknown. Kubernetes: the texts are in a condition and in events.
#[derive(Debug, thiserror::Error)]
pub(super) enum Problem {
    #[error("{0}")]
    Read(Failure),
    #[error("{}", pod::message(.0))]
    Kube(kube::Error),
    #[error("no matches for kind {kind:?} in version {api_version:?}")]
    UnknownKind { kind: String, api_version: String },
    #[error("{0} does not implement the scale subresource")]
    NoScale(String),
    #[error("found no controllers for pod {0:?}")]
    NoController(String),
    #[error(transparent)]
    NotAPercentage(#[from] NotAPercentage),
}

/// A controller and how many pods it wants.
struct Scaled {
    uid: String,
    replicas: i32,
}

/// The sum over the controllers of the pods, and whether there are pods without a controller.
pub(super) async fn scale(context: &Context<()>, pods: &[Arc<Pod>]) -> Result<(i32, bool), Problem> {
    // A ReplicaSet stands for its Deployment: many of them may have the same one.
    let (mut scales, mut known) = (BTreeMap::new(), BTreeSet::new());
    let mut is_unmanaged = false;
    for pod in pods {
        let Some(reference) = owner::controller_of(&**pod) else {
            is_unmanaged = true;
            continue;
        };
        if known.contains(&reference.uid) {
            continue;
        }
        let key = Key::new(pod.namespace().as_deref(), &reference.name);
        let found = match cached(context, reference, &key).map_err(Problem::Read)? {
            Some(found) => Some(found),
            None => by_subresource(context, reference, &key).await?,
        };
        let found = found.ok_or_else(|| Problem::NoController(pod.name_any()))?;
        known.insert(reference.uid.clone());
        scales.insert(found.uid, found.replicas);
    }
    Ok((scales.values().sum(), is_unmanaged))
}

/// The controllers of Kubernetes itself, from the caches.
fn cached(context: &Context<()>, reference: &OwnerReference, key: &Key) -> Result<Option<Scaled>, Failure> {
    let group = reference.api_version.split_once('/').map_or("", |(group, _)| group);
    match (group, reference.kind.as_str()) {
        ("", "ReplicationController") => {
            let found = get::<ReplicationController>(context, reference, key)?;
            Ok(found.map(|found| scaled(reference, found.spec.as_ref().and_then(|spec| spec.replicas))))
        }
        ("apps", "StatefulSet") => {
            let found = get::<StatefulSet>(context, reference, key)?;
            Ok(found.map(|found| scaled(reference, found.spec.as_ref().and_then(|spec| spec.replicas))))
        }
        ("apps" | "extensions", "ReplicaSet") => {
            let Some(set) = get::<ReplicaSet>(context, reference, key)? else { return Ok(None) };
            match owner::controller_of(&*set).filter(|owner| owner.kind == "Deployment") {
                None => Ok(Some(scaled(reference, set.spec.as_ref().and_then(|spec| spec.replicas)))),
                Some(owner) => {
                    let key = Key::new(key.namespace(), &owner.name);
                    let found = get::<Deployment>(context, owner, &key)?;
                    Ok(found.map(|found| scaled(owner, found.spec.as_ref().and_then(|spec| spec.replicas))))
                }
            }
        }
        _ => Ok(None),
    }
}

fn get<K: Kind>(
    context: &Context<()>,
    reference: &OwnerReference,
    key: &Key,
) -> Result<Option<Arc<K>>, Failure> {
    Ok(context.get::<K>(key)?.filter(|found| found.meta().uid.as_ref() == Some(&reference.uid)))
}

fn scaled(reference: &OwnerReference, replicas: Option<i32>) -> Scaled {
    Scaled { uid: reference.uid.clone(), replicas: replicas.unwrap_or(1) }
}

/// Any other controller, by its `scale`. Live, since kinds that are not known beforehand have no cache.
async fn by_subresource(
    context: &Context<()>,
    reference: &OwnerReference,
    key: &Key,
) -> Result<Option<Scaled>, Problem> {
    let OwnerReference { api_version, kind, name, uid, .. } = reference;
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let client = context.client();
    let wanted = GroupVersionKind::gvk(group, version, kind);
    let (resource, served) = match kube::discovery::pinned_kind(&client, &wanted).await {
        Ok(found) => found,
        Err(kube::Error::Api(status)) if status.code != 404 => {
            return Err(Problem::Kube(kube::Error::Api(status)));
        }
        Err(kube::Error::Discovery(_) | kube::Error::Api(_)) => {
            let (kind, api_version) = (kind.clone(), api_version.clone());
            return Err(Problem::UnknownKind { kind, api_version });
        }
        Err(error) => return Err(Problem::Kube(error)),
    };
    let has_scale = served.subresources.iter().any(|(sub, _)| sub.plural == "scale");
    if !has_scale {
        let plural = &resource.plural;
        let name = if group.is_empty() { plural.clone() } else { format!("{plural}.{group}") };
        return Err(Problem::NoScale(name));
    }
    let objects: Api<DynamicObject> =
        Api::namespaced_with(client, key.namespace().unwrap_or_default(), &resource);
    match objects.get_scale(name).await {
        Ok(scale) if scale.metadata.uid.as_ref() == Some(uid) => {
            Ok(Some(scaled(reference, scale.spec.and_then(|spec| spec.replicas).or(Some(0)))))
        }
        Ok(_) => Ok(None),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(Problem::Kube(error)),
    }
}
