//! The CronJob of a CronTab, and what its status says: pure functions.

use crate::{CronTab, CronTabStatus};
use k8s_openapi::api::batch::v1::CronJob;
use kube::ResourceExt;
use operator::{
    Timestamp,
    condition::{self, Report},
};
use serde_json::json;

pub(crate) const READY: &str = "Ready";
const LABEL: &str = "stable.example.com/crontab";

/// The CronJob. A run is a Job with as many indexed pods as there are replicas, so that each knows its share of the work.
pub(crate) fn cron_job(tab: &CronTab) -> CronJob {
    let (name, spec) = (tab.name_any(), &tab.spec);
    let labels = json!({(LABEL): name});
    // A Job without pods would be complete at once: no replicas mean no runs.
    let pods = spec.replicas.max(1);
    let cron_job = json!({
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "schedule": spec.cron_spec,
            "timeZone": "Etc/UTC",
            "suspend": spec.replicas == 0,
            // A run that takes longer than planned is not overtaken by the next one.
            "concurrencyPolicy": "Forbid",
            "jobTemplate": {
                "metadata": {"labels": labels},
                "spec": {
                    "parallelism": pods,
                    "completions": pods,
                    "completionMode": "Indexed",
                    "template": {
                        "metadata": {"labels": labels},
                        "spec": {
                            "restartPolicy": "OnFailure",
                            "containers": [{"name": "cron", "image": spec.image}],
                        },
                    },
                },
            },
        },
    });
    serde_json::from_value(cron_job).expect("it has the fields of a CronJob")
}

/// The status, from the CronJob that there is, and from the server's message if it has refused the one that should be.
pub(crate) fn status(
    tab: &CronTab,
    cron_job: Option<&CronJob>,
    refusal: Option<&str>,
    now: Timestamp,
) -> CronTabStatus {
    let mut status = tab.status.clone().unwrap_or_default();
    status.observed_generation = tab.metadata.generation;
    status.replicas = cron_job.map(replicas).unwrap_or_default();
    status.label_selector = format!("{LABEL}={}", tab.name_any());
    let last_run = cron_job.and_then(|it| it.status.as_ref()?.last_schedule_time.as_ref());
    status.last_run = last_run.map(|time| time.0.to_string()).or(status.last_run);
    condition::set(&mut status.conditions, report(tab, refusal).of(tab), now);
    status
}

/// Whether the CronJob was made for this CronTab.
pub(crate) fn is_of(cron_job: &CronJob, tab: &CronTab) -> bool {
    cron_job.owner_references().iter().any(|owner| Some(&owner.uid) == tab.metadata.uid.as_ref())
}

/// How many runs are under way.
pub(crate) fn runs(cron_job: &CronJob) -> usize {
    cron_job.status.as_ref().and_then(|status| status.active.as_ref()).map_or(0, Vec::len)
}

/// How many pods a run of the CronJob has.
fn replicas(cron_job: &CronJob) -> i32 {
    let job = cron_job.spec.job_template.spec.as_ref().filter(|_| cron_job.spec.suspend != Some(true));
    job.and_then(|job| job.parallelism).unwrap_or_default()
}

fn report(tab: &CronTab, refusal: Option<&str>) -> Report {
    match (refusal, tab.spec.replicas) {
        _ if tab.metadata.deletion_timestamp.is_some() => Report::new(
            READY,
            false,
            "Finishing",
            "it goes when its run has ended: delete the Job to end it now",
        ),
        (Some(message), _) => Report::new(READY, false, "Refused", message),
        (None, 0) => Report::new(READY, false, "NoReplicas", "there are no runs without replicas"),
        (None, pods) => Report::new(READY, true, "Scheduled", format!("each run has {pods} pods")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CronTabSpec;

    fn tab(replicas: i32) -> CronTab {
        let spec = CronTabSpec { cron_spec: "0 * * * *".to_owned(), image: "i".to_owned(), replicas };
        CronTab::new("a", spec)
    }

    #[test]
    fn the_status_follows_from_the_cron_job_that_there_is() {
        for (wanted, present, refusal, replicas, reason) in [
            (2, Some(2), None, 2, "Scheduled"),
            (2, None, None, 0, "Scheduled"),
            (0, Some(0), None, 0, "NoReplicas"),
            (2, None, Some("no such hour"), 0, "Refused"),
            // What was accepted before goes on.
            (3, Some(1), Some("no such hour"), 1, "Refused"),
        ] {
            let present = present.map(|replicas| cron_job(&tab(replicas)));
            let status = status(&tab(wanted), present.as_ref(), refusal, Timestamp::UNIX_EPOCH);
            assert_eq!((status.replicas, status.conditions[0].reason.as_str()), (replicas, reason));
            assert_eq!(status.conditions[0].status == "True", reason == "Scheduled");
        }
    }

    #[test]
    fn the_last_run_is_remembered_without_a_cron_job() {
        let mut present = cron_job(&tab(1));
        present.status = serde_json::from_value(json!({"lastScheduleTime": "2026-01-01T06:00:00Z"})).unwrap();
        let mut tab = tab(1);
        tab.status = Some(status(&tab, Some(&present), None, Timestamp::UNIX_EPOCH));
        let after = status(&tab, None, None, Timestamp::UNIX_EPOCH);
        assert_eq!(after.last_run.as_deref(), Some("2026-01-01T06:00:00Z"));
    }
}
