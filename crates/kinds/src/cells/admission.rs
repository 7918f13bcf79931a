//! Webhooks, and policies with their bindings.

use serde_json::Value;

use super::Printer;
use super::row::{Row, UNSET, row, text};
use super::selector::debug;

pub(super) fn printer(resource: &str) -> Option<Printer> {
    Some(match resource {
        "mutatingwebhookconfigurations" | "validatingwebhookconfigurations" => webhooks,
        "mutatingadmissionpolicies" => mutating_policy,
        "validatingadmissionpolicies" => validating_policy,
        "mutatingadmissionpolicybindings" | "validatingadmissionpolicybindings" => binding,
        _ => return None,
    })
}

fn webhooks(it: &Row<'_>) -> Vec<Value> {
    row![it.name(), it.count("/webhooks"), it.age()]
}

fn mutating_policy(it: &Row<'_>) -> Vec<Value> {
    row![it.name(), it.count("/spec/mutations"), parameter_kind(it), it.age()]
}

fn validating_policy(it: &Row<'_>) -> Vec<Value> {
    row![it.name(), it.count("/spec/validations"), parameter_kind(it), it.age()]
}

fn parameter_kind(it: &Row<'_>) -> String {
    match it.at("/spec/paramKind") {
        Value::Null => UNSET.to_owned(),
        kind => format!("{}/{}", text(&kind["apiVersion"]), text(&kind["kind"])),
    }
}

fn binding(it: &Row<'_>) -> Vec<Value> {
    let reference = it.at("/spec/paramRef");
    let parameter = match (text(&reference["namespace"]), text(&reference["name"])) {
        (_, "") if reference["selector"].is_object() => debug(&reference["selector"]),
        (_, "") => UNSET.to_owned(),
        ("", name) => format!("*/{name}"),
        (namespace, name) => format!("{namespace}/{name}"),
    };
    row![it.name(), it.text("/spec/policyName"), parameter, it.age()]
}
