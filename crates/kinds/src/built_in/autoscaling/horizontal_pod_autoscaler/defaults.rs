//! What an autoscaler measures and how fast it scales, where only a part of it is said.

use serde_json::{Value, json};

use super::convert::{DEFAULT_PERCENTAGE, metrics_on_the_way};
use crate::defaults::member::{self, Members};

/// Kubernetes: the first version is completed on its way to the others, which alone know whether anything is measured.
pub(super) fn default_v1(autoscaler: &mut Members) {
    let metrics = metrics_on_the_way(autoscaler);
    let spec = member::made(autoscaler, "spec");
    if !metrics {
        spec.entry("targetCPUUtilizationPercentage").or_insert_with(|| DEFAULT_PERCENTAGE.into());
    }
}

pub(super) fn default_behavior(behavior: &mut Members) {
    let up = member::made(behavior, "scaleUp");
    member::default_to(up, "stabilizationWindowSeconds", 0);
    up.entry("selectPolicy").or_insert_with(|| "Max".into());
    if !up.contains_key("policies") {
        let policies = json!([
            {"type": "Pods", "value": 4, "periodSeconds": 15},
            {"type": "Percent", "value": 100, "periodSeconds": 15},
        ]);
        up.insert("policies".to_owned(), policies);
    }
    // The window for scaling down is a flag of the controller, so it is not filled in.
    let down = member::made(behavior, "scaleDown");
    down.entry("selectPolicy").or_insert_with(|| "Max".into());
    if !down.contains_key("policies") {
        let policies = json!([{"type": "Percent", "value": 100, "periodSeconds": 15}]);
        down.insert("policies".to_owned(), policies);
    }
}

/// The CPU, where nothing is measured.
pub(super) fn default_metrics() -> Value {
    let target = json!({"type": "Utilization", "averageUtilization": DEFAULT_PERCENTAGE});
    json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}])
}
