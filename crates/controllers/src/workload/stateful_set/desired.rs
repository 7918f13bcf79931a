//! What the spec of a StatefulSet asks for, with the defaults of Kubernetes.

use crate::int_or_percent::{Rounding, scaled_count};
use k8s_openapi::api::{
    apps::v1::{StatefulSet, StatefulSetSpec},
    core::v1::PersistentVolumeClaim,
};
use kube::ResourceExt;

/// The spec of a set.
#[derive(Clone, Copy, Debug)]
pub(super) struct StatefulSpec<'a> {
    pub(super) set: &'a StatefulSet,
    pub(super) spec: &'a StatefulSetSpec,
    pub(super) replicas: usize,
    /// The first ordinal.
    pub(super) start: i32,
    pub(super) min_ready_seconds: i32,
    pub(super) order: PodOrder,
    pub(super) strategy: UpdateStrategy,
    pub(super) retention: ClaimRetention,
}

/// `podManagementPolicy`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PodOrder {
    /// One pod after the other, each when those before it are available.
    OrderedReady,
    Parallel,
}

/// `updateStrategy`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UpdateStrategy {
    /// Pods are replaced when their user deletes them.
    OnDelete,
    RollingUpdate(Option<RollingUpdate>),
}

/// `updateStrategy.rollingUpdate`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RollingUpdate {
    /// So many of the first pods stay at the current revision.
    pub(super) partition: usize,
    pub(super) max_unavailable: Option<usize>,
}

/// `persistentVolumeClaimRetentionPolicy`: whether claims are deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ClaimRetention {
    pub(super) deletes_with_set: bool,
    pub(super) deletes_with_scale_down: bool,
}

impl<'a> StatefulSpec<'a> {
    /// `None` if the set has no spec.
    pub(super) fn of(set: &'a StatefulSet) -> Option<StatefulSpec<'a>> {
        let spec = set.spec.as_ref()?;
        let replicas = usize::try_from(spec.replicas.unwrap_or(1)).unwrap_or_default();
        let is_parallel = spec.pod_management_policy.as_deref() == Some("Parallel");
        let policy = spec.persistent_volume_claim_retention_policy.as_ref();
        let deletes = |value: Option<&String>| value.is_some_and(|value| value == "Delete");
        Some(StatefulSpec {
            set,
            spec,
            replicas,
            start: spec.ordinals.as_ref().and_then(|ordinals| ordinals.start).unwrap_or_default(),
            min_ready_seconds: spec.min_ready_seconds.unwrap_or_default(),
            order: if is_parallel { PodOrder::Parallel } else { PodOrder::OrderedReady },
            strategy: strategy(spec, replicas),
            retention: ClaimRetention {
                deletes_with_set: deletes(policy.and_then(|policy| policy.when_deleted.as_ref())),
                deletes_with_scale_down: deletes(policy.and_then(|policy| policy.when_scaled.as_ref())),
            },
        })
    }

    pub(super) fn name(&self) -> String {
        self.set.name_any()
    }

    /// The ordinals that should have a pod.
    pub(super) fn ordinals(&self) -> impl Iterator<Item = i32> + use<> {
        let count = i32::try_from(self.replicas).unwrap_or(i32::MAX);
        self.start..self.start.saturating_add(count)
    }

    pub(super) fn has_ordinal(&self, ordinal: i32) -> bool {
        ordinal >= self.start
            && usize::try_from(ordinal - self.start).is_ok_and(|index| index < self.replicas)
    }

    pub(super) fn pod_name(&self, ordinal: i32) -> String {
        format!("{}-{ordinal}", self.name())
    }

    pub(super) fn claim_templates(&self) -> &'a [PersistentVolumeClaim] {
        self.spec.volume_claim_templates.as_deref().unwrap_or_default()
    }

    pub(super) fn claim_name(&self, template: &PersistentVolumeClaim, ordinal: i32) -> String {
        format!("{}-{}-{ordinal}", template.name_any(), self.name())
    }

    pub(super) fn is_deleting(&self) -> bool {
        self.set.metadata.deletion_timestamp.is_some()
    }
}

fn strategy(spec: &StatefulSetSpec, replicas: usize) -> UpdateStrategy {
    let Some(strategy) = &spec.update_strategy else { return UpdateStrategy::RollingUpdate(None) };
    if strategy.type_.as_deref() == Some("OnDelete") {
        return UpdateStrategy::OnDelete;
    }
    UpdateStrategy::RollingUpdate(strategy.rolling_update.as_ref().map(|rolling| {
        RollingUpdate {
            partition: usize::try_from(rolling.partition.unwrap_or_default()).unwrap_or_default(),
            // Kubernetes: a small share of few replicas is one pod, not none.
            max_unavailable: rolling
                .max_unavailable
                .as_ref()
                .map(|limit| scaled_count(limit, replicas, Rounding::Down).unwrap_or(1).max(1)),
        }
    }))
}
