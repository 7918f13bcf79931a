//! A field of an object as the text that a selector compares with.

use std::borrow::Cow;

use serde_json::Value;

pub(super) fn of<'a>(group: &str, resource: &str, field: &str, object: &'a Value) -> Cow<'a, str> {
    match (group, resource, field) {
        ("", "pods", "spec.hostNetwork") | ("", "nodes", "spec.unschedulable") => {
            let flag = at(object, field).as_bool().unwrap_or_default();
            Cow::Borrowed(if flag { "true" } else { "false" })
        }
        ("", "pods", "status.podIP") => text(&at(object, "status.podIPs")[0]["ip"]),
        // Kubernetes: accepted, but never set.
        ("", "pods", "status.podIPs") => Cow::Borrowed(""),
        ("", "replicationcontrollers", "status.replicas") => count(at(object, field)),
        ("batch", "jobs", "status.successful") => count(at(object, "status.succeeded")),
        ("" | "events.k8s.io", "events", _) => event(field, object),
        _ => text(at(object, field)),
    }
}

/// The two faces of an event have different names for the same.
fn event<'a>(field: &str, object: &'a Value) -> Cow<'a, str> {
    let either = |core: &str, newer: &str| {
        let value = at(object, core);
        if value.is_null() { at(object, newer) } else { value }
    };
    let controller = || text(either("reportingComponent", "reportingController"));
    if let Some((_, member)) =
        field.split_once('.').filter(|(of, _)| matches!(*of, "involvedObject" | "regarding"))
    {
        return text(&either("involvedObject", "regarding")[member]);
    }
    match field {
        "reportingComponent" | "reportingController" => controller(),
        "source" => match text(&either("source", "deprecatedSource")["component"]) {
            component if component.is_empty() => controller(),
            component => component,
        },
        _ => text(at(object, field)),
    }
}

fn at<'a>(object: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(object, |value, member| &value[member])
}

fn text(value: &Value) -> Cow<'_, str> {
    Cow::Borrowed(value.as_str().unwrap_or_default())
}

fn count(value: &Value) -> Cow<'_, str> {
    Cow::Owned(value.as_i64().unwrap_or_default().to_string())
}
