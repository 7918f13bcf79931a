//! The status of a Job: every pod that has ended is counted once, whatever crashes in between.
//!
//! A pod that has ended goes into the status as uncounted, then loses its finalizer, and is then moved into
//! the counters. An index goes into the completed indexes before its pod loses the finalizer.

use super::{
    desired::{COMPLETE, Desired, FAILED, FAILURE_TARGET, SUCCESS_CRITERIA_MET, SUSPENDED, is_tracked},
    failure_policy::{PolicyVerdict, judge},
    plan::{Counts, End, JobPlan},
};
use crate::pod;
use jiff::Timestamp;
use k8s_openapi::{
    api::{
        batch::v1::{JobCondition, JobStatus, UncountedTerminatedPods},
        core::v1::Pod,
    },
    apimachinery::pkg::apis::meta::v1::Time,
};
use std::{collections::BTreeSet, sync::Arc};

/// Kubernetes: so many UIDs in the status take less than 20 KB.
const MOST_UNCOUNTED: usize = 500;

/// What the action of a plan has led to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Done {
    pub(super) counts: Counts,
    /// Whether all pods that had to go are deleted: a Job does not end before.
    pub(super) is_all_deleted: bool,
}

/// The status to write before finalizers are removed, and what remains to be done after that.
#[derive(Debug)]
pub(super) struct Tracking {
    pub(super) status: JobStatus,
    /// Pods that lose their finalizer once the status is written.
    pub(super) released: Vec<Arc<Pod>>,
    /// Whether it was suspended or resumed just now.
    pub(super) is_suspension_changed: bool,
    /// How the Job ends once all its pods are counted.
    end: Option<End>,
    /// The UIDs of pods with the finalizer.
    tracked: BTreeSet<String>,
    /// Whether there are more pods to count than fit at once.
    is_full: bool,
    terminating: usize,
}

pub(super) fn record(
    desired: &Desired<'_>,
    pods: &[Arc<Pod>],
    plan: &JobPlan,
    done: Done,
    now: Timestamp,
) -> Tracking {
    let Counts { active, ready, terminating } = done.counts;
    let mut status = desired.status.clone();
    status.start_time.clone_from(&plan.start_time);
    status.active = nonzero(active);
    (status.ready, status.terminating) = (Some(number(ready)), Some(number(terminating)));
    status.uncounted_terminated_pods.get_or_insert_default();
    let tracked = pods.iter().filter(|pod| is_tracked(pod)).filter_map(|pod| pod.metadata.uid.clone());
    let mut tracking = Tracking {
        status,
        released: Vec::new(),
        is_suspension_changed: false,
        end: plan.end.clone().filter(|_| done.is_all_deleted),
        tracked: tracked.collect(),
        is_full: false,
        terminating,
    };
    if plan.end.is_none() {
        let is_enough = desired.completions().map_or(plan.succeeded > 0, |wanted| plan.succeeded >= wanted);
        if is_enough && active == 0 {
            let message = "Reached expected number of succeeded pods";
            tracking.end = Some(End::success("CompletionsReached", message));
        } else if !desired.is_deleting() {
            tracking.set_suspension(desired, now);
        }
    }
    tracking.count_released();
    tracking.add_uncounted(desired, pods, plan);
    tracking.set_indexes(plan);
    if let Some(end) = &tracking.end {
        let interim = if end.is_success { SUCCESS_CRITERIA_MET } else { FAILURE_TARGET };
        if desired.condition(interim).is_none() {
            let condition = condition(interim, "True", &end.reason, &end.message, now);
            tracking.status.conditions.get_or_insert_default().push(condition);
        }
    }
    tracking
}

impl Tracking {
    /// The status after finalizers were removed: `released` are the UIDs of those pods, `written` is the
    /// status that the server has. Returns how the Job has ended, if it has.
    pub(super) fn finish(
        mut self,
        written: JobStatus,
        released: &[String],
        now: Timestamp,
    ) -> (JobStatus, Option<End>) {
        self.status = written;
        let is_all_released = released.len() == self.released.len();
        for uid in released {
            self.tracked.remove(uid);
        }
        self.count_released();
        let uncounted = self.status.uncounted_terminated_pods.clone().unwrap_or_default();
        let is_counted = uncounted.succeeded.is_none_or(|uids| uids.is_empty())
            && uncounted.failed.is_none_or(|uids| uids.is_empty());
        let is_over = is_counted && is_all_released && self.terminating == 0 && !self.is_full;
        let Some(end) = self.end.filter(|_| is_over) else { return (self.status, None) };
        let condition_type = if end.is_success { COMPLETE } else { FAILED };
        let condition = condition(condition_type, "True", &end.reason, &end.message, now);
        if end.is_success {
            self.status.completion_time.clone_from(&condition.last_transition_time);
        }
        self.status.conditions.get_or_insert_default().push(condition);
        (self.status, Some(end))
    }

    /// Moves the uncounted pods without a finalizer into the counters.
    fn count_released(&mut self) {
        let JobStatus { uncounted_terminated_pods, succeeded, failed, .. } = &mut self.status;
        let uncounted = uncounted_terminated_pods.get_or_insert_default();
        for (uids, counter) in [(&mut uncounted.succeeded, succeeded), (&mut uncounted.failed, failed)] {
            let Some(known) = uids.take() else { continue };
            let (left, counted): (Vec<String>, Vec<String>) =
                known.into_iter().partition(|uid| self.tracked.contains(uid));
            if !counted.is_empty() {
                *counter = Some(counter.unwrap_or_default() + number(counted.len()));
            }
            *uids = (!left.is_empty()).then_some(left);
        }
    }

