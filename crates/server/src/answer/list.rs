//! Encodes a list in the client's form: short ones at once, long ones in pieces.

use super::{
    Body, LONG, ListMeta,
    at_rest::AtRest,
    check_table_options, encode_any_as, encode_kind,
    encoded::{self, Encoded, Frame},
    full, meta_kind, not_acceptable, partial_value,
    pieces::{Items, Pieces},
    table, with_body,
};
use crate::{
    call::Call,
    convert,
    input::Encoding,
    long_work,
    negotiate::{Form, Shape},
    refusal::Refusal,
    served::Served,
    stored::Stored,
};
use bytes::Bytes;
use http::{Response, StatusCode};
use serde_json::{Value, json};

/// Lists of more objects are built in `long_work`, so that they do not delay other requests.
const MANY: usize = 1000;

pub(crate) async fn list(
    call: &Call,
    meta: &ListMeta,
    objects: Vec<Stored>,
) -> Result<Response<Body>, Refusal> {
    let served = &call.served;
    check_table_options(call)?;
    if matches!(call.form.shape, Shape::Metadata(_)) {
        let kind = served.go_type("List");
        let message = "you requested PartialObjectMetadata, but the requested object is a list";
        return Err(not_acceptable(format!("{message} (*{kind})")));
    }
    let as_stored = objects.iter().all(|stored| served.is_as_stored(stored.revision));
    if call.form == Form::default() && as_stored {
        let size = if objects.len() > MANY { long_work::LONG } else { 0 };
        let work = Box::pin(async { json_list(served, meta, objects) });
        let body = call.inner.workplaces.run(&call.inner.world, size, work).await;
        return Ok(with_body(StatusCode::OK, call.form.content_type(), body));
    }
    let is_long = objects.iter().map(|stored| stored.json.len()).sum::<usize>() > LONG;
    if is_long && let Some(Frame { form, head, separator, tail }) = encoded::frame(call, meta) {
        let encoded = call.inner.world.blocking(move || Encoded::new(form, objects));
        let items = encoded.await?;
        let body = match call.form.encoding {
            // A protobuf message begins with its length.
            Encoding::Protobuf => {
                let (head, tail) = encoded::seal(call, meta, items.size());
                Pieces::body(head, items, separator, tail)
            }
            Encoding::Json | Encoding::Yaml => Pieces::body(head, items, separator, tail),
        };
        return Ok(with_body(StatusCode::OK, call.form.content_type(), body));
    }
    let values = objects.iter().map(Stored::value).collect::<Result<_, _>>()?;
    let values = convert::in_version(&call.inner, served, values).await?;
    let encoding = call.form.encoding;
    let body = match call.form.shape {
        Shape::AsIs => typed_list(call, encoding, meta, values),
        Shape::Metadata(version) | Shape::MetadataList(version) => {
            partial_list(encoding, version, meta, &values)
        }
        Shape::Table(version) => encode_any_as(encoding, &table::table(call, version, meta, &values, true)),
    };
    Ok(full(StatusCode::OK, call.form.content_type(), body))
}

/// Stored bytes one after the other; items of built-in kinds lack `kind` and `apiVersion`.
fn json_list(served: &Served, meta: &ListMeta, objects: Vec<Stored>) -> Body {
    let (head, tail) = json_frame(served, meta);
    Pieces::body(head, AtRest::new(objects, served.custom().is_none()), b",", tail)
}

/// The bytes before and after the items of a list.
pub(super) fn json_frame(served: &Served, meta: &ListMeta) -> (String, String) {
    let (kind, version) = (json!(served.list_kind()), json!(served.api_version()));
    // Kubernetes: lists of custom objects are Go maps, written in the order of their keys.
    match served.custom() {
        None => {
            let metadata = list_meta(meta);
            let head =
                format!("{{\"kind\":{kind},\"apiVersion\":{version},\"metadata\":{metadata},\"items\":[");
            (head, "]}\n".to_owned())
        }
        Some(_) => {
            let tail = format!("],\"kind\":{kind},\"metadata\":{}}}\n", custom_list_meta(meta));
            (format!("{{\"apiVersion\":{version},\"items\":["), tail)
        }
    }
}

pub(super) fn list_meta(meta: &ListMeta) -> String {
    let mut text = format!("{{\"resourceVersion\":\"{}\"", meta.revision);
    if !meta.continue_token.is_empty() {
        text.push_str(&format!(",\"continue\":\"{}\"", meta.continue_token));
    }
    if let Some(remaining) = meta.remaining {
        text.push_str(&format!(",\"remainingItemCount\":{remaining}"));
    }
    text.push('}');
    text
}

pub(crate) fn list_meta_value(meta: &ListMeta) -> Value {
    serde_json::from_str(&list_meta(meta)).unwrap_or_default()
}

/// Kubernetes: a list of custom objects has an empty `continue` at its end.
pub(super) fn custom_list_meta(meta: &ListMeta) -> Value {
    let mut value = list_meta_value(meta);
    value["continue"] = meta.continue_token.as_str().into();
    value
}

fn typed_list(call: &Call, encoding: Encoding, meta: &ListMeta, mut items: Vec<Value>) -> Bytes {
    let served = &call.served;
    let (resource, kind) = (&served.resource, served.list_kind());
    let value = |items: Vec<Value>, meta: Value| json!({"kind": kind, "apiVersion": served.api_version(), "metadata": meta, "items": items});
    if served.custom().is_some() {
        return encode_any_as(encoding, &value(items, custom_list_meta(meta)));
    }
    for item in items.iter_mut().filter_map(Value::as_object_mut) {
        item.remove("kind");
        item.remove("apiVersion");
    }
    let types = call.types();
    match types.kind(&resource.group, &resource.version, &kind) {
        Some((of, _)) => {
            let list = value(items, list_meta_value(meta));
            encode_kind(types, of, &served.api_version(), &kind, encoding, &list)
        }
        None => encode_any_as(encoding, &value(items, list_meta_value(meta))),
    }
}

fn partial_list(encoding: Encoding, version: &str, meta: &ListMeta, objects: &[Value]) -> Bytes {
    let items = objects.iter().map(|object| partial_value(version, object)).collect();
    // Kubernetes: an empty list has `items: null` in this form.
    let items = if objects.is_empty() { Value::Null } else { Value::Array(items) };
    let value = json!({
        "kind": "PartialObjectMetadataList", "apiVersion": format!("meta.k8s.io/{version}"),
        "metadata": list_meta_value(meta), "items": items,
    });
    meta_kind(encoding, version, "PartialObjectMetadataList", &value)
}
