//! What the registry of each resource does to an object beside checking it: status kept apart from spec, generation,
//! and what a write sets on its own.
//!
//! | step | call |
//! |---|---|
//! | create | [`Strategy::prepare_create`], when name, uid and creation time are set |
//! | update | [`Strategy::prepare_update`] with the object as it is stored |
//! | a subresource that writes the same object | [`Strategy::prepare_subresource`] |
//! | who may own what | [`Strategy::reset_fields`] |
//! | delete | [`Strategy::grace_period`], and its `gc_policy` |
//!
//! A kind says its strategy in its own file, in the words of `builder.rs`; here is what a strategy does. Nothing here
//! reads a clock or draws a number: what is needed comes in [`Circumstances`].

pub(crate) mod builder;
pub(crate) mod disabled;
pub(crate) mod metadata;
pub(crate) mod prepare;
mod reset_fields;
pub mod service_address;
pub(crate) mod subresource;
#[cfg(test)]
mod tests;

use api::name::NameRule;
use api::time::Time;
use serde_json::Value;

use crate::built_in;
use crate::defaults::member::Members;
use subresource::SubresourceRules;

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
    graceful: Option<GracePeriod>,
    /// A delete answers with the object that is gone, not with a status.
    pub return_deleted_object: bool,
    /// Where in an object there is a pod spec.
    pod_spec: Option<Path>,
    /// Fields behind a feature that is switched off; a write drops them.
    disabled: &'static [Path],
    subresources: &'static [SubresourceRules],
}

/// The names of the members that lead to a field.
pub(crate) type Path = &'static [&'static str];
pub(crate) type CreateRule = fn(&mut Members, &Circumstances<'_>);
/// The new object and the old one.
pub(crate) type UpdateRule = fn(&mut Members, &Members, &Circumstances<'_>);
/// The seconds that an object stays after a delete, which may ask for a number of them.
pub(crate) type GracePeriod = fn(&Value, Option<i64>) -> i64;

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
pub(crate) enum StatusMetadata {
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
    built_in::of_resource(group, resource).map_or(&PLAIN, |it| &it.strategy)
}

static PLAIN: Strategy = Strategy::PLAIN;

/// The strategy of a custom resource, with or without a status of its own.
pub fn custom(has_status: bool) -> &'static Strategy {
    if has_status { &builder::CUSTOM_WITH_STATUS } else { &builder::CUSTOM }
}
