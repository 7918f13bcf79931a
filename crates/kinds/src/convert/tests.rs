//! There and back, and what lies on the way.

use serde_json::{Value, json};

use super::convert;

const V1: (&str, &str) = ("autoscaling", "v1");
const V2: (&str, &str) = ("autoscaling", "v2");

fn autoscaler(object: Value, from: (&str, &str), to: (&str, &str)) -> Value {
    convert(object, from, to, "HorizontalPodAutoscaler")
}

#[test]
fn most_kinds_only_change_their_name() {
    let (v1, beta) = (("admissionregistration.k8s.io", "v1"), ("admissionregistration.k8s.io", "v1beta1"));
    let policy = json!({"apiVersion": "admissionregistration.k8s.io/v1", "spec": {"a": 1}});
    let stored = json!({"apiVersion": "admissionregistration.k8s.io/v1beta1", "spec": {"a": 1}});
    assert_eq!(convert(policy.clone(), v1, beta, "MutatingAdmissionPolicy"), stored);
    assert_eq!(convert(stored, beta, v1, "MutatingAdmissionPolicy"), policy);
}

#[test]
fn an_event_has_two_faces() {
    let core = json!({
        "apiVersion": "v1", "kind": "Event", "involvedObject": {"kind": "Pod"}, "message": "m", "source": {"host": "h"},
        "firstTimestamp": "a", "lastTimestamp": "b", "count": 3, "type": "Normal", "reason": "r",
        "reportingComponent": "c", "reportingInstance": "i", "series": {"count": 2},
    });
    let other = json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "regarding": {"kind": "Pod"}, "note": "m",
        "deprecatedSource": {"host": "h"}, "deprecatedFirstTimestamp": "a", "deprecatedLastTimestamp": "b",
        "deprecatedCount": 3, "type": "Normal", "reason": "r", "reportingController": "c", "reportingInstance": "i",
        "series": {"count": 2},
    });
    assert_eq!(convert(core.clone(), ("", "v1"), ("events.k8s.io", "v1"), "Event"), other);
    assert_eq!(convert(other, ("events.k8s.io", "v1"), ("", "v1"), "Event"), core);
}

#[test]
fn an_autoscaler_on_the_cpu_is_plain_in_both_versions() {
    let cpu = |place: &str, amount: Value| json!([{"type": "Resource", "resource": {"name": "cpu", place: amount}}]);
    let old = json!({
        "apiVersion": "autoscaling/v1", "spec": {"minReplicas": 1, "targetCPUUtilizationPercentage": 50},
        "status": {"currentReplicas": 2},
    });
    let new = json!({
        "apiVersion": "autoscaling/v2",
        "spec": {"minReplicas": 1, "metrics": cpu("target", json!({"type": "Utilization", "averageUtilization": 50}))},
        "status": {"currentReplicas": 2},
    });
    assert_eq!(autoscaler(old.clone(), V1, V2), new);
    assert_eq!(autoscaler(new, V2, V1), old);
    let unsaid = autoscaler(json!({"spec": {}}), V1, V2);
    assert_eq!(
        unsaid["spec"]["metrics"],
        cpu("target", json!({"type": "Utilization", "averageUtilization": 80}))
    );
    let measured = autoscaler(json!({"status": {"currentCPUUtilizationPercentage": 7}}), V1, V2);
    assert_eq!(measured["status"]["currentMetrics"], cpu("current", json!({"averageUtilization": 7})));
}

