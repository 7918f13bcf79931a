//! What `kubectl get` shows of an autoscaler: its target, its metrics and its replicas.

use serde_json::Value;

use crate::cells::column::{AGE, Cell, NAME, TableColumn, string};
use crate::cells::row::{NONE, Row, UNKNOWN, UNSET, quantity, text};

/// How many metrics a cell shows.
const SHOWN: usize = 2;

pub(super) const COLUMNS: &[TableColumn] = &[
    NAME,
    string("Reference", Cell::Computed(|it| reference(it).into())),
    string("Targets", Cell::Computed(|it| metrics(it).into())),
    string("MinPods", Cell::Computed(|it| min_pods(it).into())),
    string("MaxPods", Cell::Number("/spec/maxReplicas")),
    string("Replicas", Cell::Number("/status/currentReplicas")),
    AGE,
];

fn reference(autoscaler: &Row<'_>) -> String {
    let target = |member: &str| autoscaler.text(&format!("/spec/scaleTargetRef/{member}"));
    format!("{}/{}", target("kind"), target("name"))
}

fn min_pods(autoscaler: &Row<'_>) -> String {
    let least = autoscaler.at("/spec/minReplicas").as_i64();
    least.map_or_else(|| UNSET.to_owned(), |least| least.to_string())
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
