//! Devices that drivers offer and pods claim.

use serde_json::Value;

use super::Printer;
use super::row::{Row, row};

pub(super) fn printer(resource: &str) -> Option<Printer> {
    Some(match resource {
        "deviceclasses" | "resourceclaimtemplates" => named,
        "resourceclaims" => claim,
        "resourceslices" => slice,
        _ => return None,
    })
}

fn named(it: &Row<'_>) -> Vec<Value> {
    row![it.name(), it.age()]
}

fn claim(it: &Row<'_>) -> Vec<Value> {
    let is_allocated = it.at("/status/allocation").is_object();
    let is_reserved = !it.items("/status/reservedFor").is_empty();
    let states = [
        ("deleted", it.is_deleting()),
        ("pending", !is_allocated && !it.is_deleting()),
        ("allocated", is_allocated),
        ("reserved", is_allocated && is_reserved),
    ];
    let states: Vec<_> = states.iter().filter(|(_, holds)| *holds).map(|(state, _)| *state).collect();
    row![it.name(), states.join(","), it.age()]
}

fn slice(it: &Row<'_>) -> Vec<Value> {
    row![it.name(), it.text("/spec/nodeName"), it.text("/spec/driver"), it.text("/spec/pool/name"), it.age(),]
}
