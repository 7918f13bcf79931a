//! Clusters with a whole control plane on simulated nodes, and the operator alone.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed")]

mod changes;
#[path = "../demo/story.rs"]
mod demo;
mod life;
mod process;
mod steps;
