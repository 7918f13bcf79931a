//! DaemonSets: one pod on each node that fits, updates and revisions.

use crate::{pod_states, rig};
use k8s_openapi::api::{
    apps::v1::{ControllerRevision, DaemonSet},
    core::v1::{Node, Pod},
};
use kube::ResourceExt;
use serde_json::{Value, json};
use std::{collections::BTreeMap, time::Duration};
use testkit::Cluster;

const LOOP: &[&str] = &["daemonset-controller"];

const SET: &str = "
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template: {metadata: {labels: {app: agent}}, spec: {nodeSelector: {run: 'yes'}, containers: [{name: c, image: 'agent:1'}]}}
";

async fn add_nodes(cluster: &Cluster, names: &[&str]) {
    for name in names {
        pod_states::add_node(cluster, name, &json!({"run": "yes"})).await;
    }
}

async fn patch(cluster: &Cluster, patch: &Value) {
    cluster.patch::<DaemonSet>("default", "agent", patch).await;
}

fn image(image: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}})
}

/// The images of the pods that are not being deleted, by their nodes.
async fn images(cluster: &Cluster) -> BTreeMap<String, Vec<String>> {
    let mut images: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for pod in cluster.list::<Pod>("default").await {
        if pod.metadata.deletion_timestamp.is_none() {
            let spec = pod.spec.unwrap();
            let image = spec.containers[0].image.clone().unwrap();
            images.entry(spec.node_name.unwrap_or_default()).or_default().push(image);
        }
    }
    images
}

async fn pod_on(cluster: &Cluster, node: &str) -> Option<Pod> {
    let pods = cluster.list::<Pod>("default").await;
    pods.into_iter().find(|pod| pod.spec.as_ref().unwrap().node_name.as_deref() == Some(node))
}

async fn status(cluster: &Cluster) -> Value {
    let set: DaemonSet = cluster.get("default", "agent").await;
    serde_json::to_value(set.status.unwrap()).unwrap()
}

#[test]
fn each_node_that_fits_gets_one_pod() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, LOOP);
        add_nodes(&cluster, &["a", "b"]).await;
        pod_states::add_node(&cluster, "other", &json!({})).await;
        cluster.apply(SET).await;
        cluster.settle().await;
        let pods: Vec<Pod> = cluster.list("default").await;
        assert_eq!(pods.len(), 2);
        let expected = json!({"desiredNumberScheduled": 2, "currentNumberScheduled": 2, "numberMisscheduled": 0,
            "numberReady": 0, "updatedNumberScheduled": 2, "numberUnavailable": 2, "observedGeneration": 1});
        assert_eq!(status(&cluster).await, expected);
        pod_states::run_all(&cluster).await;
        let now = status(&cluster).await;
        assert_eq!((&now["numberReady"], &now["numberAvailable"]), (&json!(2), &json!(2)));
        let revisions: Vec<ControllerRevision> = cluster.list("default").await;
        let [revision] = revisions.as_slice() else { panic!("{revisions:?}") };
        let hash = &revision.labels()["controller-revision-hash"];
        assert_eq!(revision.name_any(), format!("agent-{hash}"));
        for pod in &pods {
            let labels =
                json!({"app": "agent", "controller-revision-hash": hash, "pod-template-generation": "1"});
            assert_eq!(json!(pod.labels()), labels);
        }
        let events = pod_states::events(&cluster).await;
        let created = pods.iter().map(|pod| format!("SuccessfulCreate: Created pod: {}", pod.name_any()));
        let mut created: Vec<String> = created.collect();
        created.sort();
        assert_eq!(events, created);
        // Nothing is left to do.
        let revision = cluster.revision().await;
        cluster.advance(Duration::from_secs(3600)).await;
        assert_eq!(cluster.revision().await, revision);
    });
}

