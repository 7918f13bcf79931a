//! TaintNodesByCondition: a new node gets the taint not-ready.

use super::{Operation, Review};
use serde_json::json;

pub(super) fn fill(review: &mut Review<'_>) {
    if review.operation != Operation::Create || !review.is_on("", "nodes") {
        return;
    }
    let own = json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"});
    let mut taints = review.object["spec"]["taints"].as_array().cloned().unwrap_or_default();
    let is_own = |key: &str, taint: &serde_json::Value| taint[key] == own[key];
    if !taints.iter().any(|taint| is_own("key", taint) && is_own("effect", taint)) {
        taints.push(own.clone());
        review.object["spec"]["taints"] = taints.into();
    }
}
