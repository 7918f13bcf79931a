//! What to do for a Job: whether it ends, and which pods to create or delete.

mod active;
mod per_index;

use super::{
    back_off::BackOff,
    desired::{Desired, FAILURE_TARGET, SUCCESS_CRITERIA_MET, is_tracked},
    failure_policy::{PolicyVerdict, judge},
    indexes::Indexes,
    success_policy,
};
use crate::pod;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    api::{batch::v1::JobCondition, core::v1::Pod},
    apimachinery::pkg::apis::meta::v1::Time,
};
pub(super) use per_index::{FAILURES, FailureCounts, IGNORED_FAILURES};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

/// What to do now, and what the status is computed from afterwards.
#[derive(Debug)]
pub(super) struct JobPlan {
    pub(super) start_time: Option<Time>,
    /// Why the Job ends, unless its pods have reached the wanted number: that is known after the action.
    pub(super) end: Option<End>,
    pub(super) action: Action,
    pub(super) back_off: BackOff,
    /// Pods or indexes, with those that are not in the status yet.
    pub(super) succeeded: usize,
    /// Of an indexed Job.
    pub(super) indexes: Option<IndexSets>,
    /// When to look again, if nothing changes.
    pub(super) check_after: Option<Duration>,
    pub(super) counts: Counts,
}

#[derive(Debug, Default, PartialEq)]
pub(super) enum Action {
    #[default]
    Nothing,
    /// The Job ends: its pods keep their finalizer until they are counted.
    EndActive(Vec<Arc<Pod>>),
    /// There are too many: they lose their finalizer first, so that they do not count as failed.
    Remove(Vec<Arc<Pod>>),
    Create(Vec<NewPod>),
}

/// A pod to create.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NewPod {
    pub(super) index: Option<usize>,
    /// If each index has a limit of its own.
    pub(super) failures: Option<FailureCounts>,
}

/// How a Job ends. The texts are those of its conditions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct End {
    pub(super) is_success: bool,
    pub(super) reason: String,
    pub(super) message: String,
}

/// The indexes of an indexed Job.
#[derive(Debug, Default)]
pub(super) struct IndexSets {
    /// As the status has them.
    pub(super) recorded: Indexes,
    pub(super) succeeded: Indexes,
    /// If each index has a limit of its own.
    pub(super) failed: Option<Indexes>,
    /// The last failed pods of indexes that need a new pod. They keep their finalizer, because the new pod
    /// continues their count.
    pub(super) awaiting: BTreeMap<usize, Arc<Pod>>,
}

/// How many pods there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) active: usize,
    pub(super) ready: usize,
    pub(super) terminating: usize,
}

impl End {
    fn failure(reason: &str, message: impl Into<String>) -> End {
        End { is_success: false, reason: reason.to_owned(), message: message.into() }
    }

    pub(super) fn success(reason: &str, message: impl Into<String>) -> End {
        End { is_success: true, reason: reason.to_owned(), message: message.into() }
    }

    fn recorded(is_success: bool, condition: &JobCondition) -> End {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        End { is_success, reason: text(&condition.reason), message: text(&condition.message) }
    }
}

/// `stored` is the back-off before these pods; after a restart it is computed from the pods.
pub(super) fn plan(
    desired: &Desired<'_>,
    pods: &[Arc<Pod>],
    stored: Option<BackOff>,
    now: Timestamp,
) -> JobPlan {
    let finished = Finished::among(desired, pods);
    let active: Vec<_> = pods.iter().filter(|pod| pod::is_active(pod)).cloned().collect();
    let counts = Counts {
        active: active.len(),
        ready: active.iter().filter(|pod| pod::is_ready(pod)).count(),
        terminating: pods.iter().filter(|pod| pod::is_terminating(pod)).count(),
    };
    let start_time = desired.status.start_time.clone().or((!desired.is_suspended()).then_some(Time(now)));
    let mut plan = JobPlan {
        end: None,
        action: Action::Nothing,
        back_off: finished.back_off(pods, stored),
        succeeded: finished.succeeded_count,
        indexes: index_sets(desired, pods, &active),
        check_after: None,
        start_time,
        counts,
    };
    if let Some(indexes) = &plan.indexes {
        plan.succeeded = indexes.succeeded.len();
    }
    let deadline = deadline(desired, plan.start_time.as_ref(), now);
    plan.end = end(desired, pods, &finished, deadline)
        .or_else(|| plan.indexes.as_ref().and_then(|indexes| end_by_indexes(desired, indexes)));
    if plan.end.is_some() {
        plan.action = Action::EndActive(active);
        return plan;
    }
    plan.check_after = deadline;
    if !desired.is_deleting() {
        let (action, wait) = active::manage(desired, pods, &active, &plan, now);
        plan.action = action;
        plan.check_after = plan.check_after.into_iter().chain(wait).min();
    }
    plan
}

