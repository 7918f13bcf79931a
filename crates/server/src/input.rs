//! Decodes request bodies into objects.

pub(crate) mod patch;

use crate::{
    custom::Custom,
    refusal::Refusal,
    served::{Kind, Served, join, package},
};
use api::object;
use bytes::Bytes;
use http::{HeaderMap, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use kinds::resources::Resource;
use schema::{
    decode::{self, Decoded, FieldValidation},
    proto::{self, Envelope},
    structural,
    types::{TypeId, Types},
    yaml,
};
use serde_json::Value;
use std::borrow::Cow;

/// Kubernetes: its limit on request bodies.
const MAX_BODY_BYTES: usize = 3 * 1024 * 1024;

/// Encodings of requests and responses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Encoding {
    #[default]
    Json,
    Yaml,
    Protobuf,
}

impl Encoding {
    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Encoding::Json => "application/json",
            Encoding::Yaml => "application/yaml",
            Encoding::Protobuf => "application/vnd.kubernetes.protobuf",
        }
    }

    /// The encoding that a media type names, whatever else it says; JSON if it names none.
    pub(crate) fn of_media_type(media_type: &str) -> Encoding {
        match media_type {
            it if it.contains("yaml") => Encoding::Yaml,
            it if it.contains("protobuf") => Encoding::Protobuf,
            _ => Encoding::Json,
        }
    }
}

pub(crate) const MEDIA_TYPES: [&str; 3] =
    ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];

/// Reads a body up to the limit.
pub(crate) async fn read<B>(body: B) -> Result<Bytes, Refusal>
where
    B: http_body::Body,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    match Limited::new(body, MAX_BODY_BYTES).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.downcast_ref::<LengthLimitError>().is_some() => {
            Err(Refusal::request_entity_too_large(format!("limit is {MAX_BODY_BYTES}")))
        }
        Err(error) => Err(Refusal::bad_request(format!("unable to read the body: {error}"))),
    }
}

/// The media type of a body, without parameters.
pub(crate) fn media_type(headers: &HeaderMap) -> &str {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim()
}

pub(crate) fn encoding(media_type: &str) -> Result<Encoding, Refusal> {
    match media_type {
        "" | "application/json" => Ok(Encoding::Json),
        "application/yaml" => Ok(Encoding::Yaml),
        "application/vnd.kubernetes.protobuf" => Ok(Encoding::Protobuf),
        _ => Err(Refusal::unsupported_media_type(&MEDIA_TYPES)),
    }
}

/// The encoding of an object of a resource. Custom resources have no protobuf.
pub(crate) fn encoding_for(served: &Served, media_type: &str) -> Result<Encoding, Refusal> {
    match encoding(media_type)? {
        Encoding::Protobuf if served.custom().is_some() => {
            Err(Refusal::unsupported_media_type(&MEDIA_TYPES[..2]))
        }
        encoding => Ok(encoding),
    }
}

/// Kubernetes: three servers in one, each with a scheme whose source location is part of error texts.
fn scheme(group: &str) -> &'static str {
    match group {
        "apiextensions.k8s.io" => "k8s.io/apiextensions-apiserver/pkg/apiserver/apiserver.go:55",
        "apiregistration.k8s.io" => "k8s.io/kube-aggregator/pkg/apiserver/scheme/scheme.go:28",
        _ => "pkg/api/legacyscheme/scheme.go:30",
    }
}

/// The kind that a body should hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExpectedKind<'a> {
    pub(crate) types: &'a Types,
    pub(crate) of: TypeId,
    pub(crate) group: &'a str,
    pub(crate) version: &'a str,
    pub(crate) kind: &'a str,
}

/// Decodes the object of a create or update.
pub(crate) fn body(
    served: &Served,
    body: &[u8],
    encoding: Encoding,
    validation: FieldValidation,
) -> Result<Decoded, Refusal> {
    let decoded = object(served, body, encoding, validation)?;
    let (given, expected) = (object::api_version(&decoded.value), served.api_version());
    match given == expected {
        true => Ok(decoded),
        false => Err(Refusal::bad_request(format!(
            "the API version in the data ({given}) does not match the expected API version ({expected})"
        ))),
    }
}

