//! The control loops on a control plane inside the test, in virtual time.
#![expect(clippy::unwrap_used, reason = "tests")]

mod accounts;
mod cron_job;
mod daemon_set;
mod deployment;
mod disruption;
mod job;
mod node_health;
mod pod_states;
mod pods;
mod replica_set;
mod rig;
mod stateful_set;
