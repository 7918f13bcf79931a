//! Taints and tolerations.

use crate::placement::is_tolerated;
use k8s_openapi::api::core::v1::{Taint, Toleration};

/// The taint that stands for `spec.unschedulable`.
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// Whether the pod stays away from the node because of a taint.
pub(super) fn keep_away(taints: &[Taint], tolerations: &[Toleration]) -> bool {
    let forbids = |taint: &&Taint| matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute");
    taints.iter().filter(forbids).any(|taint| !is_tolerated(taint, tolerations))
}

/// How many taints ask the pod to stay away if it can.
pub(super) fn discouraging(taints: &[Taint], tolerations: &[Toleration]) -> i64 {
    let asks = |taint: &&Taint| taint.effect == "PreferNoSchedule" && !is_tolerated(taint, tolerations);
    i64::try_from(taints.iter().filter(asks).count()).unwrap_or(i64::MAX)
}

/// Whether the pod may run on a node that is marked as unschedulable.
pub(super) fn tolerates_unschedulable(tolerations: &[Toleration]) -> bool {
    let taint = Taint { key: UNSCHEDULABLE.into(), effect: "NoSchedule".into(), ..Taint::default() };
    is_tolerated(&taint, tolerations)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn tolerations(list: Value) -> Vec<Toleration> {
        serde_json::from_value(list).unwrap()
    }

    #[test]
    fn a_toleration_matches_key_effect_and_value() {
        let taint = |effect: &str| -> Taint {
            serde_json::from_value(json!({"key": "dedicated", "value": "db", "effect": effect})).unwrap()
        };
        for (list, keeps_away) in [
            (json!([]), true),
            (json!([{"operator": "Exists"}]), false),
            (json!([{"key": "dedicated", "operator": "Exists"}]), false),
            (json!([{"key": "dedicated", "value": "db"}]), false),
            (json!([{"key": "dedicated", "operator": "Equal", "value": "web"}]), true),
            (json!([{"key": "dedicated", "value": "db", "effect": "NoExecute"}]), true),
            (json!([{"key": "other", "operator": "Exists"}]), true),
        ] {
            assert_eq!(keep_away(&[taint("NoSchedule")], &tolerations(list.clone())), keeps_away, "{list}");
            let discouraged = discouraging(&[taint("PreferNoSchedule")], &tolerations(list.clone()));
            assert_eq!(discouraged, i64::from(keeps_away), "{list}");
        }
        assert!(!keep_away(&[taint("PreferNoSchedule")], &[]));
        assert!(tolerates_unschedulable(&tolerations(
            json!([{"key": UNSCHEDULABLE, "operator": "Exists", "effect": "NoSchedule"}])
        )));
    }
}
