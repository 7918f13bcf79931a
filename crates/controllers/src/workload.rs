//! The loops that make pods: each keeps as many of them as the spec of its kind asks for.

pub(crate) mod cron_job;
pub(crate) mod daemon_set;
pub(crate) mod deployment;
mod history;
pub(crate) mod job;
pub(crate) mod replica_set;
pub(crate) mod replication_controller;
pub(crate) mod stateful_set;
mod template_hash;
