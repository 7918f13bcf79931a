//! Tables of cases.

use super::*;
use serde_json::{Value, json};

fn claim(metadata: &Value, spec: &Value) -> PersistentVolumeClaim {
    let mut claim = json!({"metadata": {"name": "data", "namespace": "default", "uid": "1"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "5Gi"}}}});
    merge(&mut claim["metadata"], metadata);
    merge(&mut claim["spec"], spec);
    serde_json::from_value(claim).unwrap()
}

fn volume(name: &str, metadata: &Value, spec: &Value) -> Arc<PersistentVolume> {
    let mut volume = json!({"metadata": {"name": name}, "status": {"phase": "Available"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "10Gi"}}});
    merge(&mut volume["metadata"], metadata);
    merge(&mut volume["spec"], spec);
    Arc::new(serde_json::from_value(volume).unwrap())
}

fn merge(object: &mut Value, more: &Value) {
    for (name, value) in more.as_object().into_iter().flatten() {
        object[name.as_str()] = value.clone();
    }
}

fn reference(name: &str, uid: &str) -> Value {
    json!({"claimRef": {"namespace": "default", "name": name, "uid": uid}})
}

fn text(plan: &ClaimPlan) -> String {
    match plan {
        ClaimPlan::Bind(volume) => format!("bind {}", volume.name_any()),
        ClaimPlan::AssignClass(class) => format!("class {class}"),
        ClaimPlan::Wait(None) => "wait".to_owned(),
        ClaimPlan::Wait(Some(notice)) => format!("wait {}: {}", notice.reason, notice.message),
        ClaimPlan::Provision(provisioner) => format!("provision {provisioner}"),
        ClaimPlan::Lose(notice) => format!("lose {}", notice.reason),
        ClaimPlan::Fail(notice) => format!("fail {}", notice.reason),
    }
}

#[test]
fn a_claim_without_a_volume_takes_the_smallest_that_fits() {
    let size = |size: &str| json!({"capacity": {"storage": size}});
    let none = json!({});
    for (spec, volumes, expected) in [
        (
            &none,
            vec![volume("big", &none, &size("20Gi")), volume("small", &none, &size("6Gi"))],
            "bind small",
        ),
        (&none, vec![volume("b", &none, &none), volume("a", &none, &none)], "bind a"),
        (&none, vec![volume("tiny", &none, &size("4Gi"))], "no volume"),
        // One that is reserved for it by the user, though another is smaller.
        (
            &none,
            vec![volume("a", &none, &size("6Gi")), volume("own", &none, &reference("data", ""))],
            "bind own",
        ),
        (&none, vec![volume("own", &none, &reference("data", "1"))], "bind own"),
        (&none, vec![volume("old", &none, &reference("data", "0"))], "no volume"),
        (&none, vec![volume("other", &none, &reference("other", ""))], "no volume"),
        // Fewer modes are closer to what was asked for.
        (
            &none,
            vec![
                volume(
                    "many",
                    &none,
                    &json!({"accessModes": ["ReadWriteOnce", "ReadWriteMany"],
                    "capacity": {"storage": "5Gi"}}),
                ),
                volume("one", &none, &size("20Gi")),
            ],
            "bind one",
        ),
        (&json!({"accessModes": ["ReadWriteMany"]}), vec![volume("a", &none, &none)], "no volume"),
        (&json!({"volumeMode": "Block"}), vec![volume("a", &none, &none)], "no volume"),
        (&json!({"volumeMode": "Filesystem"}), vec![volume("a", &none, &none)], "bind a"),
        (&json!({"volumeAttributesClassName": "gold"}), vec![volume("a", &none, &none)], "no volume"),
        (&none, vec![volume("a", &json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}), &none)], "no volume"),
        (
            &json!({"selector": {"matchLabels": {"tier": "fast"}}}),
            vec![volume("a", &none, &none), volume("b", &json!({"labels": {"tier": "fast"}}), &size("30Gi"))],
            "bind b",
        ),
        (
            &json!({"storageClassName": ""}),
            vec![volume("a", &none, &json!({"storageClassName": "x"}))],
            "no volume",
        ),
        (
            &json!({"storageClassName": "x"}),
            vec![volume("a", &none, &json!({"storageClassName": "x"}))],
            "bind a",
        ),
    ] {
        let claim = claim(&none, spec);
        let state = ClaimState {
            claim: &claim,
            named_volume: None,
            volumes: &volumes,
            class: None,
            default_class: None,
            unscheduled_pods: &[],
        };
        let text = text(&plan(&state));
        let text = if text.starts_with("wait") { "no volume" } else { &text };
        assert_eq!(text, expected, "{spec} {volumes:?}");
    }
}

