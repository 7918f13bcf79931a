//! The metadata of objects and lists, typed, in the order and with the omissions of the real server.

mod check;
mod text;

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use crate::time::Time;

pub use check::{
    MAX_FIELD_MANAGER_BYTES, Scope, check_any_update, check_create, check_kube_finalizers, check_update,
    field_manager,
};
pub use text::Text;

/// The finalizer of a delete that leaves dependents behind.
pub const FINALIZER_ORPHAN: &str = "orphan";
/// The finalizer of a delete that waits for dependents.
pub const FINALIZER_FOREGROUND: &str = "foregroundDeletion";

/// Kubernetes' `ObjectMeta`, as far as it is checked, borrowed from the object. A `null` reads as empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectMeta<'a> {
    #[serde(borrow)]
    pub name: Text<'a>,
    #[serde(borrow)]
    pub generate_name: Text<'a>,
    #[serde(borrow)]
    pub namespace: Text<'a>,
    #[serde(borrow)]
    pub self_link: Text<'a>,
    #[serde(borrow)]
    pub uid: Text<'a>,
    #[serde(borrow)]
    pub resource_version: Text<'a>,
    #[serde(deserialize_with = "nullable")]
    pub generation: i64,
    pub creation_timestamp: Time,
    pub deletion_timestamp: Option<Time>,
    pub deletion_grace_period_seconds: Option<i64>,
    #[serde(borrow, deserialize_with = "nullable")]
    pub labels: BTreeMap<Text<'a>, Text<'a>>,
    #[serde(borrow, deserialize_with = "nullable")]
    pub annotations: BTreeMap<Text<'a>, Text<'a>>,
    #[serde(borrow, deserialize_with = "nullable")]
    pub owner_references: Vec<OwnerReference<'a>>,
    #[serde(borrow, deserialize_with = "nullable")]
    pub finalizers: Vec<Text<'a>>,
    #[serde(borrow, deserialize_with = "nullable")]
    pub managed_fields: Vec<ManagedFieldsEntry<'a>>,
}

/// An object that this one belongs to: in the same namespace, or in none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OwnerReference<'a> {
    #[serde(borrow)]
    pub api_version: Text<'a>,
    #[serde(borrow)]
    pub kind: Text<'a>,
    #[serde(borrow)]
    pub name: Text<'a>,
    #[serde(borrow)]
    pub uid: Text<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_owner_deletion: Option<bool>,
}

/// Who set which fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ManagedFieldsEntry<'a> {
    #[serde(borrow)]
    pub manager: Text<'a>,
    /// `Apply` or `Update`; whatever else it is must survive until it is rejected.
    #[serde(borrow)]
    pub operation: Text<'a>,
    #[serde(borrow)]
    pub api_version: Text<'a>,
    #[serde(borrow)]
    pub fields_type: Text<'a>,
    #[serde(borrow)]
    pub subresource: Text<'a>,
}

/// Kubernetes' `ListMeta`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListMeta {
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    #[serde(rename = "continue", deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub continue_token: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remaining_item_count: Option<i64>,
}

impl ObjectMeta<'_> {
    pub fn is_deleting(&self) -> bool {
        self.deletion_timestamp.is_some()
    }
}

/// Go reads `null` as the empty value.
fn nullable<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn metadata_is_read_without_copying() {
        let written = json!({
            "name": "web", "generation": 2, "creationTimestamp": "2026-11-15T09:30:00Z", "labels": {"a": "b"},
            "deletionTimestamp": "2026-11-15T09:31:00Z", "deletionGracePeriodSeconds": 0, "finalizers": ["orphan"],
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "1"}],
            "managedFields": [{"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:data": {}}}],
        });
        let meta = ObjectMeta::deserialize(&written).unwrap();
        assert!(std::ptr::eq(&*meta.name, written["name"].as_str().unwrap()));
        assert!(meta.is_deleting() && meta.generation == 2 && meta.deletion_grace_period_seconds == Some(0));
        assert_eq!(meta.labels, [(Text::from("a"), Text::from("b"))].into());
        assert_eq!(meta.finalizers, [Text::from("orphan")]);
        assert_eq!((&*meta.owner_references[0].uid, &*meta.managed_fields[0].manager), ("1", "kubectl"));
    }

    #[test]
    fn empty_text_and_none_are_told_apart_where_go_does() {
        assert_eq!(serde_json::to_string(&ListMeta::default()).unwrap(), "{}");
        assert_eq!(
            serde_json::to_string(&OwnerReference::default()).unwrap(),
            r#"{"apiVersion":"","kind":"","name":"","uid":""}"#
        );
    }

    #[test]
    fn null_reads_as_empty() {
        let nulls = json!({
            "name": null, "generation": null, "creationTimestamp": null, "deletionTimestamp": null, "labels": null,
            "ownerReferences": null, "finalizers": null, "managedFields": null, "unknown": 1,
        });
        assert_eq!(ObjectMeta::deserialize(&nulls).unwrap(), ObjectMeta::default());
        assert!(ObjectMeta::deserialize(&json!({"name": 1})).is_err());
    }
}
