//! Pods that would exhaust the process that simulates them, and numbers that no clock knows.

use crate::{counted::Meter, rig, web_socket_client::ask};
use bytes::Bytes;
use http::Request;
use http_body_util::Empty;
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, api::LogParams};
use serde_json::{Value, json};
use std::time::Duration;
use testkit::Cluster;

const OUT_OF_MEMORY: &str = "out of memory: a simulated container computes no more than this";

fn one(container: &Value) -> Value {
    let mut container = container.clone();
    container["name"] = json!("app");
    container["image"] = json!("busybox");
    json!({"restartPolicy": "Never", "containers": [container]})
}

fn script(script: &str) -> Value {
    json!({"command": ["sh", "-c", script]})
}

/// Variables each of which is twice as long as the one before.
fn doubled() -> Value {
    let next = |at: usize| {
        let half = format!("$(A{})", at - 1);
        json!({"name": format!("A{at}"), "value": format!("{half}{half}")})
    };
    let first = json!({"name": "A0", "value": "x".repeat(16)});
    std::iter::once(first).chain((1..40).map(next)).collect()
}

fn numbered(count: usize, of: impl Fn(usize) -> Value) -> Value {
    (0..count).map(of).collect()
}

async fn log(cluster: &Cluster, pod: &str, options: &LogParams) -> String {
    Api::<Pod>::namespaced(cluster.client(), "default").logs(pod, options).await.unwrap()
}

/// Pods, and what becomes of them.
fn hostile() -> [(&'static str, Value, &'static str); 7] {
    let touching =
        format!("echo {} > /tmp/a; while true; do touch {}; done", "x".repeat(4090), "/tmp/a ".repeat(1800));
    let capturing = format!("while true; do echo x{}; done", "$()".repeat(9000));
    let many = numbered(3000, |at| json!({"name": format!("V{at}"), "value": "1"}));
    let inits = |command: &str, containers: usize, mounts: usize| {
        let volumes = numbered(mounts, |at| json!({"name": format!("v{at}"), "emptyDir": {}}));
        let mounts = numbered(mounts, |at| json!({"name": format!("v{at}"), "mountPath": format!("/d{at}")}));
        let init = |at| json!({"name": format!("i{at}"), "image": "b", "command": ["sh", "-c", command], "volumeMounts": mounts});
        let mut spec = one(&json!({"command": ["true"], "volumeMounts": mounts}));
        spec["initContainers"] = numbered(containers, init);
        spec["volumes"] = volumes;
        spec
    };
    [
        ("variables", one(&json!({"env": doubled(), "command": ["echo", "$(A39)"]})), "Failed Error(2)/0"),
        ("files", one(&script(&touching)), "Failed Error(2)/0"),
        ("captures", one(&json!({"env": many, "command": ["sh", "-c", capturing]})), "Failed Error(2)/0"),
        ("inits", inits("echo 1 > /d1/a", 60, 20), "Succeeded Completed(0)/0"),
        ("mounts", inits("true", 40, 40), "Succeeded Completed(0)/0"),
        ("endless", inits("while true; do touch /d1/a; done", 60, 20), "Pending PodInitializing/0"),
        ("good", rig::container("nginx"), "Running ready/0"),
    ]
}

#[test]
fn pods_that_compute_without_end_fail_alone() {
    testkit::run(|cluster| async move {
        let _nodes = rig::start(&cluster, 1);
        cluster.settle().await;
        let hostile = hostile();
        let (meter, mut sent) = (Meter::start(), 0);
        for (name, spec, _) in &hostile {
            sent += spec.to_string().len();
            cluster.create(&rig::pod(name, spec.clone(), "")).await;
        }
        cluster.world().sleep(Duration::from_secs(5)).await;
        for (name, _, expected) in &hostile {
            assert_eq!(rig::state(&cluster, name).await, *expected, "{name}");
            if expected.starts_with("Failed") {
                let log = log(&cluster, name, &LogParams::default()).await;
                assert!(log.lines().last().unwrap().starts_with(OUT_OF_MEMORY), "{name}: {log}");
            }
        }
        meter.assert_modest(sent, "hostile pods");
    });
}

