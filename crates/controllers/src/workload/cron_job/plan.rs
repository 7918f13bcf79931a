//! Which Job of a CronJob to start, which to delete, and the status after that.

use super::timing::{BadTiming, Missed, Timing};
use crate::workload::job::finished;
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use k8s_openapi::{
    api::{
        batch::v1::{CronJob, CronJobSpec, CronJobStatus, Job},
        core::v1::ObjectReference,
    },
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::ResourceExt;
use operator::event::EventType;
use std::{collections::BTreeSet, sync::Arc, time::Duration};

/// What to do now.
#[derive(Debug, Default)]
pub(super) struct CronJobPlan {
    /// Jobs that have ended, and are more than the history limits allow.
    pub(super) old: Vec<Arc<Job>>,
    /// Before the start of a Job.
    pub(super) status: CronJobStatus,
    pub(super) notes: Vec<Note>,
    /// Jobs that the new one replaces.
    pub(super) replaced: Vec<ObjectReference>,
    pub(super) start: Option<Start>,
    /// Until the next start; `None` if nothing is due before the spec changes.
    pub(super) wait: Option<Duration>,
}

/// An event on the CronJob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Note {
    pub(super) event_type: EventType,
    pub(super) reason: &'static str,
    pub(super) text: String,
}

/// A Job to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Start {
    pub(super) name: String,
    pub(super) due: Timestamp,
    /// The time for its annotation.
    pub(super) shown: String,
}

/// What is known about a CronJob.
#[derive(Clone, Copy, Debug)]
pub(super) struct ObservedJobs<'a> {
    /// Those that it controls.
    pub(super) jobs: &'a [Arc<Job>],
    /// The UIDs of active Jobs that do not exist any more.
    pub(super) gone: &'a BTreeSet<String>,
    /// Whether its schedule has just changed: then nothing is started before the next time.
    pub(super) is_rescheduled: bool,
}

impl CronJobPlan {
    fn normal(&mut self, reason: &'static str, text: impl Into<String>) {
        self.notes.push(Note { event_type: EventType::Normal, reason, text: text.into() });
    }

    fn warn(&mut self, reason: &'static str, text: impl Into<String>) {
        self.notes.push(Note { event_type: EventType::Warning, reason, text: text.into() });
    }

    fn forget(&mut self, uid: Option<&str>) {
        let active = self.status.active.take().unwrap_or_default();
        self.status.active = nonempty(active.into_iter().filter(|it| it.uid.as_deref() != uid).collect());
    }
}

/// The texts of events are those of Kubernetes.
pub(super) fn plan(cron_job: &CronJob, observed: ObservedJobs<'_>, now: Timestamp) -> CronJobPlan {
    let mut plan =
        CronJobPlan { status: cron_job.status.clone().unwrap_or_default(), ..CronJobPlan::default() };
    let spec = &cron_job.spec;
    plan.old = beyond_limits(spec, observed.jobs);
    for job in plan.old.clone() {
        plan.forget(job.metadata.uid.as_deref());
    }
    look_at_jobs(&mut plan, observed);
    if cron_job.metadata.deletion_timestamp.is_some() {
        return plan;
    }
    let timing = Timing::of(cron_job);
    if let Err(BadTiming::Zone(problem)) = &timing {
        plan.warn("UnknownTimeZone", problem);
        return plan;
    }
    if spec.suspend == Some(true) {
        return plan;
    }
    if spec.schedule.contains("TZ") {
        let schedule = api::go::quote(&spec.schedule);
        plan.warn(
            "UnsupportedSchedule",
            format!(
                "CRON_TZ or TZ used in schedule {schedule} is not officially supported, see \
                 https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
            ),
        );
    }
    match timing {
        Ok(timing) => decide_start(&mut plan, cron_job, spec, &timing, observed.is_rescheduled, now),
        Err(BadTiming::Zone(problem) | BadTiming::Schedule(problem)) => {
            plan.warn("UnparseableSchedule", problem);
        }
    }
    plan
}

/// The oldest of the Jobs that have succeeded, and of those that have failed.
fn beyond_limits(spec: &CronJobSpec, jobs: &[Arc<Job>]) -> Vec<Arc<Job>> {
    let limits =
        [("Complete", spec.successful_jobs_history_limit), ("Failed", spec.failed_jobs_history_limit)];
    let mut old = Vec::new();
    for (condition, limit) in limits {
        let Some(limit) = limit.and_then(|limit| usize::try_from(limit).ok()) else { continue };
        let ended = jobs.iter().filter(|job| finished(job) == Some(condition));
        let mut ended: Vec<_> = ended.cloned().collect();
        ended.sort_by_key(|job| {
            let started = job.status.as_ref().and_then(|status| status.start_time.as_ref());
            (started.is_none(), started.map(|time| time.0), job.name_any())
        });
        ended.truncate(ended.len().saturating_sub(limit));
        old.extend(ended);
    }
    old
}

