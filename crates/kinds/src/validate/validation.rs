//! What a kind asks of its objects: how they are named, what a new one must fulfil, and what may change.

use api::field::ErrorList;
use api::name::NameRule;
use serde_json::Value;

use super::at::At;

/// The rules of one kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Validation {
    pub(super) metadata: Metadata,
    pub(super) body: Check,
    pub(super) update: UpdateChecks,
    /// What may change through a subresource, by its name.
    pub(super) subresources: &'static [(&'static str, Compare)],
    pub(super) before_allocation: Option<CheckBeforeAllocation>,
    /// Whether a write to the status is checked for what it changes in the metadata.
    pub(super) status_checks_metadata: bool,
}

/// What a kind asks of its metadata, before the server asks the same of every kind.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Metadata {
    /// A name of this form, and finalizers that Kubernetes knows.
    Named(NameRule),
    /// The same, but any finalizer will do.
    WithAnyFinalizer(NameRule),
    Unchecked,
}

/// Everything that a new object must fulfil, but for its metadata.
pub(crate) type Check = fn(&At<'_, '_>, &mut ErrorList);
/// What may change from the second object to the first.
pub(crate) type Compare = fn(&At<'_, '_>, &At<'_, '_>, &mut ErrorList);
/// A new object, or the new and the old one of an update.
pub(crate) type CheckBeforeAllocation = fn(&At<'_, '_>, Option<&At<'_, '_>>, &mut ErrorList);

/// What to tell the client of a new object, or of one that replaces another.
pub(crate) type Warn = fn(&At<'_, '_>, Option<&Value>, &mut Vec<String>);

/// What an update is checked for. The metadata come first, then body and comparison in the given order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UpdateChecks {
    pub(super) metadata: UpdateMetadata,
    /// Whether the body must fulfil what a new object must.
    pub(super) body: bool,
    pub(super) order: Order,
    pub(super) compare: Option<Compare>,
}

/// What is checked in the metadata of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UpdateMetadata {
    /// What has changed in them.
    Change,
    /// What a new object must fulfil.
    AsNew,
    ChangeAndAsNew,
}

/// Errors are reported in the order of the checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// The comparison comes before what a new object must fulfil, metadata included.
    CompareFirst,
    CompareLast,
}

impl UpdateChecks {
    /// Everything that a new object must fulfil, and what has changed in the metadata.
    pub(crate) const AS_NEW: UpdateChecks = UpdateChecks {
        metadata: UpdateMetadata::ChangeAndAsNew,
        body: true,
        order: Order::CompareLast,
        compare: None,
    };

    /// What has changed in the metadata, and the body.
    pub(crate) const BODY: UpdateChecks =
        UpdateChecks { metadata: UpdateMetadata::Change, ..UpdateChecks::AS_NEW };

    /// The metadata as of a new object, and what has changed in them; not the body.
    pub(crate) const METADATA: UpdateChecks = UpdateChecks { body: false, ..UpdateChecks::AS_NEW };

    /// What has changed in the metadata; the comparison looks at everything else.
    pub(crate) const CHANGE: UpdateChecks = UpdateChecks { body: false, ..UpdateChecks::BODY };

    /// Everything that a new object must fulfil, without a look at what has changed in the metadata.
    pub(crate) const ONLY_AS_NEW: UpdateChecks =
        UpdateChecks { metadata: UpdateMetadata::AsNew, ..UpdateChecks::AS_NEW };

    pub(crate) const fn compare(mut self, compare: Compare) -> Self {
        self.compare = Some(compare);
        self
    }

    pub(crate) const fn compare_first(mut self, compare: Compare) -> Self {
        self.order = Order::CompareFirst;
        self.compare(compare)
    }
}

impl Validation {
    /// Of a kind without rules of its own.
    pub(crate) const METADATA: Validation = Validation::new(|_, _| {});

    pub(crate) const fn new(body: Check) -> Self {
        Validation {
            metadata: Metadata::Named(NameRule::DnsSubdomain),
            body,
            update: UpdateChecks::AS_NEW,
            subresources: &[],
            before_allocation: None,
            status_checks_metadata: true,
        }
    }

    pub(crate) const fn metadata(mut self, metadata: Metadata) -> Self {
        self.metadata = metadata;
        self
    }

    pub(crate) const fn named(self, name: NameRule) -> Self {
        self.metadata(Metadata::Named(name))
    }

    pub(crate) const fn update(mut self, update: UpdateChecks) -> Self {
        self.update = update;
        self
    }

    /// Kubernetes: what an object needs to be allocated something (an address, a port) is checked when that is done,
    /// which is before the object is validated. Where it is wrong, nothing else is reported.
    pub(crate) const fn check_before_allocation(mut self, check: CheckBeforeAllocation) -> Self {
        self.before_allocation = Some(check);
        self
    }

    pub(crate) const fn subresources(mut self, subresources: &'static [(&'static str, Compare)]) -> Self {
        self.subresources = subresources;
        self
    }

    pub(crate) const fn without_metadata_of_status(mut self) -> Self {
        self.status_checks_metadata = false;
        self
    }
}
