//! The cluster as the scheduler sees it, kept in step with the caches: no decision decodes an object.

mod counts;

use super::{
    facts::PodFacts,
    node::{NodeFacts, NodeState},
    spread::{self, Constraint},
    volumes::StorageObjects,
};
use counts::MatchCounts;
use kube::core::{Expression, Selector};
use operator::Key;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

const ZONE: &str = "topology.kubernetes.io/zone";
const REGION: &str = "topology.kubernetes.io/region";

/// The nodes, the pods on them, and what else decides where a pod may run.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    /// Nodes keep their place as long as they exist or have pods.
    nodes: Vec<NodeState>,
    places: BTreeMap<String, usize>,
    free: Vec<usize>,
    /// The places of existing nodes, zone by zone in turns, so that a sample has nodes of all zones.
    order: Vec<usize>,
    /// Whether nodes were added at the end of the order.
    is_order_stale: bool,
    pods: BTreeMap<Key, usize>,
    /// The places of nodes with pods that have rules about other pods, and of those whose pods exclude others.
    with_affinity: BTreeSet<usize>,
    with_anti_affinity: BTreeSet<usize>,
    /// Pods that wait until victims are gone, by the name of the node.
    nominated: BTreeMap<String, BTreeMap<Key, Arc<PodFacts>>>,
    counts: MatchCounts,
    pub(super) namespaces: BTreeMap<String, BTreeMap<String, String>>,
    pub(super) storage: StorageObjects,
    /// The selectors of services, by namespace and name.
    pub(super) services: BTreeMap<Key, BTreeMap<String, String>>,
    /// The selectors of ReplicationControllers, ReplicaSets and StatefulSets, by kind and key.
    pub(super) owners: BTreeMap<(&'static str, Key), Selector>,
}

impl Snapshot {
    /// Sets the facts of a node; returns whether they have changed.
    pub(super) fn set_node(&mut self, facts: NodeFacts) -> bool {
        let place = self.place(&facts.name);
        let node = &mut self.nodes[place];
        if node.exists && node.facts == facts {
            return false;
        }
        self.is_order_stale |= !node.exists || zone(&node.facts) != zone(&facts);
        if !node.exists {
            self.order.push(place);
        }
        (node.facts, node.exists) = (facts, true);
        true
    }

    pub(super) fn remove_node(&mut self, name: &str) {
        let Some(&place) = self.places.get(name) else { return };
        self.nodes[place].exists = false;
        self.nodes[place].facts = NodeFacts { name: name.to_owned(), ..NodeFacts::default() };
        self.order.retain(|it| *it != place);
        self.is_order_stale = true;
        self.release(place);
    }

    /// Puts a pod on a node, or replaces it there.
    pub(super) fn set_pod(&mut self, key: &Key, pod: Arc<PodFacts>, node: &str) {
        self.remove_pod(key);
        let place = self.place(node);
        self.counts.change(place, &pod, 1);
        self.storage.count_user(&pod, 1);
        self.nodes[place].add(key.clone(), pod);
        self.pods.insert(key.clone(), place);
        self.note_affinity(place);
    }

    pub(super) fn remove_pod(&mut self, key: &Key) -> Option<Arc<PodFacts>> {
        let place = self.pods.remove(key)?;
        let pod = self.nodes[place].remove(key)?;
        self.counts.change(place, &pod, -1);
        self.storage.count_user(&pod, -1);
        self.note_affinity(place);
        self.release(place);
        Some(pod)
    }

    pub(super) fn pod(&self, key: &Key) -> Option<&Arc<PodFacts>> {
        self.nodes[*self.pods.get(key)?].pods.get(key)
    }

    /// Lets a waiting pod reserve room on a node, or no longer.
    pub(super) fn nominate(&mut self, key: &Key, pod: &Arc<PodFacts>, node: Option<&str>) {
        self.nominated.retain(|_, pods| {
            pods.remove(key);
            !pods.is_empty()
        });
        if let Some(node) = node {
            self.nominated.entry(node.to_owned()).or_default().insert(key.clone(), Arc::clone(pod));
        }
    }

    /// The pods that have reserved room on a node.
    pub(super) fn nominated_on(&self, node: &str) -> impl Iterator<Item = (&Key, &Arc<PodFacts>)> {
        self.nominated.get(node).into_iter().flatten()
    }

    /// The existing nodes, zone by zone in turns.
    pub(super) fn nodes(&self) -> impl ExactSizeIterator<Item = (usize, &NodeState)> + Clone {
        self.order.iter().map(|place| (*place, &self.nodes[*place]))
    }

    /// The node at this position of the order.
    pub(super) fn nth(&self, position: usize) -> (usize, &NodeState) {
        let place = self.order[position];
        (place, &self.nodes[place])
    }

    pub(super) fn node(&self, name: &str) -> Option<(usize, &NodeState)> {
        let place = *self.places.get(name)?;
        Some((place, &self.nodes[place])).filter(|(_, node)| node.exists)
    }

    pub(super) fn at(&self, place: usize) -> &NodeState {
        &self.nodes[place]
    }

    pub(super) fn nodes_with_affinity(&self) -> impl Iterator<Item = &NodeState> {
        self.with_affinity.iter().map(|place| &self.nodes[*place]).filter(|node| node.exists)
    }

    pub(super) fn nodes_with_anti_affinity(&self) -> impl Iterator<Item = &NodeState> {
        self.with_anti_affinity.iter().map(|place| &self.nodes[*place]).filter(|node| node.exists)
    }

    /// Makes a decision about the pod fast: brings the nodes into their order, and begins to count the pods that
    /// match its spread constraints, for [`Snapshot::count`].
    pub(super) fn prepare(&mut self, pod: &PodFacts, constraints: &[Constraint]) {
        if std::mem::take(&mut self.is_order_stale) {
            self.reorder();
        }
        for constraint in constraints {
            self.counts.track(&pod.namespace, constraint, &self.nodes);
        }
    }

