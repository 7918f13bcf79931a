//! Content negotiation: the form of a response from `Accept`.

mod clause;

use crate::{
    input::{Encoding, MEDIA_TYPES},
    refusal::Refusal,
    request::Verb,
};
use clause::Clause;
use http::{HeaderMap, header};

/// Media types of a watch.
pub(crate) const STREAM_MEDIA_TYPES: [&str; 2] =
    ["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"];

/// Media types of a resource that can be watched.
const WATCHED_MEDIA_TYPES: [&str; 5] = {
    let ([json, yaml, protobuf], [json_stream, protobuf_stream]) = (MEDIA_TYPES, STREAM_MEDIA_TYPES);
    [json, yaml, protobuf, json_stream, protobuf_stream]
};

/// The form of a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) encoding: Encoding,
    pub(crate) shape: Shape,
}

/// What is sent of an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Shape {
    #[default]
    AsIs,
    /// A Table, in this version of `meta.k8s.io`.
    Table(&'static str),
    /// Only the metadata.
    Metadata(&'static str),
    /// Only the metadata of each item.
    MetadataList(&'static str),
}

impl Form {
    const JSON: Form = Form { encoding: Encoding::Json, shape: Shape::AsIs };

    /// The preferred form of a built-in resource.
    pub(crate) fn of_built_in(headers: &HeaderMap, has_table: bool) -> Result<Form, Refusal> {
        let shape = |clause: &Clause<'_>, encoding| {
            clause.shape(encoding).filter(|shape| has_table || !matches!(shape, Shape::Table(_)))
        };
        Form::pick(accept(headers), shape).ok_or_else(|| Refusal::not_acceptable(&MEDIA_TYPES))
    }

    /// The preferred form of a custom resource: its objects have no protobuf, but their metadata has.
    pub(crate) fn of_custom(headers: &HeaderMap) -> Result<Form, Refusal> {
        let known = |clause: &Clause<'_>, encoding| {
            let shape = clause.shape(encoding)?;
            Some(shape).filter(|shape| encoding != Encoding::Protobuf || *shape != Shape::AsIs)
        };
        Form::pick(accept(headers), known).ok_or_else(|| Refusal::not_acceptable(&MEDIA_TYPES))
    }

    /// The preferred encoding of an object that has no other shapes.
    pub(crate) fn plain(headers: &HeaderMap) -> Result<Form, Refusal> {
        let plain = Form::pick(accept(headers), Clause::no_shape);
        plain.ok_or_else(|| Refusal::not_acceptable(&MEDIA_TYPES))
    }

    /// The form of errors, for clients that may accept nothing we have.
    pub(crate) fn for_errors(headers: &HeaderMap) -> Form {
        Form::plain(headers).unwrap_or(Form::JSON)
    }

    fn pick<'a>(accept: &'a str, shape: impl Fn(&Clause<'a>, Encoding) -> Option<Shape>) -> Option<Form> {
        // The most frequent headers, without parsing.
        if matches!(accept, "" | "application/json" | "*/*") {
            return Some(Form::JSON);
        }
        let clauses = clause::parse(accept);
        clauses.iter().find_map(|clause| {
            let encodings = [Encoding::Json, Encoding::Yaml, Encoding::Protobuf];
            let fitting = encodings.into_iter().filter(|encoding| clause.allows(*encoding));
            fitting.filter_map(|encoding| Some(Form { encoding, shape: shape(clause, encoding)? })).next()
        })
    }

    pub(crate) fn content_type(self) -> &'static str {
        self.encoding.media_type()
    }
}

/// Rejects an `Accept` header with none of the media types of a verb on a built-in resource.
// Kubernetes: the router compares whole media types only.
pub(crate) fn check_route(headers: &HeaderMap, verb: Verb) -> Result<(), Refusal> {
    check_produced(
        headers,
        match verb {
            Verb::List | Verb::Watch => &WATCHED_MEDIA_TYPES,
            _ => &MEDIA_TYPES,
        },
    )
}

