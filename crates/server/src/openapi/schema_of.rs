//! The OpenAPI schema of a type, and the collection of all types that a document refers to.

use std::collections::BTreeSet;

use kinds::descriptions::describe;
use schema::types::{Field, ListKind, Node, PatchStrategy, Type, TypeId, Types};
use serde_json::{Map, Value, json};

use super::{CustomSchemas, leaves};

/// The prefix of a reference to a schema.
pub(super) const SCHEMAS: &str = "#/components/schemas/";

/// Kinds that belong to all groups and may be in every document.
const SHARED: [&str; 2] =
    ["io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions", "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent"];

/// Collects the schemas of a document.
pub(super) struct SchemaCollector<'a> {
    known: TypeTable<'a>,
    custom: &'a CustomSchemas,
    wanted: BTreeSet<String>,
    /// Wanted schemas whose own references are not yet followed.
    open: Vec<String>,
}

impl<'a> SchemaCollector<'a> {
    pub(super) fn new(types: &'a Types, custom: &'a CustomSchemas) -> Self {
        SchemaCollector { known: TypeTable::new(types), custom, wanted: BTreeSet::new(), open: Vec::new() }
    }

    /// Adds all schemas that a piece of the document refers to.
    pub(super) fn refer(&mut self, piece: &Value) {
        match piece {
            Value::Array(items) => items.iter().for_each(|item| self.refer(item)),
            Value::Object(members) => {
                if let Some(name) = members.get("$ref").and_then(Value::as_str) {
                    self.want(name.strip_prefix(SCHEMAS).unwrap_or(name));
                }
                members.values().for_each(|member| self.refer(member));
            }
            _ => {}
        }
    }

    fn want(&mut self, name: &str) {
        if self.wanted.insert(name.to_owned()) {
            self.open.push(name.to_owned());
        }
    }

    /// The wanted schemas with all that they refer to, for one version's document or for all.
    pub(super) fn collect(mut self, version: Option<(&str, &str)>) -> Map<String, Value> {
        let mut schemas = Map::new();
        while let Some(name) = self.open.pop() {
            let schema = match (self.custom.get(&name), self.known.types.named(&name)) {
                (Some(custom), _) => Some(custom.clone()),
                (None, Some((id, of))) => Some(schema_of(&self.known, id, of, version)),
                (None, None) => leaves::definition(&name),
            };
            if let Some(schema) = schema {
                self.refer(&schema);
                schemas.insert(name, schema);
            }
        }
        schemas
    }
}

/// The types, and which of them are atomic.
struct TypeTable<'a> {
    types: &'a Types,
    whole: BTreeSet<u32>,
}

impl<'a> TypeTable<'a> {
    fn new(types: &'a Types) -> Self {
        let mut whole = BTreeSet::new();
        let mut look = |node: &Node| {
            if let Node::AtomicObject(id) = node {
                whole.insert(id.0);
            }
        };
        for field in types.iter().flat_map(|(_, of)| of.fields()) {
            match &field.node {
                Node::List(list) => look(&list.items),
                Node::Map(map) => look(&map.values),
                node => look(node),
            }
        }
        TypeTable { types, whole }
    }
}

fn schema_of(known: &TypeTable<'_>, id: TypeId, of: &Type, version: Option<(&str, &str)>) -> Value {
    let description = describe(of);
    let property_of = |field: &Field| {
        let mut schema = property(known, field);
        if let Some(text) = description.field(&field.name) {
            schema["description"] = Value::from(text);
        }
        (field.name.to_string(), schema)
    };
    let mut properties: Map<_, _> = of.fields().iter().map(property_of).collect();
    // Kubernetes: only the items of a List kind have no list type.
    if let Some(items) = properties.get_mut("items").filter(|_| of.short_name().ends_with("List")) {
        items.as_object_mut().map(|items| items.remove("x-kubernetes-list-type"));
    }
    let required: Vec<_> = of.fields().iter().filter(|it| it.required).map(|it| &*it.name).collect();
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    if let Some(text) = description.text() {
        schema["description"] = Value::from(text);
    }
    let kinds = kinds_of(of, version);
    if !kinds.is_empty() {
        schema["x-kubernetes-group-version-kind"] = Value::from(kinds);
    }
    if known.whole.contains(&id.0) {
        schema["x-kubernetes-map-type"] = Value::from("atomic");
    }
    schema
}

