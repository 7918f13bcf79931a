//! Encodes a discovery document in the form that the client accepts.

use super::{kept::Document, serve};
use crate::{
    answer::{self, Body},
    input::Encoding,
    negotiate::Form,
};
use http::{Response, StatusCode, request::Parts};
use schema::proto;
use serde_json::Value;

pub(super) fn shown(document: &Document, form: Form, head: &Parts) -> Response<Body> {
    if form.encoding == Encoding::Json {
        return serve::whole(document, head);
    }
    let value: Value = serde_json::from_slice(&document.body).unwrap_or_default();
    let kind = value["kind"].as_str().unwrap_or_default();
    let types = kinds::types();
    match (form.encoding, types.kind("", "v1", kind)) {
        (Encoding::Protobuf, Some((of, _))) => {
            // Kubernetes: fields that the document lacks are empty in the envelope, too.
            let api_version = value["apiVersion"].as_str().unwrap_or_default();
            let message = proto::encode(types, of, &value);
            let sealed = proto::Envelope::new(api_version, kind, &message).seal();
            answer::full(StatusCode::OK, form.content_type(), sealed)
        }
        _ => answer::document(StatusCode::OK, form, "", "v1", kind, &value),
    }
}
