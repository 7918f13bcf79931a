//! CronJobs, over days and months of virtual time.

use crate::{pods::end, rig};
use k8s_openapi::api::{
    batch::v1::{CronJob, CronJobStatus, Job},
    core::v1::{Event, Pod},
};
use kube::ResourceExt;
use serde_json::{Value, json};
use std::{collections::BTreeSet, time::Duration};
use testkit::Cluster;

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);
const USER: &str = "system:serviceaccount:kube-system:cronjob-controller";

/// Applies a CronJob named `cron` with these fields of the spec, and waits for a minute: then steps of whole hours
/// end after the full hour.
async fn apply(cluster: &Cluster, spec: &Value) {
    let pod = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "i"}]}});
    let template = json!({"metadata": {"labels": {"app": "cron"}}, "spec": {"template": pod}});
    let mut cron_job = json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "cron"},
        "spec": {"jobTemplate": template}});
    for (name, value) in spec.as_object().unwrap() {
        cron_job["spec"][name] = value.clone();
    }
    cluster.apply_object(&cron_job).await;
    cluster.advance(Duration::from_secs(60)).await;
}

async fn status(cluster: &Cluster) -> CronJobStatus {
    cluster.get::<CronJob>("default", "cron").await.status.unwrap_or_default()
}

async fn job_names(cluster: &Cluster) -> Vec<String> {
    cluster.list::<Job>("default").await.iter().map(ResourceExt::name_any).collect()
}

/// Ends the pods that run, successfully.
async fn end_pods(cluster: &Cluster) {
    for pod in cluster.list::<Pod>("default").await {
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        if !matches!(phase, Some("Succeeded" | "Failed")) {
            end(cluster, &pod.name_any(), 0).await;
        }
    }
    cluster.settle().await;
}

/// The events of the CronJob as `type reason: message`, without digits.
async fn events(cluster: &Cluster) -> BTreeSet<String> {
    cluster.advance(Duration::from_secs(1)).await;
    let events: Vec<Event> = cluster.list("default").await;
    let events = events.into_iter().filter(|event| event.involved_object.kind.as_deref() == Some("CronJob"));
    let text = |event: Event| {
        let message = event.message.unwrap_or_default().replace(|c: char| c.is_ascii_digit(), "");
        format!("{} {}: {message}", event.type_.unwrap_or_default(), event.reason.unwrap_or_default())
    };
    events.map(text).collect()
}

#[test]
fn a_month_of_a_cron_job_has_a_job_for_every_day() {
    // One seed: a month is long enough.
    testkit::simulate(1, |cluster| async move {
        let _running = rig::start(&cluster, &["cronjob-controller", "job-controller"]);
        apply(&cluster, &json!({"schedule": "30 3 * * *"})).await;
        let mut seen = BTreeSet::new();
        for _ in 0..31 {
            cluster.advance(DAY).await;
            seen.extend(job_names(&cluster).await);
            assert_eq!(status(&cluster).await.active.map(|active| active.len()), Some(1));
            end_pods(&cluster).await;
            assert_eq!(status(&cluster).await.active, None);
        }
        assert_eq!((seen.len(), job_names(&cluster).await.len()), (31, 3), "the last three stay");
        let (status, last) = (status(&cluster).await, seen.last().unwrap());
        let due = status.last_schedule_time.unwrap().0;
        assert_eq!(*last, format!("cron-{}", due.as_second() / 60));
        assert_eq!(due.strftime("%H:%M:%S").to_string(), "03:30:00");
        assert!(status.last_successful_time.unwrap().0 > due);
        let job: Job = cluster.get("default", last).await;
        assert_eq!(job.annotations()["batch.kubernetes.io/cronjob-scheduled-timestamp"], due.to_string());
        assert_eq!(job.labels()["app"], "cron");
        let expected = [
            "Normal SawCompletedJob: Saw completed job: cron-, condition: Complete",
            "Normal SuccessfulCreate: Created job cron-",
            "Normal SuccessfulDelete: Deleted job cron-",
        ];
        assert_eq!(events(&cluster).await.into_iter().collect::<Vec<_>>(), expected);
    });
}

#[test]
fn a_cron_job_that_is_not_due_sends_nothing() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &["cronjob-controller"]);
        apply(&cluster, &json!({"schedule": "0 0 1 1 *"})).await;
        let requests =
            |cluster: &Cluster| cluster.trace().entries.iter().filter(|entry| entry.caller == USER).count();
        let before = requests(&cluster);
        cluster.advance(20 * HOUR).await;
        assert_eq!(requests(&cluster), before);
    });
}

