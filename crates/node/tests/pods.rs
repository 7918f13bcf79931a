//! Pods on simulated nodes: what a kubelet would write of them.

use crate::rig::{container, pod, reasons, start, state};
use k8s_openapi::api::core::v1::{Event, Pod};
use serde_json::json;
use std::{collections::BTreeSet, time::Duration};

#[test]
fn a_bound_pod_runs_and_is_ready() {
    testkit::run(|cluster| async move {
        let _running = start(&cluster, 2);
        cluster.create(&pod("web", container("nginx"), "")).await;
        let mut elsewhere = pod("elsewhere", container("nginx"), "");
        elsewhere.spec.as_mut().unwrap().node_name = Some("unknown".to_owned());
        cluster.create(&elsewhere).await;
        cluster.settle().await;
        assert_eq!(state(&cluster, "web").await, "Running ready/0");
        assert_eq!(state(&cluster, "elsewhere").await, "Pending");
        let web: Pod = cluster.get("default", "web").await;
        let status = web.status.unwrap();
        assert_eq!(status.pod_ip.as_deref(), Some("10.244.0.2"));
        assert_eq!(status.qos_class.as_deref(), Some("BestEffort"));
        assert_eq!(status.observed_generation, web.metadata.generation);
        assert_eq!(reasons(&cluster, "web").await, ["Created", "Pulled", "Pulling", "Started"]);
        let events: Vec<Event> = cluster.list("default").await;
        let started = events.iter().find(|it| it.reason.as_deref() == Some("Started")).unwrap();
        let source = started.source.as_ref().unwrap();
        assert_eq!((source.component.as_deref(), source.host.as_deref()), (Some("kubelet"), Some("node-0")));
        assert_eq!(started.involved_object.field_path.as_deref(), Some("spec.containers{app}"));
        let trace = cluster.trace();
        let writes = trace.of("patch", "pods/status");
        assert!(!writes.is_empty() && writes.iter().all(|it| it.caller == "system:node:node-0"), "{trace}");
    });
}

#[test]
fn settled_pods_are_not_written() {
    testkit::run(|cluster| async move {
        let _running = start(&cluster, 1);
        cluster.create(&pod("web", container("nginx"), "")).await;
        cluster.settle().await;
        let before = cluster.trace().of("patch", "pods/status").len();
        cluster.advance(Duration::from_secs(120)).await;
        let after = cluster.trace();
        assert_eq!(after.of("patch", "pods/status").len(), before, "{after}");
        assert_eq!(before, 1, "one status is enough for a pod that starts at once");
    });
}

#[test]
fn a_crash_loop_backs_off_in_virtual_time() {
    testkit::run(|cluster| async move {
        let _running = start(&cluster, 1);
        cluster.create(&pod("web", container("nginx"), "app: {crashLoop: true}")).await;
        cluster.settle().await;
        assert_eq!(state(&cluster, "web").await, "Running ready/0");
        cluster.advance(Duration::from_secs(3)).await;
        assert_eq!(state(&cluster, "web").await, "Running CrashLoopBackOff/1");
        // 10 s, 20 s, 40 s, 80 s, 160 s and then every 300 s.
        cluster.advance(Duration::from_secs(3600)).await;
        let web: Pod = cluster.get("default", "web").await;
        let restarts = web.status.unwrap().container_statuses.unwrap()[0].restart_count;
        assert!((15..=17).contains(&restarts), "{restarts}");
    });
}

#[test]
fn jobs_end_with_the_code_of_their_command() {
    testkit::run(|cluster| async move {
        let _running = start(&cluster, 1);
        let job = |command: &[&str], policy: &str| {
            json!({"restartPolicy": policy,
                   "containers": [{"name": "app", "image": "busybox", "command": command}]})
        };
        cluster.create(&pod("good", job(&["sh", "-c", "echo hi; sleep 5"], "OnFailure"), "")).await;
        cluster.create(&pod("bad", job(&["sh", "-c", "exit 3"], "Never"), "")).await;
        cluster.create(&pod("third", job(&["x"], "OnFailure"), "app: {exitCode: 1, times: 2}")).await;
        cluster.settle().await;
        assert_eq!(state(&cluster, "good").await, "Running ready/0");
        assert_eq!(state(&cluster, "bad").await, "Failed Error(3)/0");
        cluster.advance(Duration::from_secs(11)).await;
        assert_eq!(state(&cluster, "good").await, "Succeeded Completed(0)/0");
        assert_eq!(state(&cluster, "third").await, "Succeeded Completed(0)/2");
        cluster.delete::<Pod>("default", "good").await;
        cluster.settle().await;
        assert!(cluster.find::<Pod>("default", "good").await.is_none());
    });
}

