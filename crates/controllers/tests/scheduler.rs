//! The scheduler, on nodes that are plain objects.

use k8s_openapi::api::{
    core::v1::{Node, PersistentVolumeClaim, Pod},
    events::v1::Event,
};
use kube::ResourceExt;
use operator::{Manager, Running};
use serde_json::json;
use std::{collections::BTreeMap, time::Duration};
use testkit::Cluster;

fn start(cluster: &Cluster) -> Running {
    let caches = cluster.client_as("system:kube-scheduler", &[]);
    let scheduler = controllers::scheduler(cluster.world(), caches.clone());
    cluster.run(Manager::new("kube-scheduler", cluster.world(), caches).controller(scheduler))
}

/// A node with so many CPUs.
async fn node(cluster: &Cluster, name: &str, zone: &str, cpus: u32) {
    let node = json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": zone, "kubernetes.io/hostname": name}}});
    cluster.create::<Node>(&serde_json::from_value(node).unwrap()).await;
    let resources = json!({"cpu": cpus.to_string(), "memory": "16Gi", "pods": "110"});
    let status = json!({"status": {"capacity": resources, "allocatable": resources}});
    cluster.patch_status::<Node>(None, name, &status).await;
    // Admission has marked the new node as not ready; a kubelet would make it ready.
    cluster.patch::<Node>(None, name, &json!({"spec": {"taints": null}})).await;
}

async fn pod(cluster: &Cluster, name: &str, more: &str) {
    cluster
        .apply(&format!("{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, labels: {{app: web}}}}, spec: {{{more}}}}}"))
        .await;
}

fn requesting(cpu: &str) -> String {
    format!("containers: [{{name: c, image: nginx, resources: {{requests: {{cpu: {cpu}}}}}}}]")
}

async fn node_of(cluster: &Cluster, pod: &str) -> String {
    let pod: Pod = cluster.get("default", pod).await;
    pod.spec.unwrap().node_name.unwrap_or_default()
}

async fn notes(cluster: &Cluster, reason: &str) -> Vec<String> {
    let events: Vec<Event> = cluster.list("default").await;
    let events = events.into_iter().filter(|event| event.reason.as_deref() == Some(reason));
    events.map(|event| event.note.unwrap_or_default()).collect()
}

#[test]
fn pods_get_nodes_by_their_requests_and_an_event_says_which() {
    testkit::run(|cluster| async move {
        let _running = start(&cluster);
        node(&cluster, "node-1", "a", 2).await;
        node(&cluster, "node-2", "b", 2).await;
        for name in ["web-0", "web-1", "web-2", "web-3"] {
            pod(&cluster, name, &requesting("900m")).await;
        }
        cluster.settle().await;
        let mut on: BTreeMap<String, usize> = BTreeMap::new();
        for name in ["web-0", "web-1", "web-2", "web-3"] {
            *on.entry(node_of(&cluster, name).await).or_default() += 1;
        }
        assert_eq!(on, BTreeMap::from([("node-1".to_owned(), 2), ("node-2".to_owned(), 2)]));
        let events: Vec<Event> = cluster.list("default").await;
        let node = node_of(&cluster, "web-0").await;
        let expected = format!("Successfully assigned default/web-0 to {node}");
        let event = events.iter().find(|event| event.note.as_deref() == Some(&expected)).unwrap();
        assert_eq!(event.reason.as_deref(), Some("Scheduled"));
        assert_eq!(event.action.as_deref(), Some("Binding"));
        assert_eq!(event.reporting_controller.as_deref(), Some("default-scheduler"));
    });
}

#[test]
fn a_pod_that_fits_no_node_says_why_and_gets_the_first_node_that_fits() {
    testkit::run(|cluster| async move {
        let _running = start(&cluster);
        pod(&cluster, "web-0", &requesting("3")).await;
        cluster.settle().await;
        let web: Pod = cluster.get("default", "web-0").await;
        let condition = &web.status.unwrap().conditions.unwrap()[0];
        assert_eq!(condition.message.as_deref(), Some("no nodes available to schedule pods"));
        node(&cluster, "node-1", "a", 2).await;
        cluster.advance(Duration::from_secs(2)).await;
        let web: Pod = cluster.get("default", "web-0").await;
        let condition = &web.status.unwrap().conditions.unwrap()[0];
        let message = "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, \
            preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.";
        assert_eq!((condition.type_.as_str(), condition.status.as_str()), ("PodScheduled", "False"));
        assert_eq!(condition.reason.as_deref(), Some("Unschedulable"));
        assert_eq!(condition.message.as_deref(), Some(message));
        // Kubernetes: events of a series keep the note of the first.
        assert_eq!(notes(&cluster, "FailedScheduling").await, ["no nodes available to schedule pods"]);
        node(&cluster, "node-2", "a", 4).await;
        cluster.advance(Duration::from_secs(10)).await;
        assert_eq!(node_of(&cluster, "web-0").await, "node-2");
    });
}

