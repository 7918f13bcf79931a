//! Expressions against Kubernetes' results, and against attempts to exhaust the server.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

mod conformance;
mod language;
mod limits;
mod schema;