/// Pods that have ended and are not in the counters of the status yet.
struct Finished<'a> {
    succeeded: Vec<&'a Pod>,
    failed: Vec<&'a Pod>,
    /// With those that the status counts.
    succeeded_count: usize,
    failed_count: usize,
}

impl<'a> Finished<'a> {
    fn among(desired: &Desired<'_>, pods: &'a [Arc<Pod>]) -> Finished<'a> {
        let uncounted = desired.status.uncounted_terminated_pods.clone().unwrap_or_default();
        let [known_succeeded, known_failed] =
            [uncounted.succeeded, uncounted.failed].map(|uids| BTreeSet::from_iter(uids.unwrap_or_default()));
        let is_new = |pod: &Pod, known: &BTreeSet<String>| {
            is_tracked(pod)
                && !pod.metadata.uid.as_ref().is_some_and(|uid| known.contains(uid))
                && (desired.indexes().is_none() || desired.index_of(pod).is_some())
        };
        let pods = || pods.iter().map(|pod| &**pod);
        let has_succeeded = |pod: &&Pod| pod::phase(pod) == "Succeeded" && is_new(pod, &known_succeeded);
        let has_failed = |pod: &&Pod| desired.is_failed(pod) && is_new(pod, &known_failed);
        let succeeded: Vec<&Pod> = pods().filter(has_succeeded).collect();
        let failed: Vec<&Pod> = pods().filter(has_failed).collect();
        let counts = |pod: &&&Pod| judge(desired.failure_policy(), pod) != PolicyVerdict::Ignore;
        let before = |count: Option<i32>| usize::try_from(count.unwrap_or_default()).unwrap_or_default();
        Finished {
            succeeded_count: before(desired.status.succeeded) + known_succeeded.len() + succeeded.len(),
            failed_count: before(desired.status.failed)
                + known_failed.len()
                + failed.iter().filter(counts).count(),
            succeeded,
            failed,
        }
    }

    fn back_off(&self, pods: &[Arc<Pod>], stored: Option<BackOff>) -> BackOff {
        let before = stored.unwrap_or_else(|| {
            let is_new = |pod: &Pod| {
                let mut new = self.succeeded.iter().chain(&self.failed);
                new.any(|it| it.metadata.uid == pod.metadata.uid)
            };
            let old = |phase: &str| -> Vec<&Pod> {
                let pods = pods.iter().map(|pod| &**pod);
                pods.filter(|pod| pod::phase(pod) == phase && !is_new(pod)).collect()
            };
            BackOff::default().after(&old("Succeeded"), &old("Failed"))
        });
        before.after(&self.succeeded, &self.failed)
    }
}

/// How long until the Job has been active for too long.
fn deadline(desired: &Desired<'_>, start: Option<&Time>, now: Timestamp) -> Option<Duration> {
    if desired.is_suspended() {
        return None;
    }
    let limit = SignedDuration::from_secs(desired.spec.active_deadline_seconds?);
    Some(Duration::try_from(limit - now.duration_since(start?.0)).unwrap_or(Duration::ZERO))
}

