//! The rules of a kind, applied to an object or to an update of one.

use std::collections::HashMap;
use std::sync::LazyLock;

use api::field::ErrorList;
use api::meta::Scope;
use api::name::NameRule;
use serde_json::Value;

use super::at::At;
use super::metadata;
use super::validation::{Metadata, Order, UpdateMetadata, Validation};
use crate::built_in::{BUILT_INS, BuiltIn};
use crate::resources::{self, resources};

/// A kind's validation, and what its resource says of its objects.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    validation: &'static Validation,
    scope: Scope,
    /// Reviews and the like are answered, never stored, and so need no name.
    is_stored: bool,
}

impl Rules {
    /// `None` for what is no built-in kind.
    pub(super) fn of(group: &str, kind: &str) -> Option<Self> {
        static BY_KIND: LazyLock<HashMap<(&str, &str), Rules>> =
            LazyLock::new(|| BUILT_INS.iter().map(|it| ((it.group, it.kind), Rules::new(it))).collect());
        BY_KIND.get(&(group, kind)).copied()
    }

    fn new(of: &'static BuiltIn) -> Self {
        let resource = resources().iter().find(|it| it.kind == of.kind && it.group == of.group);
        let scope = match resource.map(|it| it.scope) {
            // A kind without a resource (`Scale`) is that of a subresource of namespaced objects.
            Some(resources::Scope::Namespaced) | None => Scope::Namespaced,
            Some(resources::Scope::Cluster) => Scope::Cluster,
        };
        Rules {
            validation: &of.validation,
            scope,
            is_stored: resource.is_some_and(|it| it.storage.is_some()),
        }
    }

    /// Whether something is wrong that keeps the object from being allocated what it asks for. Nothing else is
    /// reported then.
    pub(super) fn fails_before_allocation(
        self,
        new: &Value,
        old: Option<&Value>,
        errors: &mut ErrorList,
    ) -> bool {
        if let Some(check) = self.validation.before_allocation {
            check(&At::root(new), old.map(At::root).as_ref(), errors);
        }
        !errors.is_empty()
    }

    pub(super) fn create(self, object: &Value, errors: &mut ErrorList) {
        self.create_metadata(object, errors);
        (self.validation.body)(&At::root(object), errors);
    }

    fn create_metadata(self, object: &Value, errors: &mut ErrorList) {
        match self.validation.metadata {
            Metadata::Named(name) => metadata::create(object, self.scope, name, errors),
            Metadata::WithAnyFinalizer(name) => metadata::create_any(object, self.scope, name, errors),
            Metadata::Unchecked => {}
        }
    }

    /// What the real server asks of every kind once the kind itself has found no error.
    pub(super) fn create_of_any_kind(self, object: &Value, errors: &mut ErrorList) {
        match self.validation.metadata {
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

    pub(super) fn update(self, new: &Value, old: &Value, errors: &mut ErrorList) {
        let checks = self.validation.update;
        let compare = |order: Order, errors: &mut ErrorList| {
            if let Some(compare) = checks.compare.filter(|_| checks.order == order) {
                compare(&At::root(new), &At::root(old), errors);
            }
        };
        if checks.metadata != UpdateMetadata::AsNew {
            self.update_metadata(new, old, errors);
        }
        compare(Order::CompareFirst, errors);
        if checks.metadata != UpdateMetadata::Change {
            self.create_metadata(new, errors);
        }
        if checks.body {
            (self.validation.body)(&At::root(new), errors);
        }
        compare(Order::CompareLast, errors);
    }

    fn update_metadata(self, new: &Value, old: &Value, errors: &mut ErrorList) {
        match self.validation.metadata {
            Metadata::Named(_) => metadata::update(new, old, errors),
            Metadata::WithAnyFinalizer(_) => metadata::update_any(new, old, errors),
            Metadata::Unchecked => {}
        }
    }

    /// A subresource without a rule of its own is checked for what it changes in the metadata.
    pub(super) fn subresource(self, name: &str, new: &Value, old: &Value, errors: &mut ErrorList) {
        if self.validation.status_checks_metadata {
            self.update_metadata(new, old, errors);
        }
        if let Some((_, compare)) = self.validation.subresources.iter().find(|(it, _)| *it == name) {
            compare(&At::root(new), &At::root(old), errors);
        }
    }
}
