//! Decodes and encodes protobuf: every built-in kind, by the field numbers of its type.
//!
//! A message travels in an [`Envelope`] that names its kind. Objects come out in the same form as from
//! [`crate::decode`]; encoded bytes are exactly those of Kubernetes:
//!
//! ```
//! use schema::proto;
//! use schema::types::{Field, Node, Proto, Type, Types};
//!
//! let numbered = |name: &'static str, node, number| {
//!     Field { proto: Some(Proto { number, via: [].into() }), ..Field::new(name, node) }
//! };
//! let mut types = Types::default();
//! let fields = vec![numbered("name", Node::String, 1), numbered("size", Node::Int32, 2)];
//! let disk = types.add(Type::new("example.v1.Disk", fields).of_kind("example.com", "v1", "Disk"));
//!
//! let message = proto::encode(&types, disk, &serde_json::json!({"name": "a"}));
//! assert_eq!(message, [0x0a, 1, b'a', 0x10, 0]);
//! assert_eq!(proto::decode(&types, disk, &message)?, serde_json::json!({"name": "a"}));
//!
//! let body = proto::Envelope::new("example.com/v1", "Disk", &message).seal();
//! assert_eq!(proto::Envelope::open(&body)?.kind, "Disk");
//! # Ok::<(), proto::ProtoError>(())
//! ```

use thiserror::Error;

mod decode;
mod encode;
mod envelope;
mod forget;
mod wire;

pub use decode::decode;
pub use encode::{encode, encode_item};
pub use envelope::{Envelope, watch_frame};
pub use forget::forget_empty;

/// Why bytes are not a message of the type.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ProtoError {
    /// The four bytes at the start are missing.
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    NoEnvelope,
    #[error("empty data")]
    Empty,
    #[error("unexpected EOF")]
    Truncated,
    #[error("proto: integer overflow")]
    Overflow,
    #[error("proto: illegal wireType {0}")]
    IllegalWireType(u8),
    #[error("proto: {0}: illegal tag {1} (wire type {2})")]
    IllegalTag(String, u32, u8),
    #[error("proto: wrong wireType = {0} for field {1}")]
    WrongWireType(u8, String),
    #[error("proto: nesting exceeds {0} levels")]
    TooDeep(usize),
    #[error("proto: more than {0} values")]
    TooManyValues(usize),
    /// A quantity or JSON inside the message is malformed.
    #[error("{0}")]
    BadValue(String),
}
