//! The annotations by which a Deployment and its ReplicaSets tell revisions and sizes.

use super::sizes::Strategy;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use kube::ResourceExt;
use std::collections::BTreeMap;

pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
const REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";
const DESIRED_REPLICAS: &str = "deployment.kubernetes.io/desired-replicas";
const MAX_REPLICAS: &str = "deployment.kubernetes.io/max-replicas";
/// Kubernetes: `spec.rollbackTo` of versions that are no longer served.
pub(super) const ROLLBACK_TO: &str = "deprecated.deployment.rollback.to";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The annotations that a Deployment and its ReplicaSets have each for themselves.
const NOT_COPIED: [&str; 6] =
    [LAST_APPLIED, REVISION, REVISION_HISTORY, DESIRED_REPLICAS, MAX_REPLICAS, ROLLBACK_TO];

/// Kubernetes: about a hundred revisions.
const MAX_HISTORY: usize = 2000;

/// The revision of a ReplicaSet; zero if it has none, `None` if it cannot be read.
pub(super) fn of(set: &ReplicaSet) -> Option<i64> {
    set.annotations().get(REVISION).map_or(Some(0), |revision| revision.parse().ok())
}

/// The greatest revision.
pub(super) fn latest<'a>(sets: impl IntoIterator<Item = &'a ReplicaSet>) -> i64 {
    sets.into_iter().filter_map(of).max().unwrap_or_default().max(0)
}

/// The greatest revision but one: what a rollback goes to by default.
pub(super) fn last_but_one<'a>(sets: impl IntoIterator<Item = &'a ReplicaSet>) -> i64 {
    let mut revisions: Vec<i64> = sets.into_iter().filter_map(of).chain([0, 0]).collect();
    revisions.sort_unstable();
    revisions[revisions.len() - 2].max(0)
}

/// Copies the annotations of the Deployment to its newest ReplicaSet, and gives it the revision if its own is
/// smaller: old revisions that it had go to its history.
pub(super) fn annotate(set: &mut ReplicaSet, deployment: &Deployment, revision: i64) {
    let annotations = set.metadata.annotations.get_or_insert_default();
    let before = annotations.get(REVISION).cloned().unwrap_or_default();
    // Kubernetes: a revision that is no number is left alone, with all else.
    let Ok(known) = (if before.is_empty() { Ok(0) } else { before.parse::<i64>() }) else { return };
    annotations.extend(copied(deployment.annotations()));
    if known < revision {
        annotations.insert(REVISION.to_owned(), revision.to_string());
        if !before.is_empty() {
            let history = annotations.remove(REVISION_HISTORY).unwrap_or_default();
            annotations.insert(REVISION_HISTORY.to_owned(), appended(&history, &before));
        }
    }
}

/// The history with one more revision; the oldest ones make room for it.
fn appended(history: &str, revision: &str) -> String {
    let mut revisions: Vec<&str> = history.split(',').filter(|revision| !revision.is_empty()).collect();
    revisions.push(revision);
    while revisions.join(",").len() > MAX_HISTORY {
        revisions.remove(0);
    }
    revisions.join(",")
}

/// The annotations of a Deployment that is rolled back to a ReplicaSet: those of that revision.
pub(super) fn restored(deployment: &Deployment, set: &ReplicaSet) -> BTreeMap<String, String> {
    let own = deployment.annotations().iter().filter(|(name, _)| NOT_COPIED.contains(&name.as_str()));
    own.map(|(name, value)| (name.clone(), value.clone())).chain(copied(set.annotations())).collect()
}

fn copied(annotations: &BTreeMap<String, String>) -> impl Iterator<Item = (String, String)> {
    let copied = annotations.iter().filter(|(name, _)| !NOT_COPIED.contains(&name.as_str()));
    copied.map(|(name, value)| (name.clone(), value.clone()))
}

/// Records for which size of the Deployment a ReplicaSet was scaled: so that scaling of the Deployment is told
/// from its rollout.
pub(super) fn record_size(set: &mut ReplicaSet, desired: i32, strategy: Strategy) {
    let annotations = set.metadata.annotations.get_or_insert_default();
    annotations.insert(DESIRED_REPLICAS.to_owned(), desired.to_string());
    annotations.insert(MAX_REPLICAS.to_owned(), (desired + strategy.max_surge()).to_string());
}

pub(super) fn desired_replicas(set: &ReplicaSet) -> Option<i32> {
    number(set, DESIRED_REPLICAS)
}

pub(super) fn max_replicas(set: &ReplicaSet) -> Option<i32> {
    number(set, MAX_REPLICAS)
}

fn number(set: &ReplicaSet, annotation: &str) -> Option<i32> {
    set.annotations().get(annotation)?.parse().ok().filter(|number| *number >= 0)
}

/// The revision to which the Deployment shall be rolled back; zero is the last one.
pub(super) fn rollback_to(deployment: &Deployment) -> Option<i64> {
    deployment.annotations().get(ROLLBACK_TO)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn set(annotations: &Value) -> ReplicaSet {
        let set = json!({"metadata": {"name": "web-1", "annotations": annotations}});
        serde_json::from_value(set).unwrap()
    }

    #[test]
    fn the_newest_set_gets_the_annotations_and_a_greater_revision() {
        let long = "1,".repeat(998) + "1000";
        let shorter = "1,".repeat(995) + "1000,1001";
        for (deployment, before, revision, after) in [
            (json!({"note": "a"}), json!({}), 1, json!({"note": "a", REVISION: "1"})),
            (json!({LAST_APPLIED: "x", REVISION: "7"}), json!({REVISION: "1"}), 1, json!({REVISION: "1"})),
            (json!({}), json!({REVISION: "5"}), 3, json!({REVISION: "5"})),
            (json!({}), json!({REVISION: "1"}), 3, json!({REVISION: "3", REVISION_HISTORY: "1"})),
            (
                json!({}),
                json!({REVISION: "3", REVISION_HISTORY: "1"}),
                5,
                json!({REVISION: "5", REVISION_HISTORY: "1,3"}),
            ),
            (
                json!({}),
                json!({REVISION: "1001", REVISION_HISTORY: long}),
                1002,
                json!({REVISION: "1002", REVISION_HISTORY: shorter}),
            ),
            (json!({"note": "a"}), json!({REVISION: "first"}), 3, json!({REVISION: "first"})),
        ] {
            let owner = json!({"metadata": {"name": "web", "annotations": deployment}});
            let mut found = set(&before);
            annotate(&mut found, &serde_json::from_value(owner).unwrap(), revision);
            assert_eq!(json!(found.annotations()), after, "{before} {revision}");
        }
    }

    #[test]
    fn revisions_that_are_no_numbers_do_not_count() {
        let sets = ["3", "first", "5", "4"].map(|revision| set(&json!({REVISION: revision})));
        assert_eq!((latest(&sets), last_but_one(&sets)), (5, 4));
        assert_eq!((latest(&sets[..2]), last_but_one(&sets[..2])), (3, 0));
        assert_eq!((latest(&[]), last_but_one(&[])), (0, 0));
    }

    #[test]
    fn a_rollback_restores_the_annotations_of_the_revision() {
        let deployment = json!({"metadata": {"annotations": {"note": "b", "new": "1", REVISION: "2"}}});
        let restored = restored(
            &serde_json::from_value(deployment).unwrap(),
            &set(&json!({"note": "a", REVISION: "1", DESIRED_REPLICAS: "3"})),
        );
        assert_eq!(json!(restored), json!({"note": "a", REVISION: "2"}));
    }
}
