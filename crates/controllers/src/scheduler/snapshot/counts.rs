//! How many pods match a selector on each node: counted once for each selector, then kept up to date.

use crate::scheduler::{facts::PodFacts, node::NodeState, spread::Constraint};

/// Each costs four bytes for each node and a comparison for each change of a pod: enough for the workloads that
/// are rolled out at the same time.
const MOST_SELECTORS: usize = 64;

#[derive(Debug, Default)]
pub(super) struct MatchCounts {
    tracked: Vec<Tracked>,
    uses: u64,
}

#[derive(Debug)]
struct Tracked {
    namespace: String,
    constraint: Constraint,
    counts: Vec<u32>,
    last_use: u64,
}

impl Tracked {
    fn is_of(&self, namespace: &str, constraint: &Constraint) -> bool {
        self.constraint.text == constraint.text && self.namespace == namespace
    }

    fn counts_pod(&self, pod: &PodFacts) -> bool {
        self.namespace == pod.namespace && self.constraint.counts(pod)
    }
}

impl MatchCounts {
    /// The counts by the places of nodes. Nodes beyond the end have none.
    pub(super) fn of(&self, namespace: &str, constraint: &Constraint) -> Option<&[u32]> {
        let tracked = self.tracked.iter().find(|it| it.is_of(namespace, constraint))?;
        Some(&tracked.counts)
    }

    pub(super) fn track(&mut self, namespace: &str, constraint: &Constraint, nodes: &[NodeState]) {
        self.uses += 1;
        if let Some(tracked) = self.tracked.iter_mut().find(|it| it.is_of(namespace, constraint)) {
            tracked.last_use = self.uses;
            return;
        }
        if self.tracked.len() >= MOST_SELECTORS {
            let oldest = self.tracked.iter().map(|it| it.last_use).min();
            self.tracked.retain(|it| Some(it.last_use) != oldest);
        }
        let mut tracked = Tracked {
            namespace: namespace.to_owned(),
            constraint: constraint.clone(),
            counts: Vec::new(),
            last_use: self.uses,
        };
        let count = |node: &NodeState| node.pods.values().filter(|pod| tracked.counts_pod(pod)).count();
        let counts = nodes.iter().map(|node| u32::try_from(count(node)).unwrap_or(u32::MAX)).collect();
        tracked.counts = counts;
        self.tracked.push(tracked);
    }

    /// A pod has come to the node at this place, or has left it.
    pub(super) fn change(&mut self, place: usize, pod: &PodFacts, by: i32) {
        for tracked in self.tracked.iter_mut().filter(|it| it.counts_pod(pod)) {
            if tracked.counts.len() <= place {
                tracked.counts.resize(place + 1, 0);
            }
            tracked.counts[place] = tracked.counts[place].saturating_add_signed(by);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scheduler::{facts::tests::pod_on, node::tests::node, snapshot::Snapshot};
    use serde_json::json;
    use std::sync::Arc;

    #[test]
    fn counts_stay_true_while_pods_come_and_go() {
        let mut snapshot = Snapshot::default();
        snapshot.set_node(node("a", &json!({}), &json!({})));
        let spec = json!({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "web"}}}]});
        let add = |snapshot: &mut Snapshot, name: &str, on: &str, app: &str| {
            let pod = Arc::new(pod_on(on, name, &json!({"app": app}), &spec));
            snapshot.set_pod(&pod.key(), Arc::clone(&pod), on);
            pod
        };
        let first = add(&mut snapshot, "1", "a", "web");
        let constraint = first.rules.spread[0].clone();
        assert_eq!(snapshot.count("default", &constraint), None);
        snapshot.prepare(&first, &first.rules.spread);
        assert_eq!(snapshot.count("default", &constraint), Some(&[1][..]));
        add(&mut snapshot, "2", "a", "web");
        add(&mut snapshot, "3", "b", "web");
        add(&mut snapshot, "4", "b", "db");
        assert_eq!(snapshot.count("default", &constraint), Some(&[2, 1][..]));
        snapshot.remove_pod(&first.key());
        assert_eq!(snapshot.count("default", &constraint), Some(&[1, 1][..]));
        assert_eq!(snapshot.count("other", &constraint), None);
    }
}