/// Updates the active Jobs and the time of the last success.
fn look_at_jobs(plan: &mut CronJobPlan, observed: ObservedJobs<'_>) {
    for job in observed.jobs {
        let (uid, name) = (job.metadata.uid.as_deref(), job.name_any());
        let is_active = plan.status.active.iter().flatten().any(|it| it.uid.as_deref() == uid);
        let Some(condition) = finished(job) else {
            if !is_active {
                let text = format!("Saw a job that the controller did not create or forgot: {name}");
                plan.warn("UnexpectedJob", text);
            }
            continue;
        };
        if is_active {
            plan.forget(uid);
            plan.normal("SawCompletedJob", format!("Saw completed job: {name}, condition: {condition}"));
        }
        let completed = job.status.as_ref().and_then(|status| status.completion_time.as_ref());
        if condition == "Complete" && completed > plan.status.last_successful_time.as_ref() {
            plan.status.last_successful_time = completed.cloned();
        }
    }
    for active in plan.status.active.clone().unwrap_or_default() {
        if active.uid.as_ref().is_some_and(|uid| observed.gone.contains(uid)) {
            plan.normal(
                "MissingJob",
                format!("Active job went missing: {}", active.name.unwrap_or_default()),
            );
            plan.forget(active.uid.as_deref());
        }
    }
}

fn decide_start(
    plan: &mut CronJobPlan,
    cron_job: &CronJob,
    spec: &CronJobSpec,
    timing: &Timing,
    is_rescheduled: bool,
    now: Timestamp,
) {
    let created = cron_job.metadata.creation_timestamp.as_ref().map_or(now, |time| time.0);
    let last = plan.status.last_schedule_time.as_ref().map_or(created, |time| time.0);
    let limit = spec.starting_deadline_seconds.map(SignedDuration::from_secs);
    let earliest = limit.and_then(|limit| now.checked_sub(limit).ok()).map_or(last, |at| at.max(last));
    let missed = match timing.missed(earliest, now) {
        Ok(missed) => missed.filter(|_| !is_rescheduled),
        Err(problem) => {
            plan.warn("InvalidSchedule", format!("invalid schedule: {} : {problem}", spec.schedule));
            return;
        }
    };
    plan.wait = timing.wait(last, now);
    let Some(Missed { last: due, is_many }) = missed else { return };
    if is_many {
        let text = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock \
                    skew";
        plan.warn("TooManyMissedTimes", text);
    }
    if limit.is_some_and(|limit| due.checked_add(limit).is_ok_and(|latest| latest < now)) {
        let due = due.to_zoned(TimeZone::UTC).strftime("%a, %d %b %Y %H:%M:%S %z").to_string();
        plan.warn("MissSchedule", format!("Missed scheduled time to start a job: {due}"));
        return;
    }
    let name = job_name(cron_job, due);
    let active = plan.status.active.clone().unwrap_or_default();
    let is_done = plan.status.last_schedule_time.as_ref().is_some_and(|time| time.0 == due);
    if is_done || active.iter().any(|it| it.name.as_ref() == Some(&name)) {
        return;
    }
    match spec.concurrency_policy.as_deref() {
        Some("Forbid") if !active.is_empty() => {
            let text = "Not starting job because prior execution is running and concurrency policy is Forbid";
            plan.normal("JobAlreadyActive", text);
            return;
        }
        Some("Replace") => plan.replaced = active,
        _ => {}
    }
    plan.start = Some(Start { name, due, shown: timing.shown(due) });
    plan.wait = timing.wait(due, now);
}

/// Kubernetes: the name is the same for the same time, so that no Job is created twice.
fn job_name(cron_job: &CronJob, due: Timestamp) -> String {
    format!("{}-{}", cron_job.name_any(), due.as_second() / 60)
}

/// The status after `job` was started.
pub(super) fn started(mut status: CronJobStatus, job: ObjectReference, due: Timestamp) -> CronJobStatus {
    status.active.get_or_insert_default().push(job);
    status.last_schedule_time = Some(Time(due));
    status
}

/// Without the Jobs that were replaced.
pub(super) fn replaced(mut status: CronJobStatus) -> CronJobStatus {
    status.active = None;
    status
}

fn nonempty<T>(list: Vec<T>) -> Option<Vec<T>> {
    (!list.is_empty()).then_some(list)
}

#[cfg(test)]
mod tests;
