//! Checks of volume types.

use super::{Pod, Violation, counted, distinct, named, quoted, text};
use serde_json::Value;

const ALLOWED: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

const FORBIDDEN: [&str; 21] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "gitRepo",
    "nfs",
    "iscsi",
    "glusterfs",
    "rbd",
    "flexVolume",
    "cinder",
    "cephfs",
    "flocker",
    "fc",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "storageos",
];

fn volumes<'a>(pod: Pod<'a>) -> impl Iterator<Item = &'a Value> {
    pod.spec["volumes"].as_array().into_iter().flatten()
}

pub(super) fn host_paths(pod: Pod<'_>) -> Option<Violation> {
    let bad = volumes(pod).filter(|volume| !volume["hostPath"].is_null());
    let bad: Vec<_> = bad.map(|volume| text(&volume["name"])).collect();
    (!bad.is_empty()).then(|| Violation::new("hostPath volumes", named("volume", bad)))
}

pub(super) fn restricted(pod: Pod<'_>) -> Option<Violation> {
    let has = |volume: &Value, sort: &str| !volume[sort].is_null();
    let bad: Vec<_> = volumes(pod).filter(|volume| !ALLOWED.iter().any(|sort| has(volume, sort))).collect();
    if bad.is_empty() {
        return None;
    }
    let sort = |volume: &&Value| FORBIDDEN.into_iter().find(|sort| has(volume, sort)).unwrap_or("unknown");
    let sorts = distinct(bad.iter().map(sort));
    let detail = format!(
        "{} {} {} {}",
        named("volume", bad.iter().map(|volume| text(&volume["name"]))),
        if bad.len() == 1 { "uses" } else { "use" },
        counted("restricted volume type", sorts.len()),
        quoted(sorts)
    );
    Some(Violation::new("restricted volume types", detail))
}
