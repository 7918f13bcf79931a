//! `metadata.managedFields`: which manager owns which field, and how each write changes that.
//!
//! | file | what happens there |
//! |---|---|
//! | `fresh` | create: the manager that creates an object owns its fields |
//! | [`update()`] | create, update and patch: a manager that changes a field takes it from the others |
//! | [`apply()`] | server-side apply: a configuration is merged in, unless another owns what it would change |
//! | `owner`, `owners` | the owners and their entries in `metadata.managedFields` |
//! | `typed`, `compare`, `merge`, `prune` | walks over objects of one type |
//! | [`scale`] | owners of `spec.replicas` through the scale subresource |
//!
//! No clock: the time comes from the caller.

use serde_json::Value;

use crate::encode;
use crate::field_set::Filter;
use crate::types::{TypeId, Types};

mod apply;
mod compare;
mod conflict;
mod fresh;
mod last_applied;
mod merge;
mod owner;
mod owners;
mod prune;
pub mod scale;
mod take;
mod typed;
mod update;

pub use apply::{Applied, ApplyError, apply, misfit};
pub use conflict::{Conflict, Conflicts};
pub use owner::{MAX_MANAGER_BYTES, Operation, Owner, manager_of, validate_entries, validate_manager};
pub use owners::{BadEntries, Holding, Owners};
pub use update::{create, keep_times, update};

/// The resource that a write goes through.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    pub types: &'a Types,
    /// The type of the objects in the version of the request.
    pub of: TypeId,
    /// Group and version of the request: `apps/v1`.
    pub version: &'a str,
    /// Empty for the resource itself.
    pub subresource: &'a str,
    /// The fields that can be owned through it, by group and version; all where a version is not listed.
    pub filters: &'a [(&'a str, Filter)],
    /// Converts an object to a group and version; returns it with its type.
    pub convert: &'a Convert<'a>,
}

/// See [`Target::convert`]. Not called for the version that an object already has.
pub type Convert<'a> = dyn Fn(&Value, &str) -> Result<(Value, &'a Types, TypeId), Unconvertible> + 'a;

/// Why an object cannot be converted to a version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unconvertible {
    /// The version is not served any more: managers that own fields in it lose them.
    #[error("no such version")]
    NoSuchVersion,
    #[error("{0}")]
    Failed(String),
}

impl std::fmt::Debug for Target<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Target { version, subresource, .. } = self;
        f.debug_struct("Target")
            .field("version", version)
            .field("subresource", subresource)
            .finish_non_exhaustive()
    }
}

/// The object that says nothing. Go writes some members all the same, such as structs by value; a new object
/// is compared with it, which shows in `.spec` itself: it has no owner.
fn empty_object(target: &Target<'_>) -> Value {
    let mut object = Value::Object(serde_json::Map::new());
    encode::normalize(target.types, target.of, &mut object);
    object
}

fn entries_of(object: &Value) -> Option<&Value> {
    object.get("metadata")?.get("managedFields")
}

/// Sets the entries of an object, or removes them.
fn set_entries(object: &mut Value, entries: Option<Value>) {
    let Some(object) = object.as_object_mut() else { return };
    match entries {
        Some(entries) => {
            let metadata = object.entry("metadata").or_insert_with(|| Value::Object(serde_json::Map::new()));
            if let Some(metadata) = metadata.as_object_mut() {
                metadata.insert("managedFields".to_owned(), entries);
            }
        }
        None => {
            if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.remove("managedFields");
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod samples;
#[cfg(test)]
mod tests;
