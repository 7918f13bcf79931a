//! A kind in, its rules out: how objects are named, what new ones must fulfil, and what may change.

mod kinds;

use api::field::ErrorList;
use api::meta::Scope;
use api::name::NameRule;
use serde_json::Value;

use super::at::At;
use super::metadata;
use crate::resources::{self, resources};

use kinds::KINDS;

/// The rules of one kind.
#[derive(Debug)]
struct Kind {
    group: &'static str,
    kind: &'static str,
    metadata: Metadata,
    body: Body,
    change: Change,
    subresources: &'static [(&'static str, Compare)],
    /// What is wrong here is all that is told.
    first: Option<First>,
    /// Whether a write to the status asks for what may change in the metadata.
    status_checks_metadata: bool,
}

/// What a kind asks of its metadata, before the server asks the same of every kind.
#[derive(Clone, Copy, Debug)]
enum Metadata {
    /// A name of this form, and finalizers that Kubernetes knows.
    Named(NameRule),
    /// The same, but any finalizer will do.
    WithAnyFinalizer(NameRule),
    /// Nothing.
    Unchecked,
}

/// Everything that a new object must fulfil, but for its metadata.
type Body = fn(&At<'_, '_>, &mut ErrorList);
/// What may change from the second to the first.
type Compare = fn(&At<'_, '_>, &At<'_, '_>, &mut ErrorList);

/// What is checked before anything else, of a new object or of what replaces the second.
type First = fn(&At<'_, '_>, Option<&At<'_, '_>>, &mut ErrorList);

/// What an update asks for after the metadata.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// What a new object must fulfil, metadata included.
    AsNew,
    /// What may change, and then what a new object must fulfil, metadata included.
    ThenAsNew(Compare),
    /// The same, the other way round.
    AsNewThen(Compare),
    /// The same, without a look at what became of the metadata.
    JustAsNew(Compare),
    /// What a new object must fulfil, but for its metadata, and then what may change.
    BodyThen(Compare),
    /// What the metadata of a new object must fulfil, and then what may change.
    MetadataThen(Compare),
    /// The kind compares by itself and leaves nothing to ask.
    Alone(Compare),
}

/// Whatever is not in the table: its metadata alone is checked.
const OTHER: Kind = kind("", "", anything, Change::AsNew);

const fn kind(group: &'static str, kind: &'static str, body: Body, change: Change) -> Kind {
    let metadata = Metadata::Named(NameRule::DnsSubdomain);
    Kind { group, kind, metadata, body, change, subresources: &[], first: None, status_checks_metadata: true }
}

fn anything(_: &At<'_, '_>, _: &mut ErrorList) {}

fn nothing(_: &At<'_, '_>, _: &At<'_, '_>, _: &mut ErrorList) {}

impl Kind {
    const fn metadata(mut self, metadata: Metadata) -> Self {
        self.metadata = metadata;
        self
    }

    const fn named(self, name: NameRule) -> Self {
        self.metadata(Metadata::Named(name))
    }

    const fn checked_first(mut self, first: First) -> Self {
        self.first = Some(first);
        self
    }

    const fn without_metadata_of_status(mut self) -> Self {
        self.status_checks_metadata = false;
        self
    }

    const fn with(mut self, subresources: &'static [(&'static str, Compare)]) -> Self {
        self.subresources = subresources;
        self
    }
}

/// A kind and whether its objects live in namespaces.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    kind: &'static Kind,
    scope: Scope,
    /// Reviews and the like are answered and forgotten: nobody names them.
    is_stored: bool,
}

impl Rules {
    /// Nothing for what is no built-in kind.
    pub(super) fn of(group: &str, kind: &str) -> Option<Self> {
        let known = KINDS.iter().find(|it| it.kind == kind && it.group == group);
        let is_it = |it: &&resources::Resource| it.kind == kind && it.group == group;
        let resource = resources().iter().find(is_it);
        let scope = match resource.map(|it| it.scope) {
            Some(resources::Scope::Namespaced) => Scope::Namespaced,
            Some(resources::Scope::Cluster) => Scope::Cluster,
            // `Scale` has no resource of its own, only subresources.
            None => known.map(|_| Scope::Namespaced)?,
        };
        let is_stored = resource.is_some_and(|it| it.storage.is_some());
        Some(Rules { kind: known.unwrap_or(&OTHER), scope, is_stored })
    }

