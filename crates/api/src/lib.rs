//! The nouns of Kubernetes, pure: no I/O, no async, no clock.
//!
//! | room | what lies there |
//! |---|---|
//! | [`kind`] | what an object is: group, version, kind and resource |
//! | [`path`] | the URL under which it is served |
//! | [`name`] | what it may be called, and every other text with a format |
//! | [`object`] | an object as JSON: who and what it is, read and set in place |
//! | [`meta`] | its metadata, typed, and the rules for it |
//! | [`label_selector`], [`field_selector`] | which objects are meant |
//! | [`quantity`], [`time`] | amounts and moments, exact on the wire |
//! | [`cron`] | when something is due again |
//! | [`field`] | where in an object something is wrong, and how |
//! | [`status`] | the answer that is not an object |
//! | [`prometheus`] | metrics, in the text that Prometheus collects |
//! | [`go`] | how Go prints a value, because clients match on the text |

pub mod cron;
pub mod field;
pub mod field_selector;
pub mod go;
pub mod kind;
pub mod label_selector;
pub mod meta;
pub mod name;
pub mod object;
pub mod path;
pub mod prometheus;
pub mod quantity;
pub mod status;
pub mod time;
