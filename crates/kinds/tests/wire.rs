//! The built-in kinds on the wire: JSON, YAML and protobuf, in and out.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

#[path = "wire/arbitrary.rs"]
mod arbitrary;
#[path = "wire/decode.rs"]
mod decode;
#[path = "wire/limits.rs"]
mod limits;
#[path = "wire/random.rs"]
mod random;
#[path = "wire/recorded.rs"]
mod recorded;
#[path = "wire/syntax.rs"]
mod syntax;
#[path = "wire/yaml.rs"]
mod yaml;
