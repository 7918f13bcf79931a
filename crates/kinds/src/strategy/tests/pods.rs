//! Pods: their class of service, their end, and the narrow windows on them.

use serde_json::{Value, json};

use super::{created, updated, written};
use crate::strategy::strategy;

#[test]
fn a_pod_has_a_class_of_service() {
    let container =
        |requests: Value, limits: Value| json!({"resources": {"requests": requests, "limits": limits}});
    let both = json!({"cpu": "1", "memory": "1Gi"});
    for (spec, expected) in [
        (json!({}), "BestEffort"),
        (json!({"containers": [{}]}), "BestEffort"),
        (json!({"containers": [container(json!({"cpu": "0"}), json!({}))]}), "BestEffort"),
        (
            json!({"containers": [container(json!({"example.com/gpu": "1"}), json!({"example.com/gpu": "1"}))]}),
            "BestEffort",
        ),
        (json!({"containers": [container(both.clone(), both.clone())]}), "Guaranteed"),
        (
            json!({"containers": [container(json!({"cpu": "1000m", "memory": "1024Mi"}), both.clone())]}),
            "Guaranteed",
        ),
        (json!({"containers": [container(both.clone(), both.clone()), {}]}), "Burstable"),
        (json!({"containers": [container(both.clone(), both.clone())], "initContainers": [{}]}), "Burstable"),
        (json!({"containers": [container(json!({"cpu": "1"}), json!({"cpu": "1"}))]}), "Burstable"),
        (
            json!({"containers": [{}], "resources": {"requests": both.clone(), "limits": both.clone()}}),
            "Guaranteed",
        ),
        (json!({"containers": [{}], "resources": {"requests": both}}), "Burstable"),
    ] {
        let status =
            created("", "pods", json!({"spec": spec.clone(), "status": {"phase": "Running"}}))["status"]
                .clone();
        assert_eq!(status, json!({"phase": "Pending", "qosClass": expected}), "{spec}");
    }
}

#[test]
fn a_class_of_service_that_is_sent_with_a_new_pod_stays() {
    for (sent, expected) in [("Guaranteed", "Guaranteed"), ("None", "None"), ("", "BestEffort")] {
        let pod = created("", "pods", json!({"spec": {"containers": [{}]}, "status": {"qosClass": sent}}));
        assert_eq!(pod["status"], json!({"phase": "Pending", "qosClass": expected}), "{sent}");
    }
}

#[test]
fn a_new_pod_says_what_its_metadata_stands_for() {
    let annotation = |value: &str| json!({"container.apparmor.security.beta.kubernetes.io/c": value});
    for (given, pointer, expected) in [
        (
            json!({"spec": {"schedulingGates": [{"name": "g"}]}}),
            "/status/conditions/0/reason",
            json!("SchedulingGated"),
        ),
        (json!({"spec": {"serviceAccountName": "s"}}), "/spec/serviceAccount", json!("s")),
        (
            json!({"metadata": {"annotations": annotation("localhost/p")}, "spec": {"containers": [{"name": "c"}]}}),
            "/spec/containers/0/securityContext",
            json!({"appArmorProfile": {"type": "Localhost", "localhostProfile": "p"}}),
        ),
        (
            json!({
                "metadata": {"annotations": annotation("runtime/default")},
                "spec": {"containers": [{"name": "c"}], "securityContext": {"appArmorProfile": {"type": "RuntimeDefault"}}},
            }),
            "/spec/containers/0",
            json!({"name": "c"}),
        ),
        (
            json!({"metadata": {"labels": {"a": "b"}}, "spec": {"topologySpreadConstraints": [{"labelSelector": {}, "matchLabelKeys": ["a", "z"]}]}}),
            "/spec/topologySpreadConstraints/0/labelSelector/matchExpressions",
            json!([{"key": "a", "operator": "In", "values": ["b"]}]),
        ),
        (
            json!({"metadata": {"labels": {"a": "b"}}, "spec": {"affinity": {"podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": {}, "mismatchLabelKeys": ["a"]}],
            }}}}),
            "/spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution/0/labelSelector",
            json!({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b"]}]}),
        ),
    ] {
        assert_eq!(created("", "pods", given.clone()).pointer(pointer), Some(&expected), "{given}");
    }
}

