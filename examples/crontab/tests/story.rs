//! CronTabs through a day, under `kubectl scale`, and with an operator that crashes at every write.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

#[path = "../demo/story.rs"]
mod demo;

use example_crontab::{
    CronTab, CronTabSpec, FINALIZER, NAME, configure, controller, definition, manifests, site, webhooks,
};
use k8s_openapi::api::{
    batch::v1::{CronJob, Job},
    core::v1::Pod,
    events::v1::Event,
};
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};
use operator::{Manager, Running, condition, definition as definitions, webhook::Address};
use serde_json::{Value, json};
use std::{collections::BTreeSet, time::Duration};
use testkit::Cluster;

const SAMPLE: &str = include_str!("../manifests/sample.yaml");
const TAB: &str = "my-new-cron-object";
const HOUR: Duration = Duration::from_secs(3600);
const A_MINUTE: Duration = Duration::from_secs(60);

async fn start(cluster: &Cluster) -> Running {
    cluster.apply(&definitions::yaml(&definition())).await;
    let client = cluster.client_as(NAME, &["system:masters"]);
    cluster.run(Manager::new(NAME, cluster.world(), client).controller(controller()))
}

/// With webhooks, as in production.
async fn start_with_webhooks(cluster: &Cluster) -> Running {
    cluster.apply(&definitions::yaml(&definition())).await;
    let manager = Manager::new(NAME, cluster.world(), cluster.client_as(NAME, &["system:masters"]));
    let site = site(Address::Url("https://crontab-operator.example.com".to_owned()));
    let running = cluster.run(manager.webhooks(webhooks(), ([0, 0, 0, 0], 0), site).controller(controller()));
    cluster.settle().await;
    running
}

async fn patch(cluster: &Cluster, spec: &Value) {
    cluster.patch::<CronTab>("default", TAB, &json!({"spec": spec})).await;
    cluster.settle().await;
}

/// Scales the CronTab, as `kubectl scale` does.
async fn scale(cluster: &Cluster, replicas: i32) -> kube::Result<()> {
    let tabs: Api<CronTab> = Api::default_namespaced(cluster.client());
    let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
    tabs.patch_scale(TAB, &PatchParams::default(), &patch).await?;
    cluster.settle().await;
    Ok(())
}

/// The replicas in the status, and why it is ready or not.
async fn status(cluster: &Cluster) -> (i32, String) {
    let tab: CronTab = cluster.get("default", TAB).await;
    let status = tab.status.unwrap();
    assert_eq!(status.observed_generation, tab.metadata.generation);
    let ready = condition::find(&status.conditions, "Ready").unwrap();
    assert_eq!(ready.status == "True", ready.reason == "Scheduled");
    (status.replicas, ready.reason.clone())
}

fn is(replicas: i32, reason: &str) -> (i32, String) {
    (replicas, reason.to_owned())
}

/// As a node would that has run them: all pods that there are have succeeded.
async fn finish_pods(cluster: &Cluster) -> BTreeSet<String> {
    let names: BTreeSet<_> = cluster.list::<Pod>("default").await.iter().map(ResourceExt::name_any).collect();
    for name in &names {
        let status = json!({"status": {"phase": "Succeeded"}});
        cluster.patch_status::<Pod>("default", name, &status).await;
    }
    cluster.settle().await;
    names
}

#[test]
fn a_day_has_four_runs_of_two_pods_each() {
    // One seed: all control loops take their time. Without a node, which would renew its lease 8,640 times.
    testkit::simulate(1, |cluster| async move {
        let _control_plane = cluster.control_plane().nodes(0).without("node-lifecycle-controller").start();
        let _operator = start(&cluster).await;
        cluster.apply(SAMPLE).await;
        cluster.advance(A_MINUTE).await;
        let mut pods = BTreeSet::new();
        for _ in 0..4 {
            cluster.advance(HOUR * 6).await;
            pods.extend(finish_pods(&cluster).await);
        }
        assert_eq!(pods.len(), 8, "{pods:?}");
        assert_eq!(cluster.list::<Job>("default").await.len(), 3, "the last three stay");
        let tab: CronTab = cluster.get("default", TAB).await;
        let last_run: operator::Timestamp = tab.status.unwrap().last_run.unwrap().parse().unwrap();
        let (hour, minute) = (last_run.as_second() / 3600 % 24, last_run.as_second() / 60 % 60);
        assert_eq!((hour % 6, minute), (0, 0), "{last_run}");
        let ago = cluster.world().wall().as_second() - last_run.as_second();
        assert!(ago < 6 * 3600, "the last run was {ago} seconds ago");
    });
}

