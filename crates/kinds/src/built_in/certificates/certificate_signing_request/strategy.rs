//! Who asks for a certificate is known, not told; and who approves cannot sign.

use serde_json::{Value, json};
use std::collections::HashMap;

use crate::defaults::member::{self, Members};
use crate::strategy::Circumstances;
use crate::strategy::prepare::keep;

/// What the server says of the caller, whatever the caller says.
const CALLER: [&str; 4] = ["username", "uid", "groups", "extra"];
/// Decisions that a signer has to leave as they are.
const DECISIONS: [&str; 2] = ["Approved", "Denied"];

pub(super) fn prepare_create(request: &mut Members, with: &Circumstances<'_>) {
    let spec = member::made(request, "spec");
    let user = (with.user)();
    for name in CALLER {
        keep(spec, &user, name);
        if !member::is_set(spec, name) {
            spec.remove(name);
        }
    }
}

/// What was asked for stays.
pub(super) fn prepare_update(request: &mut Members, old: &Members, _: &Circumstances<'_>) {
    match old.get("spec") {
        Some(spec) => drop(request.insert("spec".to_owned(), spec.clone())),
        None => drop(request.remove("spec")),
    }
}

pub(super) fn prepare_status(request: &mut Members, old: &Members, with: &Circumstances<'_>) {
    for decision in DECISIONS {
        keep_decision(request, old, decision);
    }
    date_conditions(request, old, with);
}

/// Only the conditions are written.
pub(super) fn prepare_approval(request: &mut Members, old: &Members, with: &Circumstances<'_>) {
    date_conditions(request, old, with);
    let conditions = member::present(request, "status").and_then(|status| status.remove("conditions"));
    for name in ["spec", "status"] {
        match old.get(name) {
            Some(value) => drop(request.insert(name.to_owned(), value.clone())),
            None => drop(request.remove(name)),
        }
    }
    match conditions {
        Some(conditions) => {
            member::made(request, "status").insert("conditions".to_owned(), conditions);
        }
        None => {
            if let Some(status) = member::present(request, "status") {
                status.remove("conditions");
            }
        }
    }
}

/// Where as many conditions of a type came as there were, those that were stay.
fn keep_decision(request: &mut Members, old: &Members, decision: &str) {
    let before: Vec<Members> =
        conditions(old).filter(|condition| member::text(condition, "type") == decision).cloned().collect();
    let Some(status) = member::present(request, "status") else { return };
    let mut now: Vec<&mut Members> = member::items_mut(status, "conditions")
        .filter(|condition| member::text(condition, "type") == decision)
        .collect();
    if now.len() == before.len() {
        now.iter_mut().zip(before).for_each(|(now, before)| **now = before);
    }
}

fn date_conditions(request: &mut Members, old: &Members, with: &Circumstances<'_>) {
    let now = with.now.to_string();
    let Some(status) = member::present(request, "status") else { return };
    let state = |condition: &Members| ["type", "status"].map(|name| condition.get(name).cloned());
    // Of conditions with the same type and status, the first counts.
    let mut before = HashMap::new();
    for condition in conditions(old).filter(|it| member::is_set(it, "lastTransitionTime")) {
        before.entry(state(condition)).or_insert_with(|| condition["lastTransitionTime"].clone());
    }
    for condition in member::items_mut(status, "conditions") {
        member::default_to(condition, "lastUpdateTime", now.clone());
        let since = before.get(&state(condition)).cloned();
        member::default_to(condition, "lastTransitionTime", since.unwrap_or_else(|| json!(now)));
    }
}

fn conditions(request: &Members) -> impl Iterator<Item = &Members> {
    let status = request.get("status").and_then(Value::as_object);
    status.into_iter().flat_map(|status| member::items(status, "conditions"))
}
