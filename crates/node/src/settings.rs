//! The settings of simulated nodes: how many there are, and what they offer.

use crate::Kubelet;
use k8s_openapi::{api::core::v1::Taint, apimachinery::pkg::api::resource::Quantity};
use std::{collections::BTreeMap, net::SocketAddr};

/// The annotation of a Node object that makes it simulated or stops it.
pub const NODE: &str = "setpoint.dev/node";
/// The value of [`NODE`] for nodes that users create: they are simulated like those of [`Settings::count`].
pub const SIMULATED: &str = "simulated";
/// The value of [`NODE`] for nodes that have failed: neither their leases nor their pods go on.
pub const STOPPED: &str = "stopped";

/// How many nodes there are, and what each of them offers.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Nodes that register themselves: `node-0`, `node-1`, …
    pub count: usize,
    /// The beginning of their names.
    pub prefix: String,
    /// Capacity and allocatable. Node objects that exist already keep theirs.
    pub capacity: BTreeMap<String, Quantity>,
    /// Labels beside those that every kubelet sets.
    pub labels: BTreeMap<String, String>,
    pub taints: Vec<Taint>,
    /// Spreads the nodes over so many zones `zone-0`, `zone-1`, …; with 0, they have no zone.
    pub zones: usize,
    /// What answers for the kubelets of all nodes; the maker of these settings serves it.
    pub kubelet: Kubelet,
    /// Where it listens. Without a listener, nodes report their names and the usual port.
    pub kubelet_address: Option<SocketAddr>,
    /// Whether events are recorded. Large simulations do without: there are three for each start of a container.
    pub has_events: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        let capacity = [
            ("cpu", "32"),
            ("memory", "256Gi"),
            ("pods", "110"),
            ("ephemeral-storage", "1Ti"),
            ("hugepages-1Gi", "0"),
            ("hugepages-2Mi", "0"),
        ];
        Settings {
            count: 1,
            prefix: "node-".to_owned(),
            capacity: capacity.map(|(name, amount)| (name.to_owned(), Quantity(amount.to_owned()))).into(),
            labels: BTreeMap::new(),
            taints: Vec::new(),
            zones: 0,
            kubelet: Kubelet::default(),
            kubelet_address: None,
            has_events: true,
        }
    }
}

impl Settings {
    pub(crate) fn names(&self) -> Vec<String> {
        (0..self.count).map(|index| format!("{}{index}", self.prefix)).collect()
    }

    /// The number of a node in its name, if it is one of [`Settings::count`].
    pub(crate) fn index(&self, name: &str) -> Option<usize> {
        let digits = name.strip_prefix(&self.prefix)?;
        let index: usize = digits.parse().ok()?;
        (index < self.count && digits == index.to_string()).then_some(index)
    }
}
