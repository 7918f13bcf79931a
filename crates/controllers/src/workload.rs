//! The loops that make pods: each keeps as many of them as the spec of its kind asks for.

pub(crate) mod deployment;
pub(crate) mod replica_set;
pub(crate) mod replication_controller;
