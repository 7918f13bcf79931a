//! A pod that wants to be near or far from others like itself: its own labels become part of the selectors.

use serde_json::{Value, json};

use crate::defaults::member::{self, Members};

const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

pub(super) fn select_by_own_labels(pod: &mut Members) {
    let labels = pod.get("metadata").and_then(|metadata| metadata.get("labels")).and_then(Value::as_object);
    let labels = labels.cloned().unwrap_or_default();
    let Some(spec) = member::present(pod, "spec") else { return };
    if let Some(affinity) = member::present(spec, "affinity") {
        for sort in ["podAffinity", "podAntiAffinity"] {
            let Some(affinity) = member::present(affinity, sort) else { continue };
            for weighted in member::items_mut(affinity, PREFERRED) {
                if let Some(term) = member::present(weighted, "podAffinityTerm") {
                    extend(term, &labels);
                }
            }
            member::items_mut(affinity, REQUIRED).for_each(|term| extend(term, &labels));
        }
    }
    member::items_mut(spec, "topologySpreadConstraints").for_each(|constraint| extend(constraint, &labels));
}

/// No selector selects nothing, and so stays as it is.
fn extend(term: &mut Members, labels: &Members) {
    let mut added = Vec::new();
    for (keys, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
        let keys = term.get(keys).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        added.extend(keys.filter_map(|key| {
            let value = labels.get(key)?;
            Some(json!({"key": key, "operator": operator, "values": [value]}))
        }));
    }
    let Some(selector) = member::present(term, "labelSelector").filter(|_| !added.is_empty()) else { return };
    member::list(selector, "matchExpressions").append(&mut added);
}
