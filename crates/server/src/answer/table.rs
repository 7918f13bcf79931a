//! Objects in, the rows and columns that `kubectl get` prints out.

use super::{ListMeta, list_meta_value};
use crate::verbs::Call;
use serde_json::{Value, json};

pub(super) fn table(
    call: &Call,
    version: &str,
    meta: &ListMeta,
    objects: &[Value],
    with_columns: bool,
) -> Value {
    let resource = call.served.resource;
    let now = call.inner.world.wall();
    let columns: Vec<_> = resource.columns.iter().map(column).collect();
    let rows: Vec<_> = objects
        .iter()
        .map(|object| {
            let cells = kinds::cells::cells(resource.group, resource.name, object, now);
            let mut row = json!({ "cells": cells });
            let conditions = kinds::cells::conditions(resource.group, resource.name, object);
            if !conditions.is_empty() {
                row["conditions"] = Value::Array(conditions);
            }
            row["object"] = shown(call, version, object);
            row
        })
        .collect();
    json!({
        "kind": "Table", "apiVersion": format!("meta.k8s.io/{version}"), "metadata": list_meta_value(meta),
        "columnDefinitions": if with_columns { Value::from(columns) } else { Value::Null },
        "rows": rows,
    })
}

fn column(column: &kinds::resources::Column) -> Value {
    json!({
        "name": column.name, "type": column.type_name, "format": column.format,
        "description": column.name, "priority": column.priority,
    })
}

/// What of the object travels with its row.
fn shown(call: &Call, version: &str, object: &Value) -> Value {
    match call.options.rest.get("includeObject").map(String::as_str) {
        Some("None") => Value::Null,
        Some("Object") => {
            let json = schema::encode::encode(call.types(), call.served.of, object);
            serde_json::from_slice(&json).unwrap_or_default()
        }
        _ => super::partial_value(version, object),
    }
}
