//! The status of a Deployment: how many pods there are, and whether its rollout comes to an end.

use super::sizes::{Strategy, desired};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    api::apps::v1::{Deployment, DeploymentCondition, DeploymentSpec, DeploymentStatus, ReplicaSet},
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::ResourceExt;
use std::time::Duration;

const PROGRESSING: &str = "Progressing";
const AVAILABLE: &str = "Available";
const REPLICA_FAILURE: &str = "ReplicaFailure";

// Kubernetes: `kubectl rollout status` and many other clients decide by these.
pub(super) const NEW_SET_CREATED: &str = "NewReplicaSetCreated";
pub(super) const NEW_SET_FOUND: &str = "FoundNewReplicaSet";
pub(super) const CREATE_FAILED: &str = "ReplicaSetCreateError";
const SET_UPDATED: &str = "ReplicaSetUpdated";
const NEW_SET_AVAILABLE: &str = "NewReplicaSetAvailable";
const TIMED_OUT: &str = "ProgressDeadlineExceeded";
const PAUSED: &str = "DeploymentPaused";
const RESUMED: &str = "DeploymentResumed";

/// Clocks and timers differ by fractions of a second.
const SKEW: Duration = Duration::from_secs(1);

/// A Deployment and its ReplicaSets as they will be when the writes of this reconcile are done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Situation<'a> {
    pub(super) deployment: &'a Deployment,
    pub(super) spec: &'a DeploymentSpec,
    pub(super) strategy: Strategy,
    /// All of them.
    pub(super) sets: &'a [ReplicaSet],
    /// The one with the template of the Deployment.
    pub(super) new_set: Option<&'a ReplicaSet>,
    pub(super) now: Timestamp,
}

/// Kubernetes: the largest number means that there is no deadline.
pub(super) fn deadline(spec: &DeploymentSpec) -> Option<SignedDuration> {
    let seconds = spec.progress_deadline_seconds.filter(|seconds| *seconds != i32::MAX)?;
    Some(SignedDuration::from_secs(seconds.into()))
}

/// Notes in the conditions that the Deployment was paused or resumed, so that a rollout does not time out for
/// the time that it was paused.
pub(super) fn note_pause(conditions: &mut Vec<DeploymentCondition>, spec: &DeploymentSpec, now: Timestamp) {
    let reason = find(conditions, PROGRESSING).and_then(|progressing| progressing.reason.as_deref());
    if deadline(spec).is_none() || reason == Some(TIMED_OUT) {
        return;
    }
    match (spec.paused.unwrap_or_default(), reason == Some(PAUSED)) {
        (true, false) => set(conditions, progressing("Unknown", PAUSED, "Deployment is paused", now)),
        (false, true) => set(conditions, progressing("Unknown", RESUMED, "Deployment is resumed", now)),
        _ => {}
    }
}

/// Notes that the ReplicaSet of a rollout was created, found or refused.
pub(super) fn note_new_set(
    conditions: &mut Vec<DeploymentCondition>,
    spec: &DeploymentSpec,
    (reason, message): (&str, &str),
    now: Timestamp,
) {
    let is_first = find(conditions, PROGRESSING).is_none();
    if deadline(spec).is_some() && (reason != NEW_SET_FOUND || is_first) {
        let status = if reason == CREATE_FAILED { "False" } else { "True" };
        set(conditions, progressing(status, reason, message, now));
    }
}

/// The status outside of rollouts: of a Deployment that is paused, being scaled or being deleted.
pub(super) fn counted(situation: &Situation<'_>, conditions: Vec<DeploymentCondition>) -> DeploymentStatus {
    let Situation { deployment, spec, strategy, sets, new_set, now } = *situation;
    let sum = |of: &dyn Fn(&ReplicaSet) -> i32| sets.iter().map(of).sum::<i32>();
    let available = sum(&available);
    let is_enough = available >= desired(spec) - strategy.max_unavailable(desired(spec));
    let (status, reason, message) = match is_enough {
        true => ("True", "MinimumReplicasAvailable", "Deployment has minimum availability."),
        false => ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability."),
    };
    let mut conditions = conditions;
    set(&mut conditions, condition(AVAILABLE, status, reason, message, now));
    DeploymentStatus {
        observed_generation: deployment.metadata.generation,
        replicas: nonzero(sum(&running)),
        updated_replicas: nonzero(new_set.map_or(0, running)),
        ready_replicas: nonzero(sum(&ready)),
        available_replicas: nonzero(available),
        unavailable_replicas: nonzero((sum(&wanted) - available).max(0)),
        terminating_replicas: terminating(sets),
        collision_count: deployment.status.as_ref().and_then(|status| status.collision_count),
        conditions: Some(conditions),
    }
}

