//! `status` of every kind that has one: writable only there, and nothing else is writable there.

use crate::client::{send, send_with};
use serde_json::{Value, json};
use server::{Config, Server};
use std::sync::Arc;

const MERGE: &str = "application/merge-patch+json";

/// A kind: the path of its objects, one of them without its name, and a valid status.
struct Case {
    at: &'static str,
    object: Value,
    status: Value,
    labels: Labels,
}

/// Whether labels can be written through the status.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Labels {
    Written,
    Kept,
}

fn pods() -> Value {
    json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
}

fn workload(more: Value) -> Value {
    let mut object = json!({"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": pods()}});
    if let (Some(spec), Some(more)) = (object["spec"].as_object_mut(), more.as_object()) {
        spec.extend(more.clone());
    }
    object
}

fn job() -> Value {
    json!({"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}})
}

fn case(at: &'static str, object: Value, status: Value) -> Case {
    Case { at, object, status, labels: Labels::Written }
}

/// Kinds of the core group.
fn core() -> Vec<Case> {
    let condition = condition();
    vec![
        case("/api/v1/namespaces", json!({}), json!({"phase": "Active", "conditions": condition})),
        case("/api/v1/nodes", json!({}), json!({"capacity": {"cpu": "4"}})),
        case(
            "/api/v1/persistentvolumes",
            json!({"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}}),
            json!({"phase": "Available"}),
        ),
        case(
            "/api/v1/namespaces/default/persistentvolumeclaims",
            json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
            json!({"phase": "Bound"}),
        ),
        case("/api/v1/namespaces/default/pods", pods(), json!({"phase": "Running", "podIP": "10.0.0.1"})),
        case(
            "/api/v1/namespaces/default/replicationcontrollers",
            json!({"spec": {"selector": {"a": "b"}, "template": pods()}}),
            json!({"replicas": 2}),
        ),
        case(
            "/api/v1/namespaces/default/resourcequotas",
            json!({"spec": {"hard": {"pods": "3"}}}),
            json!({"hard": {"pods": "3"}, "used": {"pods": "1"}}),
        ),
        case(
            "/api/v1/namespaces/default/services",
            json!({"spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}}),
            json!({"loadBalancer": {"ingress": [{"ip": "10.0.0.1"}]}}),
        ),
    ]
}

fn condition() -> Value {
    json!([{
        "type": "T", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": "2024-01-01T00:00:00Z",
    }])
}

/// Kinds of the other groups.
fn others() -> Vec<Case> {
    let kept = |case: Case| Case { labels: Labels::Kept, ..case };
    let conditions = || json!({"conditions": condition()});
    let metric = json!({"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 5}}});
    let scaler = json!({"spec": {
        "maxReplicas": 3, "metrics": [metric], "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"},
    }});
    vec![
        case(
            "/apis/apps/v1/namespaces/default/daemonsets",
            workload(json!({})),
            json!({"currentNumberScheduled": 2}),
        ),
        kept(case(
            "/apis/apps/v1/namespaces/default/deployments",
            workload(json!({})),
            json!({"replicas": 2}),
        )),
        case("/apis/apps/v1/namespaces/default/replicasets", workload(json!({})), json!({"replicas": 2})),
        case(
            "/apis/apps/v1/namespaces/default/statefulsets",
            workload(json!({"serviceName": "s"})),
            json!({"replicas": 2}),
        ),
        case(
            "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers",
            scaler.clone(),
            json!({"currentReplicas": 2, "desiredReplicas": 3}),
        ),
        case(
            "/apis/batch/v1/namespaces/default/cronjobs",
            json!({"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": job()}}}),
            json!({"lastScheduleTime": "2024-01-01T00:00:00Z"}),
        ),
        case("/apis/batch/v1/namespaces/default/jobs", json!({"spec": job()}), json!({"active": 1})),
        case(
            "/apis/networking.k8s.io/v1/namespaces/default/ingresses",
            json!({"spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}}),
            json!({"loadBalancer": {"ingress": [{"ip": "10.0.0.1"}]}}),
        ),
        kept(case(
            "/apis/networking.k8s.io/v1/servicecidrs",
            json!({"spec": {"cidrs": ["10.99.0.0/24"]}}),
            conditions(),
        )),
        case(
            "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
            json!({"spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}}),
            json!({"currentHealthy": 2, "desiredHealthy": 1, "disruptionsAllowed": 1, "expectedPods": 2}),
        ),
        kept(case(
            "/apis/storage.k8s.io/v1/volumeattachments",
            json!({"spec": {"attacher": "x.y", "nodeName": "n", "source": {"persistentVolumeName": "v"}}}),
            json!({"attached": true}),
        )),
        kept(case(
            "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
            json!({"spec": {
                "matchConstraints": {"resourceRules": [{
                    "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"],
                }]},
                "validations": [{"expression": "true"}],
            }}),
            json!({"observedGeneration": 1}),
        )),
        kept(case(
            "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims",
            json!({"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}}),
            json!({"allocation": {"devices": {"results": [
                {"request": "r", "driver": "x.y", "pool": "p", "device": "d"},
            ]}}}),
        )),
        kept(case(
            "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
            json!({"spec": {"matchingPrecedence": 500, "priorityLevelConfiguration": {"name": "global-default"}}}),
            json!({"conditions": [{"type": "Dangling", "status": "True"}]}),
        )),
        kept(case(
            "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations",
            json!({"spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}}),
            json!({"conditions": [{"type": "T", "status": "True"}]}),
        )),
    ]
}

#[test]
fn status_is_written_only_through_its_subresource() {
    let run = world::simulate(7, |world| async move {
        let store = Arc::new(store::Memory::new());
        let server = Server::start(&world, store, Config::default()).await.unwrap();
        for case in core().into_iter().chain(others()) {
            check(&server, &case).await;
        }
    });
    run.unwrap();
}

async fn check(server: &Server, Case { at, object, status, labels }: &Case) {
    let mut object = object.clone();
    object["metadata"] = json!({"name": "a"});
    object["status"] = status.clone();
    let (code, made) = send(server, "POST", at, object.to_string()).await;
    assert_eq!(code, 201, "{at}: {made}");
    let takes_status = at.ends_with("/nodes");
    assert_eq!(holds(&made["status"], status), takes_status, "{at}: a new object brings no status: {made}");

    let one = format!("{at}/a");
    // Hooks after a create, like the count of a quota, run after its response is made.
    let (_, made) = send(server, "GET", &one, "").await;
    let nowhere = json!({"status": status, "metadata": {"annotations": {"x": "y"}}});
    let (code, same) = patch(server, &one, &nowhere).await;
    assert_eq!(
        (code, &same["status"]),
        (200, &made["status"]),
        "{at}: an update leaves the status alone: {same}"
    );

    let write = json!({"status": status, "metadata": {"labels": {"through": "status"}}});
    let (code, written) = patch(server, &format!("{one}/status"), &write).await;
    assert_eq!(code, 200, "{at}: {written}");
    assert!(holds(&written["status"], status), "{at}: {written}");
    assert_eq!(written["spec"], same["spec"], "{at}");
    assert_eq!(written["metadata"]["generation"], same["metadata"]["generation"], "{at}");
    let labelled = written["metadata"]["labels"]["through"] == "status";
    assert_eq!(labelled, *labels == Labels::Written, "{at}: {written}");

    let (code, read) = send(server, "GET", &format!("{one}/status"), "").await;
    assert_eq!((code, &read), (200, &written), "{at}");
    // The spec cannot be written through the status.
    let mut whole = written.clone();
    whole["spec"] = json!({});
    let (code, put) = send(server, "PUT", &format!("{one}/status"), whole.to_string()).await;
    assert!(code == 200 && put["spec"] == written["spec"], "{at}: {put}");
}

async fn patch(server: &Server, path: &str, patch: &Value) -> (u16, Value) {
    let (code, body) = send_with(server, "PATCH", path, MERGE, patch.to_string()).await;
    (code, serde_json::from_slice(&body).unwrap())
}

/// Whether a value contains another.
fn holds(value: &Value, wanted: &Value) -> bool {
    match (value, wanted) {
        (Value::Object(value), Value::Object(wanted)) => {
            wanted.iter().all(|(name, wanted)| value.get(name).is_some_and(|value| holds(value, wanted)))
        }
        (Value::Array(value), Value::Array(wanted)) => {
            value.len() == wanted.len()
                && value.iter().zip(wanted).all(|(value, wanted)| holds(value, wanted))
        }
        _ => value == wanted,
    }
}
