//! Items of a long list in another form than the stored one, encoded as they are sent.
//!
//! The Content-Length must be known before the first byte. So everything is encoded once and the first
//! [`KEPT`] bytes are kept; the rest is encoded again when it is sent, so that no response holds more than
//! that.

use super::{
    ListMeta,
    list::{custom_list_meta, json_frame, list_meta_value},
    partial_value,
    pieces::{Items, Out},
    table,
    yaml::{to_yaml, yaml_item},
};
use crate::{
    call::Call,
    convert,
    input::Encoding,
    negotiate::{Form, Shape},
    refusal::Refusal,
    served::{Kind, Served},
    stored::Stored,
};
use bytes::Bytes;
use schema::{
    encode, proto,
    types::{TypeId, Types},
};
use serde_json::{Value, json};
use std::sync::Arc;
use world::Timestamp;

/// Most lists are shorter, and are encoded only once.
const KEPT: u64 = 1 << 20;

/// How each object is encoded.
#[derive(Clone, Debug)]
pub(super) struct ItemForm {
    served: Arc<Served>,
    form: Form,
    /// The `includeObject` of a table's rows.
    include_object: Option<String>,
    now: Timestamp,
}

/// The bytes around the items.
pub(super) struct Frame {
    pub(super) form: ItemForm,
    pub(super) head: String,
    pub(super) separator: &'static [u8],
    pub(super) tail: String,
}

#[derive(Debug)]
pub(super) struct Encoded {
    form: ItemForm,
    items: Vec<Item>,
    size: u64,
}

#[derive(Debug)]
enum Item {
    Kept(Bytes),
    Later(Stored),
}

impl Encoded {
    /// Encodes each item once, so that an undecodable object fails the list before its first byte is sent.
    pub(super) fn new(form: ItemForm, objects: Vec<Stored>) -> Result<Encoded, Refusal> {
        let mut size = 0;
        let encode = |stored: Stored| {
            let bytes = form.encode(&stored)?;
            size += bytes.len() as u64;
            Ok(if size > KEPT { Item::Later(stored) } else { Item::Kept(bytes.into()) })
        };
        let items = objects.into_iter().map(encode).collect::<Result<_, Refusal>>()?;
        Ok(Encoded { form, items, size })
    }
}

impl Items for Encoded {
    fn count(&self) -> usize {
        self.items.len()
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn write(&mut self, at: usize, out: &mut Out) {
        match std::mem::replace(&mut self.items[at], Item::Kept(Bytes::new())) {
            Item::Kept(bytes) => out.put_shared(bytes),
            // It was encoded before and has not changed.
            Item::Later(stored) => out.put_shared(self.form.encode(&stored).unwrap_or_default().into()),
        }
    }
}

impl ItemForm {
    fn encode(&self, stored: &Stored) -> Result<Vec<u8>, Refusal> {
        let value = convert::in_version_at_once(&self.served, stored.value()?);
        Ok(match self.form.shape {
            Shape::AsIs => self.encode_object(value),
            Shape::Metadata(version) | Shape::MetadataList(version) => {
                let types = kinds::types();
                let of = types.kind("meta.k8s.io", version, "PartialObjectMetadata").map(|(of, _)| of);
                let value = partial_value(version, &value);
                match of {
                    Some(of) => encode_item(types, of, self.form.encoding, &value),
                    None => encode_any_item(self.form.encoding, &value),
                }
            }
            Shape::Table(version) => {
                let include_object = self.include_object.as_deref();
                let row = table::row(&self.served, version, include_object, &value, self.now);
                encode_any_item(self.form.encoding, &row)
            }
        })
    }

