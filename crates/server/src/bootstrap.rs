//! The objects of a new cluster: made once, on a store that has none of them.

use crate::{Inner, stored::at_rest};
use api::{object, time::Time};
use serde_json::Value;
use store::Batch;

/// Makes what is missing. What an administrator has changed or removed since stays so.
pub(crate) async fn bootstrap(inner: &Inner) -> Result<(), store::Error> {
    let marker =
        inner.registry.find("", "v1", "namespaces").map(|namespaces| namespaces.key("", "kube-system"));
    let Some(marker) = marker else { return Ok(()) };
    if inner.store.get(marker.into(), None).await?.entry.is_some() {
        return Ok(());
    }
    let mut batch = Batch::new();
    for (path, json) in kinds::bootstrap() {
        let Some((key, bytes)) = make(inner, path, json) else { continue };
        batch = batch.create(key, bytes);
        if batch.writes().len() == store::MAX_BATCH_WRITES || batch.size() > store::MAX_BATCH_BYTES / 2 {
            commit(inner, std::mem::take(&mut batch)).await?;
        }
    }
    commit(inner, batch).await
}

/// Another process on the same store may be as fast: what it has made is as good.
async fn commit(inner: &Inner, batch: Batch) -> Result<(), store::Error> {
    match inner.store.commit(batch).await {
        Ok(_) | Err(store::Error::Conflict(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

fn make(inner: &Inner, path: &str, json: &str) -> Option<(String, bytes::Bytes)> {
    let mut value: Value = serde_json::from_str(json).ok()?;
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let (group, version, resource) = match parts[..] {
        ["api", version, resource] => ("", version, resource),
        ["apis", group, version, resource] => (group, version, resource),
        _ => return None,
    };
    let served = inner.registry.find(group, version, resource)?;
    kinds::defaults::default(group, version, served.resource.kind, &mut value);
    let now = Time::from(inner.world.wall());
    object::set_uid(&mut value, &inner.world.uid());
    object::set_creation_timestamp(&mut value, Some(now));
    let with = kinds::strategy::Circumstances { now, user: &Value::Null };
    kinds::strategy::strategy(group, resource).prepare_create(&mut value, &with);
    let key = served.key(object::namespace(&value), object::name(&value));
    let of = served.stored.map_or(served.of, |stored| stored.of);
    Some((key, at_rest(inner.registry.types, of, &served.as_stored(value))))
}
