//! The JSON patch between an object before and after a function has changed it.

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

/// The patch that changes `object` as `change` changes it as a `K`. Fields that `K` does not have, or
/// serializes differently, stay as they are.
pub(super) fn between<K: Serialize + DeserializeOwned>(
    object: &Value,
    change: impl FnOnce(&mut K),
) -> Result<json_patch::Patch, serde_json::Error> {
    let mut typed: K = K::deserialize(object)?;
    let before = serde_json::to_value(&typed)?;
    change(&mut typed);
    let after = serde_json::to_value(&typed)?;
    let mut target = object.clone();
    carry_over(&mut target, &before, after);
    Ok(json_patch::diff(object, &target))
}

/// Makes the changes from `before` to `after` in `target`.
fn carry_over(target: &mut Value, before: &Value, after: Value) {
    if *before == after {
        return;
    }
    match (target, before, after) {
        (Value::Object(target), Value::Object(before), Value::Object(after)) => {
            target.retain(|name, _| after.contains_key(name) || !before.contains_key(name));
            for (name, after) in after {
                let before = before.get(&name).unwrap_or(&Value::Null);
                if *before != after {
                    carry_over(target.entry(name).or_insert(Value::Null), before, after);
                }
            }
        }
        (Value::Array(target), Value::Array(before), Value::Array(after))
            if target.len() == before.len() && before.len() == after.len() =>
        {
            let pairs = before.iter().zip(after);
            target
                .iter_mut()
                .zip(pairs)
                .for_each(|(target, (before, after))| carry_over(target, before, after));
        }
        // If the object does not have the field, this includes the defaults of the type.
        (target, _, after) => *target = after,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::json;
    use std::collections::BTreeMap;

    #[derive(Debug, Default, Serialize, Deserialize)]
    struct Thing {
        #[serde(default)]
        spec: Spec,
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        labels: BTreeMap<String, String>,
    }

    #[derive(Debug, Default, Serialize, Deserialize)]
    struct Spec {
        #[serde(default)]
        size: u32,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        parts: Vec<Part>,
    }

    #[derive(Debug, Default, Serialize, Deserialize)]
    struct Part {
        name: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        weight: Option<u32>,
    }

    fn fill_in(thing: &mut Thing) {
        if thing.spec.size == 0 {
            thing.spec.size = 5;
        }
        thing.spec.parts.iter_mut().for_each(|part| _ = part.weight.get_or_insert(1));
        thing.labels.remove("old");
    }

    #[test]
    fn patches_contain_only_what_was_changed() {
        for (object, expected) in [
            (json!({}), json!({"spec": {"size": 5}})),
            (json!({"spec": {"size": 0}}), json!({"spec": {"size": 5}})),
            (json!({"spec": {"size": 7, "colour": "red"}}), json!({"spec": {"size": 7, "colour": "red"}})),
            (
                json!({"spec": {"colour": "red"}, "more": 1}),
                json!({"spec": {"colour": "red", "size": 5}, "more": 1}),
            ),
            (
                json!({"spec": {"size": 1, "parts": [{"name": "a", "x": 1}, {"name": "b", "weight": 2}]}}),
                json!({"spec": {"size": 1, "parts": [{"name": "a", "x": 1, "weight": 1}, {"name": "b", "weight": 2}]}}),
            ),
            (
                json!({"spec": {"size": 1}, "labels": {"old": "1", "a/b": "2"}}),
                json!({"spec": {"size": 1}, "labels": {"a/b": "2"}}),
            ),
            (json!({"spec": {"size": 1}, "labels": {"old": "1"}}), json!({"spec": {"size": 1}})),
        ] {
            let patch = between(&object, fill_in).unwrap();
            let mut patched = object.clone();
            json_patch::patch(&mut patched, &patch).unwrap();
            assert_eq!(patched, expected, "{object}");
            assert!(between(&patched, fill_in).unwrap().0.is_empty(), "the second time changes nothing");
        }
        assert!(between(&json!({"spec": 1}), fill_in).is_err());
    }
}
