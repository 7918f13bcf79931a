//! Decodes JSON bytes into an object of a type, or fails with the error text of kube-apiserver.
//!
//! The result is the object as Go would hold it after decoding: unknown members are dropped, and so is what
//! Go's encoder would omit (`null`, and zeros of fields that are not pointers); quantities, times and base64
//! are in canonical form. The encoder adds the fields that Go always writes.
//!
//! ```
//! use schema::decode::{FieldValidation, decode};
//! use schema::types::{Field, Node, Type, Types};
//!
//! let mut types = Types::default();
//! let spec = types.add(Type::new("example.v1.DiskSpec", vec![Field::new("size", Node::Quantity)]));
//! let disk = types.add(Type::new("example.v1.Disk", vec![Field::new("spec", Node::Object(spec))]));
//!
//! let body = br#"{"spec": {"size": "1024Mi", "colour": "red"}}"#;
//! let read = decode(&types, disk, body, FieldValidation::Warn)?;
//! assert_eq!(read.value, serde_json::json!({"spec": {"size": "1Gi"}}));
//! assert_eq!(read.warnings, [r#"unknown field "spec.colour""#]);
//!
//! let refused = decode(&types, disk, br#"{"spec": 5}"#, FieldValidation::Ignore);
//! let says = "json: cannot unmarshal number into Go struct field Disk.spec of type v1.DiskSpec";
//! assert_eq!(refused.unwrap_err().to_string(), says);
//! # Ok::<(), schema::decode::DecodeError>(())
//! ```

use serde_json::Value;
use thiserror::Error;

use crate::types::{TypeId, Types};

mod faults;
mod scalar;
mod scanner;
mod trail;
mod type_meta;
mod walk;

pub use type_meta::{TypeMeta, type_meta};

/// The most list items and object members in one body; an object counts for four. In memory each takes many
/// times the two bytes that it needs in JSON, so a body within the size limit could use up all memory. The
/// largest objects in use have a tenth of this.
pub const MAX_VALUES: usize = 200_000;

/// `fieldValidation`: what the server does with unknown and duplicate members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// Dropped; of two duplicates the later counts.
    Ignore,
    /// Dropped, and the client gets a warning.
    #[default]
    Warn,
    /// The request fails.
    Strict,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    pub value: Value,
    /// For the client, each in a `Warning` header; empty except under [`FieldValidation::Warn`].
    pub warnings: Vec<String>,
}

/// Why bytes do not decode to an object of the type. The texts are kube-apiserver's.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum DecodeError {
    /// Not valid JSON, or a value has the wrong type.
    #[error("{0}")]
    Malformed(String),
    /// Unknown or duplicate members.
    #[error("strict decoding error: {}", .0.join(", "))]
    Strict(Vec<String>),
}

/// Decodes an object of a type.
pub fn decode(
    types: &Types,
    id: TypeId,
    json: &[u8],
    validation: FieldValidation,
) -> Result<Decoded, DecodeError> {
    walk::Walker::new(types, json, validation).typed(id)
}

/// Decodes an object without a type: a custom resource, before its schema prunes it. Duplicate members are
/// reported; nothing is dropped.
pub fn decode_any(json: &[u8], validation: FieldValidation) -> Result<Decoded, DecodeError> {
    walk::Walker::new(&Types::default(), json, validation).untyped()
}

/// Decodes any JSON value. Duplicate members are reported.
pub fn decode_json(json: &[u8], validation: FieldValidation) -> Result<Decoded, DecodeError> {
    walk::Walker::new(&Types::default(), json, validation).json()
}

/// Decodes any JSON value.
pub(crate) fn decode_raw(json: &[u8]) -> Result<Value, DecodeError> {
    walk::Walker::new(&Types::default(), json, FieldValidation::Ignore).raw()
}

impl DecodeError {
    /// The error message for a rejected body: `given` is the kind and version that the body states, if any;
    /// `wanted` is the kind that the request needs.
    #[must_use]
    pub fn refusal(&self, given: Option<(&str, &str)>, wanted: &str, body: &[u8]) -> String {
        match given {
            Some((kind, version)) if !kind.is_empty() => {
                let version = api::go::quote(version);
                format!("{kind} in version {version} cannot be handled as a {wanted}: {self}")
            }
            _ => {
                let summary = summary(body);
                format!("the object provided is unrecognized (must be of type {wanted}): {self} ({summary})")
            }
        }
    }
}

/// The first bytes of a body: as text if it looks like JSON, otherwise in hex.
fn summary(body: &[u8]) -> String {
    const SHOWN: usize = 30;
    let start = &body[..body.len().min(SHOWN)];
    let more = if body.len() > SHOWN { " ..." } else { "" };
    match body.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => format!("{}{more}", String::from_utf8_lossy(start)),
        Some(_) => format!("{}{more}", start.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
    }
}
