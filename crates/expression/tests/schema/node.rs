//! A schema for tests: OpenAPI JSON seen as a shape.

use expression::shape::{Form, ListKind, Shape};
use serde_json::Value as Json;
use std::collections::BTreeMap;

#[derive(Debug)]
pub(crate) struct Node {
    json: Json,
    items: Option<Box<Node>>,
    values: Option<Box<Node>>,
    properties: BTreeMap<String, Node>,
    keys: Vec<String>,
}

impl Node {
    pub(crate) fn new(json: &Json) -> Node {
        let part =
            |name: &str| json.get(name).filter(|part| part.is_object()).map(|part| Box::new(Node::new(part)));
        let properties = json["properties"].as_object().into_iter().flatten();
        let keys = json["x-kubernetes-list-map-keys"].as_array().into_iter().flatten();
        Node {
            json: json.clone(),
            items: part("items"),
            values: part("additionalProperties"),
            properties: properties.map(|(name, part)| (name.clone(), Node::new(part))).collect(),
            keys: keys.filter_map(|key| key.as_str().map(str::to_string)).collect(),
        }
    }

    fn is(&self, name: &str) -> bool {
        self.json[name].as_bool() == Some(true)
    }
}

impl Shape for Node {
    fn form(&self) -> Form {
        if self.is("x-kubernetes-int-or-string") {
            return Form::IntOrString;
        }
        match (self.json["type"].as_str(), self.json["format"].as_str()) {
            (Some("boolean"), _) => Form::Boolean,
            (Some("integer"), _) => Form::Integer,
            (Some("number"), _) => Form::Number,
            (Some("string"), Some("byte")) => Form::Bytes,
            (Some("string"), Some("duration")) => Form::Duration,
            (Some("string"), Some("date")) => Form::Date,
            (Some("string"), Some("date-time")) => Form::DateTime,
            (Some("string"), _) => Form::String,
            (Some("array"), _) => Form::List,
            (Some("object"), _) if self.values.is_some() => Form::Map,
            (Some("object"), _) if self.json.get("properties").is_some() => Form::Object,
            (Some("object"), _) => Form::Empty,
            _ => Form::Unknown,
        }
    }

    fn items(&self) -> Option<&dyn Shape> {
        self.items.as_deref().map(|part| part as &dyn Shape)
    }

    fn values(&self) -> Option<&dyn Shape> {
        self.values.as_deref().map(|part| part as &dyn Shape)
    }

    fn property(&self, name: &str) -> Option<&dyn Shape> {
        self.properties.get(name).map(|part| part as &dyn Shape)
    }

    fn each_property(&self, visit: &mut dyn FnMut(&str, &dyn Shape)) {
        self.properties.iter().for_each(|(name, part)| visit(name, part));
    }

    fn requires(&self, property: &str) -> bool {
        self.json["required"].as_array().is_some_and(|all| all.iter().any(|name| name == property))
    }

    fn has_default(&self) -> bool {
        self.json.get("default").is_some()
    }

    fn limit(&self) -> Option<i64> {
        ["maxLength", "maxItems", "maxProperties"].iter().find_map(|name| self.json[*name].as_i64())
    }

    fn longest_enum(&self) -> Option<usize> {
        self.json["enum"].as_array()?.iter().filter_map(Json::as_str).map(str::len).max()
    }

    fn is_embedded_resource(&self) -> bool {
        self.is("x-kubernetes-embedded-resource")
    }

    fn list_kind(&self) -> ListKind<'_> {
        match self.json["x-kubernetes-list-type"].as_str() {
            Some("set") => ListKind::Set,
            Some("map") => ListKind::Map(&self.keys),
            _ => ListKind::Atomic,
        }
    }
}
