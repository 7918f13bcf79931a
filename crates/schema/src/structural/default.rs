//! Sets the defaults of missing fields, at every depth.

use serde_json::Value;

use super::shape::{Additional, Shape, ShapeId, Structural};

pub(super) fn default(schema: &Structural, at: ShapeId, value: &mut Value) {
    let shape = schema.shape(at);
    match value {
        Value::Object(members) => {
            for (name, id) in &shape.properties {
                let property = schema.shape(*id);
                let Some(preset) = property.default_value() else { continue };
                let name = schema.name(*name);
                match members.get_mut(name) {
                    None => {
                        members.insert(name.to_owned(), preset.clone());
                    }
                    Some(value) => replace_null(property, value),
                }
            }
            for (name, value) in members {
                match (schema.property(shape, name), shape.additional) {
                    (Some(id), _) => default(schema, id, value),
                    (None, Additional::Shape(id)) => {
                        replace_null(schema.shape(id), value);
                        default(schema, id, value);
                    }
                    _ => {}
                }
            }
        }
        Value::Array(items) => {
            let Some(id) = shape.items else { return };
            for item in items {
                replace_null(schema.shape(id), item);
                default(schema, id, item);
            }
        }
        _ => {}
    }
}

fn replace_null(shape: &Shape, value: &mut Value) {
    if value.is_null()
        && !shape.nullable
        && let Some(preset) = shape.default_value()
    {
        *value = preset.clone();
    }
}
