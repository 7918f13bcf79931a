//! Autoscalers with what they measure, and disruption budgets.

use api::object;
use serde_json::Value;

use crate::convert::convert;

use super::row::{NONE, Row, UNKNOWN, UNSET, quantity, row, text};

/// How many metrics a cell shows.
const SHOWN: usize = 2;

pub(super) fn autoscaler(it: &Row<'_>) -> Vec<Value> {
    // Kubernetes prints its internal type, which is like `v2`.
    if object::api_version(it.object) == "autoscaling/v1" {
        let (from, to) = (("autoscaling", "v1"), ("autoscaling", "v2"));
        let object = convert(it.object.clone(), from, to, "HorizontalPodAutoscaler");
        return autoscaler(&Row { object: &object, now: it.now });
    }
    let least = it.at("/spec/minReplicas").as_i64();
    row![
        it.name(),
        format!("{}/{}", it.text("/spec/scaleTargetRef/kind"), it.text("/spec/scaleTargetRef/name")),
        metrics(it),
        least.map_or(UNSET.to_owned(), |least| least.to_string()),
        it.number("/spec/maxReplicas"),
        it.number("/status/currentReplicas"),
        it.age(),
    ]
}

fn metrics(it: &Row<'_>) -> String {
    let (specs, statuses) = (it.items("/spec/metrics"), it.items("/status/currentMetrics"));
    if specs.is_empty() {
        return NONE.to_owned();
    }
    let list: Vec<_> = specs
        .iter()
        .enumerate()
        .map(|(index, spec)| metric(spec, statuses.get(index).unwrap_or(&Value::Null)))
        .collect();
    match list.len() {
        count if count > SHOWN => format!("{} + {} more...", list[..SHOWN].join(", "), count - SHOWN),
        _ => list.join(", "),
    }
}

/// Kubernetes: a resource without a status of its own kind is unknown; an average that is not reported is 0 for
/// pods and resources, and unknown for the others.
fn metric(spec: &Value, status: &Value) -> String {
    let (member, is_resource) = match text(&spec["type"]) {
        "External" => ("external", false),
        "Object" => ("object", false),
        "Pods" => ("pods", false),
        "Resource" => ("resource", true),
        "ContainerResource" => ("containerResource", true),
        _ => return "<unknown type>".to_owned(),
    };
    let (target, current) = (&spec[member]["target"], &status[member]["current"]);
    let is_known = status[member].is_object();
    let amount = |of: &Value, is_known: bool| if is_known { quantity(of) } else { UNKNOWN.to_owned() };
    let has_average = !target["averageValue"].is_null();
    let average = quantity(&target["averageValue"]);
    match member {
        "pods" => format!("{}/{average}", amount(&current["averageValue"], is_known)),
        _ if is_resource => {
            let name = text(&spec[member]["name"]);
            if has_average {
                return format!("{name}: {}/{average}", amount(&current["averageValue"], is_known));
            }
            let used = percent(current["averageUtilization"].as_i64(), UNKNOWN);
            format!("{name}: {used}/{}", percent(target["averageUtilization"].as_i64(), "<auto>"))
        }
        _ if has_average => {
            let current = &current["averageValue"];
            format!("{}/{average} (avg)", amount(current, !current.is_null()))
        }
        _ => format!("{}/{}", amount(&current["value"], is_known), quantity(&target["value"])),
    }
}

fn percent(value: Option<i64>, otherwise: &str) -> String {
    value.map_or(otherwise.to_owned(), |value| format!("{value}%"))
}

pub(super) fn disruption_budget(it: &Row<'_>) -> Vec<Value> {
    let bound = |pointer: &str| match it.at(pointer) {
        Value::Number(number) => number.to_string(),
        Value::String(percent) => percent.clone(),
        _ => "N/A".to_owned(),
    };
    row![
        it.name(),
        bound("/spec/minAvailable"),
        bound("/spec/maxUnavailable"),
        it.number("/status/disruptionsAllowed"),
        it.age(),
    ]
}
