//! What holds the deletion of an object up, and who can end it.

use super::story::{Evidence, label, time};
use crate::client::age;
use serde_json::Value;
use world::Timestamp;

/// How many objects are named.
const MAX_NAMES: usize = 5;

/// Finalizers of Kubernetes, and when they are removed.
const KNOWN: [(&str, &str); 7] = [
    ("kubernetes.io/pvc-protection", "removed when no pod uses the claim any more"),
    ("kubernetes.io/pv-protection", "removed when no claim is bound to the volume any more"),
    ("orphan", "removed by the garbage collector when nothing names this as its owner any more"),
    (
        "service.kubernetes.io/load-balancer-cleanup",
        "removed by the cloud's controller when its load balancer is gone",
    ),
    ("customresourcecleanup.apiextensions.k8s.io", "removed when all objects of the definition are gone"),
    ("batch.kubernetes.io/job-tracking", "removed by the job controller when it has counted the pod"),
    ("kubernetes", "removed by the namespace controller when the namespace is empty"),
];

/// Each thing that the deletion waits for; empty if the object is not being deleted.
pub(super) fn holders(evidence: &Evidence, now: Timestamp) -> Vec<String> {
    let subject = &evidence.subject;
    let metadata = &subject["metadata"];
    let Some(deadline) = time(&metadata["deletionTimestamp"]) else { return Vec::new() };
    let mut holders = Vec::new();
    let left = deadline.duration_since(now).as_secs();
    if left > 0 {
        holders.push(format!("it has {} left to shut down", age::short(left)));
    }
    let names = |value: &Value| {
        let names = value.as_array().into_iter().flatten();
        names.filter_map(|name| name.as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    let own = if subject["kind"] == "Namespace" { names(&subject["spec"]["finalizers"]) } else { Vec::new() };
    for finalizer in names(&metadata["finalizers"]).into_iter().chain(own) {
        holders.push(tell(&finalizer, evidence));
    }
    if subject["kind"] == "Namespace" {
        let conditions = subject["status"]["conditions"].as_array().into_iter().flatten();
        let told = conditions.filter(|condition| condition["status"] == "True");
        holders.extend(told.filter_map(|condition| condition["message"].as_str().map(str::to_owned)));
    }
    if holders.is_empty() {
        let gone = age::short(now.duration_since(deadline).as_secs());
        holders.push(format!("nothing is known to hold it up, and its time ended {gone} ago"));
    }
    holders
}

fn tell(finalizer: &str, evidence: &Evidence) -> String {
    if finalizer == "foregroundDeletion" {
        return format!("finalizer foregroundDeletion waits for what it owns: {}", dependents(evidence));
    }
    if let Some((_, when)) = KNOWN.iter().find(|(name, _)| *name == finalizer) {
        return format!("finalizer {finalizer}: {when}");
    }
    match writer(finalizer, &evidence.subject) {
        Some(manager) => format!(
            "finalizer {finalizer}, which \"{manager}\" has set and has to remove: check that it runs"
        ),
        None => format!("finalizer {finalizer}: check that the controller that removes it runs"),
    }
}

/// Objects below that are deleted first.
fn dependents(evidence: &Evidence) -> String {
    let uid = &evidence.subject["metadata"]["uid"];
    let blocks = |object: &&Value| {
        let mut owners = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
        owners.any(|owner| owner["uid"] == *uid && owner["blockOwnerDeletion"] == true)
    };
    let names: Vec<_> = evidence.below.iter().filter(blocks).map(label).collect();
    match names.len() {
        0 => "nothing is left, it ends soon".to_owned(),
        count if count > MAX_NAMES => {
            format!("{} and {} more", names[..MAX_NAMES].join(", "), count - MAX_NAMES)
        }
        _ => names.join(", "),
    }
}

/// The manager that owns a finalizer.
fn writer(finalizer: &str, object: &Value) -> Option<String> {
    let key = format!("v:{}", Value::from(finalizer));
    let entries = object["metadata"]["managedFields"].as_array()?;
    let entry =
        entries.iter().find(|entry| !entry["fieldsV1"]["f:metadata"]["f:finalizers"][&key].is_null())?;
    entry["manager"].as_str().map(str::to_owned)
}
