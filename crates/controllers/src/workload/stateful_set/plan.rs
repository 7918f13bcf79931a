//! Which pods of a StatefulSet to create, delete and repair next, in which order.

use super::{
    desired::{PodOrder, RollingUpdate, StatefulSpec, UpdateStrategy},
    identity,
    retention::{self, ClaimOwners, ClaimUser},
};
use crate::pod;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::ResourceExt;
use std::{collections::BTreeMap, sync::Arc};

/// The claims in the namespace of a set that its pods may use, by name.
pub(super) type Claims = BTreeMap<String, Arc<PersistentVolumeClaim>>;

/// What is there.
#[derive(Debug)]
pub(super) struct StatefulState<'a> {
    pub(super) desired: StatefulSpec<'a>,
    /// The pods that the set controls.
    pub(super) pods: &'a [Arc<Pod>],
    pub(super) claims: &'a Claims,
    /// The name of the revision that pods are updated to.
    pub(super) update_revision: &'a str,
    pub(super) now: Timestamp,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum PodStep {
    /// Create the pod with this ordinal, and its claims before it.
    Create {
        ordinal: i32,
        template: TemplateVersion,
    },
    Delete(Arc<Pod>),
    /// Create the missing claims of a pod, and set the owners of all of them.
    SetClaims {
        ordinal: i32,
        pod: Arc<Pod>,
    },
    /// [`PodStep::SetClaims`], and give the pod its labels and volumes back.
    Repair {
        ordinal: i32,
        pod: Arc<Pod>,
    },
}

/// The revision that a new pod is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TemplateVersion {
    Current,
    Update,
}

/// The steps until something must be waited for.
#[derive(Debug, Default, PartialEq)]
pub(super) struct StatefulPlan {
    /// In this order; the steps of one stage may be done at once if the set is parallel.
    pub(super) stages: Vec<Vec<PodStep>>,
    /// Pods to delete so that they come back with the update revision, after the stages.
    pub(super) outdated: Vec<Arc<Pod>>,
}

/// A place for a pod.
#[derive(Debug)]
struct Place {
    ordinal: i32,
    pod: Option<Arc<Pod>>,
}

/// Whether the following pods may be dealt with, too. Only the order OrderedReady waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    GoOn,
    Wait,
}

pub(super) fn plan(observed: &StatefulState<'_>) -> StatefulPlan {
    let mut plan = StatefulPlan::default();
    if observed.desired.is_deleting() {
        return plan;
    }
    let (slots, condemned) = slots(observed);
    let (steps, then) = in_order(observed, slots.iter().map(|slot| replica(observed, slot)));
    plan.stages.push(steps);
    if then == Then::Wait {
        return plan;
    }
    let claims = condemned.iter().filter(|(ordinal, pod)| !has_owned_claims(observed, *ordinal, Some(pod)));
    plan.stages.push(
        claims.map(|(ordinal, pod)| PodStep::SetClaims { ordinal: *ordinal, pod: Arc::clone(pod) }).collect(),
    );
    let first_unavailable = condemned.iter().rev().find(|(_, pod)| is_unavailable(observed, pod));
    let scale_down = condemned.iter().map(|(ordinal, pod)| {
        let is_first_unavailable = first_unavailable.is_some_and(|(first, _)| first == ordinal);
        scale_down(observed, pod, is_first_unavailable)
    });
    let (steps, then) = in_order(observed, scale_down);
    plan.stages.push(steps);
    if then == Then::GoOn {
        plan.outdated = outdated(observed, &slots, &plan.stages);
    }
    plan
}

/// The places of the set in order, and the pods that are too many, with the highest ordinal first.
fn slots(observed: &StatefulState<'_>) -> (Vec<Place>, Vec<(i32, Arc<Pod>)>) {
    let (desired, name) = (&observed.desired, observed.desired.name());
    // A pod without an ordinal is none of the set.
    let pods = observed.pods.iter().filter_map(|pod| Some((identity::ordinal(&name, &pod.name_any())?, pod)));
    let mut pods: BTreeMap<i32, Arc<Pod>> = pods.map(|(ordinal, pod)| (ordinal, Arc::clone(pod))).collect();
    let slots = desired.ordinals().map(|ordinal| Place { ordinal, pod: pods.remove(&ordinal) }).collect();
    (slots, pods.into_iter().rev().collect())
}

/// The steps up to the first pod that must be waited for.
fn in_order(
    observed: &StatefulState<'_>,
    steps: impl Iterator<Item = (Option<PodStep>, Then)>,
) -> (Vec<PodStep>, Then) {
    let mut taken = Vec::new();
    for (step, then) in steps {
        taken.extend(step);
        if then == Then::Wait && observed.desired.order == PodOrder::OrderedReady {
            return (taken, Then::Wait);
        }
    }
    (taken, Then::GoOn)
}

/// What a place of the set needs.
fn replica(observed: &StatefulState<'_>, slot: &Place) -> (Option<PodStep>, Then) {
    let (desired, ordinal) = (&observed.desired, slot.ordinal);
    let Some(pod) = &slot.pod else {
        let is_left_over = claims_of(observed, ordinal)
            .any(|(_, claim)| claim.is_some_and(|claim| retention::is_left_over(desired, ordinal, claim)));
        let create = PodStep::Create { ordinal, template: template(desired, ordinal) };
        return ((!is_left_over).then_some(create), Then::Wait);
    };
    let is_deleting = pod.metadata.deletion_timestamp.is_some();
    // Kubernetes: also if it succeeded. The exit code of an evicted pod says nothing.
    if pod::is_finished(pod) {
        return ((!is_deleting).then(|| PodStep::Delete(Arc::clone(pod))), Then::Wait);
    }
    let is_available = pod::phase(pod) == "Running"
        && pod::is_available(pod, desired.min_ready_seconds, observed.now)
        && !is_deleting;
    let is_pending = pod::phase(pod) == "Pending";
    let needs_claims = !has_owned_claims(observed, ordinal, Some(pod));
    let may_repair = is_available || desired.order == PodOrder::Parallel;
    let needs_repair = needs_claims || !identity::has_identity(desired, pod, ordinal);
    let step = if may_repair && needs_repair {
        Some(PodStep::Repair { ordinal, pod: Arc::clone(pod) })
    } else if is_pending && (needs_claims || !has_all_claims(observed, ordinal)) {
        Some(PodStep::SetClaims { ordinal, pod: Arc::clone(pod) })
    } else {
        None
    };
    (step, if is_available { Then::GoOn } else { Then::Wait })
}

