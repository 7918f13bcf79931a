//! An object in, the row that `kubectl get` shows of it out: one cell for each column of its resource.
//!
//! Kubernetes: the texts are those of its printers, which scripts read. Every cell is given, also of columns that
//! only `-o wide` shows; the client leaves them out. The columns lie with their kinds; a kind that says nothing about
//! them shows its name and when it was made.

pub(crate) mod age;
pub(crate) mod column;
pub(crate) mod row;
pub(crate) mod selector;

#[cfg(test)]
mod tests;

use api::object;
use jiff::Timestamp;
use serde_json::Value;

use crate::{built_in, convert};

pub use age::age;
use column::NAME_AND_CREATION;
use row::Row;

/// The cells of an object's row, as many as the resource has columns and typed as on the wire.
///
/// The object may be in the version that was asked for or in the one that is stored.
pub fn cells(group: &str, resource: &str, object: &Value, now: Timestamp) -> Vec<Value> {
    let Some(built_in) = built_in::of_resource(group, resource) else {
        return NAME_AND_CREATION.iter().map(|column| column.cell(&Row { object, now })).collect();
    };
    let (_, version) = object::api_version(object).rsplit_once('/').unwrap_or_default();
    let object = &*convert::internal(built_in.group, version, built_in.kind, object);
    built_in.columns.iter().map(|column| column.cell(&Row { object, now })).collect()
}

/// Whether rows of a resource are in another order than that of their names.
pub fn has_order(group: &str, resource: &str) -> bool {
    built_in::of_resource(group, resource).is_some_and(|it| it.row_order.is_some())
}

/// Puts objects in the order of their rows, which for most kinds is that of their names.
pub fn sort(group: &str, resource: &str, objects: &mut [&Value]) {
    if let Some(order) = built_in::of_resource(group, resource).and_then(|it| it.row_order) {
        objects.sort_by(|one, other| order(one, other));
    }
}

/// What a row says of its object besides the cells.
pub fn conditions(group: &str, resource: &str, object: &Value) -> Vec<Value> {
    let conditions = built_in::of_resource(group, resource).and_then(|it| it.row_conditions);
    conditions.map(|conditions| conditions(object)).unwrap_or_default()
}

fn created(object: &Value) -> Value {
    let moment = object::creation_timestamp(object).unwrap_or_default();
    Value::from(moment.to_string())
}
