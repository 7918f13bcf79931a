//! Random values for a field: mostly of the right type, sometimes of a wrong one.

use crate::{draw::Draw, json::Json};
use schema::types::{Node, TypeId};

/// How deep generated values nest.
const DEPTH_LIMIT: usize = 4;

const TEXTS: [&str; 26] = [
    "",
    "a",
    "b",
    "A",
    "abc",
    "a.b",
    "a-b",
    "x y",
    "é",
    "<&>",
    "0",
    "1",
    "true",
    "null",
    "10%",
    "100m",
    "1Gi",
    "TCP",
    "Always",
    "None",
    "10.0.0.1",
    "example.com",
    "/x",
    "2001-02-03T04:05:06Z",
    "a/b",
    "-",
];
const LONG_TEXT: usize = 300;
const NUMBERS: [&str; 15] = [
    "0",
    "1",
    "-1",
    "2",
    "80",
    "443",
    "65536",
    "2147483647",
    "2147483648",
    "-2147483649",
    "9223372036854775807",
    "9223372036854775808",
    "1.5",
    "1e3",
    "1.0",
];
const SMALL_NUMBERS: [&str; 7] = ["0", "1", "2", "3", "5", "80", "8080"];
const QUANTITIES: [&str; 12] =
    ["1", "0", "100m", "1Gi", "1000Mi", "1.5", "0.1", "1e3", "-1", "2k", "1000000000000", "x"];

pub(super) fn text(draw: &mut Draw) -> Json {
    if draw.one_in(40) { Json::text(&"x".repeat(LONG_TEXT)) } else { Json::text(draw.pick(&TEXTS)) }
}

fn number(draw: &mut Draw, wild: bool) -> Json {
    let all: &[&str] = if wild { &NUMBERS } else { &SMALL_NUMBERS };
    Json::Number((draw.pick(all)).to_owned())
}

/// A value of any type.
pub(super) fn any(draw: &mut Draw, depth: usize) -> Json {
    match draw.below(if depth > 2 { 5 } else { 8 }) {
        0 => Json::Null,
        1 => Json::Bool(draw.one_in(2)),
        2 => number(draw, true),
        3 | 4 => text(draw),
        5 => Json::List((0..draw.below(3)).map(|_| any(draw, depth + 1)).collect()),
        _ => {
            let mut object = Json::Object(Vec::new());
            for _ in 0..draw.below(4) {
                let name = draw.pick(&["a", "b", "name", "x.y", "kind", "metadata", "é", "items"]);
                object.set(name, any(draw, depth + 1));
            }
            object
        }
    }
}