#[test]
fn a_script_with_aliases_is_a_mistake_of_the_pod() {
    testkit::run(|cluster| async move {
        let text = format!("app: {{logs: [&a {}{}]}}", "x".repeat(1000), ", *a".repeat(1000));
        let _nodes = rig::start(&cluster, 1);
        cluster.create(&rig::pod("aliases", rig::container("nginx"), &text)).await;
        cluster.settle().await;
        assert_eq!(rig::state(&cluster, "aliases").await, "Pending CreateContainerConfigError/0");
    });
}

#[test]
fn a_long_log_arrives_whole() {
    testkit::run(|cluster| async move {
        let line = "x".repeat(1000);
        let script = json!({"app": {"logs": vec![line.as_str(); 240]}}).to_string();
        let _nodes = rig::start(&cluster, 1);
        cluster.create(&rig::pod("talker", rig::container("nginx"), &script)).await;
        cluster.settle().await;
        let whole = format!("{line}\n").repeat(240);
        assert_eq!(log(&cluster, "talker", &LogParams::default()).await, whole);
        let tail = LogParams { tail_lines: Some(200), ..LogParams::default() };
        assert_eq!(log(&cluster, "talker", &tail).await, whole[..200 * 1001]);
        let limited = LogParams { limit_bytes: Some(150_000), ..LogParams::default() };
        assert_eq!(log(&cluster, "talker", &limited).await, whole[..150_000]);
    });
}

#[test]
fn numbers_of_seconds_beyond_any_clock_neither_panic_nor_last() {
    testkit::run(|cluster| async move {
        let probe = json!({
        "exec": {"command": ["a"]}, "periodSeconds": i32::MAX, "failureThreshold": i32::MAX,
        "initialDelaySeconds": i32::MAX});
        let _nodes = rig::start(&cluster, 1);
        let mut grace = rig::container("nginx");
        grace["terminationGracePeriodSeconds"] = json!(i64::MAX);
        cluster.create(&rig::pod("grace", grace, "")).await;
        for (name, probes, script) in [
            ("alive", json!({"livenessProbe": probe, "readinessProbe": probe}), "app: {unhealthyAfter: 1s}"),
            (
                "started",
                json!({"startupProbe": probe}),
                "app: {neverStarted: true, readyAfter: 9999999999999}",
            ),
        ] {
            let mut spec = rig::container("nginx");
            for (field, probe) in probes.as_object().unwrap() {
                spec["containers"][0][field] = probe.clone();
            }
            cluster.create(&rig::pod(name, spec, script)).await;
        }
        cluster.world().sleep(Duration::from_secs(5)).await;
        assert_eq!(rig::state(&cluster, "alive").await, "Running runs/0");
        assert_eq!(rig::state(&cluster, "started").await, "Running runs/0");
        for query in [
            "sinceSeconds=9223372036854775807",
            "sinceSeconds=999999999999",
            "tailLines=9223372036854775807",
            "limitBytes=9223372036854775807",
            "sinceTime=9999-12-30T00:00:00Z",
        ] {
            let path = format!("/api/v1/namespaces/default/pods/grace/log?{query}");
            let request = Request::get(&path).body(Empty::<Bytes>::new()).unwrap();
            assert_eq!(ask(&cluster, "admin", &["system:masters"], request).await.status(), 200, "{query}");
        }
        cluster.delete::<Pod>("default", "grace").await;
        cluster.world().sleep(Duration::from_secs(5)).await;
        let names: Vec<_> =
            cluster.list::<Pod>("default").await.into_iter().map(|it| it.metadata.name).collect();
        assert!(!names.contains(&Some("grace".to_owned())), "{names:?}");
    });
}
