//! Unmodified third-party programs against the running binary. `cargo xtask test` finds or fetches them.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

mod book;
mod harness;
mod kubectl;
mod project;
mod projects;
mod python;
mod webhooks;