/// A value for a node of the type table.
pub(super) fn of_node(node: &Node, draw: &mut Draw, depth: usize) -> Json {
    match node {
        Node::String => text(draw),
        Node::Bool => Json::Bool(draw.one_in(2)),
        Node::Int32 | Node::Int64 => {
            let wild = draw.one_in(3);
            number(draw, wild)
        }
        Node::Double => number(draw, true),
        Node::Bytes => Json::text(draw.pick(&["", "YQ==", "AAEC", "YQ", "!"])),
        Node::Time => Json::text(draw.pick(&["2001-02-03T04:05:06Z", "2001-02-03T04:05:06+02:00", "x", ""])),
        Node::MicroTime => {
            Json::text(draw.pick(&["2001-02-03T04:05:06.123456Z", "2001-02-03T04:05:06Z", "x"]))
        }
        Node::Quantity => {
            if draw.one_in(4) {
                number(draw, false)
            } else {
                Json::text(draw.pick(&QUANTITIES))
            }
        }
        Node::IntOrString => {
            if draw.one_in(2) {
                number(draw, false)
            } else {
                text(draw)
            }
        }
        Node::Raw | Node::Json => any(draw, depth),
        Node::FieldsV1 => Json::literal(r#"{"f:data":{}}"#),
        Node::Object(of) | Node::AtomicObject(of) | Node::Either(of, _) => of_type(*of, draw, depth),
        Node::List(list) => {
            let count = if depth > DEPTH_LIMIT { 0 } else { draw.below(3) };
            let mut items: Vec<_> = (0..count).map(|_| of_node(&list.items, draw, depth + 1)).collect();
            if draw.one_in(6) {
                items.extend(items.first().cloned());
            }
            Json::List(items)
        }
        Node::Map(map) => {
            let mut object = Json::Object(Vec::new());
            for _ in 0..draw.below(3) {
                let name = draw.pick(&["a", "b", "cpu", "memory", "x.example.com/y", "A_b", ""]);
                object.set(name, of_node(&map.values, draw, depth + 1));
            }
            object
        }
    }
}

/// Some fields of a type; required ones more often.
pub(super) fn of_type(of: TypeId, draw: &mut Draw, depth: usize) -> Json {
    let mut object = Json::Object(Vec::new());
    if depth > DEPTH_LIMIT {
        return object;
    }
    let fields = kinds::types().get(of).fields();
    for field in fields {
        let wanted = if field.required { !draw.one_in(8) } else { draw.below(fields.len()) < 2 };
        if wanted {
            object.set(&field.name, of_node(&field.node, draw, depth + 1));
        }
    }
    object
}

/// A value for a structural schema.
pub(super) fn of_schema(schema: &Json, draw: &mut Draw, depth: usize) -> Json {
    let flag = |name: &str| schema.get(name) == Some(&Json::Bool(true));
    if let Some(Json::List(choices)) = schema.get("enum")
        && !draw.one_in(6)
    {
        return choices[draw.below(choices.len())].clone();
    }
    if flag("x-kubernetes-int-or-string") {
        return if draw.one_in(2) { number(draw, false) } else { text(draw) };
    }
    if flag("x-kubernetes-embedded-resource") {
        return Json::literal(draw.pick(&[
            r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","labels":{"a":"b"}},"more":1}"#,
            r#"{"apiVersion":"v1","kind":"Pod"}"#,
            r#"{"kind":"Pod","metadata":{"unknown":1}}"#,
        ]));
    }
    match schema.text_at(&["type"]).as_deref() {
        Some("string") => match schema.text_at(&["format"]).as_deref() {
            Some("date-time") => Json::text(draw.pick(&["2001-02-03T04:05:06Z", "yesterday"])),
            _ => text(draw),
        },
        Some("integer") => {
            let wild = draw.one_in(4);
            number(draw, wild)
        }
        Some("number") => number(draw, true),
        Some("boolean") => Json::Bool(draw.one_in(2)),
        Some("array") => {
            let items = schema.get("items").unwrap_or(&Json::Null);
            Json::List((0..draw.below(4)).map(|_| of_schema(items, draw, depth + 1)).collect())
        }
        Some("object") => object_of_schema(schema, draw, depth),
        _ => any(draw, depth),
    }
}

fn object_of_schema(schema: &Json, draw: &mut Draw, depth: usize) -> Json {
    let mut object = Json::Object(Vec::new());
    let required: Vec<_> = schema.get("required").map(Json::items).unwrap_or_default().to_vec();
    for (name, of) in schema.get("properties").map(Json::members).unwrap_or_default() {
        let is_required = required.iter().any(|it| it == &Json::Text(name.clone()));
        if is_required || draw.one_in(2) {
            object.set(name, of_schema(of, draw, depth + 1));
        }
    }
    if let Some(values) = schema.get("additionalProperties") {
        for name in ["k", "a.b/c"].iter().take(draw.below(3)) {
            object.set(name, of_schema(values, draw, depth + 1));
        }
    }
    if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Json::Bool(true)) && depth < DEPTH_LIMIT {
        for name in ["any", "Zed", "lastly"].iter().take(draw.below(4)) {
            object.set(name, any(draw, depth + 1));
        }
    }
    object
}
