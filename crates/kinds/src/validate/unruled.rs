//! What the table of types alone can say of a kind that has no rules: which texts and lists of its spec must be there.

use api::field::{Error, ErrorList, Path};
use schema::types::{Node, TypeId};
use serde_json::Value;

use super::at::At;
use crate::types;

/// Only the spec: a status is written by those who know, and metadata has rules of its own.
pub(super) fn check(group: &str, version: &str, kind: &str, object: &Value, errors: &mut ErrorList) {
    let Some((_, of)) = types().kind(group, version, kind) else { return };
    let spec = of.field("spec").and_then(|field| field.node.object());
    if let Some(spec) = spec {
        check_object(spec, &At::root(object).field("spec"), errors);
    }
}

fn check_object(id: TypeId, object: &At<'_, '_>, errors: &mut ErrorList) {
    for field in types().get(id).fields() {
        let at = object.field(&field.name);
        let is_text_or_list = matches!(field.node, Node::String | Node::List(_));
        if field.required && is_text_or_list && at.is_empty() {
            errors.push(Error::required(at.path(), ""));
        } else if at.is_set() {
            check_node(&field.node, at.value(), at.path(), errors);
        }
    }
}

fn check_node(node: &Node, value: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    match node {
        Node::Object(id) | Node::AtomicObject(id) => check_object(*id, &At::new(value, *path), errors),
        Node::List(list) => {
            for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                check_node(&list.items, item, &path.index(index), errors);
            }
        }
        _ => {}
    }
}
