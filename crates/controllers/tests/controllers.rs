//! The control loops on a control plane inside the test, in virtual time.
#![expect(clippy::unwrap_used, reason = "tests")]

mod accounts;
mod cluster_role_aggregation;
mod cron_job;
mod daemon_set;
mod deployment;
mod disruption;
mod endpoints;
mod garbage_collection;
mod job;
mod namespaces;
mod node_health;
mod pod_garbage;
mod pod_states;
mod pods;
mod replica_set;
mod rig;
mod scheduler;
mod stateful_set;
mod ttl_after_finished;
