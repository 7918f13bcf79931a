//! The control loops on a control plane inside the test, in virtual time.
#![expect(clippy::unwrap_used, reason = "tests")]

mod cron_job;
mod job;
mod pods;
mod replica_set;
mod rig;