#[test]
fn a_settled_scheduler_writes_nothing() {
    testkit::run(|cluster| async move {
        let _running = start(&cluster);
        node(&cluster, "node-1", "a", 2).await;
        pod(&cluster, "big", &requesting("3")).await;
        pod(&cluster, "small", &requesting("1")).await;
        cluster.advance(Duration::from_secs(60)).await;
        let before = cluster.revision().await;
        let heartbeat = json!({"status": {"conditions": [{"type": "Ready", "status": "True",
            "lastHeartbeatTime": "2026-01-01T00:00:00Z"}]}});
        cluster.patch_status::<Node>(None, "node-1", &heartbeat).await;
        cluster.advance(Duration::from_secs(60)).await;
        assert_eq!(cluster.revision().await, before + 1, "only the heartbeat");
    });
}

#[test]
fn a_pod_waits_until_another_one_ends() {
    testkit::run(|cluster| async move {
        let _running = start(&cluster);
        node(&cluster, "node-1", "a", 2).await;
        pod(&cluster, "first", &requesting("2")).await;
        cluster.settle().await;
        pod(&cluster, "second", &requesting("2")).await;
        cluster.advance(Duration::from_secs(2)).await;
        assert_eq!(node_of(&cluster, "second").await, "");
        cluster.patch_status::<Pod>("default", "first", &json!({"status": {"phase": "Succeeded"}})).await;
        cluster.advance(Duration::from_secs(2)).await;
        assert_eq!(node_of(&cluster, "second").await, "node-1");
    });
}

#[test]
fn gated_pods_and_pods_of_other_schedulers_are_left_alone() {
    testkit::run(|cluster| async move {
        let _running = start(&cluster);
        node(&cluster, "node-1", "a", 2).await;
        pod(
            &cluster,
            "gated",
            &format!("schedulingGates: [{{name: example.com/wait}}], {}", requesting("1")),
        )
        .await;
        pod(&cluster, "other", &format!("schedulerName: mine, {}", requesting("1"))).await;
        cluster.settle().await;
        assert_eq!((node_of(&cluster, "gated").await, node_of(&cluster, "other").await), Default::default());
        cluster.patch::<Pod>("default", "gated", &json!({"spec": {"schedulingGates": null}})).await;
        cluster.settle().await;
        assert_eq!(node_of(&cluster, "gated").await, "node-1");
    });
}

#[test]
fn spread_and_anti_affinity_keep_pods_apart() {
    testkit::run(|cluster| async move {
        let _running = start(&cluster);
        for (name, zone) in [("node-1", "a"), ("node-2", "a"), ("node-3", "b")] {
            node(&cluster, name, zone, 4).await;
        }
        let spread = "topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, \
            whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}]";
        for name in ["s-0", "s-1"] {
            pod(&cluster, name, &format!("{spread}, {}", requesting("1"))).await;
        }
        cluster.settle().await;
        let nodes = [node_of(&cluster, "s-0").await, node_of(&cluster, "s-1").await];
        assert_eq!(nodes.iter().filter(|node| *node == "node-3").count(), 1, "{nodes:?}");
        let apart = "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: \
            [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: web}}}]}}";
        for name in ["x-0", "x-1"] {
            pod(&cluster, name, &format!("{apart}, {}", requesting("1"))).await;
        }
        cluster.settle().await;
        let placed = [node_of(&cluster, "x-0").await, node_of(&cluster, "x-1").await];
        assert_eq!(placed.iter().filter(|node| node.is_empty()).count(), 1, "one node is free: {placed:?}");
        assert!(!nodes.iter().any(|node| placed.contains(node)));
    });
}

