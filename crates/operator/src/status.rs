//! Writes the status of an object as the smallest patch, or not at all if it is unchanged.

use crate::retry;
use kube::{
    Api, Resource, ResourceExt,
    api::{Patch, PatchParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};
use std::fmt::Debug;

/// Writes the status of the object if it differs from the present one.
///
/// Only the difference is sent, so that fields of other controllers stay that this type does not have. Returns
/// the object after the write, or `None` if nothing had to be written or the object is deleted.
///
/// ```
/// use k8s_openapi::api::core::v1::Namespace;
/// use kube::Api;
/// use operator::status;
/// use serde_json::json;
///
/// testkit::run(|cluster| async move {
///     let namespaces: Api<Namespace> = Api::all(cluster.client());
///     let default = namespaces.get("default").await.unwrap();
///     let wanted = json!({"phase": "Active", "conditions": [{"type": "Seen", "status": "True"}]});
///     let written = status::set(&namespaces, &default, &wanted).await.unwrap().expect("it was another one");
///     assert!(status::set(&namespaces, &written, &wanted).await.unwrap().is_none());
/// });
/// ```
pub async fn set<K, S>(api: &Api<K>, object: &K, status: &S) -> Result<Option<K>, kube::Error>
where
    K: Resource + Clone + Debug + Serialize + DeserializeOwned,
    S: Serialize,
{
    write(api, object, status, false).await
}

/// [`set`], but a conflict if the object has changed since it was read.
pub async fn set_if_unchanged<K, S>(api: &Api<K>, object: &K, status: &S) -> Result<Option<K>, kube::Error>
where
    K: Resource + Clone + Debug + Serialize + DeserializeOwned,
    S: Serialize,
{
    write(api, object, status, true).await
}

/// Whether a status with this `observedGeneration` is for the current spec.
pub fn is_current(object: &impl Resource, observed_generation: Option<i64>) -> bool {
    observed_generation >= object.meta().generation
}

/// The JSON merge patch from one value to the other; `None` if they are equal.
pub fn difference(before: &Value, after: &Value) -> Option<Value> {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            let fields = fields(before, after);
            (!fields.is_empty()).then_some(Value::Object(fields))
        }
        _ => (before != after).then(|| after.clone()),
    }
}

fn fields(before: &Map<String, Value>, after: &Map<String, Value>) -> Map<String, Value> {
    // In a merge patch, an absent field equals null.
    let gone =
        before.iter().filter(|(name, value)| !value.is_null() && after.get(*name).is_none_or(Value::is_null));
    let gone = gone.map(|(name, _)| (name.clone(), Value::Null));
    let kept = after.iter().filter(|(_, value)| !value.is_null()).filter_map(|(name, value)| {
        let change = match before.get(name) {
            Some(present) => difference(present, value),
            None => Some(value.clone()),
        };
        change.map(|change| (name.clone(), change))
    });
    gone.chain(kept).collect()
}

async fn write<K, S>(
    api: &Api<K>,
    object: &K,
    status: &S,
    is_optimistic: bool,
) -> Result<Option<K>, kube::Error>
where
    K: Resource + Clone + Debug + Serialize + DeserializeOwned,
    S: Serialize,
{
    let mut before = serde_json::to_value(object).map_err(kube::Error::SerdeError)?;
    let before = before.get_mut("status").map(Value::take).filter(|status| !status.is_null());
    let after = serde_json::to_value(status).map_err(kube::Error::SerdeError)?;
    let Some(change) = difference(&before.unwrap_or_else(|| json!({})), &after) else { return Ok(None) };
    let (name, patch) = (object.name_any(), Patch::Merge(patch(object, change, is_optimistic)));
    match api.patch_status(&name, &PatchParams::default(), &patch).await {
        Ok(object) => Ok(Some(object)),
        Err(error) if retry::is_missing(&error) => Ok(None),
        // Perhaps only the UID differs: then this object is deleted.
        Err(error) if retry::is_invalid(&error) => {
            let live = api.get_opt(&name).await?;
            if live.is_some_and(|live| live.uid() == object.uid()) { Err(error) } else { Ok(None) }
        }
        Err(error) => Err(error),
    }
}

/// With the UID, so that another object of the same name is not changed.
fn patch(object: &impl Resource, change: Value, is_optimistic: bool) -> Value {
    let meta = object.meta();
    let mut patch = json!({ "status": change });
    if let Some(uid) = &meta.uid {
        patch["metadata"]["uid"] = json!(uid);
    }
    if let Some(version) = meta.resource_version.as_ref().filter(|_| is_optimistic) {
        patch["metadata"]["resourceVersion"] = json!(version);
    }
    patch
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::ConfigMap;

    #[test]
    fn patches_contain_only_the_difference() {
        let cases = [
            (json!({}), json!({}), json!(null)),
            (json!({"a": 1, "b": 2}), json!({"a": 1, "b": 2}), json!(null)),
            (json!({"a": 1, "b": 2}), json!({"a": 1, "b": 3}), json!({"b": 3})),
            (json!({"a": 1, "b": 2}), json!({"a": 1}), json!({"b": null})),
            (json!({"a": 1, "b": 2}), json!({"a": 1, "b": null}), json!({"b": null})),
            (json!({"a": null}), json!({}), json!(null)),
            (json!({}), json!({"a": null}), json!(null)),
            (
                json!({"a": {"b": {"c": 1, "d": 2}}}),
                json!({"a": {"b": {"c": 3, "d": 2}}}),
                json!({"a": {"b": {"c": 3}}}),
            ),
            (json!({"a": [1, 2]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!({"a": {"b": 1}}), json!({"a": "text"}), json!({"a": "text"})),
            (json!({"a": 1}), json!({"a": {"b": 1}}), json!({"a": {"b": 1}})),
        ];
        for (before, after, expected) in cases {
            let patch = difference(&before, &after).unwrap_or(Value::Null);
            assert_eq!(patch, expected, "{before} -> {after}");
        }
    }

    #[test]
    fn patches_have_the_uid_and_may_have_the_resource_version() {
        let mut object = ConfigMap::default();
        object.metadata.uid = Some("u".into());
        object.metadata.resource_version = Some("7".into());
        let loose = json!({ "metadata": { "uid": "u" }, "status": 1 });
        let tight = json!({ "metadata": { "uid": "u", "resourceVersion": "7" }, "status": 1 });
        assert_eq!(patch(&object, json!(1), false), loose);
        assert_eq!(patch(&object, json!(1), true), tight);
        assert!(is_current(&object, None));
        object.metadata.generation = Some(2);
        assert!(!is_current(&object, Some(1)) && is_current(&object, Some(2)));
    }
}
