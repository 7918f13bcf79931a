//! Tables of cases.

use super::*;
use serde_json::json;

#[test]
fn a_volume_is_for_a_claim_by_name_and_uid() {
    let claim = json!({"metadata": {"name": "data", "namespace": "default", "uid": "1"}});
    let claim: PersistentVolumeClaim = serde_json::from_value(claim).unwrap();
    for (reference, expected) in [
        (json!(null), false),
        (json!({"name": "data", "namespace": "default"}), true),
        (json!({"name": "data", "namespace": "default", "uid": ""}), true),
        (json!({"name": "data", "namespace": "default", "uid": "1"}), true),
        (json!({"name": "data", "namespace": "default", "uid": "2"}), false),
        (json!({"name": "data", "namespace": "other", "uid": "1"}), false),
        (json!({"name": "log", "namespace": "default"}), false),
    ] {
        let volume = json!({"metadata": {"name": "pv"}, "spec": {"claimRef": reference}});
        let volume: PersistentVolume = serde_json::from_value(volume).unwrap();
        assert_eq!(is_for(&volume, &claim), expected, "{volume:?}");
    }
}
