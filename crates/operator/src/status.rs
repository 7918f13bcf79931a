//! An object and the status it should have in, the smallest patch that says so out, or nothing.

use crate::retry;
use kube::{
    Api, Resource, ResourceExt,
    api::{Patch, PatchParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};
use std::fmt::Debug;

/// Writes the whole status of the object if it differs from the one the object has.
///
/// Only what differs is sent, so that another controller's fields, unknown to this type, stay.
/// Answers with the object as it is now, or with nothing if nothing had to be written or the object
/// is gone.
pub async fn set<K, S>(api: &Api<K>, object: &K, status: &S) -> Result<Option<K>, kube::Error>
where
    K: Resource + Clone + Debug + Serialize + DeserializeOwned,
    S: Serialize,
{
    write(api, object, status, false).await
}

/// [`set`], refused as a conflict if the object is no longer the one that was read.
pub async fn set_if_unchanged<K, S>(api: &Api<K>, object: &K, status: &S) -> Result<Option<K>, kube::Error>
where
    K: Resource + Clone + Debug + Serialize + DeserializeOwned,
    S: Serialize,
{
    write(api, object, status, true).await
}

/// Whether a status with this `observedGeneration` speaks of the object's spec as it is now.
pub fn is_current(object: &impl Resource, observed_generation: Option<i64>) -> bool {
    observed_generation >= object.meta().generation
}

/// The JSON merge patch that turns one value into the other; nothing if they are equal.
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
    // To a merge patch, an absent field and one that is null are the same.
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

async fn write<K, S>(api: &Api<K>, object: &K, status: &S, is_guarded: bool) -> Result<Option<K>, kube::Error>
where
    K: Resource + Clone + Debug + Serialize + DeserializeOwned,
    S: Serialize,
{
    let mut before = serde_json::to_value(object).map_err(kube::Error::SerdeError)?;
    let before = before.get_mut("status").map(Value::take).filter(|status| !status.is_null());
    let after = serde_json::to_value(status).map_err(kube::Error::SerdeError)?;
    let Some(change) = difference(&before.unwrap_or_else(|| json!({})), &after) else { return Ok(None) };
    let (name, patch) = (object.name_any(), Patch::Merge(patch(object, change, is_guarded)));
    match api.patch_status(&name, &PatchParams::default(), &patch).await {
        Ok(object) => Ok(Some(object)),
        Err(error) if retry::is_missing(&error) => Ok(None),
        // Perhaps only the UID was wrong: then this object is gone, too.
        Err(error) if retry::is_invalid(&error) => {
            let live = api.get_opt(&name).await?;
            if live.is_some_and(|live| live.uid() == object.uid()) { Err(error) } else { Ok(None) }
        }
        Err(error) => Err(error),
    }
}

/// The UID keeps the patch from a namesake that came after the object was read.
fn patch(object: &impl Resource, change: Value, is_guarded: bool) -> Value {
    let meta = object.meta();
    let mut patch = json!({ "status": change });
    if let Some(uid) = &meta.uid {
        patch["metadata"]["uid"] = json!(uid);
    }
    if let Some(version) = meta.resource_version.as_ref().filter(|_| is_guarded) {
        patch["metadata"]["resourceVersion"] = json!(version);
    }
    patch
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::ConfigMap;

    #[test]
    fn a_patch_says_only_what_differs() {
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
    fn a_patch_is_for_one_object_and_may_be_for_one_version() {
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
