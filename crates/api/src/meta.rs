//! The metadata of objects and lists, typed, in the order and with the omissions of the real server.

mod check;

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::kind::GroupVersionKind;
use crate::time::Time;

pub use check::{
    MAX_FIELD_MANAGER_BYTES, Scope, check_any_update, check_create, check_kube_finalizers, check_update,
    field_manager,
};

/// The finalizer of a delete that leaves dependents behind.
pub const FINALIZER_ORPHAN: &str = "orphan";
/// The finalizer of a delete that waits for dependents.
pub const FINALIZER_FOREGROUND: &str = "foregroundDeletion";

/// Kubernetes' `ObjectMeta`. What is empty is not written, and a `null` reads as empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectMeta {
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub generate_name: String,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub self_link: String,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub uid: String,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_zero")]
    pub generation: i64,
    #[serde(skip_serializing_if = "Time::is_zero")]
    pub creation_timestamp: Time,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_grace_period_seconds: Option<i64>,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub owner_references: Vec<OwnerReference>,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub managed_fields: Vec<ManagedFieldsEntry>,
}

/// An object that this one belongs to: in the same namespace, or in none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OwnerReference {
    #[serde(deserialize_with = "nullable")]
    pub api_version: String,
    #[serde(deserialize_with = "nullable")]
    pub kind: String,
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    #[serde(deserialize_with = "nullable")]
    pub uid: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_owner_deletion: Option<bool>,
}

/// Who set which fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ManagedFieldsEntry {
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub manager: String,
    /// `Apply` or `Update`; whatever else it is must survive until it is rejected.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub operation: String,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Time>,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub fields_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fields_v1: Option<Value>,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub subresource: String,
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

impl ObjectMeta {
    /// The one owner that manages this object.
    pub fn controller(&self) -> Option<&OwnerReference> {
        self.owner_references.iter().find(|owner| owner.controller == Some(true))
    }

    pub fn is_controlled_by(&self, uid: &str) -> bool {
        self.controller().is_some_and(|owner| owner.uid == uid)
    }

    pub fn is_owned_by(&self, uid: &str) -> bool {
        self.owner_references.iter().any(|owner| owner.uid == uid)
    }

    pub fn is_deleting(&self) -> bool {
        self.deletion_timestamp.is_some()
    }
}

impl OwnerReference {
    /// A reference to the owner that manages an object; deleting the owner in the foreground waits for it.
    pub fn controller(kind: &GroupVersionKind, name: impl Into<String>, uid: impl Into<String>) -> Self {
        OwnerReference {
            api_version: kind.group_version().to_string(),
            kind: kind.kind.to_string(),
            name: name.into(),
            uid: uid.into(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        }
    }
}

/// Go reads `null` as the empty value.
fn nullable<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

fn is_zero(number: &i64) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn metadata_is_written_in_order_and_without_what_is_empty() {
        let written = r#"{"name":"web","generateName":"w-","namespace":"ns","uid":"u","resourceVersion":"7","generation":2,"creationTimestamp":"2026-11-15T09:30:00Z","deletionTimestamp":"2026-11-15T09:31:00Z","deletionGracePeriodSeconds":0,"labels":{"a":"b"},"annotations":{"c":"d"},"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"d","uid":"1","controller":true,"blockOwnerDeletion":true}],"finalizers":["orphan"],"managedFields":[{"manager":"kubectl","operation":"Update","apiVersion":"v1","time":"2026-11-15T09:30:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:data":{}},"subresource":"status"}]}"#;
        let meta: ObjectMeta = serde_json::from_str(written).unwrap();
        assert_eq!(serde_json::to_string(&meta).unwrap(), written);
        assert_eq!(serde_json::to_string(&ObjectMeta::default()).unwrap(), "{}");
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
        assert_eq!(serde_json::from_value::<ObjectMeta>(nulls).unwrap(), ObjectMeta::default());
    }

    #[test]
    fn one_owner_is_the_controller() {
        let kind = GroupVersionKind::new("apps", "v1", "ReplicaSet");
        let controller = OwnerReference::controller(&kind, "rs", "2");
        let other =
            OwnerReference { uid: "1".to_owned(), controller: Some(false), ..OwnerReference::default() };
        let meta = ObjectMeta { owner_references: vec![other, controller.clone()], ..ObjectMeta::default() };
        assert_eq!(meta.controller(), Some(&controller));
        assert!(meta.is_controlled_by("2") && !meta.is_controlled_by("1") && meta.is_owned_by("1"));
        assert_eq!((controller.api_version.as_str(), controller.kind.as_str()), ("apps/v1", "ReplicaSet"));
    }
}
