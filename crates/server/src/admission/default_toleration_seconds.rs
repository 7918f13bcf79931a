//! DefaultTolerationSeconds: pods tolerate a node that is not ready or unreachable for five minutes.

use super::{Operation, Review};
use serde_json::{Value, json};

// Kubernetes: --default-not-ready-toleration-seconds and --default-unreachable-toleration-seconds.
const SECONDS: u32 = 300;

pub(super) fn fill(review: &mut Review<'_>) {
    if review.operation == Operation::Delete || !review.is_on("", "pods") {
        return;
    }
    let said = review.object["spec"]["tolerations"].as_array().cloned().unwrap_or_default();
    let mut tolerations = said.clone();
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        if !said.iter().any(|toleration| covers(toleration, key)) {
            tolerations.push(json!({
                "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": SECONDS,
            }));
        }
    }
    review.object["spec"]["tolerations"] = tolerations.into();
}

fn covers(toleration: &Value, key: &str) -> bool {
    let is = |field: &str, wanted: &str| {
        let said = toleration[field].as_str().unwrap_or_default();
        said.is_empty() || said == wanted
    };
    is("key", key) && is("effect", "NoExecute")
}
