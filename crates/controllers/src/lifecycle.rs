//! The loops that end the life of objects: owners and their dependents, namespaces and their content, pods and jobs.

pub(crate) mod garbage_collection;
pub(crate) mod namespaces;
pub(crate) mod pod_garbage;
pub(crate) mod ttl_after_finished;