#[test]
fn a_more_important_pod_takes_the_place_of_another() {
    testkit::run(|cluster| async move {
        let _running = start(&cluster);
        cluster
            .apply("{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 1000}")
            .await;
        node(&cluster, "node-1", "a", 2).await;
        pod(&cluster, "low", &requesting("2")).await;
        cluster.settle().await;
        pod(&cluster, "vip", &format!("priorityClassName: high, {}", requesting("2"))).await;
        cluster.settle().await;
        let low: Pod = cluster.get("default", "low").await;
        assert!(low.metadata.deletion_timestamp.is_some());
        let conditions = low.status.unwrap().conditions.unwrap();
        let target = conditions.iter().find(|it| it.type_ == "DisruptionTarget").unwrap();
        assert_eq!(target.reason.as_deref(), Some("PreemptionByScheduler"));
        assert_eq!(
            target.message.as_deref(),
            Some("default-scheduler: preempting to accommodate a higher priority pod")
        );
        let vip: Pod = cluster.get("default", "vip").await;
        let uid = vip.uid().unwrap();
        let status = vip.status.unwrap();
        assert_eq!(status.nominated_node_name.as_deref(), Some("node-1"));
        let message = status.conditions.unwrap()[0].message.clone();
        assert_eq!(message.as_deref(), Some("0/1 nodes are available: 1 Insufficient cpu."));
        assert_eq!(notes(&cluster, "Preempted").await, [format!("Preempted by pod {uid} on node node-1")]);
        // As the kubelet does when the containers have ended.
        let now = kube::api::DeleteParams::default().grace_period(0);
        kube::Api::<Pod>::default_namespaced(cluster.client()).delete("low", &now).await.unwrap();
        cluster.advance(Duration::from_secs(2)).await;
        assert_eq!(node_of(&cluster, "vip").await, "node-1");
    });
}

#[test]
fn claims_that_wait_for_a_pod_get_the_chosen_node() {
    testkit::run(|cluster| async move {
        let _running = start(&cluster);
        node(&cluster, "node-1", "a", 2).await;
        let with_claim = "volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]";
        pod(&cluster, "web", &format!("{with_claim}, {}", requesting("1"))).await;
        cluster.settle().await;
        let message = "0/1 nodes are available: persistentvolumeclaim \"data\" not found. no new claims to \
            deallocate, preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.";
        assert_eq!(notes(&cluster, "FailedScheduling").await, [message]);
        cluster
            .apply("{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: later}, provisioner: example.com/disk, volumeBindingMode: WaitForFirstConsumer}")
            .await;
        cluster
            .apply("{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {storageClassName: later, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}")
            .await;
        cluster.advance(Duration::from_secs(10)).await;
        let claim: PersistentVolumeClaim = cluster.get("default", "data").await;
        assert_eq!(claim.annotations()["volume.kubernetes.io/selected-node"], "node-1");
        assert_eq!(node_of(&cluster, "web").await, "", "the volume is not there yet");
        cluster
            .apply("{apiVersion: v1, kind: PersistentVolume, metadata: {name: disk}, spec: {storageClassName: later, accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}, hostPath: {path: /tmp}, claimRef: {namespace: default, name: data}}}")
            .await;
        let annotations = json!({"pv.kubernetes.io/bind-completed": "yes"});
        let volume = json!({"metadata": {"annotations": annotations}, "spec": {"volumeName": "disk"}});
        cluster.patch::<PersistentVolumeClaim>("default", "data", &volume).await;
        cluster
            .patch_status::<PersistentVolumeClaim>("default", "data", &json!({"status": {"phase": "Bound"}}))
            .await;
        cluster.advance(Duration::from_secs(10)).await;
        assert_eq!(node_of(&cluster, "web").await, "node-1");
    });
}

#[test]
fn a_restarted_scheduler_goes_on_where_the_last_one_was() {
    testkit::run(|cluster| async move {
        let running = start(&cluster);
        node(&cluster, "node-1", "a", 2).await;
        pod(&cluster, "first", &requesting("1500m")).await;
        cluster.settle().await;
        drop(running);
        pod(&cluster, "second", &requesting("1")).await;
        pod(&cluster, "third", &requesting("500m")).await;
        let _running = start(&cluster);
        cluster.settle().await;
        assert_eq!(node_of(&cluster, "second").await, "", "the first pod is still there");
        assert_eq!(node_of(&cluster, "third").await, "node-1");
    });
}
