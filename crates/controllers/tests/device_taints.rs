//! Pods whose device gets a NoExecute taint.

use crate::{
    resource_claims::{add_pod, allocate, bind, device_request},
    rig,
};
use k8s_openapi::api::{core::v1::Pod, resource::v1::ResourceSlice};
use serde_json::{Value, json};
use std::time::Duration;
use testkit::Cluster;

async fn add_device(cluster: &Cluster, taints: &Value) {
    let slice = json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "s"},
        "spec": {"driver": "d.io", "nodeName": "node-1", "devices": [{"name": "a", "taints": taints}],
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}}});
    cluster.apply_object(&slice).await;
}

/// A pod that uses the device.
async fn add_user(cluster: &Cluster, tolerations: &Value) {
    let claim = json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "c"},
        "spec": device_request()});
    cluster.apply_object(&claim).await;
    add_pod(cluster, "web", &json!({"resourceClaimName": "c"})).await;
    let pod: Pod = cluster.get("default", "web").await;
    allocate(cluster, "c", &[&pod], tolerations).await;
    bind(cluster, "web").await;
    cluster.settle().await;
}

async fn is_leaving(cluster: &Cluster) -> bool {
    cluster.get::<Pod>("default", "web").await.metadata.deletion_timestamp.is_some()
}

#[test]
fn a_pod_loses_its_device_at_once_or_after_its_toleration() {
    for (tolerations, expected) in [
        (json!([]), [true, true]),
        (json!([{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}]), [false, true]),
        (json!([{"operator": "Exists", "effect": "NoExecute"}]), [false, false]),
    ] {
        let tolerations = &tolerations;
        testkit::run(|cluster| async move {
            let _running = rig::start(&cluster, &["device-taint-eviction-controller"]);
            add_device(&cluster, &json!([])).await;
            add_user(&cluster, tolerations).await;
            assert!(!is_leaving(&cluster).await);
            add_device(&cluster, &json!([{"key": "broken", "effect": "NoExecute"}])).await;
            cluster.settle().await;
            assert_eq!(is_leaving(&cluster).await, expected[0], "{tolerations}");
            cluster.advance(Duration::from_secs(70)).await;
            assert_eq!(is_leaving(&cluster).await, expected[1], "{tolerations}");
            if expected[1] {
                let pod: Pod = cluster.get("default", "web").await;
                let conditions = pod.status.unwrap().conditions.unwrap();
                let target = conditions.iter().find(|it| it.type_ == "DisruptionTarget").unwrap();
                assert_eq!(target.reason.as_deref(), Some("DeletionByDeviceTaintManager"));
                let events = rig::events(&cluster, "Pod", "web").await;
                assert_eq!(events, ["DeviceTaintManagerEviction: Marking for deletion"]);
            }
        });
    }
}

#[test]
fn a_pod_stays_if_the_taint_goes_in_time() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &["device-taint-eviction-controller"]);
        add_device(&cluster, &json!([{"key": "broken", "effect": "NoExecute"}])).await;
        add_user(&cluster, &json!([{"operator": "Exists", "tolerationSeconds": 60}])).await;
        cluster.advance(Duration::from_secs(30)).await;
        cluster.patch::<ResourceSlice>(None, "s", &json!({"spec": {"devices": [{"name": "a"}]}})).await;
        cluster.advance(Duration::from_secs(60)).await;
        assert!(!is_leaving(&cluster).await);
    });
}
