//! The metadata of an update: what no writer can change, and what a writer of the status cannot.

use api::object;
use serde_json::Value;

use super::StatusMetadata;
use super::prepare::keep;

/// Kubernetes: what a write to the status may not touch, where it is strict. Owners of fields stay the writer's.
const LITTLE: [&str; 6] =
    ["deletionTimestamp", "generation", "labels", "annotations", "finalizers", "ownerReferences"];

/// What an object is does not change, whatever an update says or leaves out.
pub(super) fn keep_identity(new: &mut Value, old: &Value) {
    if object::uid(new).is_empty() {
        object::set_uid(new, object::uid(old));
    }
    if object::creation_timestamp(old).is_some() {
        object::set_creation_timestamp(new, object::creation_timestamp(old));
    }
    if object::is_deleting(old) {
        object::set_deletion_timestamp(new, object::deletion_timestamp(old));
    }
    if object::deletion_grace_period_seconds(new).is_none() {
        object::set_deletion_grace_period_seconds(new, object::deletion_grace_period_seconds(old));
    }
}

pub(crate) fn keep_on_status(allowed: StatusMetadata, new: &mut Value, old: &Value) {
    let names: &[&str] = match allowed {
        StatusMetadata::Anything => return,
        StatusMetadata::AllBut(names) => names,
        StatusMetadata::Little => &LITTLE,
        StatusMetadata::Nothing => return keep_all_but_owners(new, old),
    };
    let nothing = Value::Null;
    let before = old.get("metadata").unwrap_or(&nothing);
    let metadata = object::metadata_mut(new);
    names.iter().for_each(|name| keep(metadata, before, name));
}

fn keep_all_but_owners(new: &mut Value, old: &Value) {
    let metadata = object::metadata_mut(new);
    let owners = metadata.remove("managedFields");
    *metadata = object::metadata(old).cloned().unwrap_or_default();
    match owners {
        Some(owners) => drop(metadata.insert("managedFields".to_owned(), owners)),
        None => drop(metadata.remove("managedFields")),
    }
}
