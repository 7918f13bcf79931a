//! Encodes `/openapi/v2` as protobuf: the messages of gnostic's `OpenAPIv2.proto`.
//!
//! client-go requests this form. Field numbers are those of that file; constructs that Kubernetes never
//! uses (forms, OAuth, examples) are left out.

use super::quoted_yaml::to_yaml;
use serde_json::{Map, Value};

/// A message under construction.
#[derive(Default)]
struct ProtobufMessage(Vec<u8>);

type Members = Map<String, Value>;

pub(crate) fn gnostic(json: &[u8]) -> Option<Vec<u8>> {
    let document: Members = serde_json::from_slice(json).ok()?;
    let mut out = ProtobufMessage::default();
    out.texts(&document, &[("swagger", 1), ("host", 3), ("basePath", 4)]);
    out.message(2, document.get("info"), |out, info| {
        out.texts(info, &[("title", 1), ("version", 2), ("description", 3)]);
    });
    out.lists(&document, &[("schemes", 5), ("consumes", 6), ("produces", 7)]);
    out.message(8, document.get("paths"), |out, paths| out.named(2, paths, path_item));
    out.message(9, document.get("definitions"), |out, all| out.named(1, all, schema));
    for requirement in items(&document, "security") {
        out.message(12, Some(requirement), |out, all| out.named_lists(1, all));
    }
    out.message(13, document.get("securityDefinitions"), |out, all| out.named(1, all, security));
    out.extensions(16, &document);
    Some(out.0)
}

fn path_item(out: &mut ProtobufMessage, item: &Members) {
    let methods =
        [("get", 2), ("put", 3), ("post", 4), ("delete", 5), ("options", 6), ("head", 7), ("patch", 8)];
    for (method, number) in methods {
        out.message(number, item.get(method), operation);
    }
    parameters(out, 9, item);
    out.extensions(10, item);
}

fn operation(out: &mut ProtobufMessage, operation: &Members) {
    out.lists(operation, &[("tags", 1)]);
    out.texts(operation, &[("summary", 2), ("description", 3), ("operationId", 5)]);
    out.lists(operation, &[("produces", 6), ("consumes", 7)]);
    parameters(out, 8, operation);
    out.message(9, operation.get("responses"), |out, all| {
        out.named(1, all, |out, response| {
            out.nested(1, |out| {
                out.texts(response, &[("description", 1)]);
                out.message(2, response.get("schema"), |out, of| out.nested(1, |out| schema(out, of)));
                out.extensions(5, response);
            });
        });
    });
    out.lists(operation, &[("schemes", 10)]);
    out.flags(operation, &[("deprecated", 11)]);
    out.extensions(13, operation);
}

/// Each in three wrappers: not a reference, not a body, and its location.
fn parameters(out: &mut ProtobufMessage, number: u32, of: &Members) {
    for parameter in items(of, "parameters") {
        out.message(number, Some(parameter), |out, parameter| {
            out.nested(1, |out| match parameter.get("in").and_then(Value::as_str) {
                Some("body") => out.nested(1, |out| body(out, parameter)),
                Some("header") => out.nested(2, |out| out.nested(1, |out| plain(out, parameter, 0))),
                Some("query") => out.nested(2, |out| out.nested(3, |out| plain(out, parameter, 1))),
                _ => out.nested(2, |out| out.nested(4, |out| plain(out, parameter, 0))),
            });
        });
    }
}

fn body(out: &mut ProtobufMessage, parameter: &Members) {
    out.texts(parameter, &[("description", 1), ("name", 2), ("in", 3)]);
    out.flags(parameter, &[("required", 4)]);
    out.message(5, parameter.get("schema"), schema);
    out.extensions(6, parameter);
}

/// Query parameters have one more field before the type, so that later numbers are `further` on.
fn plain(out: &mut ProtobufMessage, parameter: &Members, further: u32) {
    out.flags(parameter, &[("required", 1), ("uniqueItems", 19 + further)]);
    out.texts(parameter, &[("in", 2), ("description", 3), ("name", 4)]);
    out.texts(parameter, &[("type", 5 + further), ("format", 6 + further), ("pattern", 16 + further)]);
    out.extensions(22 + further, parameter);
}

fn security(out: &mut ProtobufMessage, of: &Members) {
    out.nested(2, |out| {
        out.texts(of, &[("type", 1), ("name", 2), ("in", 3), ("description", 4)]);
        out.extensions(5, of);
    });
}

