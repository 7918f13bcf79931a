//! Merges an apply configuration into an object, as server-side apply does, but without field owners.

use crate::served::Served;
use schema::{
    managed_fields::{self, Applied, ApplyError, Target, Unconvertible},
    types::{ListKind, Node, Types},
};
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
    if let Some(problem) = managed_fields::misfit(&target, &config) {
        return Err(format!(
            "error applying patch: failed to convert patch object to typed object: {problem}"
        ));
    }
    let mut whole = Vec::new();
    atomics(face.types(), &Node::Object(face.of()), &config, "", &mut whole);
    if !whole.is_empty() {
        let whole = whole.join(", ");
        return Err(format!(
            "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {whole}"
        ));
    }
    // Kubernetes: unlike an apply, a mutation need not name its object.
    for member in ["name", "namespace"] {
        if let (Some(value), None) = (object["metadata"].get(member), config["metadata"].get(member)) {
            config["metadata"][member] = value.clone();
        }
    }
    let merged = managed_fields::apply(&target, Some(&live), &config, "policy", true, "1970-01-01T00:00:00Z");
    let mut made = match merged {
        Ok(Applied::Changed(value) | Applied::Unchanged(value)) => value,
        Err(ApplyError::BadRequest(text) | ApplyError::Failed(text)) => {
            return Err(format!("error applying patch: {text}"));
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

/// Kubernetes: mutations must not set atomic fields, which would replace all of their content.
fn atomics(types: &Types, node: &Node, value: &Value, path: &str, found: &mut Vec<String>) {
    match (node, value) {
        (Node::Object(of) | Node::AtomicObject(of), Value::Object(members)) => {
            if matches!(node, Node::AtomicObject(_)) {
                found.push(path.to_owned());
            }
            for (name, value) in members {
                if let Some(field) = types.get(*of).field(name) {
                    atomics(types, &field.node, value, &format!("{path}.{name}"), found);
                }
            }
        }
        (Node::Map(map), Value::Object(_)) if map.atomic => found.push(path.to_owned()),
        (Node::List(list), Value::Array(items)) => {
            if list.kind == ListKind::Atomic {
                found.push(path.to_owned());
            }
            for (at, item) in items.iter().enumerate() {
                atomics(types, &list.items, item, &format!("{path}[{at}]"), found);
            }
        }
        _ => {}
    }
}
