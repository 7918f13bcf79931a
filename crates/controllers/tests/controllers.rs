//! The control loops on a control plane inside the test, in virtual time.
#![expect(clippy::unwrap_used, reason = "tests")]

mod accounts;
mod bootstrap;
mod certificates;
mod cluster_role_aggregation;
mod cron_job;
mod daemon_set;
mod deployment;
mod device_taints;
mod disruption;
mod endpoints;
mod garbage_collection;
mod job;
mod namespaces;
mod node_health;
mod node_ipam;
mod pod_garbage;
mod pod_states;
mod pods;
mod replica_set;
mod resource_claims;
mod rig;
mod scheduler;
mod service_cidr;
mod simulation;
mod stateful_set;
mod storage;
mod ttl_after_finished;