fn schema(out: &mut ProtobufMessage, of: &Members) {
    out.texts(of, &[("$ref", 1), ("format", 2), ("title", 3), ("description", 4), ("pattern", 13)]);
    out.numbers(of, &[("multipleOf", 6), ("maximum", 7), ("minimum", 9)]);
    out.flags(
        of,
        &[("exclusiveMaximum", 8), ("exclusiveMinimum", 10), ("uniqueItems", 16), ("readOnly", 27)],
    );
    out.integers(of, &[("maxLength", 11), ("minLength", 12), ("maxItems", 14), ("minItems", 15)]);
    out.integers(of, &[("maxProperties", 17), ("minProperties", 18)]);
    out.anything(5, of.get("default"));
    out.lists(of, &[("required", 19)]);
    items(of, "enum").iter().for_each(|value| out.anything(20, Some(value)));
    match of.get("additionalProperties") {
        Some(Value::Bool(allowed)) => out.nested(21, |out| out.flag(2, *allowed)),
        inner => out.message(21, inner, |out, of| out.nested(1, |out| schema(out, of))),
    }
    match of.get("type") {
        Some(Value::String(name)) => out.nested(22, |out| out.text(1, name)),
        Some(Value::Array(_)) => out.nested(22, |out| out.lists(of, &[("type", 1)])),
        _ => {}
    }
    out.message(23, of.get("items"), |out, of| out.nested(1, |out| schema(out, of)));
    items(of, "allOf").iter().for_each(|each| out.message(24, Some(each), schema));
    out.message(25, of.get("properties"), |out, all| out.named(1, all, schema));
    out.message(29, of.get("externalDocs"), |out, docs| out.texts(docs, &[("description", 1), ("url", 2)]));
    out.anything(30, of.get("example"));
    out.extensions(31, of);
}

fn items<'a>(of: &'a Members, name: &str) -> &'a [Value] {
    of.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

impl ProtobufMessage {
    fn texts(&mut self, of: &Members, fields: &[(&str, u32)]) {
        for (name, number) in fields {
            if let Some(text) = of.get(*name).and_then(Value::as_str) {
                self.text(*number, text);
            }
        }
    }

    fn lists(&mut self, of: &Members, fields: &[(&str, u32)]) {
        for (name, number) in fields {
            items(of, name)
                .iter()
                .filter_map(Value::as_str)
                .for_each(|text| self.bytes(*number, text.as_bytes()));
        }
    }

    fn flags(&mut self, of: &Members, fields: &[(&str, u32)]) {
        for (name, number) in fields {
            if of.get(*name) == Some(&Value::Bool(true)) {
                self.flag(*number, true);
            }
        }
    }

    fn numbers(&mut self, of: &Members, fields: &[(&str, u32)]) {
        for (name, number) in fields {
            if let Some(value) = of.get(*name).and_then(Value::as_f64) {
                self.varint(u64::from(*number) << 3 | 1);
                self.0.extend_from_slice(&value.to_le_bytes());
            }
        }
    }

    fn integers(&mut self, of: &Members, fields: &[(&str, u32)]) {
        for (name, number) in fields {
            if let Some(value) = of.get(*name).and_then(Value::as_i64) {
                self.varint(u64::from(*number) << 3);
                self.varint(value.cast_unsigned());
            }
        }
    }

    fn flag(&mut self, number: u32, value: bool) {
        self.varint(u64::from(number) << 3);
        self.varint(u64::from(value));
    }

    fn text(&mut self, number: u32, text: &str) {
        if !text.is_empty() {
            self.bytes(number, text.as_bytes());
        }
    }

    fn message(
        &mut self,
        number: u32,
        of: Option<&Value>,
        write: impl FnOnce(&mut ProtobufMessage, &Members),
    ) {
        if let Some(Value::Object(members)) = of {
            self.nested(number, |out| write(out, members));
        }
    }

    fn nested(&mut self, number: u32, write: impl FnOnce(&mut ProtobufMessage)) {
        let mut inner = ProtobufMessage::default();
        write(&mut inner);
        self.bytes(number, &inner.0);
    }

    /// A map as pairs of name and value.
    fn named(&mut self, number: u32, all: &Members, write: impl Fn(&mut ProtobufMessage, &Members)) {
        for (name, value) in all {
            self.nested(number, |out| {
                out.text(1, name);
                out.message(2, Some(value), &write);
            });
        }
    }

    fn named_lists(&mut self, number: u32, all: &Members) {
        for name in all.keys() {
            self.nested(number, |out| {
                out.text(1, name);
                out.nested(2, |out| out.lists(all, &[(name, 1)]));
            });
        }
    }

    /// A value of any type, as YAML.
    fn anything(&mut self, number: u32, value: Option<&Value>) {
        if let Some(value) = value {
            self.nested(number, |out| out.text(2, &to_yaml(value)));
        }
    }