/// Rejects an `Accept` header with none of the produced media types.
pub(crate) fn check_produced(headers: &HeaderMap, produced: &[&str]) -> Result<(), Refusal> {
    let accept = accept(headers);
    if accept.is_empty() || produced.contains(&accept) {
        return Ok(());
    }
    let mut names = accept.split(',').map(|it| it.split(';').next().unwrap_or_default().trim_matches(' '));
    if names.any(|name| name == "*/*" || produced.contains(&name)) {
        return Ok(());
    }
    let available = produced.join(", ");
    Err(Refusal::by_router(406, &format!("406: Not Acceptable\n\nAvailable representations: {available}")))
}

/// The Accept header. Kubernetes: only the first one counts.
pub(crate) fn accept(headers: &HeaderMap) -> &str {
    headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preferred_available_form_is_chosen() {
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
                form(Encoding::Json, Shape::MetadataList("v1")),
            ),
            ("application/json;as=Poem;g=meta.k8s.io;v=v1", None),
            ("application/json;g=meta.k8s.io;v=v1", None),
            ("application/json;stream=poem", None),
            ("application/yaml;stream=watch", None),
            ("application/json;sv=v2", None),
            ("application/json;sv=v1;stream=watch;pretty=1", form(Encoding::Json, Shape::AsIs)),
            ("application/json;q=0.5,application/yaml", form(Encoding::Yaml, Shape::AsIs)),
            ("*/*,application/yaml", form(Encoding::Yaml, Shape::AsIs)),
            ("*", form(Encoding::Json, Shape::AsIs)),
            ("application/JSON", None),
            ("application/vnd.kubernetes.protobuf", None),
            ("application/vnd.kubernetes.protobuf,application/json;q=0.5", form(Encoding::Json, Shape::AsIs)),
            (
                "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
                form(Encoding::Protobuf, Shape::Metadata("v1")),
            ),
            ("text/html", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, accept.parse().unwrap());
            assert_eq!(Form::of_custom(&headers).ok(), expected, "{accept}");
        }
    }

    #[test]
    fn values_without_metadata_have_one_shape() {
        for (accept, expected) in [
            ("application/*", Some(Encoding::Json)),
            ("application/vnd.kubernetes.protobuf, application/json", Some(Encoding::Protobuf)),
            ("application/json;as=Table;v=v1;g=meta.k8s.io", None),
            (
                "application/json;as=APIGroupDiscoveryList;v=v2beta1;g=x, application/yaml",
                Some(Encoding::Yaml),
            ),
            ("text/html", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, accept.parse().unwrap());
            assert_eq!(Form::plain(&headers).ok().map(|form| form.encoding), expected, "{accept}");
        }
    }

    #[test]
    fn the_router_compares_whole_media_types() {
        let refused = |text: &str| format!("406: Not Acceptable\n\nAvailable representations: {text}");
        for (accept, verb, expected) in [
            ("", Verb::Get, Ok(())),
            ("text/html, */*;q=0.1", Verb::Get, Ok(())),
            ("application/json;as=Table;g=meta.k8s.io;v=v1", Verb::List, Ok(())),
            ("application/*", Verb::Get, Err(refused(&MEDIA_TYPES.join(", ")))),
            (
                "text/html",
                Verb::List,
                Err(refused(
                    "application/json, application/yaml, application/vnd.kubernetes.protobuf, \
                     application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch",
                )),
            ),
            (
                "application/json;as=Poem",
                Verb::Get,
                Err("only the following media types are accepted: application/json, application/yaml, \
                     application/vnd.kubernetes.protobuf"
                    .to_owned()),
            ),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, accept.parse().unwrap());
            let found = check_route(&headers, verb).and_then(|()| Form::of_built_in(&headers, true));
            let found = found.map(drop).map_err(|refusal| refusal.to_string());
            assert_eq!(found, expected, "{accept}");
        }
    }
}