#[test]
fn pods_follow_the_nodes() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, LOOP);
        add_nodes(&cluster, &["a", "b"]).await;
        cluster.apply(SET).await;
        pod_states::run_all(&cluster).await;
        add_nodes(&cluster, &["c"]).await;
        pod_states::run_all(&cluster).await;
        assert_eq!(images(&cluster).await.len(), 3);
        // A label that is gone: the pod goes.
        cluster.patch::<Node>(None, "a", &json!({"metadata": {"labels": {"run": null}}})).await;
        pod_states::run_all(&cluster).await;
        assert!(pod_on(&cluster, "a").await.is_none());
        // A taint against new pods: the pod stays, but is not where it should be.
        let taint = |effect: &str| json!({"spec": {"taints": [{"key": "t", "effect": effect}]}});
        cluster.patch::<Node>(None, "b", &taint("NoSchedule")).await;
        pod_states::run_all(&cluster).await;
        assert!(pod_on(&cluster, "b").await.is_some());
        let now = status(&cluster).await;
        assert_eq!((&now["desiredNumberScheduled"], &now["numberMisscheduled"]), (&json!(1), &json!(1)));
        cluster.patch::<Node>(None, "b", &taint("NoExecute")).await;
        pod_states::run_all(&cluster).await;
        assert!(pod_on(&cluster, "b").await.is_none());
        cluster.patch::<Node>(None, "b", &json!({"spec": {"taints": null}})).await;
        pod_states::run_all(&cluster).await;
        assert!(pod_on(&cluster, "b").await.is_some());
        // A node that is gone before its pod is bound.
        add_nodes(&cluster, &["d"]).await;
        cluster.settle().await;
        assert_eq!(cluster.list::<Pod>("default").await.len(), 3);
        cluster.delete::<Node>(None, "d").await;
        cluster.settle().await;
        assert_eq!(cluster.list::<Pod>("default").await.len(), 2);
    });
}

#[test]
fn an_update_replaces_one_pod_after_the_other_and_can_be_undone() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, LOOP);
        add_nodes(&cluster, &["a", "b", "c"]).await;
        cluster.apply(SET).await;
        pod_states::run_all(&cluster).await;
        patch(&cluster, &image("agent:2")).await;
        cluster.settle().await;
        // The pod of one node is being deleted; the others wait.
        assert_eq!(images(&cluster).await.len(), 2);
        pod_states::run_all(&cluster).await;
        assert!(images(&cluster).await.values().all(|images| images == &["agent:2"]));
        let now = status(&cluster).await;
        assert_eq!((&now["updatedNumberScheduled"], &now["observedGeneration"]), (&json!(3), &json!(2)));
        patch(&cluster, &image("agent:1")).await;
        pod_states::run_all(&cluster).await;
        assert!(images(&cluster).await.values().all(|images| images == &["agent:1"]));
        let revisions: Vec<ControllerRevision> = cluster.list("default").await;
        let mut numbers: Vec<i64> = revisions.iter().map(|it| it.revision).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, [2, 3]);
    });
}

#[test]
fn an_update_with_a_surge_never_leaves_a_node_without_a_pod() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, LOOP);
        add_nodes(&cluster, &["a", "b"]).await;
        cluster.apply(SET).await;
        pod_states::run_all(&cluster).await;
        let mut change = image("agent:2");
        change["spec"]["updateStrategy"] = json!({"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}});
        patch(&cluster, &change).await;
        cluster.settle().await;
        pod_states::bind_all(&cluster).await;
        let both = images(&cluster).await;
        assert_eq!(both.values().flatten().count(), 3, "{both:?}");
        assert_eq!(both.values().flatten().filter(|image| *image == "agent:1").count(), 2);
        pod_states::run_all(&cluster).await;
        let after = images(&cluster).await;
        assert!(after.len() == 2 && after.values().all(|images| images == &["agent:2"]), "{after:?}");
    });
}

#[test]
fn with_on_delete_pods_are_updated_when_they_are_deleted() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, LOOP);
        add_nodes(&cluster, &["a", "b"]).await;
        cluster.apply(&SET.replace("  selector", "  updateStrategy: {type: OnDelete}\n  selector")).await;
        pod_states::run_all(&cluster).await;
        patch(&cluster, &image("agent:2")).await;
        pod_states::run_all(&cluster).await;
        assert!(images(&cluster).await.values().all(|images| images == &["agent:1"]));
        let pod = pod_on(&cluster, "a").await.unwrap().name_any();
        cluster.delete::<Pod>("default", &pod).await;
        pod_states::run_all(&cluster).await;
        let after = images(&cluster).await;
        assert_eq!(
            (&after["a"][..], &after["b"][..]),
            (&["agent:2".to_owned()][..], &["agent:1".to_owned()][..])
        );
    });
}