/// The status during and after a rollout.
pub(super) fn of_rollout(
    situation: &Situation<'_>,
    conditions: Vec<DeploymentCondition>,
) -> DeploymentStatus {
    let before = situation.deployment.status.clone().unwrap_or_default();
    let known = find(&conditions, PROGRESSING).cloned();
    let mut status = counted(situation, conditions);
    let mut conditions = status.conditions.take().unwrap_or_default();
    let is_known_complete = status.replicas == status.updated_replicas
        && known.as_ref().is_some_and(|known| known.reason.as_deref() == Some(NEW_SET_AVAILABLE));
    match deadline(situation.spec) {
        None => conditions.retain(|condition| condition.type_ != PROGRESSING),
        Some(_) if is_known_complete => {}
        Some(deadline) => judge(situation, &before, &status, deadline, &mut conditions),
    }
    match replica_failure(situation) {
        Some(failure) => set(&mut conditions, failure),
        None => conditions.retain(|condition| condition.type_ != REPLICA_FAILURE),
    }
    status.conditions = Some(conditions);
    status
}

/// Whether the rollout is complete, goes on, or has timed out.
fn judge(
    situation: &Situation<'_>,
    before: &DeploymentStatus,
    status: &DeploymentStatus,
    deadline: SignedDuration,
    conditions: &mut Vec<DeploymentCondition>,
) {
    let Situation { deployment, spec, new_set, now, .. } = *situation;
    let subject = match new_set {
        Some(new_set) => format!("ReplicaSet {:?}", new_set.name_any()),
        None => format!("Deployment {:?}", deployment.name_any()),
    };
    if is_complete(deployment, spec, status) {
        let message = format!("{subject} has successfully progressed.");
        set(conditions, progressing("True", NEW_SET_AVAILABLE, &message, now));
    } else if has_progressed(before, status) {
        let mut new = progressing("True", SET_UPDATED, &format!("{subject} is progressing."), now);
        // Unlike other conditions it is replaced even if it has the same reason: its time is that of the
        // last progress.
        if let Some(known) = find(conditions, PROGRESSING).filter(|known| known.status == "True") {
            new.last_transition_time.clone_from(&known.last_transition_time);
        }
        conditions.retain(|condition| condition.type_ != PROGRESSING);
        conditions.push(new);
    } else if is_timed_out(conditions, deadline, now) {
        let message = format!("{subject} has timed out progressing.");
        set(conditions, progressing("False", TIMED_OUT, &message, now));
    }
}

/// Whether all pods are new and available.
pub(super) fn is_complete(deployment: &Deployment, spec: &DeploymentSpec, status: &DeploymentStatus) -> bool {
    let counts = [status.updated_replicas, status.replicas, status.available_replicas];
    counts.iter().all(|count| count.unwrap_or_default() == desired(spec))
        && status.observed_generation >= deployment.metadata.generation
}

/// Whether there are more new pods, more ready or available ones, or fewer old ones.
fn has_progressed(before: &DeploymentStatus, after: &DeploymentStatus) -> bool {
    let count = |count: Option<i32>| count.unwrap_or_default();
    let old = |status: &DeploymentStatus| count(status.replicas) - count(status.updated_replicas);
    count(after.updated_replicas) > count(before.updated_replicas)
        || old(after) < old(before)
        || count(after.ready_replicas) > count(before.ready_replicas)
        || count(after.available_replicas) > count(before.available_replicas)
}

