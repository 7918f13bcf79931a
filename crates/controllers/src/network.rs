//! Control loops that tell who answers for a service.

mod addressed_pod;
pub(crate) mod endpoint_slice;
pub(crate) mod endpoint_slice_mirroring;
pub(crate) mod endpoints;
mod slice_writes;
mod subsets;
mod trigger_time;
