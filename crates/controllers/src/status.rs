//! Replaces the status of an object, if it differs.

use kube::{Api, Resource, ResourceExt, api::PostParams};
use operator::Failure;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::fmt::Debug;

/// What became of a status.
#[derive(Debug)]
pub(crate) enum Written<K> {
    /// It is as it was: nothing was sent.
    Unchanged,
    /// The object after the write.
    Changed(K),
    /// The object was deleted meanwhile: there is no status to write.
    Gone,
}

/// Replaces the status; a conflict if the object has changed since it was read. Returns whether it was written.
pub(crate) async fn replace<K, S>(api: &Api<K>, object: &K, status: &S) -> Result<bool, Failure>
where
    K: Resource + Clone + Debug + Serialize + DeserializeOwned,
    S: Serialize,
{
    Ok(matches!(write(api, object, status).await?, Written::Changed(_)))
}

/// [`replace`] for those who write again: returns the object after the write.
///
/// Kubernetes: the roles of its controllers allow `update` of a status, not `patch`.
pub(crate) async fn write<K, S>(api: &Api<K>, object: &K, status: &S) -> Result<Written<K>, Failure>
where
    K: Resource + Clone + Debug + Serialize + DeserializeOwned,
    S: Serialize,
{
    let mut object_json = serde_json::to_value(object)?;
    let status = serde_json::to_value(status)?;
    let before = object_json.get_mut("status").map_or(Value::Null, Value::take);
    if before == status || (before.is_null() && status == json!({})) {
        return Ok(Written::Unchanged);
    }
    object_json["status"] = status;
    let object: K = serde_json::from_value(object_json)?;
    match api.replace_status(&object.name_any(), &PostParams::default(), &object).await {
        Ok(object) => Ok(Written::Changed(object)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Written::Gone),
        Err(error) => Err(error.into()),
    }
}