fn is_timed_out(conditions: &[DeploymentCondition], deadline: SignedDuration, now: Timestamp) -> bool {
    let Some(known) = find(conditions, PROGRESSING) else { return false };
    match known.reason.as_deref() {
        Some(NEW_SET_AVAILABLE) => false,
        Some(TIMED_OUT) => true,
        _ => known.last_update_time.as_ref().is_some_and(|last| last.0 + deadline < now),
    }
}

/// How long until the rollout times out, unless it makes progress before.
pub(super) fn check_after(situation: &Situation<'_>, status: &DeploymentStatus) -> Option<Duration> {
    let Situation { deployment, spec, now, .. } = *situation;
    let known = find(status.conditions.as_deref().unwrap_or_default(), PROGRESSING)?;
    let is_settled = matches!(known.reason.as_deref(), Some(TIMED_OUT | NEW_SET_AVAILABLE));
    if is_settled || is_complete(deployment, spec, status) {
        return None;
    }
    let at = known.last_update_time.as_ref()?.0 + deadline(spec)?;
    Some(Duration::try_from(at.duration_since(now)).unwrap_or_default() + SKEW)
}

/// The failure of a ReplicaSet to create or delete its pods; that of the new one counts first.
fn replica_failure(situation: &Situation<'_>) -> Option<DeploymentCondition> {
    let mut sets = situation.new_set.into_iter().chain(situation.sets);
    let failure = sets.find_map(|set| {
        let conditions = set.status.as_ref()?.conditions.as_deref()?;
        conditions.iter().find(|condition| condition.type_ == REPLICA_FAILURE).cloned()
    })?;
    Some(DeploymentCondition {
        type_: failure.type_,
        status: failure.status,
        reason: failure.reason,
        message: failure.message,
        last_update_time: failure.last_transition_time.clone(),
        last_transition_time: failure.last_transition_time,
    })
}

fn find<'a>(conditions: &'a [DeploymentCondition], type_: &str) -> Option<&'a DeploymentCondition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

fn progressing(status: &str, reason: &str, message: &str, now: Timestamp) -> DeploymentCondition {
    condition(PROGRESSING, status, reason, message, now)
}

fn condition(type_: &str, status: &str, reason: &str, message: &str, now: Timestamp) -> DeploymentCondition {
    DeploymentCondition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_update_time: Some(Time(now)),
        last_transition_time: Some(Time(now)),
    }
}

/// Kubernetes: a condition with the same status and reason stays as it is, with its message and times.
fn set(conditions: &mut Vec<DeploymentCondition>, mut new: DeploymentCondition) {
    if let Some(known) = find(conditions, &new.type_).filter(|known| known.status == new.status) {
        if known.reason == new.reason {
            return;
        }
        new.last_transition_time.clone_from(&known.last_transition_time);
    }
    conditions.retain(|condition| condition.type_ != new.type_);
    conditions.push(new);
}

/// Of all that have been seen by their controller; unknown if one of them does not count.
fn terminating(sets: &[ReplicaSet]) -> Option<i32> {
    let seen = sets.iter().filter_map(|set| set.status.as_ref()).filter(|status| {
        status.terminating_replicas.is_some() || status.observed_generation.unwrap_or_default() != 0
    });
    seen.map(|status| status.terminating_replicas).sum()
}

/// How many replicas a ReplicaSet shall have.
pub(super) fn wanted(set: &ReplicaSet) -> i32 {
    set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1)
}

/// How many pods a ReplicaSet has.
pub(super) fn running(set: &ReplicaSet) -> i32 {
    set.status.as_ref().map_or(0, |status| status.replicas)
}

pub(super) fn available(set: &ReplicaSet) -> i32 {
    set.status.as_ref().and_then(|status| status.available_replicas).unwrap_or_default()
}

fn ready(set: &ReplicaSet) -> i32 {
    set.status.as_ref().and_then(|status| status.ready_replicas).unwrap_or_default()
}

/// Kubernetes: counts of zero are not written.
fn nonzero(count: i32) -> Option<i32> {
    (count != 0).then_some(count)
}

#[cfg(test)]
mod tests;
