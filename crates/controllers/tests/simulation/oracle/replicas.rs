//! ReplicaSets, ReplicationControllers, StatefulSets and DaemonSets: as many pods as wanted, and a status that says so.

use super::{Problems, State, app, is_active, is_healthy, is_ready, version};
use k8s_openapi::api::{
    apps::v1::{DaemonSet, StatefulSet},
    core::v1::{PersistentVolumeClaim, Pod},
};
use kube::ResourceExt;
use std::collections::BTreeSet;
use twin::workload::Kind;

pub(super) fn check(state: &State<'_>, problems: &mut Problems) {
    for set in &state.replica_sets {
        let (spec, status) = (set.spec.clone().unwrap_or_default(), set.status.clone().unwrap_or_default());
        let pods = state.active_pods_of(set);
        problems.equal(set, "the number of pods", pods.len() as i32, spec.replicas.unwrap_or(1));
        problems.equal(set, "status.replicas", status.replicas, pods.len() as i32);
        problems.equal(set, "status.readyReplicas", status.ready_replicas.unwrap_or(0), ready(&pods));
        problems.equal(set, "status.availableReplicas", status.available_replicas.unwrap_or(0), ready(&pods));
        problems.equal(set, "observedGeneration", status.observed_generation, set.metadata.generation);
    }
    for controller in &state.replication_controllers {
        let (spec, status) =
            (controller.spec.clone().unwrap_or_default(), controller.status.clone().unwrap_or_default());
        let pods = state.active_pods_of(controller);
        problems.equal(controller, "the number of pods", pods.len() as i32, spec.replicas.unwrap_or(1));
        problems.equal(controller, "status.replicas", status.replicas, pods.len() as i32);
        problems.equal(controller, "readyReplicas", status.ready_replicas.unwrap_or(0), ready(&pods));
        problems.equal(
            controller,
            "observedGeneration",
            status.observed_generation,
            controller.metadata.generation,
        );
    }
    state.stateful_sets.iter().for_each(|set| stateful_set(state, set, problems));
    state.daemon_sets.iter().for_each(|set| daemon_set(state, set, problems));
    for pod in state.pods.iter().filter(|pod| is_active(pod)) {
        if pod.spec.as_ref().is_none_or(|spec| spec.node_name.is_none()) {
            problems.add(pod, "is not scheduled");
        }
        if is_healthy(pod) && !is_ready(pod) && pod.owner_references().iter().all(|it| it.kind != "Job") {
            problems.add(pod, "is not ready");
        }
    }
}

fn ready(pods: &[&Pod]) -> i32 {
    pods.iter().filter(|pod| is_ready(pod)).count() as i32
}

fn stateful_set(state: &State<'_>, set: &StatefulSet, problems: &mut Problems) {
    let (spec, status) = (set.spec.clone().unwrap_or_default(), set.status.clone().unwrap_or_default());
    problems.equal(set, "observedGeneration", status.observed_generation, set.metadata.generation);
    let pods = state.active_pods_of(set);
    let start = spec.ordinals.as_ref().and_then(|it| it.start).unwrap_or(0);
    let replicas = spec.replicas.unwrap_or(1);
    let wanted: BTreeSet<String> =
        (start..start + replicas).map(|ordinal| format!("{}-{ordinal}", set.name_any())).collect();
    let found: BTreeSet<String> = pods.iter().map(|pod| pod.name_any()).collect();
    problems.equal(set, "status.replicas", status.replicas, found.len() as i32);
    problems.equal(set, "status.readyReplicas", status.ready_replicas.unwrap_or(0), ready(&pods));
    for template in spec.volume_claim_templates.iter().flatten() {
        for pod in &found {
            let claim = format!("{}-{pod}", template.name_any());
            let is_bound = |it: &&PersistentVolumeClaim| {
                it.name_any() == claim
                    && it.status.as_ref().and_then(|it| it.phase.as_deref()) == Some("Bound")
            };
            if state.claims.iter().find(is_bound).is_none() {
                problems.add(set, format!("claim {claim} is not bound"));
            }
        }
    }
    // Kubernetes: an ordered set waits for a pod that does not become ready, for ever.
    if !state.story.was_always_healthy(Kind::StatefulSet, &set.name_any()) {
        return;
    }
    problems.equal(set, "its pods", found, wanted);
    let strategy = spec.update_strategy.clone().unwrap_or_default();
    if strategy.type_.as_deref() == Some("OnDelete") {
        return;
    }
    let partition = strategy.rolling_update.and_then(|it| it.partition).unwrap_or(0);
    for pod in &pods {
        let ordinal: i32 = pod.name_any().rsplit('-').next().and_then(|it| it.parse().ok()).unwrap_or(0);
        if ordinal >= start + partition && version(pod) != version(&spec.template) {
            problems.add(*pod, "does not have the newest template");
        }
    }
    if partition == 0 {
        problems.equal(set, "currentRevision", status.current_revision, status.update_revision);
        problems.equal(set, "updatedReplicas", status.updated_replicas.unwrap_or(0), replicas);
        problems.equal(set, "currentReplicas", status.current_replicas.unwrap_or(0), replicas);
    }
}

fn daemon_set(state: &State<'_>, set: &DaemonSet, problems: &mut Problems) {
    let (spec, status) = (set.spec.clone().unwrap_or_default(), set.status.clone().unwrap_or_default());
    problems.equal(set, "observedGeneration", status.observed_generation, set.metadata.generation);
    let nodes = state.nodes.len() as i32;
    let pods = state.active_pods_of(set);
    let is_rolling =
        spec.update_strategy.as_ref().and_then(|it| it.type_.as_deref()) == Some("RollingUpdate");
    let surge = spec.update_strategy.and_then(|it| it.rolling_update).and_then(|it| it.max_surge);
    let newest = pods.iter().filter(|pod| version(*pod) == version(&spec.template)).count() as i32;
    if is_healthy(&spec.template) || surge.is_none() {
        let mut places: Vec<_> = pods.iter().filter_map(|pod| pod.spec.as_ref()?.node_name.clone()).collect();
        places.sort();
        let mut expected: Vec<_> = state.nodes.iter().map(ResourceExt::name_any).collect();
        expected.sort();
        problems.equal(set, "the nodes of its pods", places, expected);
    }
    problems.equal(set, "desiredNumberScheduled", status.desired_number_scheduled, nodes);
    problems.equal(set, "currentNumberScheduled", status.current_number_scheduled, nodes);
    problems.equal(set, "numberMisscheduled", status.number_misscheduled, 0);
    if is_rolling && is_healthy(&spec.template) {
        problems.equal(set, "the number of pods with the newest template", newest, nodes);
        problems.equal(set, "updatedNumberScheduled", status.updated_number_scheduled.unwrap_or(0), nodes);
        problems.equal(set, "numberAvailable", status.number_available.unwrap_or(0), nodes);
        problems.equal(set, "numberReady", status.number_ready, nodes);
    }
    let limit = spec.revision_history_limit.unwrap_or(10) as usize;
    let revisions = state.revisions.iter().filter(|it| super::is_controlled_by(&it.metadata, set)).count();
    let revisions_in_use: BTreeSet<_> =
        pods.iter().filter_map(|pod| pod.labels().get("controller-revision-hash")).collect();
    if revisions > limit + revisions_in_use.len() + 1 {
        problems.add(set, format!("has {revisions} revisions"));
    }
    let selected = app(Some(&spec.selector));
    let strays = state.selected_pods(&selected).into_iter().filter(|pod| pod.owner_references().is_empty());
    strays.for_each(|pod| problems.add(pod, "matches a DaemonSet that has not adopted it"));
}