/// What was decided before stays. The texts are those of Kubernetes.
fn end(
    desired: &Desired<'_>,
    pods: &[Arc<Pod>],
    finished: &Finished<'_>,
    deadline: Option<Duration>,
) -> Option<End> {
    if let Some(condition) = desired.condition(SUCCESS_CRITERIA_MET) {
        return Some(End::recorded(true, condition));
    }
    if let Some(condition) = desired.condition(FAILURE_TARGET) {
        return Some(End::recorded(false, condition));
    }
    let policy = desired.failure_policy();
    let failed = pods.iter().filter(|pod| policy.is_some() && desired.is_failed(pod));
    let message = failed.map(|pod| judge(policy, pod)).find_map(|verdict| match verdict {
        PolicyVerdict::FailJob(message) => Some(message),
        _ => None,
    });
    if let Some(message) = message {
        return Some(End::failure("PodFailurePolicy", message));
    }
    if finished.failed_count > desired.back_off_limit() || has_too_many_restarts(desired, pods) {
        return Some(End::failure("BackoffLimitExceeded", "Job has reached the specified backoff limit"));
    }
    if deadline == Some(Duration::ZERO) {
        return Some(End::failure("DeadlineExceeded", "Job was active longer than specified deadline"));
    }
    None
}

/// Containers that are restarted in place count towards the limit as well.
fn has_too_many_restarts(desired: &Desired<'_>, pods: &[Arc<Pod>]) -> bool {
    let template = desired.spec.template.spec.as_ref();
    if template.and_then(|spec| spec.restart_policy.as_deref()) != Some("OnFailure") {
        return false;
    }
    let running = pods.iter().filter(|pod| matches!(pod::phase(pod), "Running" | "Pending"));
    let statuses = running.filter_map(|pod| pod.status.as_ref());
    let containers = statuses
        .flat_map(|status| status.init_container_statuses.iter().chain(&status.container_statuses).flatten());
    let restarts: i64 = containers.map(|container| i64::from(container.restart_count)).sum();
    // Kubernetes: a limit of 0 allows no restart, and a limit of 1 none either.
    usize::try_from(restarts).is_ok_and(|restarts| restarts >= desired.back_off_limit().max(1))
}

fn end_by_indexes(desired: &Desired<'_>, indexes: &IndexSets) -> Option<End> {
    let completions = desired.indexes()?;
    if let Some(failed) = &indexes.failed {
        let limit = desired.spec.max_failed_indexes.and_then(|limit| usize::try_from(limit).ok());
        if limit.is_some_and(|limit| failed.len() > limit) {
            let message = "Job has exceeded the specified maximal number of failed indexes";
            return Some(End::failure("MaxFailedIndexesExceeded", message));
        }
        if failed.len() > 0 && failed.len() + indexes.succeeded.len() >= completions {
            return Some(End::failure("FailedIndexes", "Job has failed indexes"));
        }
    }
    let policy = desired.spec.success_policy.as_ref()?;
    let message = success_policy::met(policy, completions, &indexes.succeeded)?;
    Some(End::success("SuccessPolicy", message))
}

fn index_sets(desired: &Desired<'_>, pods: &[Arc<Pod>], active: &[Arc<Pod>]) -> Option<IndexSets> {
    let completions = desired.indexes()?;
    let status = &desired.status;
    let recorded = Indexes::parse(status.completed_indexes.as_deref().unwrap_or_default(), completions);
    let tracked = || pods.iter().filter(|pod| is_tracked(pod));
    let succeeded = tracked().filter(|pod| pod::phase(pod) == "Succeeded");
    let succeeded = recorded.with(&succeeded.filter_map(|pod| desired.index_of(pod)).collect());
    let mut sets = IndexSets { recorded, succeeded, ..IndexSets::default() };
    if let Some(limit) = desired.limit_per_index() {
        let before = Indexes::parse(status.failed_indexes.as_deref().unwrap_or_default(), completions);
        let failed = tracked().filter(|pod| per_index::is_last_failure(desired, pod, limit));
        sets.failed = Some(before.with(&failed.filter_map(|pod| desired.index_of(pod)).collect()));
        sets.awaiting = per_index::awaiting(desired, tracked(), active, &sets);
    }
    Some(sets)
}

/// The first in the order in which pods are deleted.
fn by_deletion_order(pods: &mut [Arc<Pod>]) {
    pods.sort_by(|first, second| pod::deletion_order::compare((first, 0), (second, 0), None));
}

#[cfg(test)]
pub(super) mod tests;
