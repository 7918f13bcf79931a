//! Two narrow windows on a running pod: its resources, and the containers that help to debug it.

use serde_json::Value;

use crate::defaults::member::{self, Members};
use crate::strategy::disabled::EACH;
use crate::strategy::subresource::SubresourceRules;
use crate::strategy::{Circumstances, StatusMetadata, metadata};

const CONTAINERS: [&str; 2] = ["containers", "initContainers"];

pub(super) const SUBRESOURCES: &[SubresourceRules] = &[
    SubresourceRules::writes_only(
        "ephemeralcontainers",
        ephemeral_containers,
        &[&["spec", "ephemeralContainers"]],
    )
    .counts_generation(),
    SubresourceRules::writes_only(
        "resize",
        resize,
        &[
            &["spec", "containers", EACH, "resources"],
            &["spec", "containers", EACH, "resizePolicy"],
            &["spec", "initContainers", EACH, "resources"],
            &["spec", "initContainers", EACH, "resizePolicy"],
        ],
    )
    .counts_generation(),
];

/// Only resources and resize policies of the containers that there are come through, and those of the pod.
fn resize(pod: &mut Members, old: &Members, _: &Circumstances<'_>) {
    let nothing = Members::new();
    let before = member::object(old, "spec").unwrap_or(&nothing);
    let new = member::object(pod, "spec").cloned().unwrap_or_default();
    let count = |spec: &Members, list: &str| member::items(spec, list).count();
    if CONTAINERS.iter().any(|list| count(&new, list) != count(before, list)) {
        return;
    }
    let mut spec = before.clone();
    carry(&mut spec, &new, "resources");
    for list in CONTAINERS {
        let resized = resized(&new, before, list);
        if !resized.is_empty() {
            spec.insert(list.to_owned(), resized.into());
        }
    }
    replace(pod, old, spec);
}

fn ephemeral_containers(pod: &mut Members, old: &Members, _: &Circumstances<'_>) {
    let new = member::object(pod, "spec").cloned().unwrap_or_default();
    let mut spec = member::object(old, "spec").cloned().unwrap_or_default();
    carry(&mut spec, &new, "ephemeralContainers");
    replace(pod, old, spec);
}

/// The containers as they were, resized; as they came where they are others, for validation to refuse.
fn resized(new: &Members, before: &Members, list: &str) -> Vec<Value> {
    let is_same = |(new, old): (&Members, &Members)| member::text(new, "name") == member::text(old, "name");
    if !member::items(new, list).zip(member::items(before, list)).all(is_same) {
        return member::items(new, list).cloned().map(Value::Object).collect();
    }
    let pairs = member::items(new, list).zip(member::items(before, list));
    pairs
        .map(|(new, old)| {
            let mut container = old.clone();
            carry(&mut container, new, "resources");
            carry(&mut container, new, "resizePolicy");
            Value::Object(container)
        })
        .collect()
}

fn carry(to: &mut Members, from: &Members, name: &str) {
    match from.get(name) {
        Some(value) => drop(to.insert(name.to_owned(), value.clone())),
        None => drop(to.remove(name)),
    }
}

fn replace(pod: &mut Members, old: &Members, spec: Members) {
    pod.insert("spec".to_owned(), spec.into());
    carry(pod, old, "status");
    let mut whole = Value::Object(std::mem::take(pod));
    metadata::keep_on_status(StatusMetadata::Little, &mut whole, &Value::Object(old.clone()));
    if let Value::Object(members) = whole {
        *pod = members;
    }
}