/// Why bytes are not an object of the wanted kind.
#[derive(Debug)]
pub(crate) struct Undecodable {
    /// The decoder's error alone: the message when the result of a patch cannot be decoded.
    pub(crate) problem: String,
    /// The message of the Status when a request body cannot be decoded.
    refusal: String,
}

impl Undecodable {
    fn with_text(text: String) -> Undecodable {
        Undecodable { problem: text.clone(), refusal: text }
    }

    /// `given` is the kind and version in the body, if any, `wanted` the kind of the resource.
    fn new(
        error: &decode::DecodeError,
        given: Option<(&str, &str)>,
        wanted: &str,
        body: &[u8],
    ) -> Undecodable {
        Undecodable { problem: error.to_string(), refusal: error.refusal(given, wanted, body) }
    }
}

impl From<Undecodable> for Refusal {
    fn from(undecodable: Undecodable) -> Refusal {
        Refusal::bad_request(undecodable.refusal)
    }
}

/// Decodes an object of a resource, sent or patched.
pub(crate) fn object(
    served: &Served,
    body: &[u8],
    encoding: Encoding,
    validation: FieldValidation,
) -> Result<Decoded, Undecodable> {
    let Resource { group, version, kind, .. } = &served.resource;
    match &served.kind {
        Kind::BuiltIn { types, of } => {
            ExpectedKind { types, of: *of, group, version, kind }.decode(body, encoding, validation)
        }
        Kind::Custom(custom) => custom_object(served, custom, body, encoding, validation),
    }
}

fn custom_object(
    served: &Served,
    custom: &Custom,
    body: &[u8],
    encoding: Encoding,
    validation: FieldValidation,
) -> Result<Decoded, Undecodable> {
    let kind = &*served.resource.kind;
    let unreadable = |error: &decode::DecodeError| Undecodable::new(error, None, kind, body);
    let json = match encoding {
        Encoding::Yaml => Cow::Owned(yaml::to_json(body).map_err(|error| unreadable(&error))?.json),
        Encoding::Json | Encoding::Protobuf => Cow::Borrowed(body),
    };
    let given = decode::type_meta(&json).and_then(|given| given.named(body));
    let given = given.map_err(|error| unreadable(&error))?;
    let (group, version) = given.api_version.rsplit_once('/').unwrap_or(("", &given.api_version));
    let decoded = match encoding {
        // Kubernetes: an object of another kind is not checked against the schema, but its metadata is
        // decoded.
        _ if given.kind != kind || group != &*served.resource.group => decode::decode_any(&json, validation)
            .and_then(|decoded| structural::check_metadata(&decoded.value).map(|()| decoded)),
        Encoding::Yaml => custom.compiled().schema.decode(body, structural::Encoding::Yaml, validation),
        Encoding::Json | Encoding::Protobuf => {
            custom.compiled().schema.decode(body, structural::Encoding::Json, validation)
        }
    };
    decoded.map_err(|error| Undecodable::new(&error, Some((&given.kind, version)), kind, body))
}

impl<'a> ExpectedKind<'a> {
    /// Decodes an object; without apiVersion and kind it is taken for the wanted kind.
    pub(crate) fn decode(
        &self,
        body: &[u8],
        encoding: Encoding,
        validation: FieldValidation,
    ) -> Result<Decoded, Undecodable> {
        let decoded = match encoding {
            Encoding::Json => match self.plain(body, validation) {
                Some(decoded) => decoded,
                None => self.decode_json(body, validation)?,
            },
            Encoding::Yaml => {
                let json = yaml::to_json(body).map_err(|error| self.unreadable(&error, body))?;
                let given = decode::type_meta(&json.json).map_err(|error| self.unreadable(&error, body))?;
                let given = (given.api_version, given.kind);
                self.check(&given, body)?;
                let decoded = yaml::decode_yaml(self.types, self.of, body, validation);
                decoded.map_err(|error| self.refuse(&error, &given, body))?
            }
            Encoding::Protobuf => {
                let envelope = Envelope::open(body).map_err(|error| {
                    self.unreadable(&decode::DecodeError::Malformed(error.to_string()), body)
                })?;
                let given = (envelope.api_version.to_string(), envelope.kind.to_string());
                self.check(&given, body)?;
                let value = proto::decode(self.types, self.of, &envelope.raw)
                    .map_err(|error| Undecodable::with_text(error.to_string()))?;
                Decoded { value, warnings: Vec::new() }
            }
        };
        let Decoded { mut value, warnings } = decoded;
        if let (false, Some(object)) = (self.has_wanted_kind(&value), value.as_object_mut()) {
            object.insert("apiVersion".to_owned(), join(self.group, self.version).into());
            object.insert("kind".to_owned(), self.kind.into());
        }
        Ok(Decoded { value, warnings })
    }

