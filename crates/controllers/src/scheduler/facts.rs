//! What the scheduler knows of a pod: read once from the cached object, without decoding all of it.

use super::{
    pod_affinity::{PodTerm, WeightedTerm},
    resources::{ContainerFields, CpuMemory, Demand, Quantities, Resources},
    spread::Constraint,
};
use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{
        Affinity, NodeSelectorTerm, PodCondition, PreferredSchedulingTerm, Toleration,
        TopologySpreadConstraint, Volume,
    },
    apimachinery::pkg::apis::meta::v1::{OwnerReference, Time},
};
use operator::{
    Key,
    cache::{Item, Undecodable},
};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The pods of other schedulers are not touched.
pub(super) const SCHEDULER: &str = "default-scheduler";

/// A pod as the scheduler sees it.
#[derive(Clone, Debug, Default)]
pub(super) struct PodFacts {
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) uid: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) controller: Option<OwnerReference>,
    pub(super) is_deleting: bool,
    pub(super) is_finished: bool,
    pub(super) is_gated: bool,
    pub(super) is_ours: bool,
    pub(super) generation: Option<i64>,
    pub(super) priority: i32,
    pub(super) may_preempt: bool,
    pub(super) started: Option<Timestamp>,
    pub(super) node: Option<String>,
    pub(super) nominated_node: Option<String>,
    /// Whether the scheduler has deleted it to make room.
    pub(super) is_preempted: bool,
    pub(super) scheduled_condition: Option<PodCondition>,
    pub(super) rules: PlacementRules,
}

/// The part of a pod's spec that decides where it may run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PlacementRules {
    pub(super) requests: Resources,
    pub(super) requests_for_scoring: CpuMemory,
    pub(super) ports: Vec<HostPort>,
    pub(super) node_selector: BTreeMap<String, String>,
    /// One of them must match; `None` without such a rule.
    pub(super) node_terms: Option<Vec<NodeSelectorTerm>>,
    pub(super) preferred_nodes: Vec<PreferredSchedulingTerm>,
    pub(super) tolerations: Vec<Toleration>,
    pub(super) affinity: Vec<PodTerm>,
    pub(super) anti_affinity: Vec<PodTerm>,
    /// With negative weights for anti-affinity.
    pub(super) preferred_pods: Vec<WeightedTerm>,
    pub(super) spread: Vec<Constraint>,
    pub(super) claims: Vec<ClaimName>,
}

/// A port of the node that a container takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HostPort {
    pub(super) ip: String,
    pub(super) protocol: String,
    pub(super) port: i32,
}

/// A claim that a volume of the pod uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ClaimName {
    pub(super) name: String,
    /// Kubernetes: the claim of a generic ephemeral volume belongs to the pod.
    pub(super) is_ephemeral: bool,
}

impl PodFacts {
    pub(super) fn key(&self) -> Key {
        Key::new(Some(&self.namespace), &self.name)
    }

    pub(super) fn read(item: &Item) -> Result<PodFacts, Undecodable> {
        item.decode::<PodFields>().map(PodFacts::from)
    }

    /// The keys of its claims.
    pub(super) fn claim_keys(&self) -> impl Iterator<Item = Key> {
        self.rules.claims.iter().map(|claim| Key::new(Some(&self.namespace), &claim.name))
    }

    /// Whether it waits for a node from this scheduler.
    pub(super) fn is_pending(&self) -> bool {
        self.node.is_none() && self.is_ours && !self.is_finished && !self.is_deleting && !self.is_gated
    }

    /// Whether it takes up room on a node.
    pub(super) fn is_assigned(&self) -> bool {
        self.node.is_some() && !self.is_finished
    }

    pub(super) fn has_affinity(&self) -> bool {
        let rules = &self.rules;
        !(rules.affinity.is_empty() && rules.anti_affinity.is_empty() && rules.preferred_pods.is_empty())
    }
}

