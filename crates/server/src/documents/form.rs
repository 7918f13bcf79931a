//! A document of discovery in, the same in the form that the caller takes out.

use super::{kept::Document, serve, text};
use crate::{
    answer::{self, Body},
    input::{Encoding, MEDIA_TYPES},
    negotiate::{self, Shape},
};
use api::status::Status;
use http::{Response, StatusCode, header, request::Parts};
use schema::proto;
use serde_json::Value;

pub(super) fn shown(document: &Document, head: &Parts) -> Response<Body> {
    let Some(encoding) = choose(&text(head, header::ACCEPT)) else {
        return answer::status(&Status::not_acceptable(&MEDIA_TYPES), negotiate::Form::default());
    };
    if encoding == Encoding::Json {
        return serve::whole(document, head);
    }
    let value: Value = serde_json::from_slice(&document.body).unwrap_or_default();
    let kind = value["kind"].as_str().unwrap_or_default();
    let form = negotiate::Form { encoding, shape: Shape::AsIs };
    let types = kinds::types();
    match (encoding, types.kind("", "v1", kind)) {
        (Encoding::Protobuf, Some((of, _))) => {
            // Kubernetes: what the document does not say of itself, the envelope does not say either.
            let api_version = value["apiVersion"].as_str().unwrap_or_default();
            let message = proto::encode(types, of, &value);
            let sealed = proto::Envelope::new(api_version, kind, &message).seal();
            answer::full(StatusCode::OK, form.content_type(), sealed)
        }
        _ => answer::document(StatusCode::OK, form, "", "v1", kind, &value),
    }
}

/// The first that we have. There is no other view of these documents than themselves.
fn choose(accept: &str) -> Option<Encoding> {
    if accept.trim().is_empty() {
        return Some(Encoding::Json);
    }
    accept.split(',').find_map(|clause| {
        let mut parts = clause.split(';').map(str::trim);
        let encoding = match parts.next()? {
            "*/*" | "application/*" | "application/json" => Encoding::Json,
            "application/yaml" => Encoding::Yaml,
            "application/vnd.kubernetes.protobuf" => Encoding::Protobuf,
            _ => return None,
        };
        (!parts.any(|part| part.starts_with("as="))).then_some(encoding)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_form_that_we_have_is_chosen() {
        for (accept, expected) in [
            ("", Some(Encoding::Json)),
            ("*/*", Some(Encoding::Json)),
            ("application/yaml", Some(Encoding::Yaml)),
            ("application/vnd.kubernetes.protobuf, application/json", Some(Encoding::Protobuf)),
            ("application/json;as=Table;v=v1;g=meta.k8s.io", None),
            (
                "application/json;as=APIGroupDiscoveryList;v=v2beta1;g=x, application/json",
                Some(Encoding::Json),
            ),
            ("text/html", None),
        ] {
            assert_eq!(choose(accept), expected, "{accept}");
        }
    }
}
