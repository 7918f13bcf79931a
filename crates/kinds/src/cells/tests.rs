//! Rows as the real server gave them, for the kinds that scripts look at most.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{cells, conditions};
use crate::resources;

const NOW: &str = "2026-01-01T01:00:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn check(group: &str, resource: &str, mut object: Value, expected: Value) {
    object["metadata"]["creationTimestamp"] = json!("2026-01-01T00:55:00Z");
    assert_eq!(Value::from(cells(group, resource, &object, now())), expected, "{group} {resource} {object}");
}

#[test]
fn a_row_has_a_cell_for_each_column() {
    let object = json!({ "metadata": { "name": "x" } });
    for it in resources().iter().filter(|it| !it.columns.is_empty()) {
        let row = cells(&it.group, &it.name, &object, now());
        // Kubernetes: the one printer that says more than it announces.
        let extra = usize::from(it.name == "ipaddresses");
        assert_eq!(row.len(), it.columns.len() + extra, "{} {}", it.group, it.name);
        let named = it.columns.iter().position(|column| column.name == "Name").unwrap();
        assert_eq!(row[named], "x", "{} {}", it.group, it.name);
        if let Some(aged) = it.columns.iter().position(|column| column.name == "Age") {
            assert_eq!(row[aged], "<unknown>", "{} {}", it.group, it.name);
        }
    }
}

#[test]
fn resources_without_a_printer_say_when_they_were_made() {
    check("", "limitranges", json!({ "metadata": { "name": "l" } }), json!(["l", "2026-01-01T00:55:00Z"]));
    check(
        "example.com",
        "widgets",
        json!({ "metadata": { "name": "w" } }),
        json!(["w", "2026-01-01T00:55:00Z"]),
    );
}

#[test]
fn nodes() {
    let node = json!({
        "metadata": { "name": "n", "labels": { "node-role.kubernetes.io/worker": "", "kubernetes.io/role": "b" } },
        "spec": { "unschedulable": true },
        "status": {
            "conditions": [{ "type": "Ready", "status": "True" }],
            "addresses": [{ "type": "InternalIP", "address": "192.168.1.9" }],
            "nodeInfo": {
                "kubeletVersion": "v1.36.0", "osImage": "Test OS", "kernelVersion": "6.1",
                "containerRuntimeVersion": "fake://1", "architecture": "amd64",
            },
        },
    });
    check(
        "",
        "nodes",
        node,
        json!([
            "n",
            "Ready,SchedulingDisabled",
            "b,worker",
            "5m",
            "v1.36.0",
            "192.168.1.9",
            "<none>",
            "Test OS",
            "6.1 (amd64)",
            "fake://1",
        ]),
    );
    check(
        "",
        "nodes",
        json!({ "metadata": { "name": "n" } }),
        json!([
            "n",
            "Unknown",
            "<none>",
            "5m",
            "",
            "<none>",
            "<none>",
            "<unknown>",
            "<unknown>",
            "<unknown>",
        ]),
    );
}

/// The cells of a pod with two containers that differ in its status.
fn check_pod(pod: Value, expected: [&str; 3]) {
    let mut object = json!({
        "metadata": { "name": "p" },
        "spec": { "nodeName": "n", "containers": [{ "name": "c" }, { "name": "d" }] },
    });
    for (member, value) in pod.as_object().unwrap() {
        for (name, value) in value.as_object().unwrap() {
            object[member][name] = value.clone();
        }
    }
    let row = cells("", "pods", &object, now());
    assert_eq!(row[1..4], expected.map(Value::from), "{object}");
}

#[test]
fn pods_say_in_one_word_how_it_goes() {
    let done = json!({ "terminated": { "reason": "Completed", "exitCode": 0 } });
    let running = json!({ "running": { "startedAt": "2026-01-01T00:00:00Z" } });
    check_pod(json!({ "status": { "phase": "Pending" } }), ["0/2", "Pending", "0"]);
    check_pod(
        json!({ "status": { "phase": "Running", "containerStatuses": [
            { "name": "c", "ready": true, "restartCount": 2, "state": running },
            { "name": "d", "restartCount": 3, "state": { "waiting": { "reason": "CrashLoopBackOff" } },
              "lastState": { "terminated": { "finishedAt": "2026-01-01T00:55:00Z" } } },
        ] } }),
        ["1/2", "CrashLoopBackOff", "5 (5m ago)"],
    );
    check_pod(
        json!({ "status": { "phase": "Succeeded", "containerStatuses": [{ "state": done }, { "state": done }] } }),
        ["0/2", "Completed", "0"],
    );
    check_pod(
        json!({ "status": { "phase": "Running", "containerStatuses": [
            { "state": done }, { "ready": true, "state": running },
        ] } }),
        ["1/2", "NotReady", "0"],
    );
    check_pod(
        json!({ "status": { "phase": "Failed", "containerStatuses": [
            { "state": done }, { "state": { "terminated": { "exitCode": 137, "signal": 9 } } },
        ] } }),
        ["0/2", "Signal:9", "0"],
    );
    check_pod(
        json!({ "spec": { "initContainers": [{ "name": "i" }, { "name": "j" }] },
            "status": { "phase": "Pending", "initContainerStatuses": [
            { "name": "i", "state": done }, { "name": "j", "state": running },
        ] } }),
        ["0/2", "Init:1/2", "0"],
    );
    check_pod(
        json!({ "spec": { "initContainers": [{ "name": "i", "restartPolicy": "Always" }] },
            "status": { "phase": "Running", "initContainerStatuses": [
            { "name": "i", "started": true, "ready": true, "restartCount": 1, "state": running },
        ] } }),
        ["1/3", "Running", "1"],
    );
    check_pod(
        json!({ "metadata": { "deletionTimestamp": NOW }, "status": { "phase": "Running" } }),
        ["0/2", "Terminating", "0"],
    );
    check_pod(
        json!({ "status": { "phase": "Pending", "conditions": [
            { "type": "PodScheduled", "status": "False", "reason": "SchedulingGated" },
        ] } }),
        ["0/2", "SchedulingGated", "0"],
    );
}

