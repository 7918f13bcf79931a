//! The objects of a new cluster: made once, on a store that has none of them.

use crate::{Inner, convert, fair, served::Served, stored::at_rest};
use api::{object, time::Time};
use bytes::Bytes;
use schema::managed_fields::{self, Target, Unconvertible};
use serde_json::Value;
use store::Batch;

/// Kubernetes: who the server says it is.
const MANAGER: &str = "kube-apiserver";

/// Makes what a new cluster has; `false` where there is one already, in which what was changed or removed stays so.
pub(crate) async fn bootstrap(inner: &Inner) -> Result<bool, store::Error> {
    let marker =
        inner.registry.find("", "v1", "namespaces").map(|namespaces| namespaces.key("", "kube-system"));
    let Some(marker) = marker else { return Ok(false) };
    if inner.store.get(marker.clone().into(), None).await?.entry.is_some() {
        return Ok(false);
    }
    let mut objects: Vec<_> = kinds::bootstrap().filter_map(|(path, json)| make(inner, path, json)).collect();
    // The marker comes last: where it stands, everything before it does.
    objects.sort_by_key(|(key, _)| *key == marker);
    for some in objects.chunks(store::MAX_BATCH_WRITES) {
        let batch =
            some.iter().fold(Batch::new(), |batch, (key, json)| batch.create(key.clone(), json.clone()));
        match inner.store.commit(batch).await {
            // An earlier start was cut short, or another process is as fast.
            Err(store::Error::Conflict(_)) => make_missing(inner, some).await?,
            made => drop(made?),
        }
    }
    Ok(true)
}

async fn make_missing(inner: &Inner, objects: &[(String, Bytes)]) -> Result<(), store::Error> {
    for (key, json) in objects {
        match inner.store.commit(Batch::new().create(key.clone(), json.clone())).await {
            Ok(_) | Err(store::Error::Conflict(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Says that the server made an object.
fn own(served: &Served, value: &mut Value, now: &str) {
    let version = served.api_version();
    let target = Target {
        types: served.types(),
        of: served.of(),
        version: &version,
        subresource: "",
        filters: &[(version.as_str(), served.strategy().reset_fields(""))],
        convert: &|_, _| Err(Unconvertible::NoSuchVersion),
    };
    served.normalize(value);
    let manager = match &*served.resource.group {
        "flowcontrol.apiserver.k8s.io" => fair::MANAGER,
        _ => MANAGER,
    };
    managed_fields::create(&target, value, manager, now);
}

/// One of them: where it is kept, and how.
pub(crate) fn make(inner: &Inner, path: &str, json: &str) -> Option<(String, Bytes)> {
    let mut value: Value = serde_json::from_str(json).ok()?;
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let (group, version, resource) = match parts[..] {
        ["api", version, resource] => ("", version, resource),
        ["apis", group, version, resource] => (group, version, resource),
        _ => return None,
    };
    let served = inner.registry.find(group, version, resource)?;
    served.default(&mut value);
    let now = Time::from(inner.world.wall());
    if value["metadata"].get("managedFields").is_none() {
        own(served, &mut value, &now.to_string());
    }
    object::set_uid(&mut value, &inner.world.uid());
    object::set_creation_timestamp(&mut value, Some(now));
    let with = kinds::strategy::Circumstances { now, user: &|| Value::Null };
    served.strategy().prepare_create(&mut value, &with);
    let key = served.key(object::namespace(&value), object::name(&value));
    Some((key, at_rest(served, &mut convert::built_in_as_stored(served, value))))
}
