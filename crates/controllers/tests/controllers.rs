//! The control loops on a control plane inside the test, in virtual time.
#![expect(clippy::unwrap_used, reason = "tests")]

mod endpoints;
mod replica_set;
mod rig;
mod scheduler;