    fn encode_object(&self, mut value: Value) -> Vec<u8> {
        match &self.served.kind {
            Kind::Custom(_) => encode_any_item(self.form.encoding, &value),
            Kind::BuiltIn { types, of } => {
                if let Some(members) = value.as_object_mut() {
                    members.remove("kind");
                    members.remove("apiVersion");
                }
                encode_item(types, *of, self.form.encoding, &value)
            }
        }
    }
}

fn encode_item(types: &Types, of: TypeId, encoding: Encoding, value: &Value) -> Vec<u8> {
    match encoding {
        Encoding::Json => encode::encode(types, of, value),
        Encoding::Protobuf => proto::encode_item(types, of, value),
        Encoding::Yaml => {
            let value = serde_json::from_slice(&encode::encode(types, of, value)).unwrap_or_default();
            yaml_item(&value).into_bytes()
        }
    }
}

fn encode_any_item(encoding: Encoding, value: &Value) -> Vec<u8> {
    match encoding {
        Encoding::Yaml => yaml_item(value).into_bytes(),
        _ => encode::encode_any(value),
    }
}

/// The bytes around the items of a non-empty list; `None` where it can only be encoded as a whole.
pub(super) fn frame(call: &Call, meta: &ListMeta) -> Option<Frame> {
    let served = &call.served;
    let Form { encoding, shape } = call.form;
    let is_sorted = matches!(shape, Shape::Table(_))
        && kinds::cells::has_order(&served.resource.group, &served.resource.name);
    if convert::needs_webhook(served) || is_sorted {
        return None;
    }
    let is_table = matches!(shape, Shape::Table(_));
    let (head, tail) = match encoding {
        Encoding::Protobuf if is_table => return None,
        Encoding::Protobuf => (String::new(), String::new()),
        Encoding::Json => json_frame_as(call, meta),
        Encoding::Yaml => yaml_frame(call, meta),
    };
    let include_object = call.options.rest.get("includeObject").cloned();
    let form = ItemForm {
        served: Arc::clone(served),
        form: call.form,
        include_object,
        now: call.inner.world.wall(),
    };
    let separator: &[u8] = if encoding == Encoding::Json { b"," } else { b"" };
    Some(Frame { form, head, separator, tail })
}

fn json_frame_as(call: &Call, meta: &ListMeta) -> (String, String) {
    match call.form.shape {
        Shape::AsIs => json_frame(&call.served, meta),
        Shape::Metadata(version) | Shape::MetadataList(version) => {
            let metadata = super::list::list_meta(meta);
            let head = format!(
                "{{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":\"meta.k8s.io/{version}\",\"metadata\":{metadata},\"items\":["
            );
            (head, "]}\n".to_owned())
        }
        Shape::Table(version) => {
            let frame = table::frame(call, version, meta);
            let mut head = String::from_utf8(encode::encode_any(&frame)).unwrap_or_default();
            head.pop();
            head.push_str(",\"rows\":[");
            (head, "]}\n".to_owned())
        }
    }
}

fn yaml_frame(call: &Call, meta: &ListMeta) -> (String, String) {
    let served = &call.served;
    let list = |api_version: String, kind: &str, meta: Value| {
        let head = format!("{}items:\n", to_yaml(&json!({"apiVersion": api_version})));
        (head, to_yaml(&json!({"kind": kind, "metadata": meta})))
    };
    match call.form.shape {
        Shape::AsIs => {
            let meta = match served.custom() {
                None => list_meta_value(meta),
                Some(_) => custom_list_meta(meta),
            };
            list(served.api_version(), &served.list_kind(), meta)
        }
        Shape::Metadata(version) | Shape::MetadataList(version) => {
            list(format!("meta.k8s.io/{version}"), "PartialObjectMetadataList", list_meta_value(meta))
        }
        Shape::Table(version) => {
            (format!("{}rows:\n", to_yaml(&table::frame(call, version, meta))), String::new())
        }
    }
}

/// The envelope of a protobuf list.
pub(super) fn seal(call: &Call, meta: &ListMeta, items: u64) -> (Vec<u8>, Vec<u8>) {
    let served = &call.served;
    let (api_version, kind) = match call.form.shape {
        Shape::AsIs => (served.api_version(), served.list_kind().into_owned()),
        Shape::Metadata(version) | Shape::MetadataList(version) | Shape::Table(version) => {
            (format!("meta.k8s.io/{version}"), "PartialObjectMetadataList".to_owned())
        }
    };
    let types = kinds::types();
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", &api_version));
    let of = types.kind(group, version, &kind).map(|(of, _)| of);
    let empty = json!({"metadata": list_meta_value(meta)});
    let metadata = of.map(|of| proto::encode(types, of, &empty)).unwrap_or_default();
    proto::Envelope::new(&api_version, &kind, &metadata).seal_before(items)
}
