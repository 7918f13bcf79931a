//! A part of an object in, the text that Kubernetes shows for it out: its internal types have no JSON names, so
//! that Go's own names appear, and every field does.

mod difference;
mod pod;

use api::field::BadValue;
use api::go;
use schema::types::{Field, Node, TypeId};
use serde_json::Value;

use super::at::At;
use crate::built_in::core::persistent_volume::SOURCES;
use crate::types;

const META: &str = "io.k8s.apimachinery.";
const CORE: &str = "io.k8s.api.core.v1.";
const VOLUME_SPEC: &str = "io.k8s.api.core.v1.PersistentVolumeSpec";

/// Of a type of the core group: `shown_core("SecurityContext", …)`.
pub(crate) fn shown_core(type_name: &str, at: &At<'_, '_>) -> BadValue {
    shown(&format!("{CORE}{type_name}"), at.value())
}

/// Of metadata, which keeps its JSON names, in the order in which Go writes them.
pub(crate) fn shown_metadata(at: &At<'_, '_>) -> BadValue {
    match types().named("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta") {
        Some((id, _)) => {
            let text = schema::encode::encode(types(), id, at.value());
            BadValue::verbatim(String::from_utf8(text).unwrap_or_default())
        }
        None => BadValue::json(at.value()),
    }
}

/// `null` for what is missing, as for a pointer.
pub(crate) fn shown(type_name: &str, value: &Value) -> BadValue {
    match types().named(type_name) {
        Some((id, _)) if !value.is_null() => {
            let mut out = String::new();
            write_object(&mut out, id, value);
            BadValue::verbatim(out)
        }
        _ => BadValue::json(value),
    }
}

/// Of a list of a type of the core group.
pub(crate) fn shown_core_list(type_name: &str, list: &[Value]) -> BadValue {
    let Some((id, _)) = types().named(&format!("{CORE}{type_name}")) else { return BadValue::json(list) };
    let text = |value: &Value| {
        let mut out = String::new();
        write_object(&mut out, id, value);
        out
    };
    match list {
        [] => BadValue::verbatim("null"),
        list => BadValue::verbatim(format!("[{}]", list.iter().map(text).collect::<Vec<_>>().join(","))),
    }
}

/// What a change of a part of the core group comes to, line by line.
pub(crate) fn changed_core(type_name: &str, old: &Value, new: &Value) -> String {
    let Some((id, _)) = types().named(&format!("{CORE}{type_name}")) else { return String::new() };
    let text = |value: &Value| {
        let mut out = String::new();
        write_object(&mut out, id, value);
        out
    };
    difference::unified(&text(old), &text(new))
}

/// The same for some fields of a part, which are a type of their own inside.
pub(crate) fn changed_fields<'f>(
    type_name: &str,
    fields: impl Iterator<Item = &'f str> + Clone,
    old: &Value,
    new: &Value,
) -> String {
    let Some((_, of)) = types().named(&format!("{CORE}{type_name}")) else { return String::new() };
    let text = |value: &Value| {
        let mut out = "{".to_owned();
        write_fields(&mut out, &of.name, fields.clone().filter_map(|name| of.field(name)), value);
        out.push('}');
        out
    };
    difference::unified(&text(old), &text(new))
}

fn write_object(out: &mut String, id: TypeId, value: &Value) {
    let of = types().get(id);
    if of.name.starts_with(META) {
        let text = schema::encode::encode(types(), id, value);
        out.push_str(&String::from_utf8(text).unwrap_or_default());
        return;
    }
    out.push('{');
    match &*of.name {
        pod::SPEC => {
            let spec = pod::rearranged(value);
            write_fields(out, &of.name, pod::SPEC_FIELDS.iter().filter_map(|name| of.field(name)), &spec);
        }
        pod::CONTEXT => {
            for (name, unset) in pod::HOST {
                let shown = value.get(name).map_or_else(|| unset.to_owned(), json);
                out.push_str(&format!("{}:{shown},", json(&Value::from(go_name(name)))));
            }
            write_fields(out, &of.name, pod::CONTEXT_FIELDS.iter().filter_map(|name| of.field(name)), value);
        }
        pod::VOLUME => {
            let is_moved = |field: &&Field| &*field.name == "quobyte";
            let moved = |after: &Field| of.field("quobyte").filter(|_| &*after.name == "rbd");
            let stay = of.fields().iter().filter(|field| !is_moved(field));
            write_fields(out, &of.name, stay.flat_map(|field| [Some(field), moved(field)]).flatten(), value);
        }
        // The sources come in the order of a type of their own.
        VOLUME_SPEC => {
            let is_source = |field: &&Field| SOURCES.contains(&&*field.name);
            let (first, rest) = of.fields().split_at(of.fields().len().min(1));
            let sources = SOURCES.iter().filter_map(|name| of.field(name));
            let fields = first.iter().chain(sources).chain(rest.iter().filter(|field| !is_source(field)));
            write_fields(out, &of.name, fields, value);
        }
        _ => write_fields(out, &of.name, of.fields().iter(), value),
    }
    out.push('}');
}

