//! Tables of cases.

use super::*;
use crate::scheduler::{facts::tests::pod, node::tests::node};
use serde_json::{Value, json};

/// Classes `now` and `later`, a volume `disk` of class `local` in zone a, and one claim `data`.
fn storage(claim: &Value) -> StorageObjects {
    let mut storage = StorageObjects::default();
    for (name, mode, provisioner) in [
        ("now", "Immediate", "example.com/disk"),
        ("later", "WaitForFirstConsumer", "example.com/disk"),
        ("local", "WaitForFirstConsumer", NO_PROVISIONER),
    ] {
        let class =
            json!({"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode});
        storage.classes.insert(name.to_owned(), Arc::new(serde_json::from_value(class).unwrap()));
    }
    let disk = json!({"metadata": {"name": "disk"}, "status": {"phase": "Available"}, "spec": {
        "storageClassName": "local", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "10Gi"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}}}});
    storage.volumes.insert("disk".to_owned(), Arc::new(serde_json::from_value(disk).unwrap()));
    if !claim.is_null() {
        let key = Key::parse("default/data");
        let mut object = json!({"metadata": {"name": "data", "namespace": "default"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "5Gi"}}}});
        for (name, value) in claim.as_object().into_iter().flatten() {
            match name.as_str() {
                "metadata" => object["metadata"]["annotations"] = value["annotations"].clone(),
                "volumeName" => {
                    if claim.get("metadata").is_none() {
                        object["metadata"]["annotations"] = json!({BIND_COMPLETED: "yes"});
                    }
                    object["spec"]["volumeName"] = value.clone();
                }
                "status" => object["status"] = value.clone(),
                _ => object["spec"][name.as_str()] = value.clone(),
            }
        }
        storage.claims.insert(key, Arc::new(serde_json::from_value(object).unwrap()));
    }
    storage
}

fn claiming_pod() -> PodFacts {
    let spec = json!({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]});
    pod("p", &json!({}), &spec)
}

#[test]
fn claims_must_exist_and_be_bound_unless_they_wait_for_a_pod() {
    for (claim, expected) in [
        (json!(null), Some("persistentvolumeclaim \"data\" not found")),
        (json!({"storageClassName": "now"}), Some("pod has unbound immediate PersistentVolumeClaims")),
        (json!({}), Some("pod has unbound immediate PersistentVolumeClaims")),
        (json!({"storageClassName": "later"}), None),
        (json!({"storageClassName": "now", "volumeName": "disk"}), None),
        (
            json!({"storageClassName": "now", "volumeName": "disk", "metadata": {"annotations": {}}}),
            Some("pod has unbound immediate PersistentVolumeClaims"),
        ),
        (
            json!({"volumeName": "gone", "status": {"phase": "Lost"}}),
            Some("persistentvolumeclaim \"data\" bound to non-existent persistentvolume \"gone\""),
        ),
    ] {
        let problem = PodVolumes::new(&claiming_pod(), &storage(&claim)).err();
        assert_eq!(problem.as_deref(), expected, "{claim}");
    }
}

#[test]
fn volumes_select_nodes_and_say_what_must_be_written() {
    let select = || Some(vec![VolumeWrite::SelectNode(Key::parse("default/data"))]);
    let reserve =
        || Some(vec![VolumeWrite::Reserve { volume: "disk".into(), claim: Key::parse("default/data") }]);
    let selected = json!({"storageClassName": "later", "metadata": {"annotations": {SELECTED_NODE: "a"}}});
    for (claim, on, problems, writes) in [
        (json!({"volumeName": "disk"}), "a", vec![], Some(vec![])),
        (json!({"volumeName": "disk"}), "b", vec![NODE_CONFLICT], Some(vec![])),
        (json!({"volumeName": "gone"}), "a", vec![NO_VOLUME], Some(vec![])),
        (json!({"storageClassName": "later"}), "a", vec![], select()),
        (selected.clone(), "a", vec![], Some(vec![VolumeWrite::Wait])),
        (selected, "b", vec![BIND_CONFLICT], None),
        (json!({"storageClassName": "local"}), "a", vec![], reserve()),
        (json!({"storageClassName": "local"}), "b", vec![BIND_CONFLICT], None),
        (
            json!({"storageClassName": "local", "resources": {"requests": {"storage": "50Gi"}}}),
            "a",
            vec![BIND_CONFLICT],
            None,
        ),
    ] {
        let storage = storage(&claim);
        let volumes = PodVolumes::new(&claiming_pod(), &storage).unwrap();
        let facts = node(on, &json!({"zone": on}), &json!({}));
        let node = NodeState { facts, exists: true, ..NodeState::default() };
        assert_eq!(volumes.problems(&node, &storage), problems, "{claim} {on}");
        assert_eq!(volumes.writes(&node, &storage), writes, "{claim} {on}");
    }
}

#[test]
fn a_claim_for_one_pod_is_free_when_that_pod_has_left_its_node() {
    let mut storage = storage(&json!({"accessModes": [ONE_POD], "volumeName": "disk"}));
    let other = pod(
        "other",
        &json!({}),
        &json!({"volumes": [
        {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}),
    );
    let is_taken =
        |storage: &StorageObjects| PodVolumes::new(&claiming_pod(), storage).unwrap().has_other_users();
    assert!(!is_taken(&storage));
    storage.count_user(&other, 1);
    assert!(is_taken(&storage));
    // Preemption asks what would be if it were gone.
    let mut volumes = PodVolumes::new(&claiming_pod(), &storage).unwrap();
    volumes.change(&other, -1);
    assert!(!volumes.has_other_users());
    storage.count_user(&other, -1);
    assert!(!is_taken(&storage));
}
