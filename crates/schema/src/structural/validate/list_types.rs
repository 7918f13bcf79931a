//! `x-kubernetes-list-type`: items of sets and maps must be unique.

use std::collections::HashMap;

use api::field::{Error, ErrorList, Path};
use serde_json::{Map, Value};

use crate::structural::shape::{Additional, ListType, Shape, ShapeId, Structural};

pub(super) fn check(schema: &Structural, object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    value(schema, schema.root, &Path::ROOT, object, &mut errors);
    errors
}

fn value(schema: &Structural, id: ShapeId, path: &Path<'_>, found: &Value, errors: &mut ErrorList) {
    let shape = schema.shape(id);
    match found {
        Value::Array(items) => {
            match shape.list {
                ListType::Set => {
                    for nth in repeated(items.iter()) {
                        errors.push(Error::duplicate(&path.index(nth), &items[nth]));
                    }
                }
                ListType::Map => check_keys(shape, path, items, errors),
                ListType::Atomic | ListType::Unsaid => {}
            }
            let Some(id) = shape.items else { return };
            for (nth, item) in items.iter().enumerate() {
                value(schema, id, &path.index(nth), item, errors);
            }
        }
        Value::Object(members) => {
            // Kubernetes: every member is checked against `additionalProperties` here, also those with a
            // property.
            if let Additional::Shape(id) = shape.additional {
                for (name, member) in members {
                    value(schema, id, &path.key(name), member, errors);
                }
            }
            for (name, member) in members {
                if let Some(id) = schema.property(shape, name) {
                    value(schema, id, &path.child(name), member, errors);
                }
            }
        }
        _ => {}
    }
}

fn check_keys(shape: &Shape, path: &Path<'_>, items: &[Value], errors: &mut ErrorList) {
    if let Some(nth) = items.iter().position(|item| !item.is_null() && !item.is_object()) {
        let message = "must be an object for an array of list-type map";
        return errors.push(Error::invalid(&path.index(nth), &items[nth], message));
    }
    let key = |item: &Value| -> Map<String, Value> {
        let part = |name: &String| Some((name.clone(), item.get(name)?.clone()));
        shape.list_keys().iter().filter_map(part).collect()
    };
    let keys: Vec<_> = items.iter().map(|item| Value::Object(key(item))).collect();
    for nth in repeated(keys.iter()) {
        errors.push(Error::duplicate(&path.index(nth), &keys[nth]));
    }
}

/// The index of the second occurrence of each repeated item.
fn repeated<'v>(items: impl Iterator<Item = &'v Value>) -> Vec<usize> {
    let mut seen = HashMap::new();
    let mut again = Vec::new();
    for (nth, item) in items.enumerate() {
        let times = seen.entry(item).or_insert(0_usize);
        *times += 1;
        if *times == 2 {
            again.push(nth);
        }
    }
    again
}
