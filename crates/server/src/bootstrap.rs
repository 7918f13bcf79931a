//! Creates the bootstrap objects of a new cluster.
//!
//! They are the same in every cluster except for UIDs and times, so `ready.txt` holds their stored form,
//! and a start has nothing to decode, default or encode. A test compares that file with `kinds`.

use crate::{Inner, convert, registry::Registry, served::Served, stored::at_rest, write};
use api::{object, time::Time};
use bytes::Bytes;
use schema::managed_fields::{self, Target, Unconvertible};
use serde_json::Value;
use store::Batch;

/// A key and the stored bytes on each line.
static READY: &str = include_str!("bootstrap/ready.txt");
/// Placeholders for what differs.
const UID: &str = "00000000-0000-4000-8000-000000000000";
const TIME: &str = "2000-01-01T00:00:00Z";

/// Kubernetes: the field manager of the server.
const MANAGER: &str = "kube-apiserver";
/// The field manager of FlowSchemas and PriorityLevelConfigurations.
pub(crate) const FLOW_CONTROL_MANAGER: &str = "api-priority-and-fairness-config-producer-v1";

/// Creates the objects of a new cluster; `false` where it exists already: changed or deleted objects stay
/// so.
pub(crate) async fn bootstrap(inner: &Inner) -> Result<bool, store::Error> {
    let marker =
        inner.registry.find("", "v1", "namespaces").map(|namespaces| namespaces.key("", "kube-system"));
    let Some(marker) = marker else { return Ok(false) };
    if inner.store.get(marker.clone().into(), None).await?.entry.is_some() {
        return Ok(false);
    }
    let mut objects: Vec<_> = ready(inner).collect();
    // The marker is created last: where it exists, all others were created.
    objects.sort_by_key(|(key, _)| *key == marker);
    for some in objects.chunks(store::MAX_BATCH_WRITES) {
        let batch =
            some.iter().fold(Batch::new(), |batch, (key, json)| batch.create(key.clone(), json.clone()));
        // An earlier start may have been interrupted, or another server may start at the same time.
        if !write::commit(inner, batch).await? {
            create_missing(inner, some).await?;
        }
    }
    Ok(true)
}

fn ready(inner: &Inner) -> impl Iterator<Item = (String, Bytes)> {
    let now = Time::from(inner.world.wall()).to_string();
    READY.lines().filter_map(|line| line.split_once(' ')).map(move |(key, json)| {
        let json = json.replace(UID, &inner.world.uid()).replace(TIME, &now);
        (key.to_owned(), json.into())
    })
}

async fn create_missing(inner: &Inner, objects: &[(String, Bytes)]) -> Result<(), store::Error> {
    for (key, json) in objects {
        write::commit(inner, Batch::new().create(key.clone(), json.clone())).await?;
    }
    Ok(())
}

/// Sets the managedFields of an object created by the server.
fn set_managed_fields(served: &Served, value: &mut Value, now: &str) {
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
        "flowcontrol.apiserver.k8s.io" => FLOW_CONTROL_MANAGER,
        _ => MANAGER,
    };
    managed_fields::create(&target, value, manager, now);
}

/// The key and stored bytes of one bootstrap object.
pub(crate) fn make(inner: &Inner, path: &str, json: &str) -> Option<(String, Bytes)> {
    encode(&inner.registry, path, json, &inner.world.uid(), Time::from(inner.world.wall()))
}

fn encode(registry: &Registry, path: &str, json: &str, uid: &str, now: Time) -> Option<(String, Bytes)> {
    let mut value: Value = serde_json::from_str(json).ok()?;
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let (group, version, resource) = match parts[..] {
        ["api", version, resource] => ("", version, resource),
        ["apis", group, version, resource] => (group, version, resource),
        _ => return None,
    };
    let served = registry.find(group, version, resource)?;
    served.default(&mut value);
    if value["metadata"].get("managedFields").is_none() {
        set_managed_fields(served, &mut value, &now.to_string());
    }
    object::set_uid(&mut value, uid);
    object::set_creation_timestamp(&mut value, Some(now));
    let with = kinds::strategy::Circumstances { now, user: &|| Value::Null };
    served.strategy().prepare_create(&mut value, &with);
    let key = served.key(object::namespace(&value), object::name(&value));
    Some((key, at_rest(served, &mut convert::built_in_as_stored(served, value))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `SETPOINT_WRITE=1 cargo test -p server ready` rewrites it.
    #[test]
    fn ready_txt_equals_the_objects_of_kinds() {
        let registry = Registry::built_in();
        let now: Time = TIME.parse().unwrap();
        let lines = kinds::bootstrap().map(|(path, json)| {
            let (key, bytes) = encode(&registry, path, json, UID, now).unwrap();
            format!("{key} {}\n", str::from_utf8(&bytes).unwrap())
        });
        let made: String = lines.collect();
        if std::env::var_os("SETPOINT_WRITE").is_some() {
            std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/src/bootstrap/ready.txt"), &made).unwrap();
            return;
        }
        let differs = made.lines().zip(READY.lines()).find(|(made, ready)| made != ready);
        assert_eq!(differs, None);
        assert_eq!(made.len(), READY.len());
    }
}
