//! JSON bytes in, an object that its type allows out, or the words in which the real server refuses it.
//!
//! What comes out is the object as Go would hold it after reading: members that are no field are gone, and so is
//! whatever Go's encoder would leave out (`null`, and zeros of fields that are no pointer); quantities, times and
//! base64 are in their canonical form. The encoder puts back what is always written.
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

/// Items of lists and members of objects in one body. In memory each takes many times the two bytes that it can be
/// written in, so that a body within its limits could take all memory. Objects count for four. The largest objects that
/// people write have a tenth of these.
pub const MAX_VALUES: usize = 200_000;

/// `fieldValidation`: what happens to members that no type knows, or that come twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// They are dropped; of two the later counts.
    Ignore,
    /// The same, and the caller learns.
    #[default]
    Warn,
    /// The request fails.
    Strict,
}

/// An object that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    pub value: Value,
    /// For the caller, each in a `Warning` header; empty unless under [`FieldValidation::Warn`].
    pub warnings: Vec<String>,
}

/// Why bytes are no object of the type. The texts are those of the real server.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum DecodeError {
    /// They are not what they claim to be, or hold a value where its type does not allow it.
    #[error("{0}")]
    Malformed(String),
    /// Members are unknown, or come twice.
    #[error("strict decoding error: {}", .0.join(", "))]
    Strict(Vec<String>),
}

/// Reads an object of a type.
pub fn decode(
    types: &Types,
    id: TypeId,
    json: &[u8],
    validation: FieldValidation,
) -> Result<Decoded, DecodeError> {
    walk::Walker::new(types, json, validation).typed(id)
}

/// Reads an object of which only the JSON is known: a custom resource, before its schema looks at it. Members
/// that come twice are reported; nothing is dropped.
pub fn decode_any(json: &[u8], validation: FieldValidation) -> Result<Decoded, DecodeError> {
    walk::Walker::new(&Types::default(), json, validation).untyped()
}

/// Reads any JSON at all. Members that come twice are reported.
pub fn decode_json(json: &[u8], validation: FieldValidation) -> Result<Decoded, DecodeError> {
    walk::Walker::new(&Types::default(), json, validation).json()
}

/// Reads any JSON at all.
pub(crate) fn decode_raw(json: &[u8]) -> Result<Value, DecodeError> {
    walk::Walker::new(&Types::default(), json, FieldValidation::Ignore).raw()
}

impl DecodeError {
    /// The message that goes with the refusal of a body: `given` is the kind and version that it says it is,
    /// where it says one, `wanted` the kind that belongs there.
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
