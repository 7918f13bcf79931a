//! A built-in object in, everything wrong with it out: in the real server's words, and in its order.
//!
//! | call | when |
//! |---|---|
//! | [`create`] | a new object, defaulted and named |
//! | [`update`] | an object and what was stored before |
//! | [`subresource_update`] | the same through `status`, `scale`, `finalize`, `resize`, … |
//! | [`warnings`] | what to tell the client though nothing is wrong |
//!
//! A kind is a line in [`registry`] and a file here. Its rules see the object alone: what takes the world to
//! judge (addresses that are taken, classes that do not exist) is the server's.

mod at;
mod file_path;
mod go_type;
mod internal;
mod metadata;
mod registry;
mod resource_names;
mod rollout;
mod schedule;
mod selector;
mod taken;
mod template;
#[cfg(test)]
mod tests;
mod unruled;
mod volume_source;
mod warnings;

mod admission_policy;
mod api_service;
mod autoscaler;
mod certificate_request;
mod condition;
mod config_map;
mod cron_job;
pub(crate) mod custom_resource_definition;
mod daemon_set;
mod deployment;
mod device;
mod endpoints;
mod event;
mod flow_control;
mod ingress;
mod job;
mod lease;
mod namespace;
mod network_policy;
mod node;
mod persistent_volume;
mod persistent_volume_claim;
mod pod;
mod priority_class;
mod quota;
mod rbac;
mod replication_controller;
mod review;
mod secret;
mod service;
mod stateful_set;
mod storage;
mod webhook;

use api::field::ErrorList;
use serde_json::Value;
use std::borrow::Cow;

use registry::Rules;

/// Everything wrong with a new object.
pub fn create(group: &str, version: &str, kind: &str, object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let Some(rules) = Rules::of(group, kind) else { return errors };
    let object = &*judged(group, version, kind, object);
    if !rules.is_refused_first(object, None, &mut errors) {
        rules.create(object, &mut errors);
        if rules.is_unruled() {
            unruled::check(group, version, kind, object, &mut errors);
        }
        if errors.is_empty() {
            rules.create_of_any_kind(object, &mut errors);
        }
    }
    show_values(group, version, kind, &mut errors);
    errors
}

/// Everything wrong with an object that replaces another. What does not change may stay as bad as it was where
/// the real server lets it.
pub fn update(group: &str, version: &str, kind: &str, new: &Value, old: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let Some(rules) = Rules::of(group, kind) else { return errors };
    let (new, old) = (&*judged(group, version, kind, new), &*judged(group, version, kind, old));
    if !rules.is_refused_first(new, Some(old), &mut errors) {
        rules.update_of_any_kind(new, old, &mut errors);
        rules.update(new, old, &mut errors);
        if rules.is_unruled() {
            unruled::check(group, version, kind, new, &mut errors);
        }
    }
    show_values(group, version, kind, &mut errors);
    errors
}

/// The same for a write to a subresource. `kind` is that of the object, not of what the client sent.
pub fn subresource_update(
    group: &str,
    version: &str,
    kind: &str,
    subresource: &str,
    new: &Value,
    old: &Value,
) -> ErrorList {
    let mut errors = ErrorList::new();
    let Some(rules) = Rules::of(group, kind) else { return errors };
    rules.update_of_any_kind(new, old, &mut errors);
    rules.subresource(subresource, new, old, &mut errors);
    show_values(group, version, kind, &mut errors);
    errors
}

/// The form in which an object is judged. Kubernetes: its internal one, which for autoscalers is like `v2`.
fn judged<'o>(group: &str, version: &str, kind: &str, object: &'o Value) -> Cow<'o, Value> {
    match judged_version(group, version, kind) {
        same if same == version => Cow::Borrowed(object),
        other => Cow::Owned(crate::convert::convert(object.clone(), (group, version), (group, other), kind)),
    }
}

fn judged_version<'v>(group: &str, version: &'v str, kind: &str) -> &'v str {
    match (group, version, kind) {
        ("autoscaling", "v1", "HorizontalPodAutoscaler") => "v2",
        _ => version,
    }
}

fn show_values(group: &str, version: &str, kind: &str, errors: &mut ErrorList) {
    go_type::show_values(group, judged_version(group, version, kind), kind, errors);
}

/// What a client should hear about an object that is accepted, [`deprecation`] included. `old` is what an update
/// replaces.
pub fn warnings(group: &str, version: &str, kind: &str, new: &Value, old: Option<&Value>) -> Vec<String> {
    let mut warnings = Vec::from_iter(deprecation(group, version, kind).map(str::to_owned));
    warnings.extend(warnings::of(group, kind, new, old));
    warnings
}

/// What a client should hear about a kind whatever it does with it, reads included.
pub fn deprecation(group: &str, version: &str, kind: &str) -> Option<&'static str> {
    warnings::deprecation(group, version, kind)
}