fn write_fields<'t>(out: &mut String, of: &str, fields: impl Iterator<Item = &'t Field>, object: &Value) {
    let mut is_first = true;
    for field in fields {
        let value = object.get(&*field.name).unwrap_or(&Value::Null);
        let mut text = String::new();
        if field.name == "metadata" {
            // Go embeds metadata, which alone keeps its JSON names.
            let id = field.node.object().expect("metadata is an object");
            let fields = String::from_utf8(schema::encode::encode(types(), id, value)).unwrap_or_default();
            text.push_str(fields.strip_prefix('{').and_then(|it| it.strip_suffix('}')).unwrap_or_default());
        } else {
            text.push_str(&json(&Value::from(go_name_in(of, &field.name))));
            text.push(':');
            write_node(&mut text, &field.node, field.pointer, value);
        }
        if !text.is_empty() {
            if !is_first {
                out.push(',');
            }
            out.push_str(&text);
            is_first = false;
        }
    }
}

fn write_node(out: &mut String, node: &Node, pointer: bool, value: &Value) {
    if value.is_null() && pointer {
        out.push_str("null");
        return;
    }
    match (node, value) {
        (Node::Object(id) | Node::AtomicObject(id), value) => write_object(out, *id, value),
        (Node::List(list), Value::Array(items)) => {
            out.push('[');
            for (position, item) in items.iter().enumerate() {
                if position > 0 {
                    out.push(',');
                }
                write_node(out, &list.items, false, item);
            }
            out.push(']');
        }
        (Node::Map(map), Value::Object(entries)) => {
            out.push('{');
            for (position, (key, value)) in entries.iter().enumerate() {
                if position > 0 {
                    out.push(',');
                }
                out.push_str(&json(&Value::from(key.as_str())));
                out.push(':');
                write_node(out, &map.values, false, value);
            }
            out.push('}');
        }
        (Node::List(_) | Node::Map(_) | Node::Time | Node::MicroTime, Value::Null) => out.push_str("null"),
        (Node::Bool, Value::Null) => out.push_str("false"),
        (Node::Int32 | Node::Int64 | Node::Double | Node::IntOrString, Value::Null) => out.push('0'),
        (Node::Quantity, Value::Null) => out.push_str("\"0\""),
        (Node::String | Node::Bytes, Value::Null) => out.push_str("\"\""),
        (_, value) => out.push_str(&json(value)),
    }
}

fn json(value: &Value) -> String {
    go::json(value).unwrap_or_default()
}

/// Fields whose names in Go have little to do with those in JSON, by a part of the name of their type.
const RENAMED: [(&str, &str, &str); 14] = [
    (".RBD", "monitors", "CephMonitors"),
    (".RBD", "image", "RBDImage"),
    (".RBD", "pool", "RBDPool"),
    (".RBD", "user", "RadosUser"),
    (".Glusterfs", "endpoints", "EndpointsName"),
    (".ISCSI", "chapAuthDiscovery", "DiscoveryCHAPAuth"),
    (".ISCSI", "chapAuthSession", "SessionCHAPAuth"),
    (".PhotonPersistentDisk", "pdID", "PdID"),
    (".AzureDisk", "diskURI", "DataDiskURI"),
    (".DeviceAttribute", "int", "IntValue"),
    (".DeviceAttribute", "bool", "BoolValue"),
    (".DeviceAttribute", "string", "StringValue"),
    (".DeviceAttribute", "version", "VersionValue"),
    (".DeviceSelector", "cel", "CEL"),
];

/// The name of a field of a type.
fn go_name_in(type_name: &str, name: &str) -> String {
    let renamed = RENAMED.iter().find(|(of, field, _)| *field == name && type_name.contains(of));
    renamed.map_or_else(|| go_name(name), |(_, _, renamed)| (*renamed).to_owned())
}

/// `hostIP` is `HostIP`, `apiGroup` is `APIGroup`.
fn go_name(name: &str) -> String {
    const INITIALISMS: [&str; 31] = [
        "api", "aws", "ca", "cidr", "csi", "dns", "fc", "fs", "gce", "gid", "gmsa", "grpc", "http", "id",
        "ip", "iqn", "iscsi", "json", "nfs", "os", "pd", "qos", "rbd", "se", "ssl", "tcp", "tls", "ttl",
        "tty", "uid", "url",
    ];
    const ODD: [(&str, &str); 4] =
        [("cephfs", "CephFS"), ("cidrs", "CIDRs"), ("storageos", "StorageOS"), ("wwids", "WWIDs")];
    if let Some((_, odd)) = ODD.iter().find(|(it, _)| *it == name) {
        return (*odd).to_owned();
    }
    let word = name.find(|c: char| c.is_ascii_uppercase()).unwrap_or(name.len());
    let (first, rest) = name.split_at(word);
    if INITIALISMS.contains(&first) {
        return format!("{}{rest}", first.to_ascii_uppercase());
    }
    let mut letters = first.chars();
    let initial = letters.next().map(|c| c.to_ascii_uppercase());
    initial.into_iter().chain(letters).chain(rest.chars()).collect()
}
