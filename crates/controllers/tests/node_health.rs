//! Nodes that fall silent: their conditions, their taints, and the pods on them.

use crate::rig;
use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{Event, Node, Pod},
};
use kube::ResourceExt;
use serde_json::json;
use std::time::Duration;
use testkit::Cluster;

async fn add_node(cluster: &Cluster, name: &str) {
    cluster.apply(&format!("{{apiVersion: v1, kind: Node, metadata: {{name: {name}}}}}")).await;
    let conditions =
        json!([{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}]);
    cluster.patch_status::<Node>(None, name, &json!({"status": {"conditions": conditions}})).await;
    let lease = format!(
        "{{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {{name: {name}, namespace: kube-node-lease}},
          spec: {{holderIdentity: {name}, leaseDurationSeconds: 40}}}}"
    );
    cluster.apply(&lease).await;
}

/// Lets time pass in which only these nodes renew their leases.
async fn pass(cluster: &Cluster, seconds: u64, alive: &[&str]) {
    for _ in 0..seconds / 10 {
        cluster.advance(Duration::from_secs(10)).await;
        for node in alive {
            let renewed = json!({"spec": {"renewTime": cluster.world().wall().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()}});
            cluster.patch::<Lease>("kube-node-lease", node, &renewed).await;
        }
    }
    cluster.settle().await;
}

fn taints(node: &Node) -> Vec<(String, String)> {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.clone()).unwrap_or_default();
    taints.into_iter().map(|taint| (taint.key, taint.effect)).collect()
}

#[test]
fn pods_leave_a_node_that_is_silent_for_long_and_it_recovers() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &["node-lifecycle-controller", "taint-eviction-controller"]);
        add_node(&cluster, "a").await;
        add_node(&cluster, "b").await;
        cluster
            .apply("{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {nodeName: a, containers: [{name: c, image: nginx}]}}")
            .await;
        let ready =
            json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
        cluster.patch_status::<Pod>("default", "web", &ready).await;
        pass(&cluster, 40, &["a", "b"]).await;
        assert_eq!(taints(&cluster.get::<Node>(None, "a").await), []);

        pass(&cluster, 80, &["b"]).await;
        let lost: Node = cluster.get(None, "a").await;
        let unreachable = "node.kubernetes.io/unreachable".to_owned();
        let expected = ["NoSchedule", "NoExecute"].map(|effect| (unreachable.clone(), effect.to_owned()));
        assert_eq!(taints(&lost), expected);
        let web: Pod = cluster.get("default", "web").await;
        assert_eq!(web.status.clone().unwrap().conditions.unwrap()[0].status, "False");
        assert!(web.metadata.deletion_timestamp.is_none(), "it tolerates the taint for five minutes");

        pass(&cluster, 310, &["b"]).await;
        let web: Pod = cluster.get("default", "web").await;
        assert!(web.metadata.deletion_timestamp.is_some());
        let conditions = web.status.unwrap().conditions.unwrap();
        assert!(conditions.iter().any(|it| it.reason.as_deref() == Some("DeletionByTaintManager")));
        let mut reasons: Vec<String> =
            cluster.list::<Event>(None).await.into_iter().filter_map(|event| event.reason).collect();
        reasons.sort();
        let expected =
            ["NodeNotReady", "NodeNotReady", "RegisteredNode", "RegisteredNode", "TaintManagerEviction"];
        assert_eq!(reasons, expected);

        let conditions =
            json!([{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T01:00:00Z"}]);
        cluster.patch_status::<Node>(None, "a", &json!({"status": {"conditions": conditions}})).await;
        pass(&cluster, 20, &["a", "b"]).await;
        let found: Node = cluster.get(None, "a").await;
        assert_eq!((taints(&found), found.name_any().as_str()), (vec![], "a"));
    });
}

#[test]
fn an_event_tells_that_a_pod_stays_because_its_node_is_back() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &["taint-eviction-controller"]);
        add_node(&cluster, "a").await;
        let pod = "{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {nodeName: a, tolerations: [{key: x, \
            operator: Exists, effect: NoExecute, tolerationSeconds: 300}], containers: [{name: c, image: nginx}]}}";
        cluster.apply(pod).await;
        let taint = json!([{"key": "x", "effect": "NoExecute"}]);
        cluster.patch::<Node>(None, "a", &json!({"spec": {"taints": taint}})).await;
        cluster.advance(Duration::from_secs(100)).await;
        assert_eq!(rig::events(&cluster, "Pod", "web").await, [""; 0]);
        cluster.patch::<Node>(None, "a", &json!({"spec": {"taints": null}})).await;
        cluster.advance(Duration::from_secs(300)).await;
        let expected = ["TaintManagerEviction: Cancelling deletion of Pod default/web"];
        assert_eq!(rig::events(&cluster, "Pod", "web").await, expected);
        assert!(cluster.get::<Pod>("default", "web").await.metadata.deletion_timestamp.is_none());
    });
}

#[test]
fn an_event_tells_that_a_pod_was_gone_before_it_was_to_be_evicted() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &["taint-eviction-controller"]);
        add_node(&cluster, "a").await;
        let pod = "{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {nodeName: a, tolerations: [{key: x, \
            operator: Exists, effect: NoExecute, tolerationSeconds: 300}], terminationGracePeriodSeconds: 0, \
            containers: [{name: c, image: nginx}]}}";
        cluster.apply(pod).await;
        let taint = json!([{"key": "x", "effect": "NoExecute"}]);
        cluster.patch::<Node>(None, "a", &json!({"spec": {"taints": taint}})).await;
        cluster.advance(Duration::from_secs(100)).await;
        cluster.delete::<Pod>("default", "web").await;
        cluster.advance(Duration::from_secs(300)).await;
        let expected = ["TaintManagerEviction: Cancelling deletion of Pod default/web"];
        assert_eq!(rig::events(&cluster, "Pod", "web").await, expected);
    });
}

#[test]
fn no_pod_is_driven_away_while_all_nodes_are_lost() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &["node-lifecycle-controller", "taint-eviction-controller"]);
        add_node(&cluster, "a").await;
        add_node(&cluster, "b").await;
        pass(&cluster, 300, &[]).await;
        for name in ["a", "b"] {
            let node: Node = cluster.get(None, name).await;
            assert_eq!(
                taints(&node),
                [("node.kubernetes.io/unreachable".to_owned(), "NoSchedule".to_owned())]
            );
        }
    });
}