    fn add_uncounted(&mut self, desired: &Desired<'_>, pods: &[Arc<Pod>], plan: &JobPlan) {
        let mut pods: Vec<_> = pods.iter().filter(|pod| is_tracked(pod)).collect();
        if desired.indexes().is_some() {
            pods.sort_by_key(|pod| desired.index_of(pod));
        }
        let mut indexes = 0;
        for pod in pods {
            if !self.may_release(desired, pod, plan) {
                continue;
            }
            self.released.push(Arc::clone(pod));
            let uid = pod.metadata.uid.clone().unwrap_or_default();
            let uncounted = self.status.uncounted_terminated_pods.get_or_insert_default();
            let is_known = |uids: &Option<Vec<String>>| uids.iter().flatten().any(|known| *known == uid);
            if pod::phase(pod) == "Succeeded" && !is_known(&uncounted.failed) {
                match &plan.indexes {
                    Some(sets) => {
                        let index = desired.index_of(pod);
                        indexes += usize::from(index.is_some_and(|index| !sets.recorded.contains(index)));
                    }
                    None if !is_known(&uncounted.succeeded) => {
                        uncounted.succeeded.get_or_insert_default().push(uid);
                    }
                    None => {}
                }
            } else if self.counts_as_failed(desired, pod) {
                let uncounted = self.status.uncounted_terminated_pods.get_or_insert_default();
                if !is_known(&uncounted.failed) {
                    uncounted.failed.get_or_insert_default().push(uid);
                }
            }
            if indexes + self.uncounted_len() >= MOST_UNCOUNTED {
                // The writes that follow lead to another reconcile.
                self.is_full = true;
                break;
            }
        }
    }

    fn uncounted_len(&self) -> usize {
        let none = UncountedTerminatedPods::default();
        let uncounted = self.status.uncounted_terminated_pods.as_ref().unwrap_or(&none);
        uncounted.succeeded.iter().chain(&uncounted.failed).map(Vec::len).sum()
    }

    fn may_release(&self, desired: &Desired<'_>, pod: &Pod, plan: &JobPlan) -> bool {
        if desired.is_deleting() || self.end.is_some() || pod::phase(pod) == "Succeeded" {
            return true;
        }
        let awaited = || {
            let awaiting = &plan.indexes.as_ref()?.awaiting;
            awaiting.get(&desired.index_of(pod)?)
        };
        desired.is_failed(pod) && awaited().is_none_or(|awaited| awaited.metadata.uid != pod.metadata.uid)
    }

    /// When a Job fails, every pod that has not ended counts as failed.
    fn counts_as_failed(&self, desired: &Desired<'_>, pod: &Pod) -> bool {
        let is_failed = desired.is_failed(pod) || self.end.as_ref().is_some_and(|end| !end.is_success);
        let has_index = desired.indexes().is_none() || desired.index_of(pod).is_some();
        is_failed && has_index && judge(desired.failure_policy(), pod) != PolicyVerdict::Ignore
    }

    fn set_indexes(&mut self, plan: &JobPlan) {
        let Some(sets) = &plan.indexes else { return };
        self.status.succeeded = nonzero(sets.succeeded.len());
        self.status.completed_indexes = Some(sets.succeeded.to_string()).filter(|text| !text.is_empty());
        self.status.failed_indexes = sets.failed.as_ref().map(ToString::to_string);
    }

    /// Kubernetes: the start time is that of the last resume.
    fn set_suspension(&mut self, desired: &Desired<'_>, now: Timestamp) {
        let (status, reason, message) = match desired.is_suspended() {
            true => ("True", "JobSuspended", "Job suspended"),
            false => ("False", "JobResumed", "Job resumed"),
        };
        let conditions = self.status.conditions.get_or_insert_default();
        let new = condition(SUSPENDED, status, reason, message, now);
        match conditions.iter_mut().find(|it| it.type_ == SUSPENDED) {
            Some(present) if present.status == status => {}
            Some(present) => (*present, self.is_suspension_changed) = (new, true),
            None if desired.is_suspended() => {
                conditions.push(new);
                self.is_suspension_changed = true;
            }
            None => {}
        }
        if self.is_suspension_changed {
            self.status.start_time = (!desired.is_suspended()).then_some(Time(now));
        }
        if self.status.conditions.as_ref().is_some_and(Vec::is_empty) {
            self.status.conditions = None;
        }
    }
}

fn condition(
    condition_type: &str,
    status: &str,
    reason: &str,
    message: &str,
    now: Timestamp,
) -> JobCondition {
    JobCondition {
        type_: condition_type.to_owned(),
        status: status.to_owned(),
        last_probe_time: Some(Time(now)),
        last_transition_time: Some(Time(now)),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
    }
}

fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// Kubernetes: a counter of zero is left out.
fn nonzero(count: usize) -> Option<i32> {
    Some(number(count)).filter(|count| *count != 0)
}

#[cfg(test)]
mod tests;
