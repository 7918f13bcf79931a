//! CronJobs: a Job at certain times.

mod plan;
mod timing;

use crate::{pod, status};
use k8s_openapi::{
    api::{
        batch::v1::{CronJob, CronJobSpec, CronJobStatus, Job},
        core::v1::ObjectReference,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Resource, ResourceExt,
    api::{DeleteParams, PostParams},
};
use operator::{Context, Controller, Failure, Key, Next, all, owner};
use plan::{ObservedJobs, Start};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
};

/// Kubernetes: so many CronJobs are reconciled at once.
const WORKERS: usize = 5;
/// Kubernetes: the time at which the Job was due.
const SCHEDULED: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

/// The schedules as they were last seen.
///
/// Kubernetes: a new schedule starts nothing at once, even if the old time of the last start makes one due.
#[derive(Debug, Default)]
struct Schedules(Mutex<BTreeMap<Key, String>>);

impl Schedules {
    /// Remembers the schedule, and returns whether it was another one before.
    fn replace(&self, key: &Key, schedule: &str) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(key.clone(), schedule.to_owned()).is_some_and(|before| before != schedule)
    }

    fn remove(&self, key: &Key) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

pub(crate) fn controller() -> Controller {
    Controller::new("cronjob-controller", all::<CronJob>())
        .owns(all::<Job>())
        .workers(WORKERS)
        .reconcile(Schedules::default(), reconcile)
}

async fn reconcile(context: Context<Schedules>, key: Key) -> Result<Next, Failure> {
    let Some(cron_job) = context.get::<CronJob>(&key)? else {
        context.state().remove(&key);
        return Ok(Next::Settled);
    };
    let owned = context.view::<Job>()?.owned_by(cron_job.meta().uid.as_deref().unwrap_or_default())?;
    let jobs: Vec<_> = owned.into_iter().filter(|job| owner::is_controlled_by(&**job, &*cron_job)).collect();
    let gone = gone(&context, &cron_job, &jobs).await?;
    let is_rescheduled = context.state().replace(&key, &schedule(&cron_job));
    let observed = ObservedJobs { jobs: &jobs, gone: &gone, is_rescheduled };
    let plan = plan::plan(&cron_job, observed, context.wall());
    for job in &plan.old {
        // If that fails, there is an event, and the next reconcile tries again.
        let _ = delete(&context, &cron_job, &job.name_any()).await;
    }
    for note in plan.notes {
        let regarding = cron_job.object_ref(&());
        context.events().record(regarding, note.event_type, note.reason, "Reconcile", note.text);
    }
    let mut outcome = Ok(());
    let mut new_status = plan.status;
    if let Some(start) = &plan.start {
        for job in &plan.replaced {
            delete(&context, &cron_job, job.name.as_deref().unwrap_or_default()).await?;
        }
        if !plan.replaced.is_empty() {
            new_status = plan::replaced(new_status);
        }
        (new_status, outcome) = create(&context, &cron_job, start, new_status).await;
    }
    status::replace(&context.namespaced::<CronJob>(&key), &*cron_job, &new_status).await?;
    outcome?;
    Ok(plan.wait.map_or(Next::Settled, Next::CheckAfter))
}

fn schedule(cron_job: &CronJob) -> String {
    let CronJobSpec { schedule, time_zone, .. } = &cron_job.spec;
    format!("{} {schedule}", time_zone.as_deref().unwrap_or_default())
}

/// The UIDs of active Jobs that do not exist any more.
async fn gone(
    context: &Context<Schedules>,
    cron_job: &CronJob,
    jobs: &[Arc<Job>],
) -> Result<BTreeSet<String>, Failure> {
    let active = cron_job.status.as_ref().and_then(|status| status.active.as_deref()).unwrap_or_default();
    let mut gone = BTreeSet::new();
    for reference in active {
        if jobs.iter().any(|job| job.metadata.uid == reference.uid) {
            continue;
        }
        // From the server: after a restart the cache of Jobs may be behind that of CronJobs, and a Job that runs
        // must not be forgotten.
        let name = reference.name.as_deref().unwrap_or_default();
        let live = context.namespaced::<Job>(&Key::of(cron_job)).get_opt(name).await?;
        if live.is_none_or(|live| live.metadata.uid != reference.uid) {
            gone.extend(reference.uid.clone());
        }
    }
    Ok(gone)
}

/// Deletes a Job with its pods.
async fn delete(context: &Context<Schedules>, cron_job: &CronJob, name: &str) -> Result<(), Failure> {
    let api = context.namespaced::<Job>(&Key::of(cron_job));
    match api.delete(name, &DeleteParams::background()).await {
        Ok(_) => {
            context.events().normal(cron_job, "SuccessfulDelete", "Delete", format!("Deleted job {name}"));
            Ok(())
        }
        Err(error) => {
            // Kubernetes: the text says the opposite of the reason.
            let note = format!("Deleted job: {}", pod::message(&error));
            context.events().warning(cron_job, "FailedDelete", "Delete", note);
            Err(Failure::transient(pod::message(&error)))
        }
    }
}

/// The status after the Job was created, or why it was not.
async fn create(
    context: &Context<Schedules>,
    cron_job: &CronJob,
    start: &Start,
    status: CronJobStatus,
) -> (CronJobStatus, Result<(), Failure>) {
    let api = context.namespaced::<Job>(&Key::of(cron_job));
    let new = match job(cron_job, start) {
        Ok(new) => new,
        Err(problem) => return (status, Err(problem.into())),
    };
    let created = match api.create(&PostParams::default(), &new).await {
        Ok(created) => {
            let note = format!("Created job {}", start.name);
            context.events().normal(cron_job, "SuccessfulCreate", "Create", note);
            created
        }
        // An earlier process may have created it, and crashed before it wrote the status.
        Err(kube::Error::Api(error)) if error.reason == "AlreadyExists" => match api.get(&start.name).await {
            Ok(present) if owner::is_controlled_by(&present, cron_job) => present,
            Ok(_) => return (status, Ok(())),
            Err(error) => return (status, Err(error.into())),
        },
        // Every create fails from now on, and the CronJob is deleted with the namespace.
        Err(error) if pod::is_namespace_terminating(&error) => return (status, Ok(())),
        Err(error) => {
            let message = pod::message(&error);
            let note = format!("Error creating job: {message}");
            context.events().warning(cron_job, "FailedCreate", "Create", note);
            // Kubernetes: whatever the reason, it is tried again.
            return (status, Err(Failure::transient(message)));
        }
    };
    let reference =
        ObjectReference { resource_version: created.resource_version(), ..created.object_ref(&()) };
    (plan::started(status, reference, start.due), Ok(()))
}

fn job(cron_job: &CronJob, start: &Start) -> Result<Job, owner::OwnerError> {
    let template = cron_job.spec.job_template.clone();
    let meta = template.metadata.unwrap_or_default();
    let mut annotations = meta.annotations.unwrap_or_default();
    annotations.insert(SCHEDULED.to_owned(), start.shown.clone());
    let metadata = ObjectMeta {
        name: Some(start.name.clone()),
        labels: meta.labels,
        annotations: Some(annotations),
        owner_references: Some(vec![owner::reference(cron_job)?]),
        ..ObjectMeta::default()
    };
    Ok(Job { metadata, spec: template.spec, status: None })
}
