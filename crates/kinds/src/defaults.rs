//! An object in, the same object out with everything said that Kubernetes takes for granted.
//!
//! A default belongs to a type, wherever objects of that type lie: a probe is completed the same way in a pod and
//! in the template of a cron job. So a walk over the table of types does it all. What a default is comes from three
//! places, in this order:
//!
//! | source | what it says |
//! |---|---|
//! | the rule of a type | what depends on other fields, in Rust |
//! | the schema | a field and its value, where Kubernetes publishes it in OpenAPI |
//! | the values of a type | the same, where it does not |
//!
//! Rules and values lie with the kind that brings the type (`type_defaults.rs`). Parents come before their children, as
//! in Kubernetes: a volume without a source becomes an `emptyDir` first, and is completed as one then. What the real
//! server only does because it converts through its internal types is done here too: `stringData` becomes `data`,
//! `serviceAccount` follows `serviceAccountName`, and so on. Left out: `timeAdded` of device taints, which needs a clock
//! and so is set by the strategy of ResourceSlice.

pub(crate) mod field_and_list;
pub(crate) mod member;
mod plan;
#[cfg(test)]
mod tests;
pub(crate) mod type_defaults;

use schema::types::TypeId;
use serde_json::{Map, Value};

/// Completes an object of a built-in kind. Objects of other kinds stay as they are.
pub fn default(group: &str, version: &str, kind: &str, object: &mut Value) {
    if let Some((id, _)) = crate::types().kind(group, version, kind) {
        default_as(id, object);
    }
}

/// Completes an object of a type of [`types`](crate::types).
pub fn default_as(id: TypeId, object: &mut Value) {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    if let Some(members) = object.as_object_mut() {
        plan::fill(id, members);
    }
}
