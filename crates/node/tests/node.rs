//! Simulated nodes on a control plane inside the test, in virtual time.
#![expect(clippy::unwrap_used, reason = "tests")]

mod machines;
mod pods;
mod rig;
mod scale;
mod waiting;