#[test]
fn a_run_ends_on_a_node_and_nothing_stays_of_a_deleted_crontab() {
    testkit::simulate(1, |cluster| async move {
        let _control_plane = cluster.control_plane().start();
        let _operator = start(&cluster).await;
        cluster.apply(&SAMPLE.replace("0 */6 * * *", "* * * * *")).await;
        cluster.advance(A_MINUTE * 3 / 2).await;
        let jobs = cluster.list::<Job>("default").await;
        assert_eq!(jobs.len(), 1);
        assert_eq!(jobs[0].status.as_ref().unwrap().succeeded, Some(2));

        cluster.delete::<CronTab>("default", TAB).await;
        cluster.settle().await;
        assert!(cluster.list::<CronJob>("default").await.is_empty());
        assert!(cluster.list::<Job>("default").await.is_empty());
        assert!(cluster.list::<Pod>("default").await.is_empty());
    });
}

#[test]
fn a_run_under_way_ends_before_its_crontab_goes_and_no_other_begins() {
    testkit::simulate(1, |cluster| async move {
        let _control_plane = cluster.control_plane().nodes(0).without("node-lifecycle-controller").start();
        let _operator = start(&cluster).await;
        cluster.apply(&SAMPLE.replace("0 */6 * * *", "* * * * *")).await;
        cluster.advance(A_MINUTE * 3 / 2).await;
        let running: Vec<_> =
            cluster.list::<Job>("default").await.iter().map(ResourceExt::name_any).collect();
        assert_eq!(running.len(), 1);

        cluster.delete::<CronTab>("default", TAB).await;
        cluster.advance(A_MINUTE * 5).await;
        assert_eq!(status(&cluster).await, is(0, "Finishing"));
        let cron_job: CronJob = cluster.get("default", TAB).await;
        assert_eq!(cron_job.spec.suspend, Some(true));
        let jobs: Vec<_> = cluster.list::<Job>("default").await.iter().map(ResourceExt::name_any).collect();
        assert_eq!(jobs, running);

        finish_pods(&cluster).await;
        assert!(cluster.find::<CronTab>("default", TAB).await.is_none());
        assert!(cluster.list::<CronJob>("default").await.is_empty());
        assert!(cluster.list::<Job>("default").await.is_empty());
    });
}

#[test]
fn a_cron_job_of_someone_else_survives_the_crontab_of_its_name() {
    testkit::run(|cluster| async move {
        let _operator = start(&cluster).await;
        let other = json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": TAB}, "spec": {
            "schedule": "0 0 * * *", "jobTemplate": {"spec": {"template": {"spec": {
                "restartPolicy": "Never", "containers": [{"name": "main", "image": "i"}]}}}}}});
        cluster.apply_object(&other).await;
        cluster.apply(SAMPLE).await;
        cluster.settle().await;
        cluster.delete::<CronTab>("default", TAB).await;
        cluster.settle().await;
        assert!(cluster.find::<CronTab>("default", TAB).await.is_none());
        let cron_job: CronJob = cluster.get("default", TAB).await;
        assert_eq!((cron_job.spec.schedule.as_str(), cron_job.spec.suspend), ("0 0 * * *", Some(false)));
    });
}

#[test]
fn nicknames_are_written_out_and_dates_that_never_come_are_refused() {
    testkit::run(|cluster| async move {
        let _operator = start_with_webhooks(&cluster).await;
        cluster.apply(&SAMPLE.replace("0 */6 * * *", "@daily")).await;
        cluster.settle().await;
        let tab: CronTab = cluster.get("default", TAB).await;
        assert_eq!(tab.spec.cron_spec, "0 0 * * *");
        let cron_job: CronJob = cluster.get("default", TAB).await;
        assert_eq!(cron_job.spec.schedule, "0 0 * * *");
        let patch = json!({"spec": {"cronSpec": "0 0 30 2 *"}});
        let refused = cluster.try_patch::<CronTab>("default", TAB, &patch).await.unwrap_err();
        assert!(refused.to_string().contains("there is no day 30 in month 2"), "{refused}");
    });
}

