//! CronJobs and their Jobs in, the plan in words out.

use super::*;
use serde_json::{Value, json};

/// A CronJob of every full hour, created at 10:10, with these fields of the spec and status.
fn cron_job(spec: &Value, status: &Value) -> CronJob {
    let mut cron_job = json!({
        "metadata": {"name": "cron", "uid": "c", "creationTimestamp": "2026-01-01T10:10:00Z"},
        "spec": {"schedule": "0 * * * *", "concurrencyPolicy": "Allow", "jobTemplate": {}},
        "status": status,
    });
    for (name, value) in spec.as_object().into_iter().flatten() {
        cron_job["spec"][name] = value.clone();
    }
    serde_json::from_value(cron_job).unwrap()
}

/// A Job from words: its name, `Complete`, `Failed` or `Running`, and the hour at which it started.
fn job(words: &str) -> Arc<Job> {
    let words: Vec<&str> = words.split(' ').collect();
    let (name, state, hour) = (words[0], words[1], words[2]);
    let mut job = json!({"metadata": {"name": name, "uid": name},
        "status": {"startTime": format!("2026-01-01T{hour}:00:00Z")}});
    if state != "Running" {
        job["status"]["conditions"] = json!([{"type": state, "status": "True"}]);
    }
    if state == "Complete" {
        job["status"]["completionTime"] = json!(format!("2026-01-01T{hour}:05:00Z"));
    }
    Arc::new(serde_json::from_value(job).unwrap())
}

fn active(names: &[&str]) -> Value {
    names.iter().map(|name| json!({"name": name, "uid": name})).collect()
}

fn described(plan: &CronJobPlan) -> String {
    let mut words: Vec<String> = plan.old.iter().map(|job| format!("delete {}", job.name_any())).collect();
    words.extend(plan.notes.iter().map(|note| format!("{}: {}", note.reason, note.text)));
    words.extend(plan.replaced.iter().map(|job| format!("replace {}", job.name.clone().unwrap_or_default())));
    words.extend(plan.start.iter().map(|start| format!("start {} of {}", start.name, start.shown)));
    words.extend(plan.wait.map(|wait| format!("wait {wait:?}")));
    words.join("; ")
}

fn check(spec: Value, status: Value, jobs: &[&str], now: &str, expected: &str) {
    let cron_job = cron_job(&spec, &status);
    let jobs: Vec<_> = jobs.iter().map(|words| job(words)).collect();
    let gone = BTreeSet::from(["gone".to_owned()]);
    let observed = ObservedJobs { jobs: &jobs, gone: &gone, is_rescheduled: false };
    let plan = plan(&cron_job, observed, format!("2026-01-01T{now}Z").parse().unwrap());
    assert_eq!(described(&plan), expected, "{spec} {status} {jobs:?} {now}");
}

#[test]
fn a_job_is_started_when_it_is_due() {
    let none = || json!({});
    check(none(), none(), &[], "10:30:00", "wait 1800.1s");
    let first = "start cron-29454420 of 2026-01-01T11:00:00Z; wait 3599.1s";
    check(none(), none(), &[], "11:00:01", first);
    check(none(), json!({"lastScheduleTime": "2026-01-01T11:00:00Z"}), &[], "11:00:01", "wait 3599.1s");
    let third = "start cron-29454540 of 2026-01-01T13:00:00Z; wait 1800.1s";
    check(none(), none(), &[], "13:30:00", third);
    let tokyo = "start cron-29454420 of 2026-01-01T20:00:00+09:00; wait 3599.1s";
    check(json!({"timeZone": "Asia/Tokyo"}), none(), &[], "11:00:01", tokyo);
    check(json!({"suspend": true}), none(), &[], "11:00:01", "");
    check(
        json!({"timeZone": "Nowhere"}),
        none(),
        &[],
        "11:00:01",
        r#"UnknownTimeZone: invalid timeZone: "Nowhere": unknown time zone Nowhere"#,
    );
    check(
        json!({"schedule": "0 0 31 2 *"}),
        none(),
        &[],
        "11:00:01",
        "InvalidSchedule: invalid schedule: 0 0 31 2 * : time difference between two schedules is less than 1 second",
    );
}