#[test]
fn a_pod_ends_gracefully_where_it_runs() {
    let pod = |node: &str, phase: &str, own: Option<i64>| json!({"spec": {"nodeName": node, "terminationGracePeriodSeconds": own}, "status": {"phase": phase}});
    for (pod, asked, expected) in [
        (pod("n", "Running", Some(30)), None, 30),
        (pod("n", "Running", Some(30)), Some(5), 5),
        (pod("n", "Running", Some(30)), Some(0), 0),
        (pod("n", "Running", Some(-1)), None, 1),
        (pod("n", "Running", None), None, 0),
        (pod("", "Pending", Some(30)), None, 0),
        (pod("n", "Succeeded", Some(30)), Some(9), 0),
        (pod("n", "Failed", Some(30)), None, 0),
    ] {
        assert_eq!(strategy("", "pods").grace_period(&pod, asked), Some(expected), "{pod} {asked:?}");
    }
    assert_eq!(strategy("", "configmaps").grace_period(&json!({}), Some(9)), None);
}

#[test]
fn a_pod_keeps_what_a_kubelet_leaves_out() {
    let old = json!({
        "metadata": {"ownerReferences": [{"uid": "o"}]}, "spec": {"nodeName": "n"},
        "status": {"qosClass": "Burstable", "observedGeneration": 2, "conditions": [{"type": "Ready", "observedGeneration": 2}]},
    });
    let new = json!({
        "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "labels": {"a": "b"}},
        "status": {"phase": "Running", "conditions": [{"type": "Ready"}, {"type": "Other"}]},
    });
    let expected = json!({
        "metadata": {"ownerReferences": [{"uid": "o"}], "labels": {"a": "b"}}, "spec": {"nodeName": "n"},
        "status": {
            "phase": "Running", "qosClass": "Burstable", "observedGeneration": 2,
            "conditions": [{"type": "Ready", "observedGeneration": 2}, {"type": "Other"}],
        },
    });
    assert_eq!(written("", "pods", "status", &old, new), expected);
}

#[test]
fn a_running_pod_changes_through_narrow_windows() {
    let old = json!({
        "metadata": {"generation": 1, "labels": {"a": "old"}},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i", "resources": {"limits": {"cpu": "1"}}}]},
        "status": {"phase": "Running"},
    });
    let resized = json!({
        "metadata": {"labels": {"a": "new"}},
        "spec": {"nodeName": "m", "containers": [{"name": "c", "image": "j", "resources": {"limits": {"cpu": "2"}}}]},
    });
    let mut expected = old.clone();
    expected["metadata"]["generation"] = json!(2);
    expected["spec"]["containers"][0]["resources"]["limits"]["cpu"] = json!("2");
    assert_eq!(written("", "pods", "resize", &old, resized.clone()), expected);

    let renamed = json!({"spec": {"containers": [{"name": "d"}]}});
    let after = written("", "pods", "resize", &old, renamed);
    assert_eq!(after["spec"]["containers"], json!([{"name": "d"}]), "for validation to refuse");

    let mut debugged = resized;
    debugged["spec"]["ephemeralContainers"] = json!([{"name": "e"}]);
    let mut expected = old.clone();
    expected["metadata"]["generation"] = json!(2);
    expected["spec"]["ephemeralContainers"] = json!([{"name": "e"}]);
    assert_eq!(written("", "pods", "ephemeralcontainers", &old, debugged), expected);
    assert_eq!(updated("", "pods", &old, old.clone())["metadata"]["generation"], json!(1));
}
