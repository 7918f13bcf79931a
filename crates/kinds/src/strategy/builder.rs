//! How a kind says its strategy: [`Strategy::PLAIN`], and what is different.

use api::name::NameRule;

use super::{
    Counts, CreateRule, GcPolicy, Generation, GracePeriod, Path, Status, StatusMetadata, Strategy,
    SubresourceRules, UpdateRule,
};
use crate::defaults::member::Members;

/// The spec alone makes a new generation.
pub(crate) const SPEC: &[Path] = &[&["spec"]];
/// Where workloads have the spec of their pods.
pub(crate) const TEMPLATE: Path = &["spec", "template", "spec"];

pub(super) static CUSTOM: Strategy =
    Strategy::PLAIN.requires_resource_version().counts_generation_of_content();
pub(super) static CUSTOM_WITH_STATUS: Strategy = Strategy::PLAIN
    .requires_resource_version()
    .counts_generation_of_content()
    .status()
    .status_metadata(StatusMetadata::Nothing);

impl Strategy {
    pub(crate) const PLAIN: Strategy = Strategy {
        name: NameRule::DnsSubdomain,
        allow_create_on_update: false,
        allow_unconditional_update: true,
        gc_policy: GcPolicy::Delete,
        generation: Generation { first: 0, counts: Counts::Nothing },
        status: Status::Plain,
        status_metadata: StatusMetadata::Anything,
        own_reset: None,
        status_reset: None,
        create: None,
        update: None,
        on_status: None,
        settle: None,
        graceful: None,
        return_deleted_object: false,
        pod_spec: None,
        disabled: &[],
        subresources: &[],
    };

    pub(crate) const fn named(mut self, rule: NameRule) -> Self {
        self.name = rule;
        self
    }

    pub(crate) const fn allow_create_on_update(mut self) -> Self {
        self.allow_create_on_update = true;
        self
    }

    pub(crate) const fn requires_resource_version(mut self) -> Self {
        self.allow_unconditional_update = false;
        self
    }

    pub(crate) const fn gc_policy(mut self, gc_policy: GcPolicy) -> Self {
        self.gc_policy = gc_policy;
        self
    }

    pub(crate) const fn counts_generation_of(mut self, fields: &'static [Path]) -> Self {
        self.generation = Generation { first: 1, counts: Counts::Fields(fields) };
        self
    }

    pub(crate) const fn counts_generation_of_content(mut self) -> Self {
        self.generation = Generation { first: 1, counts: Counts::Content };
        self
    }

    pub(crate) const fn first_generation(mut self, first: i64) -> Self {
        self.generation.first = first;
        self
    }

    pub(crate) const fn status(mut self) -> Self {
        self.status = Status::Apart;
        self
    }

    pub(crate) const fn takes_status(mut self) -> Self {
        self.status = Status::ApartOnceCreated;
        self
    }

    pub(crate) const fn status_metadata(mut self, allowed: StatusMetadata) -> Self {
        self.status_metadata = allowed;
        self
    }

    pub(crate) const fn resets(mut self, fields: &'static [Path]) -> Self {
        self.own_reset = Some(fields);
        self
    }

    pub(crate) const fn status_resets(mut self, fields: &'static [Path]) -> Self {
        self.status_reset = Some(fields);
        self
    }

    pub(crate) const fn on_create(mut self, rule: CreateRule) -> Self {
        self.create = Some(rule);
        self
    }

    pub(crate) const fn on_update(mut self, rule: UpdateRule) -> Self {
        self.update = Some(rule);
        self
    }

    pub(crate) const fn after_validation(mut self, rule: fn(&mut Members)) -> Self {
        self.settle = Some(rule);
        self
    }

    pub(crate) const fn on_status(mut self, rule: UpdateRule) -> Self {
        self.on_status = Some(rule);
        self
    }

    pub(crate) const fn pod_spec_at(mut self, pod_spec: Path) -> Self {
        self.pod_spec = Some(pod_spec);
        self
    }

    pub(crate) const fn disabled_fields(mut self, fields: &'static [Path]) -> Self {
        self.disabled = fields;
        self
    }

    pub(crate) const fn graceful(mut self, period: GracePeriod) -> Self {
        self.graceful = Some(period);
        self
    }

    /// A delete answers with the object that is gone.
    pub(crate) const fn return_deleted_object(mut self) -> Self {
        self.return_deleted_object = true;
        self
    }

    pub(crate) const fn subresources(mut self, subresources: &'static [SubresourceRules]) -> Self {
        self.subresources = subresources;
        self
    }
}