    /// Nothing but the table of types speaks about the kind.
    pub(super) fn is_unruled(self) -> bool {
        self.kind.kind.is_empty()
    }

    /// Whether something is wrong that hides everything else. Kubernetes: what an object needs to be allocated
    /// something is checked when that is done, which is before the object is validated.
    pub(super) fn is_refused_first(self, new: &Value, old: Option<&Value>, errors: &mut ErrorList) -> bool {
        if let Some(first) = self.kind.first {
            first(&At::root(new), old.map(At::root).as_ref(), errors);
        }
        !errors.is_empty()
    }

    fn create_metadata(self, object: &Value, errors: &mut ErrorList) {
        match self.kind.metadata {
            Metadata::Named(name) => metadata::create(object, self.scope, name, errors),
            Metadata::WithAnyFinalizer(name) => metadata::create_any(object, self.scope, name, errors),
            Metadata::Unchecked => {}
        }
    }

    pub(super) fn create(self, object: &Value, errors: &mut ErrorList) {
        self.create_metadata(object, errors);
        (self.kind.body)(&At::root(object), errors);
    }

    /// What the real server asks of every kind once the kind itself is content.
    pub(super) fn create_of_any_kind(self, object: &Value, errors: &mut ErrorList) {
        match self.kind.metadata {
            _ if !self.is_stored => {}
            Metadata::Unchecked => metadata::create_any(object, self.scope, NameRule::PathSegment, errors),
            Metadata::Named(_) | Metadata::WithAnyFinalizer(_) => {
                metadata::name(object, NameRule::PathSegment, errors);
            }
        }
    }

    /// What the real server asks of every kind before the kind itself is asked.
    pub(super) fn update_of_any_kind(self, new: &Value, old: &Value, errors: &mut ErrorList) {
        metadata::create_any(new, self.scope, NameRule::PathSegment, errors);
        metadata::update_any(new, old, errors);
    }

    fn update_metadata(self, new: &Value, old: &Value, errors: &mut ErrorList) {
        match self.kind.metadata {
            Metadata::Named(_) => metadata::update(new, old, errors),
            Metadata::WithAnyFinalizer(_) => metadata::update_any(new, old, errors),
            Metadata::Unchecked => {}
        }
    }

    pub(super) fn update(self, new: &Value, old: &Value, errors: &mut ErrorList) {
        if !matches!(self.kind.change, Change::JustAsNew(_)) {
            self.update_metadata(new, old, errors);
        }
        let (new_at, old_at) = (At::root(new), At::root(old));
        match self.kind.change {
            Change::AsNew => self.create(new, errors),
            Change::ThenAsNew(compare) => {
                compare(&new_at, &old_at, errors);
                self.create(new, errors);
            }
            Change::AsNewThen(compare) | Change::JustAsNew(compare) => {
                self.create(new, errors);
                compare(&new_at, &old_at, errors);
            }
            Change::BodyThen(compare) => {
                (self.kind.body)(&new_at, errors);
                compare(&new_at, &old_at, errors);
            }
            Change::MetadataThen(compare) => {
                self.create_metadata(new, errors);
                compare(&new_at, &old_at, errors);
            }
            Change::Alone(compare) => compare(&new_at, &old_at, errors),
        }
    }

    /// A subresource that no rule speaks of is checked for its metadata.
    pub(super) fn subresource(self, name: &str, new: &Value, old: &Value, errors: &mut ErrorList) {
        if self.kind.status_checks_metadata {
            self.update_metadata(new, old, errors);
        }
        if let Some((_, compare)) = self.kind.subresources.iter().find(|(it, _)| *it == name) {
            compare(&At::root(new), &At::root(old), errors);
        }
    }
}
