//! A job selects its pods by its own uid, unless it says that it knows better.

use serde_json::Value;

use super::Circumstances;
use crate::defaults::member::{self, Members};
use crate::defaults::workload;

const NAME_LABELS: [&str; 2] = ["job-name", "batch.kubernetes.io/job-name"];
const UID_LABEL: &str = "batch.kubernetes.io/controller-uid";
const UID_LABELS: [&str; 2] = ["controller-uid", UID_LABEL];

pub(super) fn create(job: &mut Members, _: &Circumstances<'_>) {
    let metadata = job.get("metadata").and_then(Value::as_object);
    let word = |name| metadata.map(|metadata| member::text(metadata, name).to_owned()).unwrap_or_default();
    let (name, uid) = (word("name"), word("uid"));
    let spec = member::made(job, "spec");
    if member::flag(spec, "manualSelector") {
        return;
    }
    let labels = member::made(member::made(member::made(spec, "template"), "metadata"), "labels");
    for label in NAME_LABELS {
        labels.entry(label).or_insert_with(|| name.clone().into());
    }
    for label in UID_LABELS {
        labels.entry(label).or_insert_with(|| uid.clone().into());
    }
    let selector = member::made(member::made(spec, "selector"), "matchLabels");
    selector.entry(UID_LABEL).or_insert_with(|| uid.into());
}

/// Kubernetes: the labels default again when the object is read back, now from the template above.
pub(super) fn settle(job: &mut Members) {
    workload::label_like_template(job);
}

pub(super) fn status(job: &mut Members, _: &Members, _: &Circumstances<'_>) {
    settle(job);
}