#[test]
fn the_cron_job_follows_kubectl_scale() {
    testkit::run(|cluster| async move {
        let _operator = start(&cluster).await;
        cluster.apply(SAMPLE).await;
        cluster.settle().await;
        assert_eq!(status(&cluster).await, is(2, "Scheduled"));

        scale(&cluster, 5).await.unwrap();
        assert_eq!(status(&cluster).await, is(5, "Scheduled"));
        let cron_job: CronJob = cluster.get("default", TAB).await;
        let job = cron_job.spec.job_template.spec.unwrap();
        assert_eq!((job.parallelism, job.completions), (Some(5), Some(5)));
        let tabs: Api<CronTab> = Api::default_namespaced(cluster.client());
        let seen = tabs.get_scale(TAB).await.unwrap();
        assert_eq!(seen.spec.unwrap().replicas, Some(5));
        let seen = seen.status.unwrap();
        assert_eq!(seen.replicas, 5);
        assert_eq!(seen.selector.as_deref(), Some("stable.example.com/crontab=my-new-cron-object"));
        let refused = scale(&cluster, 11).await.unwrap_err();
        assert!(refused.to_string().contains("should be less than or equal to 10"), "{refused}");

        scale(&cluster, 0).await.unwrap();
        assert_eq!(status(&cluster).await, is(0, "NoReplicas"));
        let cron_job: CronJob = cluster.get("default", TAB).await;
        assert_eq!(cron_job.spec.suspend, Some(true));
    });
}

#[test]
fn rules_of_the_type_hold() {
    assert_eq!(definitions::review(&definition()), []);
    testkit::run(|cluster| async move {
        let _operator = start(&cluster).await;
        cluster.apply(&SAMPLE.replace("  replicas: 2\n", "")).await;
        cluster.settle().await;
        assert_eq!(status(&cluster).await, is(1, "Scheduled"), "one replica unless said");
        for cron_spec in ["", "* * * *", "* * * * * *", "@daily", "*  * * *"] {
            let patch = json!({"spec": {"cronSpec": cron_spec}});
            let refused = cluster.try_patch::<CronTab>("default", TAB, &patch).await.unwrap_err();
            assert!(refused.to_string().contains("a cronSpec has five fields"), "{cron_spec:?}: {refused}");
        }
        let spec = CronTabSpec { cron_spec: "* * * * *".to_owned(), image: "i".to_owned(), replicas: 1 };
        let mut long = CronTab::new(&"a".repeat(53), spec);
        long.metadata.namespace = Some("default".to_owned());
        let refused = cluster.try_create(&long).await.unwrap_err();
        assert!(refused.to_string().contains("at most 52 characters"), "{refused}");
    });
}

#[test]
fn a_schedule_that_the_server_refuses_is_told_and_the_last_good_one_stays() {
    testkit::run(|cluster| async move {
        let _operator = start(&cluster).await;
        cluster.apply(SAMPLE).await;
        cluster.settle().await;
        patch(&cluster, &json!({"cronSpec": "99 * * * *", "replicas": 4})).await;
        assert_eq!(status(&cluster).await, is(2, "Refused"));
        let tab: CronTab = cluster.get("default", TAB).await;
        let message = &tab.status.unwrap().conditions[0].message;
        assert!(message.contains("spec.schedule") && message.contains("99 * * * *"), "{message}");
        let cron_job: CronJob = cluster.get("default", TAB).await;
        assert_eq!(cron_job.spec.schedule, "0 */6 * * *");
        cluster.advance(Duration::from_secs(1)).await;
        let events = cluster.list::<Event>("default").await;
        let is_warning = |event: &Event| event.type_.as_deref() == Some("Warning");
        assert_eq!(events.iter().filter(|event| is_warning(event)).count(), 1, "{events:?}");

        patch(&cluster, &json!({"cronSpec": "59 * * * *"})).await;
        assert_eq!(status(&cluster).await, is(4, "Scheduled"));
    });
}

/// The writes of the operator so far.
fn writes(cluster: &Cluster) -> usize {
    cluster.trace().writes().iter().filter(|entry| entry.caller == NAME).count()
}

#[test]
fn a_settled_crontab_is_not_written_again() {
    testkit::run(|cluster| async move {
        let operator = start(&cluster).await;
        cluster.apply(SAMPLE).await;
        cluster.settle().await;
        assert_eq!(status(&cluster).await, is(2, "Scheduled"));
        drop(operator);
        let before = writes(&cluster);
        assert!(before >= 3, "{before} writes");
        // Each object is reconciled when an operator starts.
        let _operator = start(&cluster).await;
        cluster.settle().await;
        assert_eq!(writes(&cluster), before, "{}", cluster.trace());
    });
}

