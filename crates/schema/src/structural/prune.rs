//! Removes unknown fields from an object, and nulls of fields that are not nullable.

use serde_json::Value;

use super::shape::{Additional, Shape, ShapeId, Structural};

/// The members of an object that pruning skips: the `metadata` module handles them.
pub(super) const META: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Prunes a whole object and returns the removed paths, sorted.
pub(super) fn prune(schema: &Structural, object: &mut Value) -> Vec<String> {
    let mut pruner = Pruner { schema, path: String::new(), gone: Vec::new() };
    let root = schema.shape(schema.root);
    if root.preserve {
        pruner.spare(root, true, object);
    } else {
        pruner.members(Some(root), true, object);
    }
    pruner.gone.sort_unstable();
    pruner.gone
}

struct Pruner<'s> {
    schema: &'s Structural,
    path: String,
    gone: Vec<String>,
}

impl<'s> Pruner<'s> {
    fn value(&mut self, shape: Option<ShapeId>, value: &mut Value) {
        let shape = shape.map(|id| self.schema.shape(id));
        match shape {
            Some(shape) if shape.preserve => self.spare(shape, shape.embedded, value),
            _ => self.members(shape, shape.is_some_and(|shape| shape.embedded), value),
        }
    }

    fn members(&mut self, shape: Option<&'s Shape>, embedded: bool, value: &mut Value) {
        match value {
            Value::Object(members) => members.retain(|name, value| {
                if embedded && META.contains(&name.as_str()) {
                    return true;
                }
                match shape.map(|shape| below(self.schema, shape, name)) {
                    Some(Below::Shape(id)) => self.at_member(name, |this| this.value(id, value)),
                    None | Some(Below::Nothing) => {
                        // Kubernetes: at the root the metadata is never reported as unknown.
                        if !(self.path.is_empty() && META.contains(&name.as_str())) {
                            self.at_member(name, |this| this.gone.push(this.path.clone()));
                        }
                        return false;
                    }
                }
                true
            }),
            Value::Array(items) => {
                let shape = shape.and_then(|shape| shape.items);
                for (nth, item) in items.iter_mut().enumerate() {
                    self.at_item(nth, |this| this.value(shape, item));
                }
            }
            _ => {}
        }
    }

    /// Keeps unknown members, but prunes inside known ones.
    fn spare(&mut self, shape: &'s Shape, embedded: bool, value: &mut Value) {
        match value {
            Value::Object(members) => {
                for (name, value) in members {
                    if embedded && META.contains(&name.as_str()) {
                        continue;
                    }
                    if let Below::Shape(id) = below(self.schema, shape, name) {
                        self.at_member(name, |this| this.value(id, value));
                    }
                }
            }
            Value::Array(items) => {
                let Some(shape) = shape.items.map(|id| self.schema.shape(id)) else { return };
                for (nth, item) in items.iter_mut().enumerate() {
                    self.at_item(nth, |this| this.spare(shape, shape.embedded, item));
                }
            }
            _ => {}
        }
    }

    fn at_member(&mut self, name: &str, go: impl FnOnce(&mut Self)) {
        let before = self.path.len();
        if before > 0 {
            self.path.push('.');
        }
        self.path.push_str(name);
        go(self);
        self.path.truncate(before);
    }

    fn at_item(&mut self, nth: usize, go: impl FnOnce(&mut Self)) {
        let before = self.path.len();
        self.path.push_str(&format!("[{nth}]"));
        go(self);
        self.path.truncate(before);
    }
}

/// The schema of a member.
enum Below {
    /// The member is known. `None`: but nothing inside it, if it is an object.
    Shape(Option<ShapeId>),
    Nothing,
}

fn below(schema: &Structural, shape: &Shape, name: &str) -> Below {
    match (schema.property(shape, name), shape.additional) {
        (Some(id), _) | (None, Additional::Shape(id)) => Below::Shape(Some(id)),
        (None, Additional::Allowed | Additional::Forbidden) => Below::Shape(None),
        (None, Additional::Unsaid) => Below::Nothing,
    }
}

/// Removes members that are null where that is not allowed and there is no default to replace it.
pub(super) fn drop_nulls(schema: &Structural, shape: Option<ShapeId>, value: &mut Value) {
    let shape = shape.map(|id| schema.shape(id));
    match value {
        Value::Object(members) => members.retain(|name, value| {
            let below = shape.and_then(|shape| schema.member(shape, name));
            let refused = |shape: &Shape| !shape.nullable && shape.default_value().is_none();
            if value.is_null() && below.is_some_and(|id| refused(schema.shape(id))) {
                return false;
            }
            drop_nulls(schema, below, value);
            true
        }),
        Value::Array(items) => {
            let below = shape.and_then(|shape| shape.items);
            items.iter_mut().for_each(|item| drop_nulls(schema, below, item));
        }
        _ => {}
    }
}
