//! Volumes of a pod: their claims must exist, and the volumes that they are bound to must be reachable from the node.

use super::{
    facts::PodFacts,
    node::{NodeFacts, NodeState},
    node_affinity,
};
use crate::storage::{
    claim_facts::{self, BIND_COMPLETED, SELECTED_NODE},
    volume_facts,
};
use k8s_openapi::api::{
    core::v1::{NodeSelectorTerm, PersistentVolume, PersistentVolumeClaim},
    storage::v1::StorageClass,
};
use kube::ResourceExt;
use operator::Key;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";
/// Kubernetes: the access mode of a claim that one pod alone may use.
const ONE_POD: &str = "ReadWriteOncePod";

/// The objects that volumes depend on.
#[derive(Debug, Default)]
pub(super) struct StorageObjects {
    pub(super) claims: BTreeMap<Key, Arc<PersistentVolumeClaim>>,
    pub(super) volumes: BTreeMap<String, Arc<PersistentVolume>>,
    pub(super) classes: BTreeMap<String, Arc<StorageClass>>,
    /// How many pods on nodes use a claim.
    users: BTreeMap<Key, i64>,
}

/// The claims of a pod.
#[derive(Clone, Debug, Default)]
pub(super) struct PodVolumes {
    /// `None` if the claim is bound to a volume that does not exist.
    bound: Vec<Option<Arc<PersistentVolume>>>,
    /// Their volumes are chosen or made after the node is chosen.
    delayed: Vec<DelayedClaim>,
    /// Claims that no other pod may use.
    exclusive: Vec<Key>,
    /// How many pods use those.
    other_users: i64,
}

#[derive(Clone, Debug)]
struct DelayedClaim {
    claim: Arc<PersistentVolumeClaim>,
    /// Volumes that refer to it, or to no claim.
    candidates: Vec<Arc<PersistentVolume>>,
}

/// What must be written before a pod can be bound to its node.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum VolumeWrite {
    /// Asks the provisioner of the claim for a volume that the node reaches.
    SelectNode(Key),
    /// Reserves a volume for the claim.
    Reserve { volume: String, claim: Key },
    /// Both is done: the claim will be bound.
    Wait,
}

/// Why the volumes of a pod do not fit a node, in the words of Kubernetes.
const NODE_CONFLICT: &str = "node(s) didn't match PersistentVolume's node affinity";
const BIND_CONFLICT: &str = "node(s) didn't find available persistent volumes to bind";
const NO_VOLUME: &str = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)";

impl PodVolumes {
    /// The claims of the pod, or why it cannot run anywhere now.
    pub(super) fn new(pod: &PodFacts, storage: &StorageObjects) -> Result<PodVolumes, String> {
        let mut volumes = PodVolumes::default();
        let mut has_unbound = false;
        for claim in &pod.rules.claims {
            let name = &claim.name;
            let Some(found) = storage.claims.get(&Key::new(Some(&pod.namespace), name)) else {
                return Err(match claim.is_ephemeral {
                    true => format!(
                        "waiting for ephemeral volume controller to create the persistentvolumeclaim \"{name}\""
                    ),
                    false => format!("persistentvolumeclaim \"{name}\" not found"),
                });
            };
            let volume = claim_facts::volume(found);
            if claim_facts::phase(found) == "Lost" {
                return Err(format!(
                    "persistentvolumeclaim \"{name}\" bound to non-existent persistentvolume \"{volume}\""
                ));
            }
            if found.metadata.deletion_timestamp.is_some() {
                return Err(format!("persistentvolumeclaim \"{name}\" is being deleted"));
            }
            if claim.is_ephemeral && !found.owner_references().iter().any(|owner| owner.uid == pod.uid) {
                let pod = format!("{}/{}", pod.namespace, pod.name);
                return Err(format!(
                    "PVC {}/{name} was not created for pod {pod} (pod is not owner)",
                    found.namespace().unwrap_or_default()
                ));
            }
            volumes.add_exclusive(found, storage);
            match (volume, found.annotations().contains_key(BIND_COMPLETED)) {
                ("", _) if claim_facts::is_delayed(storage.class(found)) => {
                    volumes.delayed.push(DelayedClaim::new(found, storage));
                }
                ("", _) | (_, false) => has_unbound = true,
                (volume, true) => volumes.bound.push(storage.volumes.get(volume).cloned()),
            }
        }
        match has_unbound {
            true => Err("pod has unbound immediate PersistentVolumeClaims".to_owned()),
            false => Ok(volumes),
        }
    }

