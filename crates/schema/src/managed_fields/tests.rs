//! Sequences of writes by several managers, and the managedFields after each.

use serde_json::{Value, json};

use super::*;
use crate::field_set::FieldSet;

mod applies;
mod updates;

const NOW: &str = "2026-01-01T00:00:00Z";
const LATER: &str = "2026-01-01T00:00:05Z";

/// From `v1` to `v2` the field `count` is renamed; there is no `v3`.
fn convert(object: &Value, version: &str) -> Result<(Value, &'static Types, TypeId), Unconvertible> {
    let (types, v1) = samples::things();
    let v2 = types.kind("example.com", "v2", "Thing").unwrap().0;
    let (of, from, to) = match version {
        "example.com/v1" => (v1, "amount", "count"),
        "example.com/v2" => (v2, "count", "amount"),
        "broken" => return Err(Unconvertible::Failed("webhook is down".into())),
        _ => return Err(Unconvertible::NoSuchVersion),
    };
    let mut object = object.clone();
    object["apiVersion"] = json!(version);
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        let count = spec.remove(from);
        spec.retain(|name, _| name == "labels" || of == v1);
        spec.extend(count.map(|count| (to.to_owned(), count)));
    }
    Ok((object, types, of))
}

/// Runs with the target of `things`, in a version and through a subresource.
fn through<T>(version: &str, subresource: &str, run: impl FnOnce(&Target<'_>) -> T) -> T {
    let (types, _) = samples::things();
    let (group, short) = version.split_once('/').unwrap();
    let of = types.kind(group, short, "Thing").unwrap().0;
    let kept = if subresource.is_empty() { "status" } else { "spec" };
    let filter = Filter::Except(FieldSet::of_fields([[kept].as_slice()]));
    let filters = [("example.com/v1", filter.clone()), ("example.com/v2", filter)];
    let convert = |object: &Value, version: &str| convert(object, version);
    run(&Target { types, of, version, subresource, filters: &filters, convert: &convert })
}

fn on_thing<T>(run: impl FnOnce(&Target<'_>) -> T) -> T {
    through("example.com/v1", "", run)
}

fn thing(spec: &Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "n"}, "spec": spec})
}

fn nothing() -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "n"}})
}

/// A managedFields entry by update.
fn entry(manager: &str, version: &str, fields: &Value) -> Value {
    json!({
        "manager": manager, "operation": "Update", "apiVersion": version, "time": NOW,
        "fieldsType": "FieldsV1", "fieldsV1": fields,
    })
}

/// The entries in short: `manager operation fields`, and their other members.
fn entries(object: &Value) -> Vec<String> {
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    let text = |entry: &Value, name: &str| entry.get(name).and_then(Value::as_str).unwrap_or("-").to_owned();
    let line = |entry: &Value| {
        let mut words = vec![text(entry, "manager"), text(entry, "operation"), entry["fieldsV1"].to_string()];
        for (name, usual) in [("apiVersion", "example.com/v1"), ("time", NOW), ("subresource", "-")] {
            let text = text(entry, name);
            if text != usual {
                words.push(text);
            }
        }
        words.join(" ")
    };
    entries.into_iter().flatten().map(line).collect()
}

fn created(object: Value, manager: &str) -> Value {
    let mut object = object;
    on_thing(|target| create(target, &mut object, manager, NOW));
    object["metadata"]["uid"] = json!("u");
    object
}

fn updated(live: &Value, mut new: Value, manager: &str) -> Value {
    on_thing(|target| update(target, live, &mut new, manager, LATER));
    new
}

fn applied(live: Option<&Value>, config: &Value, manager: &str, force: bool) -> Result<Value, String> {
    let applied = on_thing(|target| apply(target, live, config, manager, force, NOW));
    match applied.map_err(|problem| problem.to_string())? {
        Applied::Changed(mut object) | Applied::Unchanged(mut object) => {
            object["metadata"]["uid"] = json!("u");
            Ok(object)
        }
    }
}
