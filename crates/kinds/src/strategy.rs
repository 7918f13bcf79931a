//! What the registry of each resource does to an object beside checking it: status kept apart from spec, generation,
//! and what a write sets on its own.
//!
//! | step | call |
//! |---|---|
//! | create | [`Strategy::prepare_create`], when name, uid and creation time are set |
//! | update | [`Strategy::prepare_update`] with the object as it is stored |
//! | a subresource that writes the same object | [`Strategy::prepare_subresource`] |
//! | who may own what | [`Strategy::reset_fields`] |
//! | delete | [`Strategy::grace_period`], and its `dependents` |
//!
//! `table.rs` says it all as data; the files beside it hold what data cannot say, one resource each. Nothing here reads
//! a clock or draws a number: what is needed comes in [`Circumstances`].

mod api_service;
mod certificate_request;
mod custom_resource_definition;
mod daemon_set;
mod device;
mod disabled;
mod job;
mod limit_range;
mod metadata;
mod namespace;
mod pod;
mod pod_affinity;
mod pod_subresource;
pub(crate) mod prepare;
mod reset_fields;
mod secret;
mod service;
mod service_account;
pub mod service_address;
mod table;
#[cfg(test)]
mod tests;
mod volume;

use api::name::NameRule;
use api::time::Time;
use serde_json::Value;

use crate::defaults::member::Members;

/// How the objects of a resource are kept.
#[derive(Clone, Copy, Debug)]
pub struct Strategy {
    /// What they may be called. Kinds with a rule of their own check it when they are validated.
    pub name: NameRule,
    /// A PUT to a name that is free creates the object.
    pub allow_create_on_update: bool,
    /// A PUT without `resourceVersion` overwrites whatever is there.
    pub allow_unconditional_update: bool,
    /// What becomes of the objects that it owns when a delete does not say.
    pub gc_policy: GcPolicy,
    pub generation: Generation,
    pub status: Status,
    status_metadata: StatusMetadata,
    /// Where it is not just the status that a write to the resource leaves alone.
    own_reset: Option<&'static [Path]>,
    status_reset: Option<&'static [Path]>,
    create: Option<CreateRule>,
    update: Option<UpdateRule>,
    on_status: Option<UpdateRule>,
    /// What happens to a new object once it has been checked.
    settle: Option<fn(&mut Members)>,
    graceful: bool,
    /// A delete answers with the object that is gone, not with a status.
    pub return_deleted_object: bool,
    /// Where in an object there is a pod spec.
    pod_spec: Option<Path>,
    disabled: &'static [Path],
}

/// The names of the members that lead to a field.
type Path = &'static [&'static str];
type CreateRule = fn(&mut Members, &Circumstances<'_>);
/// The new object and the old one.
type UpdateRule = fn(&mut Members, &Members, &Circumstances<'_>);

/// What the outside adds to a write.
#[derive(Clone, Copy)]
pub struct Circumstances<'a> {
    pub now: Time,
    /// Who writes, as a `UserInfo`: `username`, `uid`, `groups`, `extra`. Few want to know.
    pub user: &'a (dyn Fn() -> Value + Sync),
}

impl std::fmt::Debug for Circumstances<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Circumstances").field("now", &self.now).finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GcPolicy {
    Delete,
    Orphan,
    /// They cannot have any.
    None,
}

/// When `metadata.generation` counts up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generation {
    /// Of a new object; 0 is none.
    pub first: i64,
    /// One more whenever one of these changes.
    pub counts: Counts,
}

/// What makes a new generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    Nothing,
    Fields(&'static [Path]),
    /// Anything but metadata, and but status where that is a subresource.
    Content,
}

/// What a write to the resource itself does with the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// There is none, or it is like any other field.
    Plain,
    /// Dropped on create, kept on update.
    Apart,
    /// Taken on create, kept on update.
    ApartOnceCreated,
}

/// What a write to the status may do to the metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StatusMetadata {
    Anything,
    /// Anything but these.
    AllBut(&'static [&'static str]),
    /// Nothing that a user could want to write.
    Little,
    /// Nothing but who owns which field.
    Nothing,
}

/// The strategy of a built-in resource; the plainest one for a resource that is not known.
pub fn strategy(group: &str, resource: &str) -> &'static Strategy {
    let found = table::TABLE.iter().find(|(of, name, _)| *name == resource && *of == group);
    found.map_or(&table::PLAIN, |(_, _, strategy)| strategy)
}

/// The strategy of a custom resource, with or without a status of its own.
pub fn custom(has_status: bool) -> &'static Strategy {
    if has_status { &table::CUSTOM_WITH_STATUS } else { &table::CUSTOM }
}
