//! Volumes know since when they are in their phase; claims name their source in two ways.

use serde_json::json;

use super::Circumstances;
use crate::defaults::member::{self, Members};

const SINCE: &str = "lastPhaseTransitionTime";

pub(super) fn create_volume(volume: &mut Members, with: &Circumstances<'_>) {
    volume.insert("status".to_owned(), json!({"phase": "Pending", SINCE: with.now.to_string()}));
}

pub(super) fn volume_status(volume: &mut Members, old: &Members, with: &Circumstances<'_>) {
    let nothing = Members::new();
    let before = member::object(old, "status").unwrap_or(&nothing);
    let status = member::made(volume, "status");
    let given = status.get(SINCE).filter(|since| !since.is_null()).cloned();
    let since = if member::text(before, "phase") == member::text(status, "phase") {
        given.or_else(|| before.get(SINCE).cloned())
    } else {
        given.filter(|given| Some(given) != before.get(SINCE)).or_else(|| Some(with.now.to_string().into()))
    };
    match since {
        Some(since) => drop(status.insert(SINCE.to_owned(), since)),
        None => drop(status.remove(SINCE)),
    }
}

pub(super) fn create_claim(claim: &mut Members, _: &Circumstances<'_>) {
    // Kubernetes: the status is empty, and defaults when the object is read back.
    claim.insert("status".to_owned(), json!({"phase": "Pending"}));
    let spec = member::made(claim, "spec");
    drop_distant_source(spec);
    drop_other_source(spec);
    name_source_twice(spec);
}

pub(super) fn update_claim(claim: &mut Members, old: &Members, _: &Circumstances<'_>) {
    let before = member::object(old, "spec");
    let had_source =
        before.is_some_and(|spec| spec.contains_key("dataSource") || spec.contains_key("dataSourceRef"));
    let spec = member::made(claim, "spec");
    if !before.is_some_and(|spec| spec.contains_key("dataSourceRef")) {
        drop_distant_source(spec);
    }
    if !had_source {
        drop_other_source(spec);
    }
    name_source_twice(spec);
}

/// Sources in other namespaces are a feature that is off.
fn drop_distant_source(spec: &mut Members) {
    let source = member::object(spec, "dataSourceRef");
    if source.is_some_and(|source| !member::text(source, "namespace").is_empty()) {
        spec.remove("dataSourceRef");
    }
}

/// The old field knows claims and snapshots only, and forgets the rest.
fn drop_other_source(spec: &mut Members) {
    if spec.contains_key("dataSourceRef") {
        return;
    }
    let is_known = member::object(spec, "dataSource").is_none_or(|source| {
        let known = [("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot")];
        known.contains(&(member::text(source, "apiGroup"), member::text(source, "kind")))
    });
    if !is_known {
        spec.remove("dataSource");
    }
}

fn name_source_twice(spec: &mut Members) {
    let [old, new] = ["dataSource", "dataSourceRef"].map(|name| member::object(spec, name).cloned());
    match (old, new) {
        (Some(old), None) => drop(spec.insert("dataSourceRef".to_owned(), old.into())),
        (None, Some(mut new)) if member::text(&new, "namespace").is_empty() => {
            new.remove("namespace");
            spec.insert("dataSource".to_owned(), new.into());
        }
        _ => {}
    }
}