/// Whether a pod that is too many is deleted now.
fn scale_down(
    observed: &StatefulState<'_>,
    pod: &Arc<Pod>,
    is_first_unavailable: bool,
) -> (Option<PodStep>, Then) {
    let is_ordered = observed.desired.order == PodOrder::OrderedReady;
    let is_deleting = pod.metadata.deletion_timestamp.is_some();
    // Of several pods that are not available, the one with the lowest ordinal is deleted first.
    let waits = is_ordered && !is_healthy(observed, pod) && !is_first_unavailable;
    let step = (!is_deleting && !waits).then(|| PodStep::Delete(Arc::clone(pod)));
    (step, Then::Wait)
}

/// The pods to delete so that they come back with the update revision.
fn outdated(observed: &StatefulState<'_>, slots: &[Place], stages: &[Vec<PodStep>]) -> Vec<Arc<Pod>> {
    let rolling = match observed.desired.strategy {
        UpdateStrategy::OnDelete => return Vec::new(),
        UpdateStrategy::RollingUpdate(rolling) => rolling.unwrap_or_default(),
    };
    let is_in_stages = |pod: &Arc<Pod>| {
        stages
            .iter()
            .flatten()
            .any(|step| matches!(step, PodStep::Delete(deleted) if Arc::ptr_eq(deleted, pod)))
    };
    let is_outdated = |pod: &&Arc<Pod>| {
        identity::revision(pod) != observed.update_revision
            && pod.metadata.deletion_timestamp.is_none()
            && !is_in_stages(pod)
    };
    let is_missing = |slot: &Place| slot.pod.as_ref().is_none_or(|pod| is_unavailable(observed, pod));
    let updated = slots.iter().skip(rolling.partition).rev();
    match rolling.max_unavailable {
        Some(limit) => {
            let missing = slots.iter().filter(|slot| is_missing(slot)).count();
            let pods = updated.filter_map(|slot| slot.pod.as_ref()).filter(is_outdated);
            pods.take(limit.saturating_sub(missing)).cloned().collect()
        }
        // One pod at a time, from the highest ordinal down, each when those above it are available.
        None => {
            for slot in updated {
                if let Some(pod) = slot.pod.as_ref().filter(is_outdated) {
                    return vec![Arc::clone(pod)];
                }
                if is_missing(slot) {
                    return Vec::new();
                }
            }
            Vec::new()
        }
    }
}

/// Kubernetes: below the partition, new pods are of the current revision; without `rollingUpdate`, as many as
/// there are at that revision.
fn template(desired: &StatefulSpec<'_>, ordinal: i32) -> TemplateVersion {
    let current = match desired.strategy {
        UpdateStrategy::OnDelete => 0,
        UpdateStrategy::RollingUpdate(Some(RollingUpdate { partition, .. })) => partition,
        UpdateStrategy::RollingUpdate(None) => {
            let replicas = desired.set.status.as_ref().and_then(|status| status.current_replicas);
            usize::try_from(replicas.unwrap_or_default()).unwrap_or_default()
        }
    };
    let index = usize::try_from(ordinal - desired.start).unwrap_or_default();
    if index < current { TemplateVersion::Current } else { TemplateVersion::Update }
}

/// The claim templates of a set, and the claims of one ordinal that exist.
fn claims_of<'a>(
    observed: &'a StatefulState<'_>,
    ordinal: i32,
) -> impl Iterator<Item = (String, Option<&'a PersistentVolumeClaim>)> {
    observed.desired.claim_templates().iter().map(move |template| {
        let name = observed.desired.claim_name(template, ordinal);
        let claim = observed.claims.get(&name).map(|claim| &**claim);
        (name, claim)
    })
}

/// Whether the owners of those claims that exist follow the policy.
fn has_owned_claims(observed: &StatefulState<'_>, ordinal: i32, pod: Option<&Pod>) -> bool {
    let user = ClaimUser { ordinal, pod };
    claims_of(observed, ordinal).filter_map(|(_, claim)| claim).all(|claim| {
        // Without a UID there is nothing to own with; the server gives one to each object.
        retention::owners(&observed.desired, user, claim).is_ok_and(|owners| owners == ClaimOwners::Keep)
    })
}

fn has_all_claims(observed: &StatefulState<'_>, ordinal: i32) -> bool {
    claims_of(observed, ordinal).all(|(_, claim)| claim.is_some())
}

fn is_healthy(observed: &StatefulState<'_>, pod: &Pod) -> bool {
    pod::phase(pod) == "Running" && pod::is_available(pod, observed.desired.min_ready_seconds, observed.now)
}

fn is_unavailable(observed: &StatefulState<'_>, pod: &Pod) -> bool {
    !pod::is_available(pod, observed.desired.min_ready_seconds, observed.now)
        || pod.metadata.deletion_timestamp.is_some()
}

#[cfg(test)]
mod tests;