    /// Why the node does not fit: nothing if it does.
    pub(super) fn problems(&self, node: &NodeState, storage: &StorageObjects) -> Vec<&'static str> {
        let mut problems = Vec::new();
        if self.bound.iter().flatten().any(|volume| !is_reachable(volume, &node.facts)) {
            problems.push(NODE_CONFLICT);
        }
        if !self.delayed.is_empty() && self.writes(node, storage).is_none() {
            problems.push(BIND_CONFLICT);
        }
        if self.bound.iter().any(Option::is_none) {
            problems.push(NO_VOLUME);
        }
        problems
    }

    /// Whether another pod has a claim that this one wants for itself.
    pub(super) fn has_other_users(&self) -> bool {
        self.other_users > 0
    }

    /// As if another pod had come to a node, or had left it.
    pub(super) fn change(&mut self, other: &PodFacts, by: i64) {
        if !self.exclusive.is_empty() {
            let shared = other.claim_keys().filter(|claim| self.exclusive.contains(claim)).count();
            self.other_users += by * i64::try_from(shared).unwrap_or(i64::MAX);
        }
    }

    fn add_exclusive(&mut self, claim: &PersistentVolumeClaim, storage: &StorageObjects) {
        let modes = claim.spec.as_ref().and_then(|spec| spec.access_modes.as_deref()).unwrap_or_default();
        if modes.iter().any(|mode| mode == ONE_POD) {
            let key = Key::of(claim);
            self.other_users += storage.users.get(&key).copied().unwrap_or_default();
            self.exclusive.push(key);
        }
    }

    /// What must be written so that the unbound claims get volumes for this node; `None` if they cannot.
    pub(super) fn writes(&self, node: &NodeState, storage: &StorageObjects) -> Option<Vec<VolumeWrite>> {
        let mut taken = BTreeSet::new();
        let mut writes = Vec::new();
        for DelayedClaim { claim, candidates } in &self.delayed {
            let key = Key::of(&**claim);
            if let Some(selected) = claim.annotations().get(SELECTED_NODE) {
                if selected != node.name() {
                    return None;
                }
                writes.push(VolumeWrite::Wait);
                continue;
            }
            let is_for = |volume: &Arc<PersistentVolume>| volume_facts::is_for(volume, claim);
            let (near, far): (Vec<_>, Vec<_>) =
                candidates.iter().cloned().partition(|volume| is_reachable(volume, &node.facts));
            if far.iter().any(is_for) {
                return None;
            }
            let free: Vec<_> =
                near.into_iter().filter(|volume| !taken.contains(&volume.name_any())).collect();
            match volume_facts::best(&free, claim, false) {
                Some(volume) if is_for(volume) => writes.push(VolumeWrite::Wait),
                Some(volume) => {
                    taken.insert(volume.name_any());
                    writes.push(VolumeWrite::Reserve { volume: volume.name_any(), claim: key });
                }
                None if storage.can_provision(claim, &node.facts) => {
                    writes.push(VolumeWrite::SelectNode(key));
                }
                None => return None,
            }
        }
        Some(writes)
    }
}

impl DelayedClaim {
    fn new(claim: &Arc<PersistentVolumeClaim>, storage: &StorageObjects) -> DelayedClaim {
        let is_candidate = |volume: &&Arc<PersistentVolume>| {
            volume_facts::claim_reference(volume).is_none() || volume_facts::is_for(volume, claim)
        };
        let candidates = storage.volumes.values().filter(is_candidate).cloned().collect();
        DelayedClaim { claim: Arc::clone(claim), candidates }
    }
}

impl StorageObjects {
    /// A pod has come to a node, or has left it.
    pub(super) fn count_user(&mut self, pod: &PodFacts, by: i64) {
        for claim in pod.claim_keys() {
            let count = self.users.entry(claim.clone()).or_default();
            *count += by;
            if *count == 0 {
                self.users.remove(&claim);
            }
        }
    }

    fn class(&self, claim: &PersistentVolumeClaim) -> Option<&StorageClass> {
        self.classes.get(claim_facts::class(claim)).map(|class| &**class)
    }

    fn can_provision(&self, claim: &PersistentVolumeClaim, node: &NodeFacts) -> bool {
        let Some(class) = self.class(claim).filter(|class| class.provisioner != NO_PROVISIONER) else {
            return false;
        };
        let topologies = class.allowed_topologies.as_deref().unwrap_or_default();
        let is_allowed = topologies.iter().any(|term| {
            let labels = term.match_label_expressions.as_deref().unwrap_or_default();
            labels.iter().all(|it| node.labels.get(&it.key).is_some_and(|value| it.values.contains(value)))
        });
        topologies.is_empty() || is_allowed
    }
}

fn is_reachable(volume: &PersistentVolume, node: &NodeFacts) -> bool {
    let terms = || -> Option<&[NodeSelectorTerm]> {
        let affinity = volume.spec.as_ref()?.node_affinity.as_ref()?;
        Some(&affinity.required.as_ref()?.node_selector_terms)
    };
    terms().is_none_or(|terms| node_affinity::matches_any(terms, node))
}

#[cfg(test)]
mod tests;