    /// The fast path for an object of the wanted kind without warnings: it is decoded only once.
    fn plain(&self, body: &[u8], validation: FieldValidation) -> Option<Decoded> {
        // Without warnings, a duplicate `Kind` in other letters would go unnoticed.
        if validation == FieldValidation::Ignore {
            return None;
        }
        let decoded = decode::decode(self.types, self.of, body, validation).ok()?;
        (self.has_wanted_kind(&decoded.value) && decoded.warnings.is_empty()).then_some(decoded)
    }

    fn has_wanted_kind(&self, value: &Value) -> bool {
        object::kind(value) == self.kind && object::api_version(value) == join(self.group, self.version)
    }

    fn decode_json(&self, body: &[u8], validation: FieldValidation) -> Result<Decoded, Undecodable> {
        let given = decode::type_meta(body).map_err(|error| self.unreadable(&error, body))?;
        let given = (given.api_version, given.kind);
        self.check(&given, body)?;
        let decoded = decode::decode(self.types, self.of, body, validation);
        decoded.map_err(|error| self.refuse(&error, &given, body))
    }

    /// The error for an object with a kind.
    fn refuse(&self, error: &decode::DecodeError, given: &(String, String), body: &[u8]) -> Undecodable {
        let (api_version, kind) = given;
        let given = match kind.as_str() {
            "" => (self.kind, self.version),
            kind => (kind, api_version.rsplit('/').next().unwrap_or_default()),
        };
        Undecodable::new(error, Some(given), self.kind, body)
    }

    /// The error for an object whose kind cannot be read.
    fn unreadable(&self, error: &decode::DecodeError, body: &[u8]) -> Undecodable {
        Undecodable::new(error, None, self.kind, body)
    }

    /// Kubernetes: the version must be that of the URL; the kind is checked later.
    fn check(&self, (api_version, kind): &(String, String), body: &[u8]) -> Result<(), Undecodable> {
        let expected = join(self.group, self.version);
        if *api_version == expected && kind == self.kind {
            return Ok(());
        }
        if api_version.matches('/').count() > 1 {
            let problem = format!("unexpected GroupVersion string: {api_version}");
            return Err(self.unreadable(&decode::DecodeError::Malformed(problem), body));
        }
        // What is missing is taken from the URL.
        let api_version = if api_version.is_empty() { &expected } else { api_version };
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        let (own, named) = (self.kind, if kind.is_empty() { self.kind } else { kind });
        let not_handled = |problem: String| Undecodable {
            refusal: format!("{named} in version {version:?} cannot be handled as a {own}: {problem}"),
            problem,
        };
        let is_known = || {
            let is_there = self.types.kind(group, version, named).is_some();
            scheme(group) == scheme(self.group) && (is_there || kinds::older::is_older(group, version, named))
        };
        if !is_known() {
            // Kubernetes: the location in its source is part of the text.
            let scheme = scheme(self.group);
            return Err(not_handled(format!(
                "no kind {named:?} is registered for version {api_version:?} in scheme {scheme:?}"
            )));
        }
        if named != own {
            // Kubernetes: it is first decoded as the kind that it names.
            if let (Some((of, _)), Ok(read)) = (self.types.kind(group, version, named), yaml::to_json(body))
                && let Err(error) = decode::decode(self.types, of, &read.json, FieldValidation::Ignore)
            {
                return Err(not_handled(error.to_string()));
            }
            let package = package(self.group);
            return Err(not_handled(format!(
                "converting ({version}.{named}) to ({package}.{own}): unknown conversion"
            )));
        }
        match *api_version == expected {
            true => Ok(()),
            false => Err(Undecodable::with_text(format!(
                "the API version in the data ({api_version}) does not match the expected API version ({expected})"
            ))),
        }
    }
}
