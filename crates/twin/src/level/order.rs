//! Sorts what is in hash map order or in the order of time.

use super::quoted;
use crate::json::Json;

/// Precedes the causes in a message that repeats them.
const INVALID: &str = " is invalid: ";

/// Kubernetes sorts them by time in whole seconds, which may tick between different writes on two servers.
pub(super) fn sort_managers(value: &mut Json) {
    if let Json::List(entries) = value {
        entries.sort_by_cached_key(|entry| {
            let part = |name: &str| entry.text_at(&[name]).unwrap_or_default();
            (part("manager"), part("operation"), part("subresource"), part("apiVersion"))
        });
    }
}

/// kube-apiserver validates the members of custom resources in hash map order. The message repeats the
/// causes.
pub(super) fn sort_causes(status: &mut Json) {
    // A status in protobuf is the message inside an envelope.
    if let Some(message @ Json::Object(_)) = status.get_mut("message") {
        sort_causes(message);
    }
    let Some(Json::List(causes)) = status.get_mut("details").and_then(|it| it.get_mut("causes")) else {
        return;
    };
    causes.sort_by_cached_key(Json::to_string);
    // kube-apiserver repeats some of them.
    causes.dedup();
    if let Some(Json::Text(message)) = status.get_mut("message")
        && let Some(at) = message.find(INVALID)
    {
        message.replace_range(at + INVALID.len().., "{causes}");
    }
}

/// Sorts objects in the message of a rejected patch, and in its causes.
pub(super) fn sort_quoted(value: &mut Json) {
    match value {
        Json::Object(members) => {
            for (name, member) in members {
                match (name.as_str(), member.as_text()) {
                    ("message", Some(text)) if text.contains('{') => {
                        *member = Json::text(&quoted::sort_members(&text));
                    }
                    _ => sort_quoted(member),
                }
            }
        }
        Json::List(items) => items.iter_mut().for_each(sort_quoted),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::Text(_) => {}
    }
}

pub(super) fn sort_by_name(resources: &mut Json) {
    if let Json::List(resources) = resources {
        resources.sort_by_cached_key(|resource| resource.text_at(&["name"]));
    }
}

/// Sorts a list by creation if several objects have generated names, whose order is random.
pub(super) fn sort_generated(list: &mut Json) {
    // A list in protobuf is the message inside an envelope.
    if let Some(message @ Json::Object(_)) = list.get_mut("message") {
        sort_generated(message);
    }
    let name = |item: &Json| {
        let named = item.text_at(&["metadata", "name"]);
        named.or_else(|| item.text_at(&["object", "metadata", "name"])).unwrap_or_default()
    };
    for member in ["items", "rows"] {
        let Some(Json::List(items)) = list.get_mut(member) else { continue };
        if items.iter().filter(|item| name(item).starts_with("{generated")).count() > 1 {
            items.sort_by_cached_key(name);
        }
    }
}
