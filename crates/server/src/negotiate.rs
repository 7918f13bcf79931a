//! `Accept` in, the form of the answer out.

use crate::input::{Encoding, MEDIA_TYPES};
use crate::verbs::bare;
use api::status::Status;
use http::{HeaderMap, header};
use std::borrow::Cow;

/// In which form an answer goes out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) encoding: Encoding,
    pub(crate) shape: Shape,
}

/// What becomes of objects on the way out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Shape {
    #[default]
    AsIs,
    /// Rows and columns, in this version of `meta.k8s.io`.
    Table(&'static str),
    /// Only what every object has.
    Metadata(&'static str),
}

impl Form {
    const JSON: Form = Form { encoding: Encoding::Json, shape: Shape::AsIs };

    /// The best of what the caller takes.
    pub(crate) fn choose(headers: &HeaderMap) -> Result<Form, Status> {
        let accept = accept(headers);
        if accept.trim().is_empty() {
            return Ok(Form::JSON);
        }
        accept.split(',').find_map(clause).ok_or_else(|| {
            // Kubernetes: the encoding would do, but there is no such view of the object.
            let is_known =
                |text: &str| text.split(';').next().is_some_and(|it| MEDIA_TYPES.contains(&it.trim()));
            if accept.split(',').any(is_known) {
                return Status::not_acceptable(&MEDIA_TYPES);
            }
            let available = MEDIA_TYPES.join(", ");
            let message = format!("406: Not Acceptable\n\nAvailable representations: {available}");
            bare(406, &message)
        })
    }

    /// How to tell a caller of an error, who may not take anything that we have.
    pub(crate) fn for_errors(headers: &HeaderMap) -> Form {
        let form = Form::choose(headers).unwrap_or(Form::JSON);
        Form { shape: Shape::AsIs, ..form }
    }

    pub(crate) fn content_type(self) -> &'static str {
        match self.encoding {
            Encoding::Json => "application/json",
            Encoding::Yaml => "application/yaml",
            Encoding::Protobuf => "application/vnd.kubernetes.protobuf",
        }
    }
}

/// All that a caller takes, as if it were said in one header.
fn accept(headers: &HeaderMap) -> Cow<'_, str> {
    let mut values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let first = Cow::Borrowed(values.next().unwrap_or_default());
    values.fold(first, |said, more| Cow::Owned(format!("{said},{more}")))
}

/// One alternative of `Accept`, if we can serve it.
fn clause(text: &str) -> Option<Form> {
    let mut parts = text.split(';').map(str::trim);
    let encoding = match parts.next()? {
        "*/*" | "application/json" => Encoding::Json,
        "application/yaml" => Encoding::Yaml,
        "application/vnd.kubernetes.protobuf" => Encoding::Protobuf,
        _ => return None,
    };
    let (mut kind, mut group, mut version) = ("", "", "");
    for part in parts {
        match part.split_once('=') {
            Some(("as", value)) => kind = value,
            Some(("g", value)) => group = value,
            Some(("v", value)) => version = value,
            _ => {}
        }
    }
    let version = match version {
        "v1" => "v1",
        "v1beta1" => "v1beta1",
        _ => "",
    };
    let shape = match (kind, group, version) {
        ("", ..) => Shape::AsIs,
        (_, _, "") => return None,
        // Kubernetes: a table has no protobuf.
        ("Table", "meta.k8s.io", version) if encoding != Encoding::Protobuf => Shape::Table(version),
        ("PartialObjectMetadata" | "PartialObjectMetadataList", "meta.k8s.io", version) => {
            Shape::Metadata(version)
        }
        _ => return None,
    };
    Some(Form { encoding, shape })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_we_have_is_chosen() {
        let form = |encoding, shape| Some(Form { encoding, shape });
        for (accept, expected) in [
            ("", form(Encoding::Json, Shape::AsIs)),
            ("*/*", form(Encoding::Json, Shape::AsIs)),
            ("text/html, application/yaml", form(Encoding::Yaml, Shape::AsIs)),
            (
                "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
                form(Encoding::Json, Shape::Table("v1")),
            ),
            (
                "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io, application/json",
                form(Encoding::Json, Shape::AsIs),
            ),
            (
                "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
                form(Encoding::Json, Shape::Metadata("v1")),
            ),
            ("application/json;as=Poem;g=meta.k8s.io;v=v1", None),
            ("text/html", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, accept.parse().unwrap());
            assert_eq!(Form::choose(&headers).ok(), expected, "{accept}");
        }
    }
}
