//! Tables of cases.

use super::*;
use serde_json::{Value, json};

fn claim(metadata: &Value, spec: &Value, status: &Value) -> PersistentVolumeClaim {
    let mut meta = json!({"name": "data", "namespace": "default", "uid": "1", "resourceVersion": "7"});
    for (name, value) in metadata.as_object().into_iter().flatten() {
        meta[name.as_str()] = value.clone();
    }
    serde_json::from_value(json!({"metadata": meta, "spec": spec, "status": status})).unwrap()
}

fn volume(metadata: &Value, claim: &Value) -> PersistentVolume {
    let mut meta = metadata.clone();
    meta["name"] = json!("pv");
    let spec = json!({"claimRef": claim, "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "10Gi"}});
    serde_json::from_value(json!({"metadata": meta, "spec": spec})).unwrap()
}

#[test]
fn a_volume_gets_a_complete_reference_and_says_who_has_bound_it() {
    let complete = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "default",
        "name": "data", "uid": "1", "resourceVersion": "7"});
    let (by_controller, by_user) = (json!({BOUND_BY_CONTROLLER: "yes"}), json!(null));
    let named = |uid: Value| json!({"namespace": "default", "name": "data", "uid": uid});
    for (before, expected) in [
        (json!(null), Some(&by_controller)),
        (named(json!(null)), Some(&by_user)),
        (named(json!("1")), None),
        (named(json!("0")), Some(&by_controller)),
    ] {
        let changed = bound_volume(&volume(&json!({}), &before), &claim(&json!({}), &json!({}), &json!({})));
        let changed = changed.map(|volume| serde_json::to_value(volume).unwrap());
        let annotations =
            changed.as_ref().map(|volume| volume["metadata"].get("annotations").unwrap_or(&Value::Null));
        assert_eq!(annotations, expected, "{before}");
        if let Some(changed) = changed {
            assert_eq!(changed["spec"]["claimRef"], complete, "{before}");
        }
    }
}

#[test]
fn a_claim_says_that_it_is_bound_and_who_has_chosen_the_volume() {
    for (metadata, spec, expected) in [
        (json!({}), json!({}), Some(json!({BOUND_BY_CONTROLLER: "yes", BIND_COMPLETED: "yes"}))),
        (json!({}), json!({"volumeName": "pv"}), Some(json!({BIND_COMPLETED: "yes"}))),
        (json!({"annotations": {BIND_COMPLETED: "yes"}}), json!({"volumeName": "pv"}), None),
    ] {
        let claim = claim(&metadata, &spec, &json!({}));
        let changed = bound_claim(&claim, &volume(&json!({}), &json!(null)));
        let volume = changed.as_ref().map(|claim| claim_facts::volume(claim).to_owned());
        assert_eq!(volume.as_deref(), expected.as_ref().map(|_| "pv"));
        assert_eq!(changed.map(|claim| json!(claim.annotations())), expected, "{claim:?}");
    }
}

#[test]
fn the_status_of_a_claim_shows_its_volume() {
    let size = |size: &str| json!({"storage": size});
    let shrunk = json!({"annotations": {SIZE_BEFORE_RESIZE: "8Gi"}});
    let modes = json!(["ReadWriteOnce"]);
    let bound = |capacity: &str| json!({"phase": "Bound", "accessModes": modes, "capacity": size(capacity)});
    for (before, phase, metadata, expected) in [
        (json!({"phase": "Pending"}), "Bound", Some(json!({})), bound("10Gi")),
        (json!({"phase": "Pending"}), "Bound", Some(shrunk), bound("8Gi")),
        // A resizer has not told yet that the volume has grown.
        (bound("5Gi"), "Bound", Some(json!({})), bound("5Gi")),
        (bound("5Gi"), "Lost", None, json!({"phase": "Lost"})),
        (json!({"phase": "Pending"}), "Pending", None, json!({"phase": "Pending"})),
    ] {
        let claim = claim(&json!({}), &json!({}), &before);
        let volume = metadata.map(|metadata| volume(&metadata, &json!(null)));
        let status = claim_status(&claim, phase, volume.as_ref());
        assert_eq!(serde_json::to_value(status).unwrap(), expected, "{before} {phase}");
    }
}