impl HostPort {
    pub(super) fn conflicts_with(&self, other: &HostPort) -> bool {
        const ANY: &str = "0.0.0.0";
        let is_same_ip = self.ip == other.ip || self.ip == ANY || other.ip == ANY;
        self.port == other.port && self.protocol == other.protocol && is_same_ip
    }
}

#[derive(Deserialize)]
struct PodFields {
    metadata: MetaFields,
    #[serde(default)]
    spec: SpecFields,
    #[serde(default)]
    status: StatusFields,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MetaFields {
    name: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    uid: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    owner_references: Vec<OwnerReference>,
    deletion_timestamp: Option<serde::de::IgnoredAny>,
    generation: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SpecFields {
    node_name: Option<String>,
    scheduler_name: Option<String>,
    priority: Option<i32>,
    preemption_policy: Option<String>,
    scheduling_gates: Vec<serde::de::IgnoredAny>,
    containers: Vec<ContainerFields>,
    init_containers: Vec<ContainerFields>,
    resources: Option<super::resources::RequestFields>,
    overhead: Option<Quantities>,
    node_selector: BTreeMap<String, String>,
    affinity: Option<Affinity>,
    tolerations: Vec<Toleration>,
    topology_spread_constraints: Vec<TopologySpreadConstraint>,
    volumes: Vec<Volume>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct StatusFields {
    phase: Option<String>,
    start_time: Option<Time>,
    nominated_node_name: Option<String>,
    conditions: Vec<PodCondition>,
}

impl From<PodFields> for PodFacts {
    fn from(fields: PodFields) -> PodFacts {
        let PodFields { metadata: meta, spec, status } = fields;
        let rules = rules(&meta, &spec);
        let named = |name: Option<String>| name.filter(|name| !name.is_empty());
        let condition = |name: &str| status.conditions.iter().find(|it| it.type_ == name);
        let is_preempted = condition("DisruptionTarget")
            .is_some_and(|it| it.status == "True" && it.reason.as_deref() == Some("PreemptionByScheduler"));
        PodFacts {
            is_deleting: meta.deletion_timestamp.is_some(),
            is_finished: matches!(status.phase.as_deref(), Some("Succeeded" | "Failed")),
            is_gated: !spec.scheduling_gates.is_empty(),
            is_ours: spec.scheduler_name.as_deref().unwrap_or(SCHEDULER) == SCHEDULER,
            priority: spec.priority.unwrap_or_default(),
            may_preempt: spec.preemption_policy.as_deref() != Some("Never"),
            started: status.start_time.as_ref().map(|time| time.0),
            node: named(spec.node_name),
            nominated_node: named(status.nominated_node_name.clone()),
            is_preempted,
            scheduled_condition: condition("PodScheduled").cloned(),
            rules,
            name: meta.name,
            namespace: meta.namespace,
            uid: meta.uid,
            labels: meta.labels,
            controller: meta.owner_references.into_iter().find(|owner| owner.controller == Some(true)),
            generation: meta.generation,
        }
    }
}

fn rules(meta: &MetaFields, spec: &SpecFields) -> PlacementRules {
    let demand = Demand {
        containers: &spec.containers,
        init_containers: &spec.init_containers,
        pod_level: spec.resources.as_ref().and_then(|resources| resources.requests.as_ref()),
        overhead: spec.overhead.as_ref(),
    };
    let affinity = spec.affinity.clone().unwrap_or_default();
    let node_affinity = affinity.node_affinity.unwrap_or_default();
    let required = node_affinity.required_during_scheduling_ignored_during_execution;
    let (pods, anti) =
        (affinity.pod_affinity.unwrap_or_default(), affinity.pod_anti_affinity.unwrap_or_default());
    let terms = |terms: Option<Vec<_>>| -> Vec<PodTerm> {
        terms.unwrap_or_default().iter().map(|term| PodTerm::read(term, &meta.namespace)).collect()
    };
    let weighted = |terms: Option<Vec<_>>, sign: i64| -> Vec<WeightedTerm> {
        let terms = terms.unwrap_or_default();
        terms.iter().map(|term| WeightedTerm::read(term, sign, &meta.namespace)).collect()
    };
    let mut preferred_pods = weighted(pods.preferred_during_scheduling_ignored_during_execution, 1);
    preferred_pods.extend(weighted(anti.preferred_during_scheduling_ignored_during_execution, -1));
    let spread = &spec.topology_spread_constraints;
    PlacementRules {
        requests: demand.requests(),
        requests_for_scoring: demand.requests_for_scoring(),
        ports: ports(spec),
        node_selector: spec.node_selector.clone(),
        node_terms: required.map(|selector| selector.node_selector_terms),
        preferred_nodes: node_affinity
            .preferred_during_scheduling_ignored_during_execution
            .unwrap_or_default(),
        tolerations: spec.tolerations.clone(),
        affinity: terms(pods.required_during_scheduling_ignored_during_execution),
        anti_affinity: terms(anti.required_during_scheduling_ignored_during_execution),
        preferred_pods,
        spread: spread.iter().map(|constraint| Constraint::read(constraint, &meta.labels)).collect(),
        claims: spec.volumes.iter().filter_map(|volume| claim(&meta.name, volume)).collect(),
    }
}

fn ports(spec: &SpecFields) -> Vec<HostPort> {
    let sidecars = spec.init_containers.iter().filter(|it| it.restart_policy.as_deref() == Some("Always"));
    let ports = spec.containers.iter().chain(sidecars).flat_map(|container| container.ports.iter().flatten());
    let taken = ports.filter_map(|port| {
        let filled = |text: &Option<String>, default: &str| {
            text.clone().filter(|text| !text.is_empty()).unwrap_or_else(|| default.to_owned())
        };
        Some(HostPort {
            ip: filled(&port.host_ip, "0.0.0.0"),
            protocol: filled(&port.protocol, "TCP"),
            port: port.host_port.filter(|port| *port > 0)?,
        })
    });
    taken.collect()
}

fn claim(pod: &str, volume: &Volume) -> Option<ClaimName> {
    if let Some(source) = &volume.persistent_volume_claim {
        return Some(ClaimName { name: source.claim_name.clone(), is_ephemeral: false });
    }
    volume.ephemeral.as_ref()?;
    Some(ClaimName { name: format!("{pod}-{}", volume.name), is_ephemeral: true })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// A pod with this name, metadata and spec in the namespace default.
    pub(crate) fn pod(name: &str, labels: &Value, spec: &Value) -> PodFacts {
        let pod = json!({"metadata": {"name": name, "namespace": "default", "uid": name, "labels": labels},
            "spec": spec});
        serde_json::from_value::<PodFields>(pod).unwrap().into()
    }

    /// The same on a node.
    pub(crate) fn pod_on(node: &str, name: &str, labels: &Value, spec: &Value) -> PodFacts {
        PodFacts { node: Some(node.to_owned()), ..pod(name, labels, spec) }
    }

    #[test]
    fn a_host_port_conflicts_with_the_same_port_on_the_same_or_on_all_addresses() {
        let port =
            |ip: &str, protocol: &str, port| HostPort { ip: ip.into(), protocol: protocol.into(), port };
        for (first, second, expected) in [
            (port("0.0.0.0", "TCP", 80), port("0.0.0.0", "TCP", 80), true),
            (port("10.0.0.1", "TCP", 80), port("0.0.0.0", "TCP", 80), true),
            (port("10.0.0.1", "TCP", 80), port("10.0.0.2", "TCP", 80), false),
            (port("0.0.0.0", "TCP", 80), port("0.0.0.0", "UDP", 80), false),
            (port("0.0.0.0", "TCP", 80), port("0.0.0.0", "TCP", 81), false),
        ] {
            assert_eq!(first.conflicts_with(&second), expected, "{first:?} {second:?}");
        }
    }
}
