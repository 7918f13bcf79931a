//! The control loops on a control plane inside the test, in virtual time.
#![expect(clippy::unwrap_used, reason = "tests")]

mod cluster_role_aggregation;
mod garbage_collection;
mod namespaces;
mod pod_garbage;
mod replica_set;
mod rig;
mod ttl_after_finished;