#[test]
fn what_an_old_autoscaler_cannot_say_travels_in_annotations() {
    let target = json!({"kind": "Service", "name": "s", "apiVersion": "v1"});
    let new = json!({
        "apiVersion": "autoscaling/v2",
        "metadata": {"annotations": {"own": "x"}},
        "spec": {
            "metrics": [
                {"type": "Pods", "pods": {"metric": {"name": "p", "selector": {"matchLabels": {"a": "b"}, "matchExpressions": []}}, "target": {"type": "AverageValue", "averageValue": "5"}}},
                {"type": "Object", "object": {"describedObject": target, "metric": {"name": "o"}, "target": {"type": "Value", "value": "10k"}}},
                {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}},
                {"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "c", "target": {"type": "Utilization", "averageUtilization": 9}}},
                {"type": "External", "external": {"metric": {"name": "e"}, "target": {"type": "Value", "value": "1"}}},
                {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}},
            ],
            "behavior": {
                "scaleUp": {"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}]},
                "scaleDown": {"selectPolicy": "Min"},
            },
        },
        "status": {
            "currentMetrics": [
                {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 3, "averageValue": "30m"}}},
                {"type": "External", "external": {"metric": {"name": "e"}, "current": {"value": "0"}}},
            ],
            "conditions": [{"type": "AbleToScale", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "r"}],
        },
    });
    let old = autoscaler(new.clone(), V2, V1);
    let expected = json!({
        "apiVersion": "autoscaling/v1",
        "metadata": {"annotations": {
            "own": "x",
            "autoscaling.alpha.kubernetes.io/metrics": concat!(
                r#"[{"type":"Pods","pods":{"metricName":"p","targetAverageValue":"5","selector":{"matchLabels":{"a":"b"},"matchExpressions":[]}}},"#,
                r#"{"type":"Object","object":{"target":{"kind":"Service","name":"s","apiVersion":"v1"},"metricName":"o","targetValue":"10k"}},"#,
                r#"{"type":"Resource","resource":{"name":"memory","targetAverageValue":"1Gi"}},"#,
                r#"{"type":"ContainerResource","containerResource":{"name":"cpu","targetAverageUtilization":9,"container":"c"}},"#,
                r#"{"type":"External","external":{"metricName":"e","targetValue":"1"}}]"#,
            ),
            "autoscaling.alpha.kubernetes.io/behavior": concat!(
                r#"{"ScaleUp":{"StabilizationWindowSeconds":0,"SelectPolicy":"Max","Policies":[{"Type":"Pods","Value":4,"PeriodSeconds":15}],"Tolerance":null},"#,
                r#""ScaleDown":{"StabilizationWindowSeconds":null,"SelectPolicy":"Min","Policies":null,"Tolerance":null}}"#,
            ),
            "autoscaling.alpha.kubernetes.io/current-metrics": concat!(
                r#"[{"type":"Resource","resource":{"name":"cpu","currentAverageUtilization":3,"currentAverageValue":"30m"}},"#,
                r#"{"type":"External","external":{"metricName":"e","currentValue":"0"}}]"#,
            ),
            "autoscaling.alpha.kubernetes.io/conditions":
                r#"[{"type":"AbleToScale","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z","reason":"r"}]"#,
        }},
        "spec": {"targetCPUUtilizationPercentage": 50},
        "status": {"currentCPUUtilizationPercentage": 3},
    });
    assert_eq!(old, expected);
    assert_eq!(autoscaler(old, V1, V2), new, "and back");
}

#[test]
fn annotations_that_cannot_be_read_are_dropped() {
    let given = json!({"metadata": {"annotations": {"autoscaling.alpha.kubernetes.io/metrics": "{"}}, "spec": {"targetCPUUtilizationPercentage": 5}});
    let new = autoscaler(given, V1, V2);
    assert_eq!((&new["metadata"], new["spec"]["metrics"].as_array().map(Vec::len)), (&json!({}), Some(1)));
}

#[test]
fn metadata_by_itself_lacks_what_stands_for_fields() {
    let generation = "deprecated.daemonset.template.generation";
    for (version, kind, annotations, expected) in [
        ("apps/v1", "DaemonSet", json!({generation: "1"}), json!(null)),
        ("apps/v1", "DaemonSet", json!({generation: "1", "a": "b"}), json!({"a": "b"})),
        ("apps/v1", "Deployment", json!({generation: "1"}), json!({generation: "1"})),
        (
            "autoscaling/v1",
            "HorizontalPodAutoscaler",
            json!({"autoscaling.alpha.kubernetes.io/behavior": "{}"}),
            json!(null),
        ),
    ] {
        let object = json!({"apiVersion": version, "kind": kind, "metadata": {"annotations": annotations}});
        let mut metadata = object["metadata"].clone();
        super::shed(&object, &mut metadata);
        assert_eq!(metadata["annotations"], expected, "{object}");
    }
}