#[test]
fn failed_pods_are_deleted_with_growing_pauses() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, LOOP);
        add_nodes(&cluster, &["a"]).await;
        cluster.apply(SET).await;
        let mut pauses = Vec::new();
        for _ in 0..5 {
            cluster.settle().await;
            pod_states::bind_all(&cluster).await;
            let pod = pod_on(&cluster, "a").await.unwrap();
            pod_states::set_state(&cluster, &pod.name_any(), "Failed", false).await;
            let begun = cluster.world().now();
            while cluster.find::<Pod>("default", &pod.name_any()).await.is_some() {
                cluster.advance(Duration::from_millis(100)).await;
            }
            pauses.push(cluster.world().now().since(begun).as_millis() / 1000);
        }
        assert!(pauses.is_sorted() && pauses[0] == 0 && pauses[4] >= 4, "{pauses:?}");
        let events = pod_states::events(&cluster).await;
        let failed = events
            .iter()
            .filter(|event| event.starts_with("FailedDaemonPod: Found failed daemon pod default/agent-"));
        assert_eq!(failed.count(), 5, "{events:?}");
        assert!(events.iter().any(|event| event.ends_with(" on node a, will try to kill it")));
    });
}

#[test]
fn a_pod_counts_as_available_after_min_ready_seconds() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, LOOP);
        add_nodes(&cluster, &["a"]).await;
        cluster.apply(&SET.replace("  selector", "  minReadySeconds: 30\n  selector")).await;
        pod_states::run_all(&cluster).await;
        let now = status(&cluster).await;
        assert_eq!((&now["numberReady"], &now["numberUnavailable"]), (&json!(1), &json!(1)));
        cluster.advance(Duration::from_secs(31)).await;
        assert_eq!(status(&cluster).await["numberAvailable"], 1);
    });
}

#[test]
fn a_revision_whose_name_is_taken_gets_another_one() {
    testkit::run(|cluster| async move {
        add_nodes(&cluster, &["a"]).await;
        cluster.apply(SET).await;
        {
            let _running = rig::start(&cluster, LOOP);
            pod_states::run_all(&cluster).await;
        }
        let taken = cluster.list::<ControllerRevision>("default").await[0].clone();
        cluster.delete::<ControllerRevision>("default", &taken.name_any()).await;
        let foreign = json!({"metadata": {"name": taken.name_any(), "namespace": "default"}, "revision": 1,
            "data": {"other": true}});
        cluster.create::<ControllerRevision>(&serde_json::from_value(foreign).unwrap()).await;
        let _running = rig::start(&cluster, LOOP);
        pod_states::run_all(&cluster).await;
        assert_eq!(status(&cluster).await["collisionCount"], 1);
        assert_eq!(cluster.list::<ControllerRevision>("default").await.len(), 2);
    });
}

#[test]
fn a_rollout_survives_a_crash_at_every_write() {
    let user = "system:serviceaccount:kube-system:daemon-set-controller";
    let start = async |cluster: &Cluster| rig::start(cluster, LOOP);
    let crashes = testkit::crash_everywhere(user, start, |cluster| async move {
        add_nodes(&cluster, &["a", "b"]).await;
        cluster.apply(SET).await;
        pod_states::run_all(&cluster).await;
        patch(&cluster, &image("agent:2")).await;
        pod_states::run_all(&cluster).await;
        let after = images(&cluster).await;
        assert!(after.len() == 2 && after.values().all(|images| images == &["agent:2"]), "{after:?}");
        let now = status(&cluster).await;
        assert_eq!((&now["updatedNumberScheduled"], &now["numberAvailable"]), (&json!(2), &json!(2)));
    });
    assert!(crashes.writes > 6, "{crashes}");
}
