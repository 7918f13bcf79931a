//! Control loops that tell who answers for a service, and which addresses services may have.

mod addressed_pod;
pub(crate) mod endpoint_slice;
pub(crate) mod endpoint_slice_mirroring;
pub(crate) mod endpoints;
pub(crate) mod service_cidr;
mod slice_writes;
mod subsets;
mod trigger_time;
