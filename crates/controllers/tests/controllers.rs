//! The control loops on a control plane inside the test, in virtual time.
#![expect(clippy::unwrap_used, reason = "tests")]

mod deployment;
mod disruption;
mod replica_set;
mod rig;
