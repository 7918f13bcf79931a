//! `x-kubernetes-list-type`, `-map-type` and `-list-map-keys`: whether lists and maps can be merged as they say.

use api::field::{Error, ErrorList};
use serde_json::Value;

use super::leniency::Leniency;
use super::shown;
use crate::validate::at::At;
use crate::validate::taken::Taken;

const LIST_TYPE: &str = "x-kubernetes-list-type";
const LIST_KEYS: &str = "x-kubernetes-list-map-keys";
const MAP_TYPE: &str = "x-kubernetes-map-type";

pub(super) fn check(schema: &At<'_, '_>, leniency: &Leniency<'_>, errors: &mut ErrorList) {
    let map_type = schema.field(MAP_TYPE);
    if map_type.is_set() {
        is_of_type(schema, "object", "must be object if x-kubernetes-map-type is specified", errors);
        if !matches!(map_type.text(), "atomic" | "granular") {
            map_type.unsupported(errors, &["atomic", "granular"]);
        }
    }
    let list_type = schema.field(LIST_TYPE);
    if list_type.is_set()
        && is_of_type(schema, "array", "must be array if x-kubernetes-list-type is specified", errors)
        && !leniency.any_set
    {
        check_set(schema, errors);
    }
    if list_type.is_set() && !matches!(list_type.text(), "atomic" | "set" | "map") {
        list_type.unsupported(errors, &["atomic", "set", "map"]);
    }
    if !schema.field(LIST_KEYS).is_empty() {
        let problem = "must be map if x-kubernetes-list-map-keys is non-empty";
        if !list_type.is_set() {
            list_type.required(errors, problem);
        } else if list_type.text() != "map" {
            list_type.invalid_text(errors, problem);
        }
    }
    if list_type.text() == "map" {
        check_map(schema, errors);
    }
    if !leniency.any_list_keys {
        check_keys(schema, errors);
    }
}

fn is_of_type(schema: &At<'_, '_>, wanted: &str, problem: &str, errors: &mut ErrorList) -> bool {
    let kind = schema.field("type");
    match kind.text() {
        "" => kind.required(errors, problem),
        other if other != wanted => kind.invalid_text(errors, problem),
        _ => return true,
    }
    false
}

/// Members of a set are compared as a whole, so a field manager cannot own a part of one.
fn check_set(schema: &At<'_, '_>, errors: &mut ErrorList) {
    const PROBLEM: &str = "must be atomic as item of a list with x-kubernetes-list-type=set";
    let items = schema.field("items");
    let Some(keyword) = unatomic(schema.value()) else { return };
    // Kubernetes: it shows the list's type where the map's is wrong.
    errors.push(Error::invalid(items.field(keyword).path(), items.field(LIST_TYPE).value(), PROBLEM));
}

/// The keyword by which items of a set fail to be atomic.
pub(super) fn unatomic(schema: &Value) -> Option<&'static str> {
    let text =
        |value: &Value, field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let items = schema.get("items").filter(|items| items.is_object() && text(schema, LIST_TYPE) == "set")?;
    match &*text(items, "type") {
        "array" if items.get(LIST_TYPE).is_some() && text(items, LIST_TYPE) != "atomic" => Some(LIST_TYPE),
        "object" if text(items, MAP_TYPE) != "atomic" => Some(MAP_TYPE),
        _ => None,
    }
}

fn check_map(schema: &At<'_, '_>, errors: &mut ErrorList) {
    let (keys, items) = (schema.field(LIST_KEYS), schema.field("items"));
    if keys.is_empty() {
        keys.required(errors, "must not be empty if x-kubernetes-list-type is map");
    }
    if !items.is_set() {
        return items.required(errors, "must have a schema if x-kubernetes-list-type is map");
    }
    if !items.value().is_object() {
        let problem = "must only have a single schema if x-kubernetes-list-type is map";
        return items.invalid_as(errors, shown::items(items.value()), problem);
    }
    if items.text_of("type") != "object" {
        let problem = "must be object if parent array's x-kubernetes-list-type is map";
        return items.field("type").invalid_text(errors, problem);
    }
    let properties = items.field("properties");
    let mut taken = Taken::default();
    for key in keys.list().iter() {
        let name = key.as_str().unwrap_or_default();
        match properties.value().get(name) {
            Some(property) if matches!(property["type"].as_str(), Some("array" | "object")) => {
                let path = properties.path().key(name);
                let problem = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                errors.push(Error::invalid(&path.child("type"), items.text_of("type"), problem));
            }
            Some(_) => {}
            None => keys.invalid(errors, "entries must all be names of item properties"),
        }
        if !taken.add(key) {
            keys.invalid(errors, "must not contain duplicate entries");
        }
    }
}

/// Keys are there in every item.
fn check_keys(schema: &At<'_, '_>, errors: &mut ErrorList) {
    let (list_type, items) = (schema.text_of(LIST_TYPE), schema.field("items"));
    if !matches!(list_type, "set" | "map") || !items.value().is_object() {
        return;
    }
    if items.flag_of("nullable") {
        let problem = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        items.field("nullable").forbidden(errors, problem);
    }
    if list_type == "set" {
        return;
    }
    let (required, properties) = (items.field("required"), items.field("properties"));
    let required: Taken<&Value> = required.list().iter().collect();
    for key in schema.field(LIST_KEYS).list() {
        let name = key.as_str().unwrap_or_default();
        let Some(property) = properties.value().get(name) else { continue };
        let property = At::new(property, properties.path().key(name));
        if !required.contains(&key) && !property.has("default") {
            let problem = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required \
                property";
            property.field("default").required(errors, problem);
        }
        if property.flag_of("nullable") {
            let problem = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            property.field("nullable").forbidden(errors, problem);
        }
    }
}

/// Whether a schema alone has keys that its items may lack.
pub(super) fn has_bad_keys(schema: &Value) -> bool {
    let mut errors = ErrorList::new();
    check_keys(&At::root(schema), &mut errors);
    !errors.is_empty()
}
