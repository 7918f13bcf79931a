//! Volumes of a pod: their claims must exist, and the volumes that they are bound to must be reachable from the node.

use super::{
    facts::PodFacts,
    node::{NodeFacts, NodeState},
    node_affinity,
};
use k8s_openapi::api::{
    core::v1::{NodeSelectorTerm, PersistentVolume, PersistentVolumeClaim},
    storage::v1::StorageClass,
};
use kube::{
    ResourceExt,
    core::{Selector, SelectorExt},
};
use operator::Key;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Kubernetes: says for which node a volume is wanted.
pub(super) const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

/// The objects that volumes depend on.
#[derive(Debug, Default)]
pub(super) struct StorageObjects {
    pub(super) claims: BTreeMap<Key, Arc<PersistentVolumeClaim>>,
    pub(super) volumes: BTreeMap<String, Arc<PersistentVolume>>,
    pub(super) classes: BTreeMap<String, Arc<StorageClass>>,
}

/// The claims of a pod.
#[derive(Clone, Debug, Default)]
pub(super) struct PodVolumes {
    /// `None` if the claim is bound to a volume that does not exist.
    bound: Vec<Option<Arc<PersistentVolume>>>,
    /// Their volumes are chosen or made after the node is chosen.
    delayed: Vec<Arc<PersistentVolumeClaim>>,
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
            let spec = found.spec.clone().unwrap_or_default();
            let volume = spec.volume_name.filter(|volume| !volume.is_empty());
            if found.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Lost") {
                let volume = volume.unwrap_or_default();
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
            match volume {
                Some(volume) => volumes.bound.push(storage.volumes.get(&volume).cloned()),
                None if storage.is_delayed(found) => volumes.delayed.push(Arc::clone(found)),
                None => has_unbound = true,
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

    /// What must be written so that the unbound claims get volumes for this node; `None` if they cannot.
    pub(super) fn writes(&self, node: &NodeState, storage: &StorageObjects) -> Option<Vec<VolumeWrite>> {
        let mut taken = BTreeSet::new();
        let mut writes = Vec::new();
        for claim in &self.delayed {
            let key = Key::of(&**claim);
            if let Some(selected) = claim.annotations().get(SELECTED_NODE) {
                if selected != node.name() {
                    return None;
                }
                writes.push(VolumeWrite::Wait);
                continue;
            }
            let volume = storage.volumes.values().filter(|volume| !taken.contains(&volume.name_any()));
            let fits = |volume: &&Arc<PersistentVolume>| fits(volume, claim, &node.facts);
            // Kubernetes: the smallest volume that is large enough, unless one is reserved already.
            let smallest =
                volume.filter(fits).min_by_key(|volume| (!is_reserved(volume, claim), capacity(volume)));
            match smallest {
                Some(volume) if is_reserved(volume, claim) => writes.push(VolumeWrite::Wait),
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

impl StorageObjects {
    fn class(&self, claim: &PersistentVolumeClaim) -> Option<&StorageClass> {
        let name = claim.spec.as_ref()?.storage_class_name.as_ref()?;
        self.classes.get(name).map(|class| &**class)
    }

    fn is_delayed(&self, claim: &PersistentVolumeClaim) -> bool {
        let class = self.class(claim);
        class.and_then(|class| class.volume_binding_mode.as_deref()) == Some("WaitForFirstConsumer")
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

/// Whether the volume is reserved for this claim.
fn is_reserved(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let reference = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
    reference.is_some_and(|it| {
        it.name == claim.metadata.name
            && it.namespace == claim.metadata.namespace
            && it.uid.as_ref().is_none_or(|uid| Some(uid) == claim.metadata.uid.as_ref())
    })
}

/// Whether the claim may be bound to the volume.
fn fits(volume: &PersistentVolume, claim: &PersistentVolumeClaim, node: &NodeFacts) -> bool {
    let (Some(spec), Some(wanted)) = (&volume.spec, &claim.spec) else { return false };
    if !is_reachable(volume, node) || volume.metadata.deletion_timestamp.is_some() {
        return false;
    }
    if spec.claim_ref.is_some() {
        return is_reserved(volume, claim);
    }
    let is_available = volume.status.as_ref().and_then(|it| it.phase.as_deref()) == Some("Available");
    let class = |name: &Option<String>| name.clone().unwrap_or_default();
    let mode = |mode: &Option<String>| mode.clone().unwrap_or_else(|| "Filesystem".to_owned());
    let requested = wanted.resources.as_ref().and_then(|it| it.requests.as_ref()?.get("storage"));
    let requested = requested.and_then(|it| it.0.parse::<api::quantity::Quantity>().ok()?.value());
    let offered = spec.access_modes.as_deref().unwrap_or_default();
    let has_modes = wanted.access_modes.iter().flatten().all(|mode| offered.contains(mode));
    let selector = wanted.selector.clone().and_then(|selector| Selector::try_from(selector).ok());
    is_available
        && class(&spec.storage_class_name) == class(&wanted.storage_class_name)
        && mode(&spec.volume_mode) == mode(&wanted.volume_mode)
        && capacity(volume) >= requested.unwrap_or_default()
        && has_modes
        && selector.is_none_or(|selector| selector.matches(volume.labels()))
}

fn capacity(volume: &PersistentVolume) -> i64 {
    let capacity = volume.spec.as_ref().and_then(|spec| spec.capacity.as_ref()?.get("storage"));
    capacity.and_then(|it| it.0.parse::<api::quantity::Quantity>().ok()?.value()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
