//! Caches with a whole control plane in the test, and the operator alone, crashing at every write.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

#[path = "../demo/story.rs"]
mod demo;

use example_redis::{
    NAME, configure, controller, definition, manifests, site,
    v1alpha1::{Redis, RedisSpec},
    webhooks,
};
use k8s_openapi::api::{
    apps::v1::StatefulSet,
    core::v1::{ConfigMap, Pod, Service},
    events::v1::Event,
};
use kube::ResourceExt;
use operator::{Manager, Running, condition, definition as definitions, webhook::Address};
use serde_json::json;
use std::{collections::BTreeSet, time::Duration};
use testkit::Cluster;

const SAMPLE: &str = include_str!("../manifests/sample.yaml");
const CACHE: &str = "redis-cache";
/// More than a member needs to be ready, or to go.
const A_MEMBER: Duration = Duration::from_secs(4);

async fn start(cluster: &Cluster) -> Running {
    cluster.apply(&definitions::yaml(&definition())).await;
    let client = cluster.client_as(NAME, &["system:masters"]);
    cluster.run(Manager::new(NAME, cluster.world(), client).controller(controller()))
}

/// With webhooks, as in production.
async fn start_with_webhooks(cluster: &Cluster) -> Running {
    cluster.apply(&definitions::yaml(&definition())).await;
    let manager = Manager::new(NAME, cluster.world(), cluster.client_as(NAME, &["system:masters"]));
    let site = site(Address::Url("https://redis-operator.example.com".to_owned()));
    let running = cluster.run(manager.webhooks(webhooks(), ([0, 0, 0, 0], 0), site).controller(controller()));
    cluster.settle().await;
    running
}

/// All control loops, and nodes.
fn start_control_plane(cluster: &Cluster) -> Running {
    cluster.control_plane().nodes(2).start()
}

/// As the controller of StatefulSets would.
async fn make_ready(cluster: &Cluster, members: i32) {
    let set: StatefulSet = cluster.get("default", CACHE).await;
    let status = json!({"observedGeneration": set.metadata.generation,
        "replicas": members, "readyReplicas": members, "updatedReplicas": members});
    cluster.patch_status::<StatefulSet>("default", CACHE, &json!({"status": status})).await;
    cluster.settle().await;
}

async fn resize(cluster: &Cluster, size: i32) {
    cluster.patch::<Redis>("default", CACHE, &json!({"spec": {"size": size}})).await;
}

/// How many members are ready, and why or why not the cache is.
async fn progress(cluster: &Cluster) -> (i32, String) {
    let redis: Redis = cluster.get("default", CACHE).await;
    let status = redis.status.unwrap();
    assert_eq!(status.observed_generation, redis.metadata.generation);
    let ready = condition::find(&status.conditions, "Ready").unwrap();
    assert_eq!(ready.status == "True", ready.reason == "AllReady");
    (status.ready, ready.reason.clone())
}

fn is(ready: i32, reason: &str) -> (i32, String) {
    (ready, reason.to_owned())
}

#[test]
fn a_cache_becomes_ready_member_by_member_follows_its_size_and_leaves_nothing_behind() {
    // One seed: all control loops take their time.
    testkit::simulate(1, |cluster| async move {
        let _control_plane = start_control_plane(&cluster);
        let _operator = start(&cluster).await;
        cluster.apply(SAMPLE).await;
        cluster.settle().await;
        assert_eq!(progress(&cluster).await, is(0, "Starting"));
        cluster.advance(A_MEMBER).await;
        let (ready, _) = progress(&cluster).await;
        assert!((1..3).contains(&ready), "{ready} members were ready at once");
        cluster.advance(A_MEMBER * 2).await;
        assert_eq!(progress(&cluster).await, is(3, "AllReady"));

        resize(&cluster, 4).await;
        cluster.settle().await;
        assert_eq!(progress(&cluster).await, is(3, "Starting"));
        cluster.advance(A_MEMBER).await;
        assert_eq!(progress(&cluster).await, is(4, "AllReady"));
        resize(&cluster, 1).await;
        cluster.advance(A_MEMBER * 3).await;
        assert_eq!(progress(&cluster).await, is(1, "AllReady"));
        let pods: Vec<_> = cluster.list::<Pod>("default").await.iter().map(ResourceExt::name_any).collect();
        assert_eq!(pods, ["redis-cache-0"]);

        cluster.delete::<Redis>("default", CACHE).await;
        cluster.advance(A_MEMBER).await;
        assert!(cluster.find::<StatefulSet>("default", CACHE).await.is_none());
        assert!(cluster.find::<Service>("default", CACHE).await.is_none());
        assert!(cluster.find::<ConfigMap>("default", CACHE).await.is_none());
        assert!(cluster.list::<Pod>("default").await.is_empty());
    });
}