    /// How many pods in a namespace match the constraint, on the node at each place.
    pub(super) fn count(&self, namespace: &str, constraint: &Constraint) -> Option<&[u32]> {
        self.counts.of(namespace, constraint)
    }

    /// The constraints by which nodes are compared: those of the pod, or else those of Kubernetes for the pods of
    /// its services and of its controller.
    pub(super) fn preferred_spread(&self, pod: &PodFacts) -> Vec<Constraint> {
        if !pod.rules.spread.is_empty() {
            return pod.rules.spread.iter().filter(|it| !it.is_required).cloned().collect();
        }
        let mut selector = Selector::default();
        for (key, service) in self.services.range(Key::new(Some(&pod.namespace), "")..) {
            if key.namespace() != Some(pod.namespace.as_str()) {
                break;
            }
            if service.iter().all(|(name, value)| pod.labels.get(name) == Some(value)) {
                let labels =
                    service.iter().map(|(name, value)| Expression::Equal(name.clone(), value.clone()));
                selector.extend(labels);
            }
        }
        let controller = pod.controller.as_ref().and_then(|owner| {
            let kind = OWNER_KINDS.into_iter().find(|kind| *kind == owner.kind)?;
            self.owners.get(&(kind, Key::new(Some(&pod.namespace), &owner.name)))
        });
        if let Some(controller) = controller {
            selector.extend(controller.clone());
        }
        if selector.selects_all() { Vec::new() } else { spread::defaults(&selector) }
    }

    fn place(&mut self, name: &str) -> usize {
        if let Some(place) = self.places.get(name) {
            return *place;
        }
        let place = self.free.pop().unwrap_or_else(|| {
            self.nodes.push(NodeState::default());
            self.nodes.len() - 1
        });
        self.nodes[place].facts.name = name.to_owned();
        self.places.insert(name.to_owned(), place);
        place
    }

    /// Forgets a node that neither exists nor has pods.
    fn release(&mut self, place: usize) {
        let node = &mut self.nodes[place];
        if node.exists || !node.pods.is_empty() {
            return;
        }
        self.places.remove(&node.facts.name);
        *node = NodeState::default();
        self.free.push(place);
    }

    fn note_affinity(&mut self, place: usize) {
        let (with, with_anti) = (self.nodes[place].with_affinity, self.nodes[place].with_anti_affinity);
        let note = |set: &mut BTreeSet<usize>, has: bool| {
            if has {
                set.insert(place)
            } else {
                set.remove(&place)
            };
        };
        note(&mut self.with_affinity, with > 0);
        note(&mut self.with_anti_affinity, with_anti > 0);
    }

    fn reorder(&mut self) {
        let mut zones: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
        for place in self.places.values().filter(|place| self.nodes[**place].exists) {
            zones.entry(zone(&self.nodes[*place].facts)).or_default().push(*place);
        }
        let longest = zones.values().map(Vec::len).max().unwrap_or_default();
        let turns = (0..longest).flat_map(|turn| zones.values().filter_map(move |zone| zone.get(turn)));
        self.order = turns.copied().collect();
    }
}

/// The kinds whose selectors say which pods belong together.
pub(super) const OWNER_KINDS: [&str; 3] = ["ReplicationController", "ReplicaSet", "StatefulSet"];

fn zone(node: &NodeFacts) -> (&str, &str) {
    let label = |key: &str| node.labels.get(key).map(String::as_str).unwrap_or_default();
    (label(REGION), label(ZONE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::{facts::tests::pod_on, node::tests::node};
    use serde_json::json;

    #[test]
    fn nodes_of_all_zones_take_turns() {
        let mut snapshot = Snapshot::default();
        for (name, zone) in [("a1", "a"), ("a2", "a"), ("a3", "a"), ("b1", "b"), ("c1", "c"), ("c2", "c")] {
            assert!(snapshot.set_node(node(name, &json!({ZONE: zone}), &json!({}))));
        }
        let names = |snapshot: &mut Snapshot| -> Vec<String> {
            snapshot.prepare(&PodFacts::default(), &[]);
            snapshot.nodes().map(|(_, node)| node.name().to_owned()).collect()
        };
        assert_eq!(names(&mut snapshot), ["a1", "b1", "c1", "a2", "c2", "a3"]);
        assert!(!snapshot.set_node(node("a1", &json!({ZONE: "a"}), &json!({}))), "nothing has changed");
        snapshot.remove_node("a1");
        assert_eq!(names(&mut snapshot), ["a2", "b1", "c1", "a3", "c2"]);
    }

    #[test]
    fn pods_that_come_and_go_leave_nothing_behind() {
        let mut snapshot = Snapshot::default();
        let spec = json!({"containers": [{"resources": {"requests": {"cpu": "1"}}}]});
        let pod = Arc::new(pod_on("n", "p", &json!({"app": "web"}), &spec));
        snapshot.set_pod(&pod.key(), Arc::clone(&pod), "n");
        assert_eq!(snapshot.nodes().len(), 0, "the node does not exist yet");
        snapshot.set_node(node("n", &json!({}), &json!({})));
        assert_eq!(snapshot.node("n").unwrap().1.requested.cpu, 1000);
        snapshot.set_pod(&pod.key(), Arc::clone(&pod), "n");
        assert_eq!(snapshot.node("n").unwrap().1.requested.cpu, 1000);
        snapshot.remove_node("n");
        snapshot.remove_pod(&pod.key());
        assert_eq!((snapshot.places.len(), snapshot.free.len()), (0, 1));
    }
}