#[test]
fn only_pods_that_ran_to_their_end_have_conditions() {
    for (resource, phase, expected) in [
        ("pods", "Running", json!([])),
        ("namespaces", "Failed", json!([])),
        (
            "pods",
            "Succeeded",
            json!([{ "type": "Completed", "status": "True", "reason": "Succeeded",
            "message": "The pod has completed successfully." }]),
        ),
        (
            "pods",
            "Failed",
            json!([{ "type": "Completed", "status": "True", "reason": "Failed",
            "message": "The pod failed." }]),
        ),
    ] {
        let object = json!({ "status": { "phase": phase } });
        assert_eq!(Value::from(conditions("", resource, &object)), expected);
    }
}

#[test]
fn workloads() {
    let template =
        json!({ "spec": { "containers": [{ "name": "c", "image": "i:1" }, { "name": "d", "image": "j" }] } });
    let selector = json!({ "matchLabels": { "a": "b" },
        "matchExpressions": [{ "key": "t", "operator": "In", "values": ["y", "x"] }] });
    check(
        "apps",
        "deployments",
        json!({
            "metadata": { "name": "d" }, "spec": { "replicas": 3, "template": template, "selector": selector },
            "status": { "readyReplicas": 1, "updatedReplicas": 2 },
        }),
        json!(["d", "1/3", 2, 0, "5m", "c,d", "i:1,j", "a=b,t in (x,y)"]),
    );
    check(
        "apps",
        "replicasets",
        json!({
            "metadata": { "name": "r" }, "spec": { "replicas": 1, "template": template },
        }),
        json!(["r", 1, 0, 0, "5m", "c,d", "i:1,j", "<none>"]),
    );
    check(
        "batch",
        "jobs",
        json!({
            "metadata": { "name": "j" }, "spec": { "completions": 3, "template": template },
            "status": { "conditions": [{ "type": "Suspended", "status": "True" }] },
        }),
        json!(["j", "Suspended", "0/3", "", "5m", "c,d", "i:1,j", "<none>"]),
    );
    check(
        "batch",
        "cronjobs",
        json!({
            "metadata": { "name": "j" },
            "spec": { "schedule": "*/5 * * * *", "timeZone": "Europe/Berlin", "suspend": true,
                "jobTemplate": { "spec": { "template": template } } },
        }),
        json!(["j", "*/5 * * * *", "Europe/Berlin", "True", 0, "<none>", "5m", "c,d", "i:1,j", "<none>"]),
    );
    check(
        "apps",
        "controllerrevisions",
        json!({
            "metadata": { "name": "r", "ownerReferences": [
                { "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "controller": true }] }, "revision": 2,
        }),
        json!(["r", "daemonset.apps/d", 2, "5m"]),
    );
}

#[test]
fn network() {
    let port =
        json!([{ "port": 80, "protocol": "TCP" }, { "port": 53, "nodePort": 3000, "protocol": "UDP" }]);
    check(
        "",
        "services",
        json!({
            "metadata": { "name": "s" },
            "spec": { "type": "ExternalName", "externalName": "x.example.com", "selector": { "a": "b" }, "ports": port },
        }),
        json!(["s", "ExternalName", "<none>", "x.example.com", "80/TCP,53:3000/UDP", "5m", "a=b"]),
    );
    check(
        "",
        "services",
        json!({
            "metadata": { "name": "s" }, "spec": { "type": "LoadBalancer", "clusterIPs": ["10.0.0.1"] },
        }),
        json!(["s", "LoadBalancer", "10.0.0.1", "<pending>", "<none>", "5m", "<none>"]),
    );
    check(
        "networking.k8s.io",
        "ingresses",
        json!({
            "metadata": { "name": "i" },
            "spec": { "ingressClassName": "x", "tls": [{}],
                "rules": [{ "host": "a.example.com" }, { "host": "b.example.com" }] },
        }),
        json!(["i", "x", "a.example.com,b.example.com", "", "80, 443", "5m"]),
    );
    check(
        "",
        "endpoints",
        json!({
            "metadata": { "name": "e" },
            "subsets": [{ "addresses": [{ "ip": "10.0.0.1" }, { "ip": "fd00::1" }], "ports": [{ "port": 80 }, { "port": 90 }] }],
        }),
        json!(["e", "10.0.0.1:80,[fd00::1]:80,10.0.0.1:90 + 1 more...", "5m"]),
    );
    check(
        "discovery.k8s.io",
        "endpointslices",
        json!({
            "metadata": { "name": "e" }, "addressType": "IPv4", "ports": [{ "name": "http" }, {}],
        }),
        json!(["e", "IPv4", "http,*", "<unset>", "5m"]),
    );
}

#[test]
fn columns_of_core_kinds() {
    check(
        "",
        "configmaps",
        json!({
            "metadata": { "name": "c" }, "data": { "a": "1", "b": "2" }, "binaryData": { "c": "AA==" },
        }),
        json!(["c", 3, "5m"]),
    );
    let event = json!({
        "metadata": { "name": "e" }, "type": "Warning", "reason": "Because", "message": " it happened\n",
        "involvedObject": { "kind": "Pod", "name": "p" }, "source": { "component": "t" },
        "lastTimestamp": "2026-01-01T00:58:00Z", "eventTime": "2026-01-01T00:57:00.000000Z",
    });
    check(
        "",
        "events",
        event,
        json!(["2m", "Warning", "Because", "pod/p", "", "t", "it happened", "3m", 1, "e",]),
    );
    check(
        "",
        "resourcequotas",
        json!({
            "metadata": { "name": "q" },
            "status": { "hard": { "pods": "3", "limits.cpu": "2", "cpu": "1" }, "used": { "cpu": "500m" } },
        }),
        json!(["q", "cpu: 500m/1, pods: 0/3", "limits.cpu: 0/2", "5m"]),
    );
    check(
        "",
        "persistentvolumeclaims",
        json!({
            "metadata": { "name": "c" }, "spec": { "volumeName": "v", "storageClassName": "s" },
            "status": { "phase": "Bound", "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"] },
        }),
        json!(["c", "Bound", "v", "1Gi", "RWO", "s", "<unset>", "5m", "<unset>"]),
    );
}

#[test]
fn columns_of_kinds_in_other_groups() {
    check(
        "rbac.authorization.k8s.io",
        "rolebindings",
        json!({
            "metadata": { "name": "r" }, "roleRef": { "kind": "ClusterRole", "name": "view" },
            "subjects": [{ "kind": "User", "name": "u" }, { "kind": "Group", "name": "g" },
                { "kind": "ServiceAccount", "namespace": "n", "name": "s" }],
        }),
        json!(["r", "ClusterRole/view", "5m", "u", "g", "n/s"]),
    );
    check(
        "storage.k8s.io",
        "storageclasses",
        json!({
            "metadata": { "name": "s", "annotations": { "storageclass.kubernetes.io/is-default-class": "true" } },
            "provisioner": "example.com/p", "reclaimPolicy": "Delete", "allowVolumeExpansion": true,
        }),
        json!(["s (default)", "example.com/p", "Delete", "Immediate", true, "5m"]),
    );
    check(
        "autoscaling",
        "horizontalpodautoscalers",
        json!({
            "metadata": { "name": "h" },
            "spec": { "scaleTargetRef": { "kind": "Deployment", "name": "d" }, "maxReplicas": 5,
                "metrics": [{ "type": "Resource", "resource": { "name": "cpu", "target": { "averageUtilization": 80 } } }] },
        }),
        json!(["h", "Deployment/d", "cpu: <unknown>/80%", "<unset>", 5, 0, "5m"]),
    );
    check(
        "admissionregistration.k8s.io",
        "validatingadmissionpolicybindings",
        json!({
            "metadata": { "name": "b" },
            "spec": { "policyName": "p", "paramRef": { "selector": { "matchLabels": { "a": "b" } } } },
        }),
        json!([
            "b",
            "p",
            "&LabelSelector{MatchLabels:map[string]string{a: b,},MatchExpressions:[]LabelSelectorRequirement{},}",
            "5m"
        ]),
    );
    check(
        "policy",
        "poddisruptionbudgets",
        json!({
            "metadata": { "name": "b" }, "spec": { "minAvailable": "50%" },
        }),
        json!(["b", "50%", "N/A", 0, "5m"]),
    );
}

#[test]
fn flow_schemas_come_in_the_order_in_which_they_are_asked() {
    let schema = |name: &str, precedence: i64| json!({"metadata": {"name": name}, "spec": {"matchingPrecedence": precedence}});
    let all = [schema("a", 5), schema("b", 1), schema("c", 5)];
    for (group, expected) in [("flowcontrol.apiserver.k8s.io", ["b", "a", "c"]), ("x", ["a", "b", "c"])] {
        let mut sorted: Vec<_> = all.iter().collect();
        super::sort(group, "flowschemas", &mut sorted);
        assert_eq!(sorted.into_iter().map(api::object::name).collect::<Vec<_>>(), expected);
    }
}
