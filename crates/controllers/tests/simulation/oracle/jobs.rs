//! Jobs and CronJobs: every Job has ended as its pods did, exactly once, and no pod is tracked any more.

use super::{Problems, State, is_active, is_controlled_by, is_healthy, phase};
use k8s_openapi::api::batch::v1::{CronJob, Job, JobStatus};
use kube::ResourceExt;
use std::collections::BTreeSet;

const TRACKING: &str = "batch.kubernetes.io/job-tracking";

pub(super) fn check(state: &State<'_>, problems: &mut Problems) {
    state.jobs.iter().for_each(|job| check_job(state, job, problems));
    state.cron_jobs.iter().for_each(|cron_job| check_cron_job(state, cron_job, problems));
    for pod in &state.pods {
        let is_tracked = pod.finalizers().iter().any(|it| it == TRACKING);
        let is_owned = pod.owner_references().iter().any(|it| it.kind == "Job");
        if is_tracked && (!is_active(pod) || !is_owned) {
            problems.add(pod, format!("is tracked, in phase {}", phase(pod)));
        }
    }
}

/// The condition with which a Job has ended, and its reason.
fn end(job: &Job) -> Option<(String, String)> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    let end =
        conditions.iter().find(|it| matches!(&*it.type_, "Complete" | "Failed") && it.status == "True")?;
    Some((end.type_.clone(), end.reason.clone().unwrap_or_default()))
}

fn check_job(state: &State<'_>, job: &Job, problems: &mut Problems) {
    let (spec, status) = (job.spec.clone().unwrap_or_default(), job.status.clone().unwrap_or_default());
    if spec.managed_by.is_some() {
        return problems.equal(job, "its status", job.status.clone(), Some(JobStatus::default()));
    }
    let active = state.active_pods_of(job).len() as i32;
    problems.equal(job, "status.active", status.active.unwrap_or(0), active);
    problems.equal(job, "status.terminating", status.terminating.unwrap_or(0), 0);
    let uncounted = status.uncounted_terminated_pods.clone().unwrap_or_default();
    let uncounted =
        uncounted.succeeded.unwrap_or_default().len() + uncounted.failed.unwrap_or_default().len();
    problems.equal(job, "the number of uncounted pods", uncounted, 0);
    let is_held = spec.suspend == Some(true) || spec.parallelism == Some(0);
    let Some((end, reason)) = end(job) else {
        if !is_held {
            problems.add(job, "has not ended");
        }
        return problems.equal(job, "the number of active pods", active, 0);
    };
    problems.equal(job, "the number of active pods", active, 0);
    let is_healthy = is_healthy(&spec.template);
    match (end.as_str(), is_healthy) {
        ("Complete", _) if spec.success_policy.is_some() => {
            problems.equal(job, "the reason of its end", reason.as_str(), "SuccessPolicy");
            let succeeded = status.succeeded.unwrap_or(0);
            if !(1..=spec.completions.unwrap_or(1)).contains(&succeeded) {
                problems.add(job, format!("{succeeded} indexes have succeeded"));
            }
        }
        ("Complete", true) if spec.completions.is_none() => {
            let succeeded = status.succeeded.unwrap_or(0);
            if succeeded == 0 {
                problems.add(job, "is complete, and none of its pods has succeeded");
            }
        }
        ("Complete", true) => {
            problems.equal(job, "succeeded", status.succeeded.unwrap_or(0), spec.completions.unwrap_or(1));
            if spec.completion_mode.as_deref() == Some("Indexed") {
                let indexes = indexes(status.completed_indexes.as_deref().unwrap_or_default());
                let all: BTreeSet<i32> = (0..spec.completions.unwrap_or(1)).collect();
                problems.equal(job, "completedIndexes", indexes, all);
            }
        }
        ("Complete", false) => problems.add(job, "is complete although its pods fail"),
        ("Failed", true) => {
            let has_deadline = spec.active_deadline_seconds.is_some() && reason == "DeadlineExceeded";
            if !has_deadline && !state.story.loses_pods() {
                problems.add(job, format!("has failed ({reason}) although its pods succeed"));
            }
        }
        _ => {}
    }
}

/// The numbers of a text as `0-2,5`.
fn indexes(text: &str) -> BTreeSet<i32> {
    let number = |text: &str| text.parse::<i32>().unwrap_or(-1);
    let ranges = text.split(',').filter(|it| !it.is_empty()).map(|range| match range.split_once('-') {
        Some((first, last)) => number(first)..=number(last),
        None => number(range)..=number(range),
    });
    ranges.flatten().collect()
}

fn check_cron_job(state: &State<'_>, cron_job: &CronJob, problems: &mut Problems) {
    let (spec, status) = (cron_job.spec.clone(), cron_job.status.clone().unwrap_or_default());
    let jobs: Vec<&Job> = state.jobs.iter().filter(|job| is_controlled_by(&job.metadata, cron_job)).collect();
    let names = |wanted: Option<&str>| -> BTreeSet<String> {
        let fits = |job: &&&Job| end(job).map(|it| it.0).as_deref() == wanted;
        jobs.iter().filter(fits).map(|job| job.name_any()).collect()
    };
    let active: BTreeSet<String> =
        status.active.unwrap_or_default().into_iter().filter_map(|it| it.name).collect();
    problems.equal(cron_job, "status.active", active, names(None));
    for (end, limit, usual) in
        [("Complete", spec.successful_jobs_history_limit, 3), ("Failed", spec.failed_jobs_history_limit, 1)]
    {
        let found = names(Some(end)).len();
        if found > limit.unwrap_or(usual) as usize {
            problems.add(cron_job, format!("has {found} Jobs that are {end}, with a history of {limit:?}"));
        }
    }
}
