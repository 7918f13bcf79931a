//! Storage: claims get volumes, and claims, volumes and classes of attributes stay while they are used.

pub(crate) mod attach_detach;
pub(crate) mod attributes_class_protection;
pub(crate) mod binder;
pub(crate) mod claim_facts;
pub(crate) mod claim_protection;
mod claim_users;
pub(crate) mod ephemeral_volume;
pub(crate) mod expander;
mod protection_finalizer;
pub(crate) mod volume_facts;
pub(crate) mod volume_protection;
