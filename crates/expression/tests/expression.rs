//! Expressions against what the real thing makes of them, and against what no author may do to the server.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

mod conformance;
mod language;
mod limits;
mod schema;
