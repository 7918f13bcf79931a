//! Stories of objects, from what is known to what is printed.

use super::*;
use crate::why::print;
use serde_json::json;

fn now() -> Timestamp {
    "2026-01-01T01:00:00Z".parse().unwrap()
}

fn object(kind: &str, name: &str, owner: Option<&str>, rest: Value) -> Value {
    let owners: Vec<_> =
        owner.iter().map(|uid| json!({"uid": uid, "controller": true, "blockOwnerDeletion": true})).collect();
    let mut object = json!({"kind": kind, "metadata": {"name": name, "uid": name, "namespace": "default",
        "generation": 1, "creationTimestamp": "2026-01-01T00:50:00Z", "ownerReferences": owners}});
    for (field, value) in rest.as_object().into_iter().flatten() {
        match field.as_str() {
            "metadata" => {
                for (name, value) in value.as_object().into_iter().flatten() {
                    object["metadata"][name] = value.clone();
                }
            }
            _ => object[field] = value.clone(),
        }
    }
    object
}

fn warning(uid: &str, reason: &str, message: &str, time: &str) -> Value {
    json!({"type": "Warning", "reason": reason, "message": message, "lastTimestamp": time, "count": 3,
        "involvedObject": {"uid": uid}, "source": {"component": "kubelet"}})
}

fn waiting(reason: &str, message: &str) -> Value {
    json!({"status": {"phase": "Pending", "containerStatuses": [
        {"name": "main", "image": "x:404", "state": {"waiting": {"reason": reason, "message": message}},
         "lastState": {"terminated": {"exitCode": 3, "reason": "Error"}}}]}})
}

#[track_caller]
fn check_why(evidence: &Evidence, expected: &str) {
    assert_eq!(story(evidence, now()).why, expected);
}

#[test]
fn what_is_wrong_with_a_pod_is_told() {
    let unscheduled = json!({"status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
        "reason": "Unschedulable", "message": "0/1 nodes are available: 1 Insufficient cpu."}]}});
    let running =
        json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    let unready = json!({"status": {"phase": "Running", "conditions": [
        {"type": "Ready", "status": "False", "reason": "ContainersNotReady", "message": "main"}]}});
    let failed = json!({"status": {"phase": "Failed", "reason": "Evicted", "message": "low on memory"}});
    let ended = json!({"status": {"phase": "Failed", "containerStatuses": [
        {"name": "main", "state": {"terminated": {"exitCode": 1, "reason": "Error"}}}]}});
    let done = json!({"status": {"phase": "Succeeded", "conditions": [
        {"type": "Ready", "status": "False", "reason": "PodCompleted"}]}});
    for (rest, expected) in [
        (waiting("ErrImagePull", "not found"), "pod p cannot pull image \"x:404\": not found"),
        (waiting("ImagePullBackOff", ""), "pod p cannot pull image \"x:404\": ImagePullBackOff"),
        (
            waiting("CrashLoopBackOff", "back-off 10s"),
            "pod p has a container that keeps ending: main, exit code 3 (Error); see `setpoint logs p -c main --previous`",
        ),
        (
            waiting("CreateContainerConfigError", "configmap \"c\" not found"),
            "pod p has a container that cannot start: main: CreateContainerConfigError: configmap \"c\" not found",
        ),
        (unscheduled, "pod p cannot be scheduled: 0/1 nodes are available: 1 Insufficient cpu."),
        (unready, "pod p has the condition Ready=False: ContainersNotReady: main"),
        (failed, "pod p has failed: Evicted: low on memory"),
        (ended, "pod p has a container that has ended: main, exit code 1 (Error)"),
        (
            running,
            "nothing is wrong with pod p (Running 0/0), as far as conditions, events and what it owns tell",
        ),
        (done, "nothing is wrong with pod p (Succeeded), as far as conditions, events and what it owns tell"),
    ] {
        check_why(&Evidence { subject: object("Pod", "p", None, rest), ..Evidence::default() }, expected);
    }
}

#[test]
fn the_deepest_problem_below_a_deployment_is_told() {
    let web = object(
        "Deployment",
        "web",
        None,
        json!({"spec": {"replicas": 1}, "status": {"conditions": [
        {"type": "Available", "status": "False", "reason": "MinimumReplicasUnavailable", "message": "too few"}]}}),
    );
    let mut evidence = Evidence { subject: web, ..Evidence::default() };
    check_why(
        &evidence,
        "deployment web has the condition Available=False: MinimumReplicasUnavailable: too few",
    );
    evidence.below.push(object("ReplicaSet", "web-1", Some("web"), json!({"spec": {"replicas": 1}})));
    evidence.events.push(warning("web-1", "FailedCreate", "exceeded quota", "2026-01-01T00:59:00Z"));
    check_why(&evidence, "replicaset web-1 has a warning: FailedCreate: exceeded quota");
    evidence.below.push(object("Pod", "web-1-a", Some("web-1"), waiting("ErrImagePull", "not found")));
    check_why(&evidence, "pod web-1-a cannot pull image \"x:404\": not found");
    let status = json!({"readyReplicas": 1, "updatedReplicas": 1, "observedGeneration": 1});
    evidence.subject = object("Deployment", "web", None, json!({"spec": {"replicas": 1}, "status": status}));
    check_why(
        &evidence,
        "nothing is wrong with deployment web (1/1 ready), as far as conditions, events and what it owns tell",
    );
}