#[test]
fn files_of_volumes_outlive_containers_and_pods() {
    testkit::run(|cluster| async move {
        let script =
            "if [[ -r /data/foo-$INDEX ]]; then exit 0; else sleep 5; touch /data/foo-$INDEX; $END; fi";
        let spec = |volume: serde_json::Value, policy: &str, end: &str| {
            let command = script.replace("$END", end);
            let container = json!({"name": "app", "image": "busybox", "command": ["sh", "-c", command],
            "env": [{"name": "INDEX", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['index']"}}}],
            "volumeMounts": [{"name": "data", "mountPath": "/data"}]});
            json!({"restartPolicy": policy, "volumes": [volume], "containers": [container]})
        };
        let empty_dir = json!({"name": "data", "emptyDir": {}});
        let of_node = json!({"name": "data", "hostPath": {"path": "/tmp/x", "type": "DirectoryOrCreate"}});
        let _running = start(&cluster, 2);
        let create = async |name: &str, index: &str, spec: serde_json::Value| {
            let mut pod = pod(name, spec, "");
            pod.metadata.labels = Some([("index".to_owned(), index.to_owned())].into());
            cluster.create(&pod).await;
        };
        create("restarted", "0", spec(empty_dir, "OnFailure", "exit 1")).await;
        create("first", "0", spec(of_node.clone(), "Never", "exit 42")).await;
        create("stays", "1", spec(of_node.clone(), "Never", "sleep 1000000")).await;
        cluster.advance(Duration::from_secs(60)).await;
        assert_eq!(state(&cluster, "restarted").await, "Succeeded Completed(0)/1");
        assert_eq!(state(&cluster, "first").await, "Failed Error(42)/0");
        assert_eq!(state(&cluster, "stays").await, "Running ready/0");
        create("second", "0", spec(of_node.clone(), "Never", "exit 42")).await;
        create("beside", "1", spec(of_node.clone(), "Never", "exit 42")).await;
        create("other-index", "2", spec(of_node.clone(), "Never", "exit 42")).await;
        let mut elsewhere = spec(of_node.clone(), "Never", "exit 42");
        elsewhere["nodeName"] = json!("node-1");
        create("other-node", "0", elsewhere).await;
        cluster.advance(Duration::from_secs(60)).await;
        assert_eq!(state(&cluster, "second").await, "Succeeded Completed(0)/0");
        assert_eq!(state(&cluster, "beside").await, "Succeeded Completed(0)/0");
        assert_eq!(state(&cluster, "other-index").await, "Failed Error(42)/0");
        assert_eq!(state(&cluster, "other-node").await, "Failed Error(42)/0");
    });
}

#[test]
fn init_containers_and_sidecars_come_first() {
    testkit::run(|cluster| async move {
        let _running = start(&cluster, 1);
        let spec = json!({
            "initContainers": [
                {"name": "init", "image": "busybox", "command": ["sleep", "5"]},
                {"name": "proxy", "image": "envoy", "restartPolicy": "Always"}],
            "containers": [{"name": "app", "image": "nginx"}]});
        cluster.create(&pod("web", spec, "")).await;
        cluster.settle().await;
        assert_eq!(state(&cluster, "web").await, "Pending PodInitializing/0");
        cluster.advance(Duration::from_secs(5)).await;
        assert_eq!(state(&cluster, "web").await, "Running ready/0");
    });
}

#[test]
fn a_failing_pull_is_tried_again() {
    testkit::run(|cluster| async move {
        let _running = start(&cluster, 1);
        cluster.create(&pod("web", container("nginx:404"), "")).await;
        cluster.settle().await;
        assert_eq!(state(&cluster, "web").await, "Pending ErrImagePull/0");
        cluster.advance(Duration::from_secs(5)).await;
        assert_eq!(state(&cluster, "web").await, "Pending ImagePullBackOff/0");
        assert_eq!(reasons(&cluster, "web").await, ["BackOff", "Failed", "Failed", "Failed", "Pulling"]);
    });
}

#[test]
fn deletion_is_graceful() {
    testkit::run(|cluster| async move {
        let _running = start(&cluster, 1);
        cluster.create(&pod("quick", container("nginx"), "")).await;
        cluster.create(&pod("slow", container("nginx"), "app: {stopAfter: 10s}")).await;
        cluster.settle().await;
        cluster.delete::<Pod>("default", "quick").await;
        cluster.delete::<Pod>("default", "slow").await;
        cluster.settle().await;
        assert!(cluster.find::<Pod>("default", "quick").await.is_none());
        assert_eq!(state(&cluster, "slow").await, "Running ready/0");
        cluster.advance(Duration::from_secs(11)).await;
        assert!(cluster.find::<Pod>("default", "slow").await.is_none());
        assert!(reasons(&cluster, "slow").await.contains(&"Killing".to_owned()));
    });
}

#[test]
fn a_new_process_goes_on_where_the_old_one_has_ended() {
    testkit::run(|cluster| async move {
        let running = start(&cluster, 1);
        cluster.create(&pod("old", container("nginx"), "")).await;
        cluster.create(&pod("job", container("nginx"), "app: {exitCode: 1, after: 30s}")).await;
        cluster.settle().await;
        drop(running);
        cluster.advance(Duration::from_secs(20)).await;
        let before: Pod = cluster.get("default", "old").await;
        let _running = start(&cluster, 1);
        cluster.create(&pod("new", container("nginx"), "")).await;
        cluster.settle().await;
        let after: Pod = cluster.get("default", "old").await;
        assert_eq!(before.metadata.resource_version, after.metadata.resource_version);
        assert_eq!(state(&cluster, "job").await, "Running ready/0");
        cluster.advance(Duration::from_secs(11)).await;
        assert_eq!(state(&cluster, "job").await, "Running ready/1");
        let pods: Vec<Pod> = cluster.list("default").await;
        let addresses: BTreeSet<_> =
            pods.iter().filter_map(|it| it.status.as_ref()?.pod_ip.clone()).collect();
        assert_eq!(addresses.len(), 3, "addresses are unique: {addresses:?}");
    });
}

#[test]
fn ephemeral_containers_and_resizes_show_in_the_status() {
    testkit::run(|cluster| async move {
        let _running = start(&cluster, 1);
        let spec = json!({"containers": [
            {"name": "app", "image": "nginx", "resources": {"requests": {"cpu": "1"}}}]});
        cluster.create(&pod("web", spec, "")).await;
        cluster.settle().await;
        let client = cluster.client();
        let pods: kube::Api<Pod> = kube::Api::namespaced(client, "default");
        let parameters = kube::api::PatchParams::default();
        let debugger =
            json!({"spec": {"ephemeralContainers": [{"name": "debug", "image": "busybox", "stdin": true}]}});
        pods.patch_subresource(
            "ephemeralcontainers",
            "web",
            &parameters,
            &kube::api::Patch::Strategic(debugger),
        )
        .await
        .unwrap();
        let larger =
            json!({"spec": {"containers": [{"name": "app", "resources": {"requests": {"cpu": "2"}}}]}});
        pods.patch_subresource("resize", "web", &parameters, &kube::api::Patch::Strategic(larger))
            .await
            .unwrap();
        cluster.settle().await;
        let status = cluster.get::<Pod>("default", "web").await.status.unwrap();
        let debugger = &status.ephemeral_container_statuses.unwrap()[0];
        assert!(debugger.state.as_ref().unwrap().running.is_some());
        let app = &status.container_statuses.unwrap()[0];
        assert_eq!(app.allocated_resources.as_ref().unwrap()["cpu"].0, "2");
        assert_eq!(app.restart_count, 0);

        let big = json!({"containers": [
            {"name": "app", "image": "nginx", "resources": {"requests": {"cpu": "28"}}}]});
        cluster.create(&pod("big", big, "")).await;
        cluster.settle().await;
        let huge =
            json!({"spec": {"containers": [{"name": "app", "resources": {"requests": {"cpu": "10"}}}]}});
        pods.patch_subresource("resize", "web", &parameters, &kube::api::Patch::Strategic(huge))
            .await
            .unwrap();
        cluster.settle().await;
        let status = cluster.get::<Pod>("default", "web").await.status.unwrap();
        assert_eq!(status.container_statuses.unwrap()[0].allocated_resources.as_ref().unwrap()["cpu"].0, "2");
        let pending =
            status.conditions.unwrap().into_iter().find(|it| it.type_ == "PodResizePending").unwrap();
        assert_eq!(pending.reason.as_deref(), Some("Deferred"));
    });
}
