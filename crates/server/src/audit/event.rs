//! An audit event, as it is written to the log.

use super::policy::Stage;
use crate::{audit_trail::AuditLevel, authorize::OnResource};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

// Kubernetes: the fields of an event, in its order.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Event<'a> {
    pub(super) kind: &'static str,
    pub(super) api_version: &'static str,
    pub(super) level: AuditLevel,
    #[serde(rename = "auditID")]
    pub(super) id: &'a str,
    pub(super) stage: Stage,
    #[serde(rename = "requestURI")]
    pub(super) uri: &'a str,
    pub(super) verb: &'a str,
    pub(super) user: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) impersonated_user: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) authentication_metadata: Option<Value>,
    #[serde(rename = "sourceIPs", skip_serializing_if = "<[String]>::is_empty")]
    pub(super) source_ips: &'a [String],
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) user_agent: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) object_ref: Option<ObjectReference>,
    #[serde(skip_serializing_if = "Value::is_null")]
    pub(super) response_status: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) request_object: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) response_object: Option<&'a Value>,
    pub(super) request_received_timestamp: String,
    pub(super) stage_timestamp: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) annotations: BTreeMap<String, String>,
}

/// The objectRef of an event.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ObjectReference {
    #[serde(skip_serializing_if = "String::is_empty")]
    resource: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    namespace: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    uid: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    api_group: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    api_version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    resource_version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    subresource: String,
}

impl ObjectReference {
    pub(super) fn of(wanted: &OnResource<'_>, version: &str) -> ObjectReference {
        ObjectReference {
            resource: wanted.resource.to_owned(),
            namespace: wanted.namespace.to_owned(),
            name: wanted.name.to_owned(),
            api_group: wanted.group.to_owned(),
            api_version: version.to_owned(),
            subresource: wanted.subresource.to_owned(),
            ..ObjectReference::default()
        }
    }

    /// Completes the reference from the object itself.
    pub(super) fn complete(&mut self, object: &Value) {
        use api::object::{name, namespace, resource_version, uid};
        for (given, found) in [
            (&mut self.namespace, namespace(object)),
            (&mut self.name, name(object)),
            (&mut self.uid, uid(object)),
            (&mut self.resource_version, resource_version(object)),
        ] {
            if given.is_empty() {
                found.clone_into(given);
            }
        }
    }
}
