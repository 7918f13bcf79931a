//! Deployments: one ReplicaSet has all pods, with the newest template, the highest revision and the right conditions.

use super::{Problems, State, is_controlled_by, is_healthy};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use kube::ResourceExt;
use serde_json::Value;

const REVISION: &str = "deployment.kubernetes.io/revision";
const HASH: &str = "pod-template-hash";

pub(super) fn check(state: &State<'_>, problems: &mut Problems) {
    for deployment in &state.deployments {
        let sets: Vec<&ReplicaSet> =
            state.replica_sets.iter().filter(|set| is_controlled_by(&set.metadata, deployment)).collect();
        check_one(deployment, &sets, problems);
    }
}

fn check_one(deployment: &Deployment, sets: &[&ReplicaSet], problems: &mut Problems) {
    let (spec, status) =
        (deployment.spec.clone().unwrap_or_default(), deployment.status.clone().unwrap_or_default());
    problems.equal(
        deployment,
        "observedGeneration",
        status.observed_generation,
        deployment.metadata.generation,
    );
    let replicas = spec.replicas.unwrap_or(1);
    let total: i32 = sets.iter().map(|set| size(set)).sum();
    problems.equal(deployment, "status.replicas", status.replicas.unwrap_or(0), total);
    let wanted = template(deployment.spec.as_ref().map(|it| &it.template));
    let newest =
        sets.iter().find(|set| template(set.spec.as_ref().and_then(|it| it.template.as_ref())) == wanted);
    if spec.paused == Some(true) {
        return;
    }
    let Some(newest) = newest else { return problems.add(deployment, "has no ReplicaSet of its template") };
    let revision = |annotations: &std::collections::BTreeMap<String, String>| {
        annotations.get(REVISION).and_then(|it| it.parse::<u64>().ok())
    };
    problems.equal(
        deployment,
        "its revision",
        revision(deployment.annotations()),
        revision(newest.annotations()),
    );
    let highest = sets.iter().filter_map(|set| revision(set.annotations())).max();
    problems.equal(*newest, "its revision", revision(newest.annotations()), highest);
    if !is_healthy(&spec.template) {
        // It may have been complete: without replicas, or for a moment. Kubernetes: then no deadline counts.
        let reason = reason(deployment, "Progressing").unwrap_or_default();
        if !["ProgressDeadlineExceeded", "NewReplicaSetAvailable"].contains(&reason.as_str()) {
            problems.add(deployment, format!("the reason of Progressing is {reason:?}"));
        }
        return;
    }
    for set in sets {
        let expected = if set.name_any() == newest.name_any() { replicas } else { 0 };
        problems.equal(*set, "spec.replicas", size(set), expected);
    }
    for (what, found) in [
        ("updatedReplicas", status.updated_replicas),
        ("readyReplicas", status.ready_replicas),
        ("availableReplicas", status.available_replicas),
    ] {
        problems.equal(deployment, what, found.unwrap_or(0), replicas);
    }
    problems.equal(deployment, "unavailableReplicas", status.unavailable_replicas.unwrap_or(0), 0);
    let expected = Some("NewReplicaSetAvailable".to_owned());
    problems.equal(deployment, "the reason of Progressing", reason(deployment, "Progressing"), expected);
    let expected = Some("MinimumReplicasAvailable".to_owned());
    problems.equal(deployment, "the reason of Available", reason(deployment, "Available"), expected);
    let limit = spec.revision_history_limit.unwrap_or(10) as usize;
    if sets.len() > limit + 1 {
        problems.add(deployment, format!("has {} ReplicaSets, with a history of {limit}", sets.len()));
    }
}

fn size(set: &ReplicaSet) -> i32 {
    set.spec.as_ref().and_then(|it| it.replicas).unwrap_or(1)
}

fn reason(deployment: &Deployment, condition: &str) -> Option<String> {
    let conditions = deployment.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|it| it.type_ == condition)?.reason.clone()
}

/// A template without the label that Deployments add.
fn template(template: Option<&impl serde::Serialize>) -> Value {
    let mut template = serde_json::to_value(template).unwrap_or_default();
    if let Some(labels) = template["metadata"]["labels"].as_object_mut() {
        labels.remove(HASH);
    }
    template
}