#[test]
fn jobs_that_still_run_are_kept_waited_for_or_replaced() {
    for (policy, jobs, active) in [("Allow", 3, 3), ("Forbid", 1, 1), ("Replace", 1, 1)] {
        testkit::run(|cluster| async move {
            let _running = rig::start(&cluster, &["cronjob-controller", "job-controller"]);
            apply(&cluster, &json!({"schedule": "0 * * * *", "concurrencyPolicy": policy})).await;
            cluster.advance(HOUR).await;
            let first = job_names(&cluster).await;
            cluster.advance(2 * HOUR).await;
            let last = job_names(&cluster).await;
            let status = status(&cluster).await;
            assert_eq!((last.len(), status.active.unwrap().len()), (jobs, active), "{policy}");
            assert_eq!(last.contains(&first[0]), policy != "Replace", "{policy}");
            if policy == "Forbid" {
                let text = "Normal JobAlreadyActive: Not starting job because prior execution is running and \
                    concurrency policy is Forbid";
                assert!(events(&cluster).await.contains(text));
                end_pods(&cluster).await;
                assert_eq!(job_names(&cluster).await.len(), 2, "the start that was missed is made up");
            }
        });
    }
}

#[test]
fn missed_starts_are_made_up_once_or_not_after_the_deadline() {
    for (deadline, expected) in [(None, 1), (Some(600), 0), (Some(7200), 1)] {
        testkit::run(|cluster| async move {
            let mut spec = json!({"schedule": "0 * * * *"});
            spec["startingDeadlineSeconds"] = json!(deadline);
            apply(&cluster, &spec).await;
            cluster.advance(5 * HOUR).await;
            // Half past: the last start is half an hour ago.
            let past = cluster.world().wall().as_second().rem_euclid(3600);
            let until_half = u64::try_from((1800 - past).rem_euclid(3600)).unwrap();
            cluster.advance(Duration::from_secs(until_half)).await;
            let _running = rig::start(&cluster, &["cronjob-controller"]);
            cluster.settle().await;
            assert_eq!(job_names(&cluster).await.len(), expected, "{deadline:?}");
        });
    }
}

#[test]
fn a_suspended_cron_job_starts_nothing_and_a_new_schedule_counts_at_once() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &["cronjob-controller"]);
        apply(&cluster, &json!({"schedule": "0 0 1 1 *", "suspend": true})).await;
        let patch = |spec: Value| json!({ "spec": spec });
        let hourly = patch(json!({"schedule": "0 * * * *"}));
        cluster.patch::<CronJob>("default", "cron", &hourly).await;
        cluster.advance(3 * HOUR).await;
        assert_eq!(job_names(&cluster).await.len(), 0);
        cluster.patch::<CronJob>("default", "cron", &patch(json!({"suspend": false}))).await;
        cluster.settle().await;
        assert_eq!(job_names(&cluster).await.len(), 1, "the last start that was missed");
        cluster.patch::<CronJob>("default", "cron", &patch(json!({"schedule": "*/10 * * * *"}))).await;
        cluster.settle().await;
        assert_eq!(job_names(&cluster).await.len(), 1, "a new schedule starts nothing at once");
        cluster.advance(HOUR).await;
        assert!(job_names(&cluster).await.len() >= 6);
    });
}

#[test]
fn no_start_is_missed_or_made_twice_wherever_the_controller_crashes() {
    let crashes = testkit::crash_everywhere(
        USER,
        async |cluster: &Cluster| rig::start(cluster, &["cronjob-controller", "job-controller"]),
        |cluster| async move {
            apply(&cluster, &json!({"schedule": "0 * * * *", "successfulJobsHistoryLimit": 1})).await;
            let mut seen = BTreeSet::new();
            for _ in 0..4 {
                cluster.advance(HOUR).await;
                seen.extend(job_names(&cluster).await);
                assert_eq!(status(&cluster).await.active.map(|active| active.len()), Some(1));
                end_pods(&cluster).await;
            }
            assert_eq!(seen.len(), 4);
            let status = status(&cluster).await;
            assert_eq!(status.active, None);
            assert_eq!(job_names(&cluster).await, [seen.last().unwrap().clone()]);
        },
    );
    assert!(crashes.writes >= 10, "{crashes}");
}
