//! Encodes objects as a Table: the rows and columns that `kubectl get` prints.

use super::{ListMeta, list_meta_value};
use crate::{
    call::Call,
    served::{Kind, Served},
};
use api::{object, time::Time};
use kinds::resources::Resource;
use serde_json::{Value, json};
use store::Revision;

pub(super) fn table(
    call: &Call,
    version: &str,
    meta: &ListMeta,
    objects: &[Value],
    with_columns: bool,
) -> Value {
    let served = &call.served;
    let now = call.inner.world.wall();
    let mut objects: Vec<&Value> = objects.iter().collect();
    kinds::cells::sort(&served.resource.group, &served.resource.name, &mut objects);
    let include_object = call.options.rest.get("includeObject").map(String::as_str);
    let rows: Vec<_> =
        objects.into_iter().map(|object| row(served, version, include_object, object, now)).collect();
    // Kubernetes: kinds with default columns have no `rows` where there are no objects.
    let is_usual = served.resource.columns.iter().any(|column| column.name == "Created At");
    let mut table = frame(call, version, meta);
    if !with_columns {
        table["columnDefinitions"] = Value::Null;
    }
    table["rows"] = if rows.is_empty() && is_usual { Value::Null } else { Value::Array(rows) };
    table
}

/// A Table without rows.
pub(super) fn frame(call: &Call, version: &str, meta: &ListMeta) -> Value {
    let served = &call.served;
    let columns: Vec<Value> = match &served.kind {
        Kind::BuiltIn { .. } => served.resource.columns.iter().map(column).collect(),
        Kind::Custom(custom) => custom.compiled().columns.definitions(),
    };
    // A dry run has no resourceVersion.
    let metadata = if meta.revision == Revision(0) { json!({}) } else { list_meta_value(meta) };
    json!({
        "kind": "Table", "apiVersion": format!("meta.k8s.io/{version}"), "metadata": metadata,
        "columnDefinitions": columns,
    })
}

/// A Scale has its own columns.
pub(super) fn of_scale(call: &Call, version: &str, scale: &Value) -> Value {
    let column = |name: &str, sort: &str, format: &str| json!({"name": name, "type": sort, "format": format, "description": name, "priority": 0});
    // Kubernetes: the columns of custom resources have other descriptions.
    let (named, aged) = if call.served.custom().is_some() { ("name", "date") } else { ("", "string") };
    // Kubernetes: zero replicas of a custom resource are omitted, so the cell is empty.
    let replicas = &scale["spec"]["replicas"];
    let is_shown = call.served.custom().is_none() || *replicas != 0;
    let replicas = Some(replicas).filter(|_| is_shown);
    let since = object::creation_timestamp(scale).map(|since| since.timestamp());
    let age = since.map(|since| kinds::cells::age(since, call.inner.world.wall()));
    json!({
        "kind": "Table", "apiVersion": format!("meta.k8s.io/{version}"),
        "metadata": {"resourceVersion": object::resource_version(scale)},
        "columnDefinitions": [
            column("Name", "string", named), column("Desired", "integer", ""), column("Available", "integer", ""),
            column("Age", aged, ""),
        ],
        "rows": [{
            "cells": [
                object::name(scale), replicas, scale["status"]["replicas"],
                age.unwrap_or_else(|| "<unknown>".to_owned()),
            ],
            "object": super::partial_value(version, scale),
        }],
    })
}

pub(super) fn row(
    served: &Served,
    version: &str,
    include_object: Option<&str>,
    object: &Value,
    now: world::Timestamp,
) -> Value {
    let mut row = cells(served, object, now);
    row["object"] = shown(served, version, include_object, object);
    row
}

fn cells(served: &Served, object: &Value, now: world::Timestamp) -> Value {
    let Resource { group, name, .. } = &served.resource;
    match &served.kind {
        Kind::BuiltIn { .. } => {
            let mut row = json!({ "cells": kinds::cells::cells(group, name, object, now) });
            let conditions = kinds::cells::conditions(group, name, object);
            if !conditions.is_empty() {
                row["conditions"] = Value::Array(conditions);
            }
            row
        }
        Kind::Custom(custom) => {
            let age = |moment: Time| kinds::cells::age(moment.timestamp(), now);
            json!({ "cells": custom.compiled().columns.cells(object, &age) })
        }
    }
}

fn column(column: &kinds::resources::Column) -> Value {
    json!({
        "name": column.name, "type": column.type_name, "format": column.format,
        "description": column.name, "priority": column.priority,
    })
}

/// The `object` of a row.
fn shown(served: &Served, version: &str, include_object: Option<&str>, object: &Value) -> Value {
    let ends_initial = object::annotation(object, super::INITIAL_EVENTS_END).is_some();
    match include_object {
        // Kubernetes: a bookmark that ends the initial events is always included.
        Some("None") if !ends_initial => Value::Null,
        Some("Object") => {
            let json = served.encode(object);
            serde_json::from_slice(&json).unwrap_or_default()
        }
        _ => super::partial_value(version, object),
    }
}
