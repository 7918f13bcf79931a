//! Patch and apply over the built-in types, as recorded from kube-apiserver.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod owners;
mod patches;

use serde_json::{Value, json};

/// A deployment as the server stores it, defaults included.
fn deployment() -> Value {
    let container = |name: &str, image: &str| {
        json!({
            "name": name, "image": image, "resources": {}, "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File", "imagePullPolicy": "IfNotPresent",
        })
    };
    let mut main = container("main", "nginx:1");
    main["ports"] = json!([{"containerPort": 80, "protocol": "TCP"}]);
    main["env"] = json!([{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]);
    json!({
        "kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": "web", "namespace": "ns"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "containers": [main, container("side", "busybox:1")],
                    "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
                    "securityContext": {}, "schedulerName": "default-scheduler",
                },
            },
            "strategy": {
                "type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"},
            },
            "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600,
        },
        "status": {},
    })
}
