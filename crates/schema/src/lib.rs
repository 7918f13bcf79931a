//! Decodes, encodes, patches and applies objects by their schema. Pure: no I/O, no clock.
//!
//! | room | what goes in, what comes out |
//! |---|---|
//! | [`types`] | the one table of types that every module below uses |
//! | [`decode`] | JSON bytes → an object, or kube-apiserver's error text |
//! | [`yaml`] | YAML bytes → the same |
//! | [`encode`] | an object → JSON bytes as Go writes them, or its normal form |
//! | [`proto`] | protobuf bytes ↔ an object |
//! | [`patch`] | an object and a patch → an object |
//! | [`field_set`], [`managed_fields`] | sets of fields, and which manager owns which |
//! | [`depth`] | the nesting depth of values, and its limit |
//! | [`scan`] | bytes that were encoded here → a part of them, without parsing the rest |
//! | [`structural`] | decodes, prunes, defaults and validates custom objects |

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
