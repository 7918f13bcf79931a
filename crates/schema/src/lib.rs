//! What a schema does to an object: decode, encode, patch, apply. Pure: no I/O, no clock.
//!
//! | room | what goes in, what comes out |
//! |---|---|
//! | [`types`] | the one table that every room below walks |
//! | [`decode`] | JSON bytes → an object, or the real server's words of refusal |
//! | [`yaml`] | YAML bytes → the same |
//! | [`encode`] | an object → JSON bytes as Go writes them, or its normal form |
//! | [`proto`] | protobuf bytes ↔ an object |
//! | [`patch`] | an object and a patch → an object |
//! | [`field_set`], [`managed_fields`] | which fields there are, and who owns them |
//! | [`depth`] | how deep values nest, and the limit |
//! | [`scan`] | bytes that were encoded here → a part of them |
//! | [`structural`] | what the schema of a definition does to a custom object |

mod base64;
pub mod decode;
pub mod depth;
pub mod encode;
pub mod field_set;
pub mod managed_fields;
pub mod number;
pub mod patch;
pub mod proto;
mod run;
pub mod scan;
pub mod structural;
pub mod types;
pub mod yaml;
