//! Encodes objects into responses, in the form that the client accepts.

mod at_rest;
mod broken_off;
mod encoded;
mod gzip;
mod holding;
mod list;
mod pieces;
mod table;
mod yaml;

pub(crate) use broken_off::BrokenOff;
pub(crate) use gzip::{Gzip, compress, mark as mark_gzipped};
pub(crate) use holding::Holding;
pub(crate) use list::{list, list_meta_value};

use crate::{
    call::Call,
    convert,
    input::Encoding,
    negotiate::{Form, Shape},
    refusal::Refusal,
    served::{Kind, Served},
    stored::Stored,
};
use api::{
    field::{Error, Path},
    status::Status,
};
use at_rest::AtRest;
use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt, Empty, Full, combinators::UnsyncBoxBody};
use pieces::Pieces;
use schema::{encode, proto, types::Types};
use serde_json::{Value, json};
use store::Revision;
use yaml::to_yaml;

/// The body of a response.
pub type Body = UnsyncBoxBody<Bytes, std::convert::Infallible>;

/// Kubernetes: the annotation of the bookmark that ends the initial events.
pub(crate) const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// Lists with more stored bytes are encoded in pieces while they are sent.
const LONG: usize = 64 << 10;

/// The metadata of a list.
#[derive(Debug, Default)]
pub(crate) struct ListMeta {
    pub(crate) revision: Revision,
    pub(crate) continue_token: String,
    pub(crate) remaining: Option<u64>,
}

