//! What every cluster has: namespaces, configuration, quotas, leases and the like.

use serde_json::{Map, Value};

use super::Printer;
use super::row::{Row, condition, quantity, row, text};

pub(super) fn printer(resource: &str) -> Option<Printer> {
    Some(match resource {
        "namespaces" => namespace,
        "configmaps" => config_map,
        "secrets" => secret,
        "serviceaccounts" => service_account,
        "resourcequotas" => resource_quota,
        "componentstatuses" => component_status,
        _ => return None,
    })
}

fn namespace(it: &Row<'_>) -> Vec<Value> {
    row![it.name(), it.text("/status/phase"), it.age()]
}

fn config_map(it: &Row<'_>) -> Vec<Value> {
    row![it.name(), it.count("/data") + it.count("/binaryData"), it.age()]
}

fn secret(it: &Row<'_>) -> Vec<Value> {
    row![it.name(), it.text("/type"), it.count("/data"), it.age()]
}

fn service_account(it: &Row<'_>) -> Vec<Value> {
    row![it.name(), it.age()]
}

/// Kubernetes: what begins with `limits.` has a column of its own.
fn resource_quota(it: &Row<'_>) -> Vec<Value> {
    let (hard, used) = (it.at("/status/hard"), it.at("/status/used"));
    let mut names: Vec<_> = hard.as_object().into_iter().flat_map(Map::keys).collect();
    names.sort_unstable();
    let cell = |is_limit: bool| {
        let chosen = names.iter().filter(|name| name.starts_with("limits.") == is_limit);
        let shown = chosen.map(|name| {
            format!("{name}: {}/{}", quantity(&used[name.as_str()]), quantity(&hard[name.as_str()]))
        });
        shown.collect::<Vec<_>>().join(", ")
    };
    row![it.name(), cell(false), cell(true), it.age()]
}

fn component_status(it: &Row<'_>) -> Vec<Value> {
    let (status, message, error) = match condition(it.at("/conditions"), "Healthy") {
        None => ("Unknown", "", ""),
        Some(health) => {
            let status = if health["status"] == "True" { "Healthy" } else { "Unhealthy" };
            (status, text(&health["message"]), text(&health["error"]))
        }
    };
    row![it.name(), status, message, error]
}

pub(super) fn api_service(it: &Row<'_>) -> Vec<Value> {
    let service = match it.at("/spec/service") {
        Value::Null => "Local".to_owned(),
        service => format!("{}/{}", text(&service["namespace"]), text(&service["name"])),
    };
    let available = match condition(it.at("/status/conditions"), "Available") {
        None => "Unknown".to_owned(),
        Some(condition) => match (text(&condition["status"]), text(&condition["reason"])) {
            ("True", _) => "True".to_owned(),
            (status, "") => status.to_owned(),
            (status, reason) => format!("{status} ({reason})"),
        },
    };
    row![it.name(), service, available, it.age()]
}

pub(super) fn priority_class(it: &Row<'_>) -> Vec<Value> {
    row![it.name(), it.number("/value"), it.flag("/globalDefault"), it.age(), it.text("/preemptionPolicy"),]
}

pub(super) fn lease(it: &Row<'_>) -> Vec<Value> {
    row![it.name(), it.text("/spec/holderIdentity"), it.age()]
}

pub(super) fn runtime_class(it: &Row<'_>) -> Vec<Value> {
    row![it.name(), it.text("/handler"), it.age()]
}