#[test]
fn starts_that_were_missed_are_made_up_within_the_deadline() {
    let within = "start cron-29454420 of 2026-01-01T11:00:00Z; wait 3541.1s";
    check(json!({"startingDeadlineSeconds": 60}), json!({}), &[], "11:00:59", within);
    check(json!({"startingDeadlineSeconds": 60}), json!({}), &[], "11:01:02", "wait 3538.1s");
    let many = "TooManyMissedTimes: too many missed start times. Set or decrease \
        .spec.startingDeadlineSeconds or check clock skew; start cron-29454540 of 2026-01-01T13:00:00Z; wait 60.1s";
    check(json!({"schedule": "* * * * *"}), json!({}), &[], "13:00:00", many);
    check(
        json!({"schedule": "* * * * *", "startingDeadlineSeconds": 200}),
        json!({}),
        &[],
        "13:00:00",
        "start cron-29454540 of 2026-01-01T13:00:00Z; wait 60.1s",
    );
}

#[test]
fn the_policy_decides_about_jobs_that_still_run() {
    let policy = |policy: &str| json!({ "concurrencyPolicy": policy });
    let status = || json!({"active": active(&["j"])});
    let start = "start cron-29454420 of 2026-01-01T11:00:00Z; wait 3599.1s";
    check(policy("Allow"), status(), &["j Running 10"], "11:00:01", start);
    let forbidden = "JobAlreadyActive: Not starting job because prior execution is running and concurrency \
        policy is Forbid; wait 3599.1s";
    check(policy("Forbid"), status(), &["j Running 10"], "11:00:01", forbidden);
    check(policy("Replace"), status(), &["j Running 10"], "11:00:01", &format!("replace j; {start}"));
    let done = format!("SawCompletedJob: Saw completed job: j, condition: Complete; {start}");
    check(policy("Forbid"), status(), &["j Complete 10"], "11:00:01", &done);
    let gone = format!("MissingJob: Active job went missing: gone; {start}");
    check(policy("Forbid"), json!({"active": active(&["gone"])}), &[], "11:00:01", &gone);
    check(
        policy("Allow"),
        json!({}),
        &["j Running 10"],
        "10:30:00",
        "UnexpectedJob: Saw a job that the controller did not create or forgot: j; wait 1800.1s",
    );
}

#[test]
fn the_oldest_jobs_that_have_ended_are_deleted() {
    let limits = json!({"successfulJobsHistoryLimit": 1, "failedJobsHistoryLimit": 0, "suspend": true});
    let jobs = ["a Complete 09", "b Complete 07", "c Failed 06", "d Running 05", "e Complete 08"];
    let text = "delete b; delete e; delete c; UnexpectedJob: Saw a job that the controller did not create or \
        forgot: d";
    check(limits, json!({}), &jobs, "11:00:01", text);
}

#[test]
fn the_status_has_the_active_jobs_and_the_last_success() {
    let cron_job = cron_job(&json!({}), &json!({"active": active(&["a", "b"])}));
    let jobs = ["a Complete 09", "b Running 10", "c Complete 08"].map(job);
    let gone = BTreeSet::new();
    let observed = ObservedJobs { jobs: &jobs, gone: &gone, is_rescheduled: false };
    let plan = plan(&cron_job, observed, "2026-01-01T10:30:00Z".parse().unwrap());
    let expected = json!({"active": active(&["b"]), "lastSuccessfulTime": "2026-01-01T09:05:00Z"});
    assert_eq!(serde_json::to_value(plan.status).unwrap(), expected);
}

#[test]
fn a_new_schedule_starts_nothing_before_its_next_time() {
    let cron_job = cron_job(&json!({}), &json!({}));
    let gone = BTreeSet::new();
    let observed = ObservedJobs { jobs: &[], gone: &gone, is_rescheduled: true };
    let plan = plan(&cron_job, observed, "2026-01-01T12:30:00Z".parse().unwrap());
    assert_eq!(described(&plan), "wait 1800.1s");
}
