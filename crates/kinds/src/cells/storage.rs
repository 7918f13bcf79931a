//! Volumes, claims and classes, and the drivers behind them.

use api::object;
use serde_json::Value;

use super::Printer;
use super::row::{NONE, Row, UNSET, joined, or, quantity, row, texts};

/// Claims and volumes said their class here before they had a field for it; it still counts first.
const CLASS: &str = "volume.beta.kubernetes.io/storage-class";

pub(super) fn printer(resource: &str) -> Option<Printer> {
    Some(match resource {
        "storageclasses" => storage_class,
        "volumeattachments" => attachment,
        "volumeattributesclasses" => attributes_class,
        "csidrivers" => driver,
        "csinodes" => driver_node,
        _ => return None,
    })
}

pub(super) fn volume(it: &Row<'_>) -> Vec<Value> {
    let claim = match it.at("/spec/claimRef") {
        Value::Null => String::new(),
        _ => format!("{}/{}", it.text("/spec/claimRef/namespace"), it.text("/spec/claimRef/name")),
    };
    row![
        it.name(),
        quantity(it.at("/spec/capacity/storage")),
        access_modes(it.at("/spec/accessModes")),
        it.text("/spec/persistentVolumeReclaimPolicy"),
        phase(it),
        claim,
        class(it),
        it.at("/spec/volumeAttributesClassName").as_str().unwrap_or(UNSET),
        it.text("/status/reason"),
        it.age(),
        it.at("/spec/volumeMode").as_str().unwrap_or(UNSET),
    ]
}

pub(super) fn claim(it: &Row<'_>) -> Vec<Value> {
    let (capacity, modes) = match it.text("/spec/volumeName") {
        "" => (String::new(), String::new()),
        _ => (quantity(it.at("/status/capacity/storage")), access_modes(it.at("/status/accessModes"))),
    };
    row![
        it.name(),
        phase(it),
        it.text("/spec/volumeName"),
        capacity,
        modes,
        class(it),
        it.at("/spec/volumeAttributesClassName").as_str().unwrap_or(UNSET),
        it.age(),
        it.at("/spec/volumeMode").as_str().unwrap_or(UNSET),
    ]
}

fn phase<'a>(it: &Row<'a>) -> &'a str {
    if it.is_deleting() { "Terminating" } else { it.text("/status/phase") }
}

fn class<'a>(it: &Row<'a>) -> &'a str {
    object::annotation(it.object, CLASS).unwrap_or(it.text("/spec/storageClassName"))
}

fn access_modes(of: &Value) -> String {
    let given = texts(of);
    let short = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let shown: Vec<_> = short.iter().filter(|(mode, _)| given.contains(mode)).map(|(_, it)| *it).collect();
    shown.join(",")
}

fn storage_class(it: &Row<'_>) -> Vec<Value> {
    let marks = ["storageclass.kubernetes.io", "storageclass.beta.kubernetes.io"];
    let is_default = marks
        .iter()
        .any(|mark| object::annotation(it.object, &format!("{mark}/is-default-class")) == Some("true"));
    row![
        format!("{}{}", it.name(), if is_default { " (default)" } else { "" }),
        it.text("/provisioner"),
        it.at("/reclaimPolicy").as_str().unwrap_or("Delete"),
        it.at("/volumeBindingMode").as_str().unwrap_or("Immediate"),
        it.flag("/allowVolumeExpansion"),
        it.age(),
    ]
}

fn attachment(it: &Row<'_>) -> Vec<Value> {
    row![
        it.name(),
        it.text("/spec/attacher"),
        it.text("/spec/source/persistentVolumeName"),
        it.text("/spec/nodeName"),
        it.flag("/status/attached"),
        it.age(),
    ]
}

fn attributes_class(it: &Row<'_>) -> Vec<Value> {
    row![it.name(), it.text("/driverName"), it.age()]
}

fn driver(it: &Row<'_>) -> Vec<Value> {
    let tokens = it.at("/spec/tokenRequests");
    let audiences = if tokens.is_null() { UNSET.to_owned() } else { joined(tokens, "audience") };
    row![
        it.name(),
        it.at("/spec/attachRequired").as_bool().unwrap_or(true),
        it.flag("/spec/podInfoOnMount"),
        it.flag("/spec/storageCapacity"),
        audiences,
        it.flag("/spec/requiresRepublish"),
        or(&texts(it.at("/spec/volumeLifecycleModes")).join(","), NONE),
        it.age(),
    ]
}

fn driver_node(it: &Row<'_>) -> Vec<Value> {
    row![it.name(), it.count("/spec/drivers"), it.age()]
}