#[test]
fn defaults_are_written_down_and_rules_hold() {
    testkit::run(|cluster| async move {
        let _operator = start_with_webhooks(&cluster).await;
        cluster.apply(&SAMPLE.replace("size: 3", "version: '8.0'")).await;
        let redis: Redis = cluster.get("default", CACHE).await;
        let expected = RedisSpec { size: Some(3), version: Some("8.0".to_owned()), memory_mib: Some(64) };
        assert_eq!(redis.spec, expected);

        for (patch, complaint) in [
            (json!({"spec": {"version": "7.4"}}), "the version cannot go from 8.0 back to 7.4"),
            (json!({"spec": {"version": "latest"}}), "should match"),
            (json!({"spec": {"size": 10}}), "should be less than or equal to 9"),
            (json!({"spec": {"memoryMib": 1}}), "should be greater than or equal to 16"),
        ] {
            let refused = cluster.try_patch::<Redis>("default", CACHE, &patch).await.unwrap_err();
            assert!(refused.to_string().contains(complaint), "{refused}");
        }
        for name in ["1st", "a.b", "a23456789-123456789-123456789-123456789-123456789-1"] {
            let refused = cluster.try_create(&namespaced(name)).await.unwrap_err();
            assert!(refused.to_string().contains("the name must be at most 50"), "{refused}");
        }
    });
}

fn namespaced(name: &str) -> Redis {
    let mut redis = Redis::new(name, RedisSpec::default());
    redis.metadata.namespace = Some("default".to_owned());
    redis
}

#[test]
fn what_is_changed_by_hand_is_set_back() {
    testkit::run(|cluster| async move {
        let _operator = start(&cluster).await;
        cluster.apply(SAMPLE).await;
        cluster.settle().await;
        cluster.patch::<StatefulSet>("default", CACHE, &json!({"spec": {"replicas": 7}})).await;
        cluster.patch::<ConfigMap>("default", CACHE, &json!({"data": {"redis.conf": "maxmemory 1gb"}})).await;
        cluster.delete::<Service>("default", CACHE).await;
        cluster.settle().await;
        let set: StatefulSet = cluster.get("default", CACHE).await;
        assert_eq!(set.spec.unwrap().replicas, Some(3));
        let config: ConfigMap = cluster.get("default", CACHE).await;
        assert!(config.data.unwrap()["redis.conf"].starts_with("maxmemory 48mb\n"));
        cluster.get::<Service>("default", CACHE).await;
    });
}

#[test]
fn events_tell_of_a_new_size_and_of_members_that_are_lost() {
    testkit::run(|cluster| async move {
        let _operator = start(&cluster).await;
        cluster.apply(SAMPLE).await;
        cluster.settle().await;
        make_ready(&cluster, 3).await;
        assert_eq!(events(&cluster).await, ["Normal Ready: all members are ready"]);
        resize(&cluster, 4).await;
        cluster.settle().await;
        let expected = ["Normal Growing: members are added", "Normal Ready: all members are ready"];
        assert_eq!(events(&cluster).await, expected, "no warning: it is what was asked for");
        make_ready(&cluster, 4).await;
        let lost = json!({"status": {"readyReplicas": 3}});
        cluster.patch_status::<StatefulSet>("default", CACHE, &lost).await;
        cluster.settle().await;
        assert_eq!(events(&cluster).await.last().unwrap(), "Warning NotReady: members are not ready");
    });
}

