//! Merge patches (RFC 7386): members of the patch replace those of the document, null deletes, objects are
//! merged.

use serde_json::{Map, Value};

use super::{PatchError, is_too_deep};

/// Applies the patch to the document.
///
/// Like kube-apiserver, and unlike the RFC, nulls in objects inside lists of the patch are dropped.
pub fn apply(document: Value, patch: Value) -> Result<Value, PatchError> {
    let bad_patch = || PatchError::Malformed("Invalid JSON Patch".into());
    if is_too_deep(&patch) {
        return Err(PatchError::too_deep());
    }
    match (document, patch) {
        (Value::Null, _) => Err(PatchError::Unexpected("Invalid JSON Document".into())),
        (_, Value::Null) => Err(bad_patch()),
        (Value::Object(mut document), Value::Object(patch)) => {
            merge(&mut document, patch);
            Ok(Value::Object(document))
        }
        (_, mut patch @ (Value::Object(_) | Value::Array(_))) => {
            prune(&mut patch);
            Ok(patch)
        }
        _ => Err(bad_patch()),
    }
}

/// Rejects a patch that is not an object, as the server does before it patches unless field validation is
/// off.
pub fn check(patch: &Value) -> Result<(), PatchError> {
    match patch {
        Value::Object(_) | Value::Null => Ok(()),
        other => Err(PatchError::Malformed(format!(
            "error decoding patch: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            api::go::json_kind(other)
        ))),
    }
}

fn merge(document: &mut Map<String, Value>, patch: Map<String, Value>) {
    for (name, mut change) in patch {
        if change.is_null() {
            document.remove(&name);
            continue;
        }
        match (document.get_mut(&name), change) {
            (Some(Value::Object(current)), Value::Object(change)) => merge(current, change),
            // Kubernetes: a value that replaces an object is taken with its nulls.
            (Some(current @ Value::Object(_)), replacement) => *current = replacement,
            (_, unchanged) => {
                change = unchanged;
                prune(&mut change);
                document.insert(name, change);
            }
        }
    }
}

/// Drops nulls from objects at any depth. A null item of a list stays.
fn prune(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(prune);
        }
        Value::Array(items) => items.iter_mut().for_each(prune),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patch::samples;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn patches_merge_as_on_kube_apiserver() {
        for (document, patch, expected) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
            (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
            (json!({"a": null}), json!({"a": {"b": null}}), json!({"a": {}})),
            (json!({"a": [1]}), json!({"a": [{"b": null, "c": [null]}]}), json!({"a": [{"c": [null]}]})),
            (json!({"a": {}}), json!({"a": [{"b": null}]}), json!({"a": [{"b": null}]})),
            (json!({"a": 1}), json!([{"b": null}, null]), json!([{}, null])),
        ] {
            assert_eq!(apply(document.clone(), patch.clone()), Ok(expected), "{document} and {patch}");
        }
    }

    #[test]
    fn malformed_merge_patches_are_rejected() {
        for (document, patch, expected) in [
            (json!({}), json!(null), PatchError::Malformed("Invalid JSON Patch".into())),
            (json!({}), json!("x"), PatchError::Malformed("Invalid JSON Patch".into())),
            (json!(null), json!({}), PatchError::Unexpected("Invalid JSON Document".into())),
        ] {
            assert_eq!(apply(document, patch), Err(expected));
        }
        let text = "error decoding patch: json: cannot unmarshal array \
                    into Go value of type map[string]interface {}";
        assert_eq!(check(&json!([])), Err(PatchError::Malformed(text.into())));
        assert_eq!(check(&json!(null)), Ok(()));
    }

    proptest! {
        #[test]
        fn a_merge_patch_changes_only_its_own_members(
            document in samples::object(), patch in samples::object(),
        ) {
            let merged = apply(document.clone(), patch.clone()).unwrap();
            for (name, value) in document.as_object().unwrap() {
                prop_assert!(patch.get(name).is_some() || merged.get(name) == Some(value));
            }
            for (name, value) in patch.as_object().unwrap() {
                prop_assert_eq!(merged.get(name).is_none(), value.is_null());
                let is_plain = !value.is_object() && !value.is_array() && !value.is_null();
                prop_assert!(!is_plain || merged.get(name) == Some(value));
            }
        }

        #[test]
        fn an_empty_merge_patch_changes_nothing(document in samples::object()) {
            prop_assert_eq!(apply(document.clone(), json!({})), Ok(document));
        }
    }
}
