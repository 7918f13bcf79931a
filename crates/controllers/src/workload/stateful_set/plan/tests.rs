//! Plans for StatefulSets in many states.

use super::*;
use k8s_openapi::api::apps::v1::StatefulSet;
use serde_json::{Value, json};

const NOW: &str = "2026-01-01T01:00:00Z";

/// A pod as `name:state[:revision]`; `u` is the update revision, and the default.
fn pod(text: &str) -> Arc<Pod> {
    let mut words = text.split(':');
    let (name, state) = (words.next().unwrap(), words.next().unwrap());
    let revision = words.next().unwrap_or("u");
    let (phase, ready) = match state {
        "ready" | "fresh" | "deleting" | "unlabelled" => ("Running", "True"),
        "unready" => ("Running", "False"),
        "pending" => ("Pending", "False"),
        "failed" => ("Failed", "False"),
        "succeeded" => ("Succeeded", "False"),
        other => panic!("unknown state {other}"),
    };
    let since = if state == "fresh" { "2026-01-01T00:59:59Z" } else { "2026-01-01T00:00:00Z" };
    let deleted = (state == "deleting").then_some(NOW);
    let mut labels = json!({"controller-revision-hash": revision});
    if state != "unlabelled" {
        labels["statefulset.kubernetes.io/pod-name"] = json!(name);
    }
    let pod = json!({
        "metadata": {"name": name, "uid": name, "labels": labels, "deletionTimestamp": deleted},
        "spec": {"containers": [], "volumes": [{"name": "data", "persistentVolumeClaim": {
            "claimName": format!("data-{name}")}}]},
        "status": {"phase": phase, "conditions": [
            {"type": "Ready", "status": ready, "lastTransitionTime": since}]},
    });
    Arc::new(serde_json::from_value(pod).unwrap())
}

fn show(step: &PodStep) -> String {
    match step {
        PodStep::Create { ordinal, template: TemplateVersion::Update } => format!("create {ordinal}"),
        PodStep::Create { ordinal, template: TemplateVersion::Current } => {
            format!("create {ordinal} current")
        }
        PodStep::Delete(pod) => format!("delete {}", pod.name_any()),
        PodStep::SetClaims { pod, .. } => format!("claims {}", pod.name_any()),
        PodStep::Repair { pod, .. } => format!("repair {}", pod.name_any()),
    }
}

/// The plan as text: the steps, and after `update` the pods to delete for an update.
fn planned(spec: &Value, pods: &[Arc<Pod>], claims: &Claims) -> String {
    let mut set = json!({"metadata": {"name": "web", "uid": "set"},
        "spec": {"replicas": 3, "selector": {}, "template": {}, "serviceName": "",
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}}});
    for (name, value) in spec.as_object().unwrap() {
        set["spec"][name] = value.clone();
    }
    let set: StatefulSet = serde_json::from_value(set).unwrap();
    let desired = StatefulSpec::of(&set).unwrap();
    let observed = StatefulState { desired, pods, claims, update_revision: "u", now: NOW.parse().unwrap() };
    let plan = plan(&observed);
    let mut text: Vec<String> = plan.stages.iter().flatten().map(show).collect();
    text.extend(plan.outdated.iter().map(|pod| format!("update {}", pod.name_any())));
    text.join(", ")
}

fn check(spec: Value, pods: &str, expected: &str) {
    let pods: Vec<_> = pods.split_whitespace().map(pod).collect();
    assert_eq!(planned(&spec, &pods, &Claims::new()), expected, "{spec} {pods:?}");
}

#[test]
fn pods_are_created_one_after_the_other() {
    let spec = || json!({});
    check(spec(), "", "create 0");
    check(spec(), "web-0:pending", "");
    check(spec(), "web-0:unready", "");
    check(spec(), "web-0:ready", "create 1");
    check(spec(), "web-0:ready web-1:ready", "create 2");
    check(spec(), "web-0:ready web-1:deleting", "");
    check(spec(), "web-0:ready web-2:ready", "create 1");
    check(spec(), "web-0:ready web-1:ready web-2:ready", "");
    check(json!({"minReadySeconds": 10}), "web-0:fresh", "");
    check(json!({"minReadySeconds": 1}), "web-0:fresh", "create 1");
    check(json!({"ordinals": {"start": 5}}), "", "create 5");
    check(json!({"ordinals": {"start": 5}}), "web-5:ready", "create 6");
}

#[test]
fn finished_pods_are_deleted_to_be_created_again() {
    check(json!({}), "web-0:failed", "delete web-0");
    check(json!({}), "web-0:ready web-1:succeeded web-2:ready", "delete web-1");
    check(
        json!({"podManagementPolicy": "Parallel"}),
        "web-0:failed web-1:failed",
        "delete web-0, delete web-1, create 2",
    );
}

#[test]
fn parallel_sets_do_all_at_once() {
    let spec = |replicas: i32| json!({"podManagementPolicy": "Parallel", "replicas": replicas});
    check(spec(3), "", "create 0, create 1, create 2");
    check(spec(3), "web-1:pending", "create 0, create 2");
    check(spec(1), "web-0:unready web-1:unready web-2:ready web-3:deleting", "delete web-2, delete web-1");
}

#[test]
fn the_highest_ordinal_is_deleted_first() {
    let spec = || json!({"replicas": 1});
    check(spec(), "web-0:ready web-1:ready web-2:ready", "delete web-2");
    check(spec(), "web-0:ready web-1:ready web-2:deleting", "");
    check(spec(), "web-0:unready web-1:ready web-2:ready", "");
    // An unavailable pod is deleted only if none below it is unavailable, too.
    check(spec(), "web-0:ready web-1:ready web-2:unready", "delete web-2");
    check(spec(), "web-0:ready web-1:unready web-2:unready", "");
    check(spec(), "web-0:ready web-1:unready web-2:ready", "delete web-2");
    check(json!({"replicas": 0}), "web-0:unready", "delete web-0");
    check(
        json!({"replicas": 2, "ordinals": {"start": 1}}),
        "web-0:ready web-1:ready web-2:ready",
        "delete web-0",
    );
}