    fn extensions(&mut self, number: u32, of: &Members) {
        for (name, value) in of.iter().filter(|(name, _)| name.starts_with("x-")) {
            self.nested(number, |out| {
                out.text(1, name);
                out.anything(2, Some(value));
            });
        }
    }

    fn bytes(&mut self, number: u32, bytes: &[u8]) {
        self.varint(u64::from(number) << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Checks fields by their path of numbers; leaves are text or numbers.
    fn check(document: &Value, expected: &[(&[u32], &str)]) {
        let bytes = gnostic(document.to_string().as_bytes()).unwrap();
        for (path, text) in expected {
            let mut found = vec![bytes.clone()];
            for number in *path {
                found = found.iter().flat_map(|bytes| fields(bytes, *number)).collect();
            }
            let texts: Vec<_> = found.iter().map(|bytes| String::from_utf8_lossy(bytes)).collect();
            assert!(texts.iter().any(|found| found == text), "{path:?}: {texts:?}, want {text:?}");
        }
    }

    /// The values of a field as bytes.
    fn fields(mut bytes: &[u8], wanted: u32) -> Vec<Vec<u8>> {
        fn varint(bytes: &mut &[u8]) -> usize {
            let end = bytes.iter().position(|byte| byte & 0x80 == 0).unwrap();
            let value =
                bytes[..=end].iter().rev().fold(0, |value, byte| value << 7 | usize::from(byte & 0x7f));
            *bytes = &bytes[end + 1..];
            value
        }
        let mut found = Vec::new();
        while !bytes.is_empty() {
            let tag = varint(&mut bytes);
            let value = match tag & 7 {
                0 => varint(&mut bytes).to_string().into_bytes(),
                1 => f64::from_le_bytes(bytes.split_off(..8).unwrap().try_into().unwrap())
                    .to_string()
                    .into_bytes(),
                _ => {
                    let length = varint(&mut bytes);
                    bytes.split_off(..length).unwrap().to_vec()
                }
            };
            if tag >> 3 == wanted as usize {
                found.push(value);
            }
        }
        found
    }

    #[test]
    fn every_field_has_its_number_of_gnostic() {
        let document = json!({
            "swagger": "2.0",
            "info": {"title": "T"},
            "paths": {"/a": {
                "parameters": [{"in": "path", "name": "n", "type": "string", "required": true}],
                "post": {
                    "operationId": "o",
                    "parameters": [
                        {"in": "body", "name": "body", "schema": {"$ref": "r"}},
                        {"in": "query", "name": "q", "type": "integer"},
                    ],
                    "responses": {"200": {"description": "OK", "schema": {"$ref": "s"}}},
                    "x-kubernetes-action": "post",
                },
            }},
            "definitions": {"D": {
                "type": "object", "minimum": 1.5, "maxItems": 300, "required": ["a"],
                "properties": {"x-a": {"items": {"format": "f"}}},
                "additionalProperties": {"pattern": "p"},
                "x-kubernetes-map-type": "atomic",
            }},
            "security": [{"B": []}],
            "securityDefinitions": {"B": {"type": "apiKey"}},
        });
        check(
            &document,
            &[
                (&[1], "2.0"),
                (&[2, 1], "T"),
                (&[8, 2, 1], "/a"),
                (&[8, 2, 2, 9, 1, 2, 4, 4], "n"),
                (&[8, 2, 2, 9, 1, 2, 4, 5], "string"),
                (&[8, 2, 2, 9, 1, 2, 4, 1], "1"),
                (&[8, 2, 2, 4, 5], "o"),
                (&[8, 2, 2, 4, 8, 1, 1, 5, 1], "r"),
                (&[8, 2, 2, 4, 8, 1, 2, 3, 6], "integer"),
                (&[8, 2, 2, 4, 9, 1, 2, 1, 2, 1, 1], "s"),
                (&[8, 2, 2, 4, 13, 1], "x-kubernetes-action"),
                (&[9, 1, 2, 22, 1], "object"),
                (&[9, 1, 2, 9], "1.5"),
                (&[9, 1, 2, 14], "300"),
                (&[9, 1, 2, 19], "a"),
                (&[9, 1, 2, 25, 1, 1], "x-a"),
                (&[9, 1, 2, 25, 1, 2, 23, 1, 2], "f"),
                (&[9, 1, 2, 21, 1, 13], "p"),
                (&[9, 1, 2, 31, 2, 2], "\"atomic\"\n"),
                (&[12, 1, 1], "B"),
                (&[13, 1, 2, 2, 1], "apiKey"),
            ],
        );
    }
}