/// The events as `type reason: note`, sorted.
async fn events(cluster: &Cluster) -> Vec<String> {
    let events = cluster.list::<Event>("default").await.into_iter();
    let text =
        |event: Event| format!("{} {}: {}", event.type_.unwrap(), event.reason.unwrap(), event.note.unwrap());
    events.map(text).collect::<BTreeSet<_>>().into_iter().collect()
}

/// The writes of the operator so far.
fn writes(cluster: &Cluster) -> usize {
    cluster.trace().writes().iter().filter(|entry| entry.caller == NAME).count()
}

#[test]
fn a_settled_cache_is_not_written_again() {
    testkit::run(|cluster| async move {
        let operator = start(&cluster).await;
        cluster.apply(SAMPLE).await;
        cluster.settle().await;
        make_ready(&cluster, 3).await;
        assert_eq!(progress(&cluster).await, is(3, "AllReady"));
        drop(operator);

        let before = writes(&cluster);
        assert!(before > 3, "{before} writes");
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
        make_ready(&cluster, 3).await;
        assert_eq!(progress(&cluster).await, is(3, "AllReady"));
        resize(&cluster, 2).await;
        cluster.settle().await;
        make_ready(&cluster, 2).await;
        assert_eq!(progress(&cluster).await, is(2, "AllReady"));
        cluster.get::<Service>("default", CACHE).await;
        cluster.get::<ConfigMap>("default", CACHE).await;
    });
    assert!(crashes.writes >= 8, "{crashes}");
}

/// The declared RBAC rules suffice. The API server reaches the webhooks once a pod of the Deployment is ready.
#[test]
fn the_manifests_are_enough_to_run_the_operator() {
    // One seed: all control loops take their time.
    testkit::simulate(1, |cluster| async move {
        let _control_plane = start_control_plane(&cluster);
        cluster.apply(include_str!("../manifests/definition.yaml")).await;
        cluster.apply(include_str!("../manifests/operator.yaml")).await;
        let account = format!("system:serviceaccount:default:{NAME}");
        let client = cluster.client_as(&account, &["system:serviceaccounts", "system:authenticated"]);
        let _operator = cluster.run(configure(Manager::new(NAME, cluster.world(), client)));
        cluster.advance(Duration::from_secs(10)).await;
        cluster.apply(&SAMPLE.replace("size: 3", "size: 1")).await;
        cluster.advance(A_MEMBER * 2).await;
        assert_eq!(progress(&cluster).await, is(1, "AllReady"));
        let redis: Redis = cluster.get("default", CACHE).await;
        assert_eq!(redis.spec.memory_mib, Some(64), "the defaulting webhook was called");
    });
}

#[tokio::test]
async fn the_manifests_are_those_of_the_code() {
    assert_eq!(definitions::review(&definition()), []);
    // `cargo run --example redis -- --definition`, and `--operator`.
    let definition = definitions::yaml(&definition());
    assert_eq!(definition, include_str!("../manifests/definition.yaml"));
    assert_eq!(manifests(Manager::disconnected(NAME)), include_str!("../manifests/operator.yaml"));
}

/// What `cargo run --example redis` prints.
fn demo() -> Vec<String> {
    let run = testkit::simulate(1, |cluster| async move {
        let mut lines = Vec::new();
        demo::play(cluster, |line| lines.push(line.to_owned())).await;
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
    assert!(shown.contains("status.ready 3/3, Ready=True") && shown.contains("status.ready 4/4, Ready=True"));
    assert_eq!(lines, demo(), "the same seed tells the same story");
}
