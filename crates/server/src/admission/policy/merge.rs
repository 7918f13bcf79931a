//! An apply configuration merged into an object, as server-side apply would, but nobody comes to own anything.

use crate::served::Served;
use schema::managed_fields::{self, Applied, ApplyError, Target, Unconvertible};
use serde_json::Value;

pub(super) fn merge(face: &Served, object: &Value, mut config: Value) -> Result<Value, String> {
    let mut live = object.clone();
    let owners = live["metadata"].as_object_mut().and_then(|metadata| metadata.remove("managedFields"));
    for member in ["apiVersion", "kind"] {
        config[member] = object[member].clone();
    }
    let version = face.api_version();
    let target = Target {
        types: face.types(),
        of: face.of(),
        version: &version,
        subresource: "",
        filters: &[],
        convert: &|_, _| Err(Unconvertible::NoSuchVersion),
    };
    // Kubernetes: an apply names its object, a mutation need not.
    for member in ["name", "namespace"] {
        if let Some(value) = object["metadata"].get(member) {
            config["metadata"][member] = value.clone();
        }
    }
    let merged = managed_fields::apply(&target, Some(&live), &config, "policy", true, "1970-01-01T00:00:00Z");
    let mut made = match merged {
        Ok(Applied::Changed(value) | Applied::Unchanged(value)) => value,
        Err(ApplyError::BadRequest(text) | ApplyError::Failed(text)) => {
            return Err(format!("error applying patch: failed to convert patch object to typed object: {text}"));
        }
        Err(ApplyError::Conflicts(conflicts)) => return Err(format!("error applying patch: {conflicts}")),
    };
    let metadata = made["metadata"].as_object_mut();
    if let Some(metadata) = metadata {
        match owners {
            Some(owners) => drop(metadata.insert("managedFields".to_owned(), owners)),
            None => drop(metadata.remove("managedFields")),
        }
    }
    Ok(made)
}
