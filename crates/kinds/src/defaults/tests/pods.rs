//! Pods, their containers and their volumes.

use serde_json::{Value, json};

use super::check;
use crate::defaults::default;

fn container(given: Value) -> Value {
    defaulted(json!({"containers": [given]}))["containers"][0].clone()
}

fn volume(given: Value) -> Value {
    defaulted(json!({"volumes": [given]}))["volumes"][0].clone()
}

fn defaulted(spec: Value) -> Value {
    let mut pod = json!({"spec": spec});
    default("", "v1", "Pod", &mut pod);
    pod["spec"].clone()
}

#[test]
fn a_pod_says_how_it_runs() {
    check(
        "v1",
        "Pod",
        json!({"metadata": {"annotations": {"pod.beta.kubernetes.io/init-containers": "x"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}),
        json!({
            "metadata": {},
            "spec": {
                "containers": [{
                    "name": "c", "image": "i", "imagePullPolicy": "Always",
                    "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
                }],
                "dnsPolicy": "ClusterFirst", "enableServiceLinks": true, "restartPolicy": "Always",
                "schedulerName": "default-scheduler", "securityContext": {}, "terminationGracePeriodSeconds": 30,
            },
        }),
    );
    for (given, field, expected) in [
        (json!({"restartPolicy": "Never"}), "restartPolicy", json!("Never")),
        (json!({"enableServiceLinks": false}), "enableServiceLinks", json!(false)),
        (json!({"terminationGracePeriodSeconds": 0}), "terminationGracePeriodSeconds", json!(0)),
        (json!({"terminationGracePeriodSeconds": -5}), "terminationGracePeriodSeconds", json!(1)),
        (json!({"serviceAccount": "old"}), "serviceAccountName", json!("old")),
        (json!({"serviceAccount": "old", "serviceAccountName": "new"}), "serviceAccount", json!("new")),
        (json!({"overhead": {"cpu": "100u"}}), "overhead", json!({"cpu": "1m"})),
    ] {
        assert_eq!(defaulted(given.clone())[field], expected, "{given}");
    }
}

#[test]
fn a_pod_has_one_address_or_many() {
    let mut pod = json!({"status": {"podIP": "10.0.0.1"}});
    default("", "v1", "Pod", &mut pod);
    assert_eq!(pod["status"], json!({"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]}));
}

#[test]
fn a_container_says_what_it_needs() {
    for (given, field, expected) in [
        (json!({"image": "a:1"}), "imagePullPolicy", json!("IfNotPresent")),
        (json!({"image": "a", "imagePullPolicy": "Never"}), "imagePullPolicy", json!("Never")),
        (
            json!({"ports": [{"containerPort": 80}]}),
            "ports",
            json!([{"containerPort": 80, "protocol": "TCP"}]),
        ),
        (
            json!({"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]}),
            "env",
            json!([{"name": "A", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}}]),
        ),
        (
            json!({"livenessProbe": {"httpGet": {"port": 80}}}),
            "livenessProbe",
            json!({
                "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
                "timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3,
            }),
        ),
        (
            json!({"startupProbe": {"grpc": {"port": 1}, "periodSeconds": 2}}),
            "startupProbe",
            json!({
                "grpc": {"port": 1, "service": ""},
                "timeoutSeconds": 1, "periodSeconds": 2, "successThreshold": 1, "failureThreshold": 3,
            }),
        ),
        (
            json!({"lifecycle": {"preStop": {"httpGet": {"port": "a"}}, "postStart": {"exec": {}}}}),
            "lifecycle",
            json!({"preStop": {"httpGet": {"port": "a", "path": "/", "scheme": "HTTP"}}, "postStart": {"exec": {}}}),
        ),
        (
            json!({"resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}}),
            "resources",
            json!({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m", "memory": "1Gi"}}),
        ),
    ] {
        assert_eq!(container(given.clone())[field], expected, "{given}");
    }
}

#[test]
fn a_volume_says_what_it_is() {
    for (given, expected) in [
        (json!({"name": "v"}), json!({"name": "v", "emptyDir": {}})),
        (
            json!({"name": "v", "hostPath": {"path": "/"}}),
            json!({"name": "v", "hostPath": {"path": "/", "type": ""}}),
        ),
        (json!({"secret": {}}), json!({"secret": {"defaultMode": 420}})),
        (json!({"secret": {"defaultMode": 0}}), json!({"secret": {"defaultMode": 0}})),
        (json!({"configMap": {"name": "c"}}), json!({"configMap": {"name": "c", "defaultMode": 420}})),
        (
            json!({"downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "f"}}]}}),
            json!({"downwardAPI": {"defaultMode": 420, "items": [{"path": "p", "fieldRef": {"apiVersion": "v1", "fieldPath": "f"}}]}}),
        ),
        (
            json!({"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}),
            json!({"projected": {"defaultMode": 420, "sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}}]}}),
        ),
        (
            json!({"ephemeral": {"volumeClaimTemplate": {}}}),
            json!({"ephemeral": {"volumeClaimTemplate": {"spec": {"volumeMode": "Filesystem"}}}}),
        ),
        (
            json!({"image": {"reference": "a:1"}}),
            json!({"image": {"reference": "a:1", "pullPolicy": "IfNotPresent"}}),
        ),
        (
            json!({"azureDisk": {"diskName": "d", "diskURI": "u"}}),
            json!({"azureDisk": {
                "diskName": "d", "diskURI": "u", "cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": false,
                "kind": "Shared",
            }}),
        ),
        (json!({"iscsi": {"iqn": "i"}}), json!({"iscsi": {"iqn": "i", "iscsiInterface": "default"}})),
        (
            json!({"rbd": {}}),
            json!({"rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"}}),
        ),
        (json!({"scaleIO": {}}), json!({"scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"}})),
    ] {
        assert_eq!(volume(given.clone()), expected, "{given}");
    }
}

#[test]
fn host_networking_takes_the_ports_of_the_host() {
    let spec = json!({"hostNetwork": true, "containers": [{"ports": [{"containerPort": 80}, {"containerPort": 81, "hostPort": 8}]}]});
    let ports = &defaulted(spec)["containers"][0]["ports"];
    assert_eq!((&ports[0]["hostPort"], &ports[1]["hostPort"]), (&json!(80), &json!(8)));
    let mut template = json!({"template": {"spec": {"hostNetwork": true, "containers": [{"ports": [{"containerPort": 80}]}]}}});
    default("", "v1", "PodTemplate", &mut template);
    assert_eq!(template["template"]["spec"]["containers"][0]["ports"][0].get("hostPort"), None);
}

#[test]
fn a_pod_as_a_whole_requests_what_its_containers_do() {
    let container = |cpu: &str| json!({"resources": {"requests": {"cpu": cpu}}});
    let sidecar = json!({"restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}});
    for (spec, expected) in [
        (
            json!({"resources": {"limits": {"cpu": "9", "memory": "1Gi"}}, "containers": [container("1"), container("500m")]}),
            json!({"limits": {"cpu": "9", "memory": "1Gi"}, "requests": {"cpu": "1500m", "memory": "1Gi"}}),
        ),
        (
            json!({"resources": {"limits": {"cpu": "9"}}, "initContainers": [sidecar, container("3")], "containers": [container("1")]}),
            json!({"limits": {"cpu": "9"}, "requests": {"cpu": "4"}}),
        ),
        (
            json!({"resources": {"requests": {"cpu": "1"}}, "containers": [{"resources": {"limits": {"hugepages-2Mi": "4Mi"}, "requests": {"hugepages-2Mi": "4Mi"}}}]}),
            json!({"limits": {"hugepages-2Mi": "4Mi"}, "requests": {"cpu": "1", "hugepages-2Mi": "4Mi"}}),
        ),
        (json!({"resources": {}, "containers": [container("1")]}), json!({})),
    ] {
        assert_eq!(defaulted(spec.clone())["resources"], expected, "{spec}");
    }
}