#[test]
fn a_claim_without_a_fitting_volume_waits_or_asks_for_one() {
    let none = json!({});
    let selected = json!({"annotations": {SELECTED_NODE: "node-0"}});
    let (first, waiting) = (
        "wait WaitForFirstConsumer: waiting for first consumer to be created before binding",
        "wait WaitForPodScheduled: waiting for pod web-0 to be scheduled",
    );
    let no_class =
        "wait FailedBinding: no persistent volumes available for this claim and no storage class is set";
    let class = |name: &str| json!({"storageClassName": name});
    let beta = json!({"annotations": {"volume.beta.kubernetes.io/storage-class": "now"}});
    for (metadata, spec, default_class, pods, expected) in [
        (&none, none.clone(), None, &[][..], no_class),
        (&none, none.clone(), Some("now"), &[], "class now"),
        (&none, class(""), Some("now"), &[], no_class),
        (&none, class("now"), Some("later"), &[], "provision example.com/disk"),
        (&beta, none.clone(), Some("later"), &[], "provision example.com/disk"),
        (&none, class("later"), None, &[], first),
        (&none, class("later"), None, &["web-0"], waiting),
        (
            &none,
            class("later"),
            None,
            &["a", "b"],
            "wait WaitForPodScheduled: waiting for pods a,b to be scheduled",
        ),
        (&selected, class("later"), None, &["web-0"], "provision example.com/disk"),
        (
            &none,
            class("manual"),
            None,
            &[],
            "wait ProvisioningFailed: no volume plugin matched name: kubernetes.io/no-provisioner",
        ),
        (
            &none,
            class("gone"),
            None,
            &[],
            "wait ProvisioningFailed: storageclass.storage.k8s.io \"gone\" not found",
        ),
    ] {
        let claim = claim(metadata, &spec);
        let classes = [
            ("now", "Immediate", "example.com/disk"),
            ("later", "WaitForFirstConsumer", "example.com/disk"),
            ("manual", "Immediate", "kubernetes.io/no-provisioner"),
        ];
        let class = classes.iter().find(|(name, _, _)| *name == claim_facts::class(&claim));
        let class: Option<StorageClass> = class.map(|(name, mode, provisioner)| {
            let class =
                json!({"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode});
            serde_json::from_value(class).unwrap()
        });
        let state = ClaimState {
            claim: &claim,
            named_volume: None,
            // Free, but a claim that waits for a pod must not take it before there is a node.
            volumes: &[volume("free", &none, &class_name_of("later"))],
            class: class.as_ref(),
            default_class,
            unscheduled_pods: &pods.iter().map(|pod| (*pod).to_owned()).collect::<Vec<_>>(),
        };
        assert_eq!(text(&plan(&state)), expected, "{metadata} {spec}");
    }
}

fn class_name_of(name: &str) -> Value {
    json!({ "storageClassName": name })
}

#[test]
fn a_claim_that_names_its_volume_gets_this_one_or_waits() {
    let none = json!({});
    let by_controller = json!({"annotations": {volume_facts::BOUND_BY_CONTROLLER: "yes"}});
    let taken = "wait FailedBinding: volume \"pv\" already bound to a different claim.";
    for (metadata, named, expected) in [
        (&none, None, "wait"),
        (&none, Some(volume("pv", &none, &none)), "bind pv"),
        (&none, Some(volume("pv", &none, &reference("data", ""))), "bind pv"),
        (&none, Some(volume("pv", &none, &reference("data", "1"))), "bind pv"),
        (&none, Some(volume("pv", &none, &reference("other", "2"))), taken),
        (&none, Some(volume("pv", &none, &reference("data", "0"))), taken),
        (&by_controller, Some(volume("pv", &none, &reference("other", "2"))), "fail FailedBinding"),
        (
            &none,
            Some(volume("pv", &none, &json!({"capacity": {"storage": "1Gi"}}))),
            "wait VolumeMismatch: Cannot bind to requested volume \"pv\": requested PV is too small",
        ),
        (
            &none,
            Some(volume("pv", &none, &json!({"storageClassName": "x"}))),
            "wait VolumeMismatch: Cannot bind to requested volume \"pv\": storageClassName does not match",
        ),
        (
            &none,
            Some(volume("pv", &none, &json!({"volumeMode": "Block"}))),
            "wait VolumeMismatch: Cannot bind to requested volume \"pv\": incompatible volumeMode",
        ),
        (
            &none,
            Some(volume("pv", &none, &json!({"accessModes": ["ReadOnlyMany"]}))),
            "wait VolumeMismatch: Cannot bind to requested volume \"pv\": incompatible accessMode",
        ),
    ] {
        let claim = claim(metadata, &json!({"volumeName": "pv"}));
        check_named(&claim, named.as_ref(), expected);
    }
}

#[test]
fn a_bound_claim_keeps_its_volume_or_is_lost() {
    let none = json!({});
    let bound = json!({"annotations": {BIND_COMPLETED: "yes"}});
    for (spec, named, expected) in [
        (json!({"volumeName": "pv"}), Some(volume("pv", &none, &reference("data", "1"))), "bind pv"),
        // The volume has no claimRef any more: an administrator has removed it.
        (json!({"volumeName": "pv"}), Some(volume("pv", &none, &none)), "bind pv"),
        (
            json!({"volumeName": "pv"}),
            Some(volume("pv", &none, &reference("other", "2"))),
            "lose ClaimMisbound",
        ),
        (json!({"volumeName": "pv"}), None, "lose ClaimLost"),
        (none.clone(), None, "lose ClaimLost"),
    ] {
        check_named(&claim(&bound, &spec), named.as_ref(), expected);
    }
}

fn check_named(claim: &PersistentVolumeClaim, named: Option<&Arc<PersistentVolume>>, expected: &str) {
    let state = ClaimState {
        claim,
        named_volume: named,
        volumes: &[],
        class: None,
        default_class: Some("now"),
        unscheduled_pods: &[],
    };
    assert_eq!(text(&plan(&state)), expected, "{claim:?} {named:?}");
}