#[test]
fn a_crash_at_any_write_loses_nothing() {
    let crashes = testkit::crash_everywhere(NAME, start, |cluster| async move {
        cluster.apply(SAMPLE).await;
        cluster.settle().await;
        assert_eq!(status(&cluster).await, is(2, "Scheduled"));
        scale(&cluster, 3).await.unwrap();
        assert_eq!(status(&cluster).await, is(3, "Scheduled"));
        patch(&cluster, &json!({"cronSpec": "99 * * * *"})).await;
        assert_eq!(status(&cluster).await, is(3, "Refused"));
        patch(&cluster, &json!({"cronSpec": "9 * * * *"})).await;
        assert_eq!(status(&cluster).await, is(3, "Scheduled"));
        let cron_job: CronJob = cluster.get("default", TAB).await;
        assert_eq!(cron_job.spec.schedule, "9 * * * *");

        let tab: CronTab = cluster.get("default", TAB).await;
        assert_eq!(tab.finalizers(), [FINALIZER]);
        cluster.delete::<CronTab>("default", TAB).await;
        cluster.settle().await;
        assert!(cluster.find::<CronTab>("default", TAB).await.is_none());
        let cron_job: CronJob = cluster.get("default", TAB).await;
        assert_eq!(cron_job.spec.suspend, Some(true), "there is no garbage collector in this test");
    });
    assert!(crashes.writes >= 8, "{crashes}");
}

/// The declared RBAC rules suffice. The API server reaches the webhooks once a pod of the Deployment is ready.
#[test]
fn the_manifests_are_enough_to_run_the_operator() {
    // One seed: all control loops take their time.
    testkit::simulate(1, |cluster| async move {
        let _control_plane = cluster.control_plane().nodes(1).start();
        cluster.apply(include_str!("../manifests/definition.yaml")).await;
        cluster.apply(include_str!("../manifests/operator.yaml")).await;
        let account = format!("system:serviceaccount:default:{NAME}");
        let client = cluster.client_as(&account, &["system:serviceaccounts", "system:authenticated"]);
        let _operator = cluster.run(configure(Manager::new(NAME, cluster.world(), client)));
        cluster.advance(Duration::from_secs(10)).await;
        cluster.apply(&SAMPLE.replace("0 */6 * * *", "@hourly")).await;
        cluster.advance(Duration::from_secs(10)).await;
        assert_eq!(status(&cluster).await, is(2, "Scheduled"));
        scale(&cluster, 3).await.unwrap();
        assert_eq!(status(&cluster).await, is(3, "Scheduled"));
        let events = cluster.list::<Event>("default").await.into_iter();
        let is_own = |event: &Event| event.regarding.as_ref().unwrap().kind.as_deref() == Some("CronTab");
        assert_eq!(events.filter(is_own).count(), 1);
        cluster.delete::<CronTab>("default", TAB).await;
        cluster.settle().await;
        assert!(cluster.find::<CronTab>("default", TAB).await.is_none());
        let trace = cluster.trace();
        let own = trace.entries.iter().filter(|entry| entry.caller == account).map(ToString::to_string);
        let refused: Vec<String> = own.filter(|entry| entry.contains(" 403")).collect();
        assert!(refused.is_empty(), "{refused:#?}");
    });
}

#[tokio::test]
async fn the_manifests_are_those_of_the_code() {
    // `cargo run --example crontab -- --definition`, and `--operator`.
    let definition = definitions::yaml(&definition());
    assert_eq!(definition, include_str!("../manifests/definition.yaml"));
    assert_eq!(manifests(Manager::disconnected(NAME)), include_str!("../manifests/operator.yaml"));
}

/// What `cargo run --example crontab` prints.
fn demo() -> Vec<String> {
    let run = testkit::simulate(1, |cluster| async move {
        let mut lines = Vec::new();
        demo::play(cluster, |line| lines.extend(line.split('\n').map(str::to_owned))).await;
        lines
    });
    run.output
}

#[test]
fn the_example_shows_the_steps_of_the_readme() {
    let readme = include_str!("../README.md");
    let (_, rest) = readme.split_once("```console\n").unwrap();
    let (shown, _) = rest.split_once("```").unwrap();
    let lines = demo();
    let mut rest = lines.iter();
    // In this order; dots stand for further steps.
    for step in shown.lines().filter(|step| *step != "…") {
        assert!(rest.any(|line| line == step), "not in its place: {step:?}\n{}", lines.join("\n"));
    }
    assert!(shown.contains("0 of 5 pods are done") && shown.contains("Ready=False (Finishing)"));
    assert_eq!(lines, demo(), "the same seed tells the same story");
}
