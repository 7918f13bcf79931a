//! Who may do what, and how soon: role bindings, certificates, priority and fairness.

use serde_json::Value;

use super::age::span;
use super::row::{NONE, Row, condition, row, text};

pub(super) fn role_binding(it: &Row<'_>) -> Vec<Value> {
    let subjects = |kind: &'static str| it.items("/subjects").iter().filter(move |it| it["kind"] == kind);
    let names =
        |kind: &'static str| subjects(kind).map(|it| text(&it["name"])).collect::<Vec<_>>().join(", ");
    let accounts: Vec<_> = subjects("ServiceAccount")
        .map(|it| format!("{}/{}", text(&it["namespace"]), text(&it["name"])))
        .collect();
    row![
        it.name(),
        format!("{}/{}", it.text("/roleRef/kind"), it.text("/roleRef/name")),
        it.age(),
        names("User"),
        names("Group"),
        accounts.join(", "),
    ]
}

pub(super) fn signing_request(it: &Row<'_>) -> Vec<Value> {
    let requested = it.at("/spec/expirationSeconds").as_i64();
    row![
        it.name(),
        it.age(),
        it.text_or("/spec/signerName", NONE),
        it.text("/spec/username"),
        requested.map_or(NONE.to_owned(), span),
        signing_state(it),
    ]
}

fn signing_state(it: &Row<'_>) -> String {
    let has = |kind: &str| condition(it.at("/status/conditions"), kind).is_some();
    let verdict = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (false, true) => "Approved",
        (false, false) => "Pending",
    };
    let failed = if has("Failed") { ",Failed" } else { "" };
    let issued = if it.text("/status/certificate").is_empty() { "" } else { ",Issued" };
    format!("{verdict}{failed}{issued}")
}

pub(super) fn flow_schema(it: &Row<'_>) -> Vec<Value> {
    let dangling = condition(it.at("/status/conditions"), "Dangling");
    let method = it.at("/spec/distinguisherMethod");
    row![
        it.name(),
        it.text("/spec/priorityLevelConfiguration/name"),
        it.number("/spec/matchingPrecedence"),
        if method.is_null() { NONE } else { text(&method["type"]) },
        it.age(),
        dangling.map_or("?", |it| text(&it["status"])),
    ]
}

pub(super) fn priority_level(it: &Row<'_>) -> Vec<Value> {
    let limited = it.at("/spec/limited");
    let queuing = &limited["limitResponse"]["queuing"];
    let number_of = |of: &Value, member: &str| match of {
        Value::Null => Value::from(NONE),
        of => Value::from(of[member].as_i64().unwrap_or_default()),
    };
    row![
        it.name(),
        it.text("/spec/type"),
        number_of(limited, "nominalConcurrencyShares"),
        number_of(queuing, "queues"),
        number_of(queuing, "handSize"),
        number_of(queuing, "queueLengthLimit"),
        it.age(),
    ]
}