#[test]
fn updates_go_from_the_highest_ordinal_down() {
    let spec = || json!({});
    check(spec(), "web-0:ready:c web-1:ready:c web-2:ready:c", "update web-2");
    check(spec(), "web-0:ready:c web-1:ready:c web-2:ready", "update web-1");
    check(spec(), "web-0:ready:c web-1:ready:c web-2:unready", "");
    check(spec(), "web-0:ready:c web-1:ready:c web-2:deleting:c", "");
    check(spec(), "web-0:ready:c web-1:ready:c", "create 2");
    // Ordered sets wait for every pod to be ready, even if a new revision would repair it.
    check(spec(), "web-0:ready:c web-1:ready:c web-2:unready:c", "");
    check(
        json!({"podManagementPolicy": "Parallel"}),
        "web-0:ready:c web-1:ready:c web-2:unready:c",
        "update web-2",
    );
    check(json!({"updateStrategy": {"type": "OnDelete"}}), "web-0:ready:c web-1:ready:c web-2:ready:c", "");
    check(json!({"updateStrategy": {"type": "OnDelete"}}), "web-0:ready:c web-1:ready:c", "create 2");
}

#[test]
fn pods_below_the_partition_stay_at_the_current_revision() {
    let spec = |partition: i32| json!({"updateStrategy": {"rollingUpdate": {"partition": partition}}});
    check(spec(2), "web-0:ready:c web-1:ready:c web-2:ready:c", "update web-2");
    check(spec(2), "web-0:ready:c web-1:ready:c web-2:ready", "");
    check(spec(2), "web-0:ready:c", "create 1 current");
    check(spec(2), "web-0:ready:c web-1:ready:c", "create 2");
    check(spec(9), "web-0:ready:c web-1:ready:c web-2:ready:c", "");
    let shifted = json!({"ordinals": {"start": 5}, "updateStrategy": {"rollingUpdate": {"partition": 1}}});
    check(shifted.clone(), "", "create 5 current");
    check(shifted, "web-5:ready:c web-6:ready:c web-7:ready", "update web-6");
}

#[test]
fn several_pods_may_be_unavailable_during_an_update() {
    let spec = |limit: Value| json!({"updateStrategy": {"rollingUpdate": {"partition": 0, "maxUnavailable": limit}}});
    let all = "web-0:ready:c web-1:ready:c web-2:ready:c";
    check(spec(json!(2)), all, "update web-2, update web-1");
    check(spec(json!("70%")), all, "update web-2, update web-1");
    check(spec(json!("10%")), all, "update web-2");
    let mut parallel = spec(json!(2));
    parallel["podManagementPolicy"] = json!("Parallel");
    check(parallel.clone(), "web-0:ready:c web-1:ready:c web-2:unready", "update web-1");
    check(parallel, "web-0:unready:c web-1:unready:c web-2:ready:c", "");
}

#[test]
fn pods_that_lost_their_label_are_repaired() {
    check(json!({}), "web-0:unlabelled web-1:ready web-2:ready", "repair web-0");
    check(json!({}), "web-0:unlabelled", "repair web-0, create 1");
}

#[test]
fn claims_are_created_for_pending_pods_and_get_their_owners() {
    let spec = |deleted: &str, scaled: &str, replicas: i32| {
        json!({"replicas": replicas, "volumeClaimTemplates": [{"metadata": {"name": "data"}}],
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": deleted, "whenScaled": scaled}})
    };
    let claim = |owner: Value| {
        let claim = json!({"metadata": {"name": "x", "ownerReferences": [owner]}});
        Arc::new(serde_json::from_value::<PersistentVolumeClaim>(claim).unwrap())
    };
    let unowned = Arc::new(PersistentVolumeClaim::default());
    let of_set = claim(json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "set",
        "controller": true}));
    let of_old_pod = claim(json!({"apiVersion": "v1", "kind": "Pod", "name": "web-0", "uid": "old",
        "controller": true}));
    for (spec, pods, claims, expected) in [
        (spec("Retain", "Retain", 1), "web-0:pending", vec![], "claims web-0"),
        (spec("Retain", "Retain", 1), "web-0:pending", vec![("data-web-0", &unowned)], ""),
        (spec("Delete", "Retain", 1), "web-0:pending", vec![("data-web-0", &unowned)], "claims web-0"),
        (spec("Delete", "Retain", 1), "web-0:ready", vec![("data-web-0", &unowned)], "repair web-0"),
        (spec("Delete", "Retain", 1), "web-0:ready", vec![("data-web-0", &of_set)], ""),
        (spec("Retain", "Retain", 1), "web-0:ready", vec![], ""),
        // The pod that is scaled down becomes the owner before it is deleted.
        (
            spec("Retain", "Delete", 0),
            "web-0:ready",
            vec![("data-web-0", &unowned)],
            "claims web-0, delete web-0",
        ),
        // A claim that is deleted with the earlier pod must be gone before the new pod comes.
        (spec("Retain", "Delete", 1), "", vec![("data-web-0", &of_old_pod)], ""),
        (spec("Retain", "Delete", 1), "", vec![], "create 0"),
    ] {
        let pods: Vec<_> = pods.split_whitespace().map(pod).collect();
        let claims = claims.into_iter().map(|(name, claim)| (name.to_owned(), Arc::clone(claim))).collect();
        assert_eq!(planned(&spec, &pods, &claims), expected, "{spec} {pods:?}");
    }
}
