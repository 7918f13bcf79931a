//! Ends pods as a kubelet would: tests of this crate have no nodes.

use k8s_openapi::api::core::v1::Pod;
use serde_json::json;
use testkit::Cluster;

/// Ends the container of a pod with this exit code.
pub(crate) async fn end(cluster: &Cluster, name: &str, code: i32) {
    let now = cluster.world().wall().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let phase = if code == 0 { "Succeeded" } else { "Failed" };
    let container = json!({"name": "main", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
        "state": {"terminated": {"exitCode": code, "finishedAt": now, "startedAt": now}}});
    let status = json!({"status": {"phase": phase, "containerStatuses": [container]}});
    cluster.patch_status::<Pod>("default", name, &status).await;
}