fn kinds_of(of: &Type, version: Option<(&str, &str)>) -> Vec<Value> {
    let kind =
        |group: &str, version: &str, kind: &str| json!({ "group": group, "kind": kind, "version": version });
    if SHARED.contains(&&*of.name) {
        let here = version.filter(|at| *at != ("", "v1"));
        let here = here.map(|(group, version)| kind(group, version, of.short_name()));
        return [kind("", "v1", of.short_name())].into_iter().chain(here).collect();
    }
    of.kind.iter().map(|it| kind(&it.group, &it.version, &it.kind)).collect()
}

fn property(known: &TypeTable<'_>, field: &Field) -> Value {
    let mut schema = node(known, &field.node);
    if let Some(default) = &field.default {
        schema["default"] = (**default).clone();
    }
    let strategy = match field.patch {
        PatchStrategy::Replace => None,
        PatchStrategy::ReplaceWhole => Some("replace"),
        PatchStrategy::Merge => Some("merge"),
        PatchStrategy::RetainKeys => Some("retainKeys"),
        PatchStrategy::MergeRetainKeys => Some("merge,retainKeys"),
    };
    if let Some(strategy) = strategy {
        schema["x-kubernetes-patch-strategy"] = Value::from(strategy);
    }
    if let Some(key) = &field.merge_key {
        schema["x-kubernetes-patch-merge-key"] = Value::from(&**key);
    }
    schema
}

fn node(known: &TypeTable<'_>, of: &Node) -> Value {
    let types = known.types;
    match of {
        Node::String => json!({ "type": "string" }),
        Node::Bool => json!({ "type": "boolean" }),
        Node::Int32 => json!({ "type": "integer", "format": "int32" }),
        Node::Int64 => json!({ "type": "integer", "format": "int64" }),
        Node::Double => json!({ "type": "number", "format": "double" }),
        Node::Bytes => json!({ "type": "string", "format": "byte" }),
        Node::Object(id) if known.whole.contains(&id.0) => {
            let mut schema = reference(&types.get(*id).name);
            schema["x-kubernetes-map-type"] = Value::from("granular");
            schema
        }
        Node::Object(id) | Node::AtomicObject(id) => reference(&types.get(*id).name),
        Node::List(list) => {
            let mut schema = json!({ "type": "array", "items": item(known, &list.items) });
            match &list.kind {
                ListKind::Atomic => schema["x-kubernetes-list-type"] = Value::from("atomic"),
                ListKind::Set => schema["x-kubernetes-list-type"] = Value::from("set"),
                ListKind::Map(keys) => {
                    schema["x-kubernetes-list-type"] = Value::from("map");
                    schema["x-kubernetes-list-map-keys"] = json!(keys);
                }
            }
            schema
        }
        Node::Map(map) => {
            let mut schema = json!({ "type": "object", "additionalProperties": item(known, &map.values) });
            if map.atomic {
                schema["x-kubernetes-map-type"] = Value::from("atomic");
            }
            schema
        }
        leaf => leaves::name(leaf).map_or(json!({}), |name| reference(&name)),
    }
}

/// Kubernetes: elements of a list or map always exist, so Go's zero value is their default.
fn item(known: &TypeTable<'_>, of: &Node) -> Value {
    let mut schema = node(known, of);
    match of {
        Node::String => schema["default"] = Value::from(""),
        Node::Bool => schema["default"] = Value::from(false),
        Node::Int32 | Node::Int64 | Node::Double => schema["default"] = Value::from(0),
        Node::Object(_) | Node::AtomicObject(_) => schema["default"] = json!({}),
        leaf => {
            if let Some(name) = leaves::name(leaf) {
                return json!({ "$ref": format!("{SCHEMAS}{name}") });
            }
        }
    }
    schema
}

/// In `allOf`, since nothing may stand beside a `$ref`.
fn reference(name: &str) -> Value {
    json!({ "allOf": [{ "$ref": format!("{SCHEMAS}{name}") }] })
}