#[test]
fn old_warnings_have_passed() {
    let subject = object("Disk", "d", None, json!({}));
    let events = vec![warning("d", "Full", "no space", "2025-12-31T23:00:00Z")];
    let evidence = Evidence { subject, events, ..Evidence::default() };
    check_why(&evidence, "nothing is wrong with disk d, as far as conditions, events and what it owns tell");
}

#[test]
fn what_holds_a_deletion_up_is_told() {
    let deleting = |rest: Value| {
        let mut metadata = json!({"deletionTimestamp": "2026-01-01T00:59:00Z"});
        for (name, value) in rest.as_object().into_iter().flatten() {
            metadata[name] = value.clone();
        }
        object("Disk", "d", None, json!({ "metadata": metadata }))
    };
    let written = json!([{"manager": "disk-operator", "fieldsV1": {"f:metadata": {"f:finalizers": {"v:\"x/y\"": {}}}}}]);
    let pod = object("Pod", "p", Some("d"), json!({}));
    let namespace = object(
        "Namespace",
        "old",
        None,
        json!({
        "metadata": {"deletionTimestamp": "2026-01-01T00:59:00Z"},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"conditions": [
            {"type": "NamespaceContentRemaining", "status": "True", "message": "Some resources are remaining: pods. has 1 resource instances"},
            {"type": "NamespaceDeletionContentFailure", "status": "False", "message": "All content removed"}]}}),
    );
    for (subject, below, expected) in [
        (
            deleting(json!({"finalizers": ["x/y"], "managedFields": written})),
            vec![],
            vec!["finalizer x/y, which \"disk-operator\" has set and has to remove: check that it runs"],
        ),
        (
            deleting(json!({"finalizers": ["x/y", "kubernetes.io/pvc-protection"]})),
            vec![],
            vec![
                "finalizer x/y: check that the controller that removes it runs",
                "finalizer kubernetes.io/pvc-protection: removed when no pod uses the claim any more",
            ],
        ),
        (
            deleting(json!({"finalizers": ["foregroundDeletion"]})),
            vec![pod],
            vec!["finalizer foregroundDeletion waits for what it owns: Pod/p"],
        ),
        (
            deleting(json!({"deletionTimestamp": "2026-01-01T01:00:20Z"})),
            vec![],
            vec!["it has 20s left to shut down"],
        ),
        (deleting(json!({})), vec![], vec!["nothing is known to hold it up, and its time ended 60s ago"]),
        (
            namespace,
            vec![],
            vec![
                "finalizer kubernetes: removed by the namespace controller when the namespace is empty",
                "Some resources are remaining: pods. has 1 resource instances",
            ],
        ),
    ] {
        let evidence = Evidence { subject, below, ..Evidence::default() };
        let told = story(&evidence, now());
        assert_eq!(told.deletion, expected);
        assert!(told.why.ends_with(&format!("is being deleted: {}", expected[0])), "{}", told.why);
    }
}

#[test]
fn a_story_is_printed_by_time() {
    let subject = object(
        "Pod",
        "web-1-a",
        Some("web-1"),
        json!({
        "metadata": {"managedFields": [
            {"manager": "scheduler", "operation": "Update", "time": "2026-01-01T00:52:00Z", "subresource": "status",
             "fieldsV1": {"f:status": {"f:conditions": {}}}},
            {"manager": "kubectl", "operation": "Apply", "time": "2026-01-01T00:50:00Z",
             "fieldsV1": {"f:spec": {"f:containers": {"k:{\"name\":\"main\"}": {"f:image": {}}}}}},
        ]},
        "status": {"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes are available",
             "lastTransitionTime": "2026-01-01T00:51:00Z"}]}}),
    );
    let owners =
        vec![object("ReplicaSet", "web-1", None, json!({})), object("Deployment", "web", None, json!({}))];
    let events =
        vec![warning("web-1-a", "FailedScheduling", "0/1 nodes are available", "2026-01-01T00:58:00Z")];
    let evidence = Evidence { subject, owners, events, ..Evidence::default() };
    let expected = "\
why: pod web-1-a cannot be scheduled: 0/1 nodes are available

Pod/web-1-a in default, Pending (Unschedulable), 10m old
owned by ReplicaSet/web-1, which is owned by Deployment/web

conditions
! PodScheduled   False   9m    Unschedulable   0/1 nodes are available

history
  10m   created
  10m   kubectl applied spec.containers[name=main].image
  9m    condition PodScheduled became False (Unschedulable)
  8m    scheduler wrote status.conditions through /status
  2m    Warning FailedScheduling: 0/1 nodes are available (x3, kubelet)
";
    assert_eq!(print::text(&story(&evidence, now()), now()), expected);
}
