//! Deletes of objects that are being deleted already.

use super::{MAPS, PODS, pod, run, step};
use serde_json::{Value, json};

#[test]
fn another_delete_of_a_terminating_namespace_changes_nothing() {
    let namespace = "/api/v1/namespaces/n";
    let orphan = json!({"orphanDependents": true});
    run(vec![
        step("POST", "/api/v1/namespaces", json!({"metadata": {"name": "n"}}), 201, &[]),
        step("DELETE", namespace, Value::Null, 200, &[("/status/phase", "Terminating")]),
        step("DELETE", namespace, orphan, 200, &[("/metadata/finalizers", "null")]),
    ]);
}

#[test]
fn another_delete_of_a_pod_can_only_shorten_its_grace_period() {
    let orphan = json!({"propagationPolicy": "Orphan", "gracePeriodSeconds": 60});
    let again = |options: Value, holds| step("DELETE", format!("{PODS}/p"), options, 200, holds);
    run(vec![
        step("POST", PODS, pod("p", ""), 201, &[]),
        step("PATCH", format!("{PODS}/p/status"), json!({"status": {"phase": "Running"}}), 200, &[]),
        step(
            "POST",
            format!("{PODS}/p/binding"),
            json!({"metadata": {"name": "p"}, "target": {"name": "n"}}),
            201,
            &[],
        ),
        again(
            orphan,
            &[("/metadata/finalizers/0", "orphan"), ("/metadata/deletionGracePeriodSeconds", "60")],
        ),
        // Neither the default of 30 seconds nor a longer period, and with them no other finalizers.
        again(json!({"propagationPolicy": "Background"}), &[("/metadata/finalizers/0", "orphan")]),
        again(Value::Null, &[("/metadata/deletionGracePeriodSeconds", "60")]),
        again(json!({"gracePeriodSeconds": 90}), &[("/metadata/deletionGracePeriodSeconds", "60")]),
        again(
            json!({"propagationPolicy": "Background", "gracePeriodSeconds": 5}),
            &[("/metadata/deletionGracePeriodSeconds", "5"), ("/metadata/finalizers", "null")],
        ),
        again(json!({"gracePeriodSeconds": -7}), &[("/metadata/deletionGracePeriodSeconds", "1")]),
    ]);
}

#[test]
fn a_delete_that_takes_the_last_finalizer_answers_with_the_state_before() {
    let delete = |policy: &str| {
        let options = json!({ "propagationPolicy": policy });
        step("DELETE", format!("{PODS}/p"), options, 200, &[("/metadata/finalizers/0", "orphan")])
    };
    run(vec![
        step("POST", PODS, pod("p", ""), 201, &[]),
        delete("Orphan"),
        delete("Background"),
        step("GET", format!("{PODS}/p"), Value::Null, 404, &[]),
    ]);
}

#[test]
fn a_delete_of_all_objects_at_a_resource_version_takes_those_of_that_version() {
    run(vec![
        step("POST", MAPS, json!({"metadata": {"name": "new"}}), 201, &[]),
        step("DELETE", format!("{MAPS}?resourceVersion=1"), Value::Null, 200, &[("/items", "[]")]),
        step("GET", format!("{MAPS}/new"), Value::Null, 200, &[]),
    ]);
}