pub(crate) fn full(code: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Response<Body> {
    with_body(code, content_type, Full::new(body.into()).boxed_unsync())
}

/// A response without a body.
pub(crate) fn empty(code: StatusCode) -> Response<Body> {
    let mut response = Response::new(Empty::new().boxed_unsync());
    *response.status_mut() = code;
    response
}

fn with_body(code: StatusCode, content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    // Kubernetes: proxies must not cache responses.
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

/// Kubernetes: if all warnings together are longer than this, each is truncated to MAX_WARNING.
const MAX_WARNED: usize = 4096;
const MAX_WARNING: usize = 256;

/// Adds Warning headers, each text once.
pub(crate) fn with_warnings<'a>(
    mut response: Response<Body>,
    warnings: impl IntoIterator<Item = &'a str>,
) -> Response<Body> {
    // Kubernetes: warnings with control characters are left out.
    let warnings: Vec<&str> = warnings.into_iter().filter(|it| !it.chars().any(char::is_control)).collect();
    let is_too_long = warnings.iter().map(|warning| warning.chars().count()).sum::<usize>() > MAX_WARNED;
    let mut total = 0;
    for warning in warnings {
        if is_too_long && total >= MAX_WARNED {
            break;
        }
        let most = if is_too_long { MAX_WARNING } else { usize::MAX };
        let text: String = warning.chars().take(most).collect();
        total += text.chars().count();
        let text = text.replace('\\', "\\\\").replace('"', "\\\"");
        let Ok(value) = HeaderValue::from_str(&format!("299 - \"{text}\"")) else { continue };
        let headers = response.headers_mut();
        if !headers.get_all(header::WARNING).iter().any(|said| *said == value) {
            headers.append(header::WARNING, value);
        }
    }
    response
}

/// A Scale, in the form that the client accepts.
pub(crate) fn scale(call: &Call, scale: &Value) -> Result<Response<Body>, Refusal> {
    check_single(call, || "autoscaling.Scale".to_owned())?;
    let Form { encoding, shape } = call.form;
    let body = match shape {
        Shape::Table(version) => encode_any_as(encoding, &table::of_scale(call, version, scale)),
        Shape::Metadata(version) => partial(encoding, version, scale),
        _ => return Ok(document(StatusCode::OK, call.form, "autoscaling", "v1", "Scale", scale)),
    };
    Ok(full(StatusCode::OK, call.form.content_type(), body))
}

/// An object that is not stored, of another kind than the resource's.
pub(crate) fn unstored(
    call: &Call,
    code: StatusCode,
    (group, version, kind): (&str, &str, &str),
    value: &Value,
) -> Result<Response<Body>, Refusal> {
    check_single(call, || format!("{}.{kind}", group.split('.').next().unwrap_or_default()))?;
    let Form { encoding, shape } = call.form;
    Ok(match shape {
        Shape::Metadata(version) => full(code, call.form.content_type(), partial(encoding, version, value)),
        _ => document(code, call.form, group, version, kind, value),
    })
}

/// The response to a rejected request.
pub(crate) fn refusal(refusal: Refusal, form: Form) -> Response<Body> {
    status(&refusal.into_status(), form)
}

/// The response to a request that authorization rejected.
// Kubernetes: the text holds what the client sent, so browsers are total not to sniff its type.
pub(crate) fn refused(refused: Refusal, form: Form) -> Response<Body> {
    let is_forbidden = matches!(refused, Refusal::Forbidden(_));
    let mut response = refusal(refused, form);
    if is_forbidden {
        response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    }
    response
}

/// The response to a request that created something without an object to show, such as a binding.
pub(crate) fn done(call: &Call) -> Response<Body> {
    status(&Status::success().with_code(201), call.form)
}

/// The response to a delete of an object that is now removed.
pub(crate) fn deleted(call: &Call, object: &Value) -> Response<Body> {
    let (name, uid) = (api::object::name(object), api::object::uid(object));
    status(&Status::deleted(&call.resource(), name, uid), call.form)
}

/// The Status in the error event that ends a watch.
pub(crate) fn refusal_bytes(refusal: Refusal, form: Form) -> Bytes {
    let value = serde_json::to_value(refusal.into_status()).unwrap_or_default();
    document_bytes(form, "", "v1", "Status", &value)
}

fn status(status: &Status, form: Form) -> Response<Body> {
    let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::OK);
    let value = serde_json::to_value(status).unwrap_or_default();
    let mut response = document(code, form, "", "v1", "Status", &value);
    if let Some(seconds) = status.retry_after_seconds() {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// A value of a built-in kind.
pub(crate) fn document(
    code: StatusCode,
    form: Form,
    group: &str,
    version: &str,
    kind: &str,
    value: &Value,
) -> Response<Body> {
    full(code, form.content_type(), document_bytes(form, group, version, kind, value))
}

pub(crate) fn document_bytes(form: Form, group: &str, version: &str, kind: &str, value: &Value) -> Bytes {
    let types = kinds::types();
    let of = types.kind(group, version, kind).map(|(id, _)| id);
    let body = match (form.encoding, of) {
        (Encoding::Protobuf, Some(of)) => {
            let message = proto::encode(types, of, value);
            proto::Envelope::new(&crate::served::join(group, version), kind, &message).seal()
        }
        (Encoding::Yaml, Some(of)) => {
            let value = serde_json::from_slice(&encode::encode(types, of, value)).unwrap_or_default();
            to_yaml(&value).into_bytes()
        }
        (Encoding::Yaml, None) => to_yaml(value).into_bytes(),
        (_, Some(of)) => line(encode::encode(types, of, value)),
        (_, None) => line(encode::encode_any(value)),
    };
    body.into()
}

/// An object of the resource that is not stored.
pub(crate) fn value_bytes(call: &Call, value: &Value, with_columns: bool) -> Bytes {
    match call.form.shape {
        Shape::AsIs => encode_as(&call.served, call.form.encoding, value),
        Shape::Metadata(version) | Shape::MetadataList(version) => {
            partial(call.form.encoding, version, value)
        }
        Shape::Table(version) => {
            let revision = api::object::resource_version(value).parse().map(Revision).unwrap_or_default();
            let meta = ListMeta { revision, ..ListMeta::default() };
            let values = std::slice::from_ref(value);
            encode_any_as(call.form.encoding, &table::table(call, version, &meta, values, with_columns))
        }
    }
}

fn line(mut json: Vec<u8>) -> Vec<u8> {
    json.push(b'\n');
    json
}

/// One object.
pub(crate) async fn object(
    call: &Call,
    code: StatusCode,
    stored: &Stored,
) -> Result<Response<Body>, Refusal> {
    check_table_options(call)?;
    check_single(call, || call.served.go_type(""))?;
    let is_as_it_is = call.form == Form::default() && call.served.is_as_stored(stored.revision);
    if is_as_it_is && stored.json.len() > LONG {
        let body = Pieces::body("", AtRest::new(vec![stored.clone()], false), b"", "\n");
        return Ok(with_body(code, call.form.content_type(), body));
    }
    Ok(full(code, call.form.content_type(), object_bytes(call, stored, true).await?))
}

/// One object in the client's form: as a response, or inside a watch event.
pub(crate) async fn object_bytes(call: &Call, stored: &Stored, with_columns: bool) -> Result<Bytes, Refusal> {
    let served = &call.served;
    Ok(match call.form {
        Form { encoding: Encoding::Json, shape: Shape::AsIs } if served.is_as_stored(stored.revision) => {
            let mut out = BytesMut::with_capacity(stored.json.len() + 40);
            stored.write(0, &mut out);
            out.put_u8(b'\n');
            out.freeze()
        }
        Form { encoding, shape } => {
            let value = Box::pin(convert::one_in_version(&call.inner, served, stored.value()?)).await?;
            match shape {
                Shape::AsIs => encode_as(served, encoding, &value),
                Shape::Metadata(version) | Shape::MetadataList(version) => partial(encoding, version, &value),
                Shape::Table(version) => {
                    let meta = ListMeta { revision: stored.revision, ..ListMeta::default() };
                    encode_any_as(encoding, &table::table(call, version, &meta, &[value], with_columns))
                }
            }
        }
    })
}

/// Rejects a list form for a single object.
fn check_single(call: &Call, go_type: impl FnOnce() -> String) -> Result<(), Refusal> {
    let message = "you requested PartialObjectMetadataList, but the requested object is not a list";
    match call.form.shape {
        Shape::MetadataList(_) => Err(not_acceptable(format!("{message} (*{})", go_type()))),
        Shape::AsIs | Shape::Table(_) | Shape::Metadata(_) => Ok(()),
    }
}

fn not_acceptable(message: String) -> Refusal {
    Refusal::not_acceptable(&[]).with_message(message)
}

/// Rejects an unknown `includeObject`.
pub(crate) fn check_table_options(call: &Call) -> Result<(), Refusal> {
    let value = call.options.rest.get("includeObject").map_or("", String::as_str);
    if !matches!(call.form.shape, Shape::Table(_)) || ["", "Metadata", "Object", "None"].contains(&value) {
        return Ok(());
    }
    let detail = "must be 'Metadata', 'Object', 'None', or empty";
    let error = Error::invalid(&Path::new("includeObject"), value, detail);
    Err(Refusal::bad_request(format!("Unable to convert to Table as requested: {error}")))
}

fn encode_as(served: &Served, encoding: Encoding, value: &Value) -> Bytes {
    match served.kind {
        Kind::BuiltIn { types, of } => {
            encode_kind(types, of, &served.api_version(), &served.resource.kind, encoding, value)
        }
        Kind::Custom(_) => encode_any_as(encoding, value),
    }
}

fn encode_kind(
    types: &Types,
    of: schema::types::TypeId,
    api_version: &str,
    kind: &str,
    encoding: Encoding,
    value: &Value,
) -> Bytes {
    match encoding {
        Encoding::Json => line(encode::encode(types, of, value)).into(),
        Encoding::Protobuf => {
            let message = proto::encode(types, of, value);
            proto::Envelope::new(api_version, kind, &message).seal().into()
        }
        Encoding::Yaml => {
            let value = serde_json::from_slice(&encode::encode(types, of, value)).unwrap_or_default();
            to_yaml(&value).into()
        }
    }
}

fn encode_any_as(encoding: Encoding, value: &Value) -> Bytes {
    match encoding {
        Encoding::Yaml => to_yaml(value).into(),
        _ => line(encode::encode_any(value)).into(),
    }
}

fn partial_value(version: &str, object: &Value) -> Value {
    let mut metadata = object.get("metadata").cloned().unwrap_or_default();
    kinds::convert::shed(object, &mut metadata);
    json!({
        "kind": "PartialObjectMetadata", "apiVersion": format!("meta.k8s.io/{version}"),
        "metadata": metadata,
    })
}

fn partial(encoding: Encoding, version: &str, object: &Value) -> Bytes {
    meta_kind(encoding, version, "PartialObjectMetadata", &partial_value(version, object))
}

fn meta_kind(encoding: Encoding, version: &str, kind: &str, value: &Value) -> Bytes {
    let types = kinds::types();
    match types.kind("meta.k8s.io", version, kind) {
        Some((of, _)) => encode_kind(types, of, &format!("meta.k8s.io/{version}"), kind, encoding, value),
        None => encode_any_as(encoding, value),
    }
}
