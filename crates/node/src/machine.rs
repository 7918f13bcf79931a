//! The Node object of a simulated node: how it registers, and what it reports.

use crate::{image, plan::whole_second, settings::Settings};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    api::{
        coordination::v1::{Lease, LeaseSpec},
        core::v1::{
            ContainerImage, DaemonEndpoint, Node, NodeAddress, NodeCondition, NodeDaemonEndpoints, NodeSpec,
            NodeStatus, NodeSystemInfo,
        },
    },
    apimachinery::pkg::apis::meta::v1::{MicroTime, OwnerReference, Time},
};
use kube::core::ObjectMeta;
use std::{
    collections::{BTreeMap, BTreeSet},
    net::Ipv4Addr,
};

/// Kubernetes: the namespace of the leases of nodes.
pub(crate) const LEASES: &str = "kube-node-lease";
/// Kubernetes: nodeLeaseDurationSeconds.
const LEASE_SECONDS: i32 = 40;
/// Kubernetes: nodeStatusReportFrequency: an unchanged status is written so often.
pub(crate) const REPORT: SignedDuration = SignedDuration::from_secs(5 * 60);
/// Kubernetes: nodeStatusMaxImages.
const MOST_IMAGES: usize = 50;
const VERSION: &str = "v1.36.4";
/// Kubernetes: where a kubelet listens.
const KUBELET_PORT: u16 = 10250;
/// The numbers of nodes that users name begin here.
const FIRST_NAMED: usize = 40_000;
const NAMED: u64 = 20_000;

/// Kubernetes: type, status, reason and message of the conditions of a healthy node.
const CONDITIONS: [[&str; 4]; 4] = [
    ["MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"],
    ["DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"],
    ["PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"],
    ["Ready", "True", "KubeletReady", "kubelet is posting ready status"],
];

/// The object that a node registers.
pub(crate) fn registration(settings: &Settings, name: &str, now: Timestamp) -> Node {
    let metadata = ObjectMeta {
        name: Some(name.to_owned()),
        labels: Some(labels(settings, name)),
        annotations: Some(
            [("volumes.kubernetes.io/controller-managed-attach-detach".to_owned(), "true".to_owned())].into(),
        ),
        ..ObjectMeta::default()
    };
    let taints = (!settings.taints.is_empty()).then(|| settings.taints.clone());
    let spec = NodeSpec { taints, ..NodeSpec::default() };
    let node = Node { metadata, spec: Some(spec), status: None };
    let status = report(settings, &node, &BTreeSet::new(), now);
    Node { status: Some(status), ..node }
}

/// Kubernetes: the labels that a kubelet sets, and those of the settings.
pub(crate) fn labels(settings: &Settings, name: &str) -> BTreeMap<String, String> {
    let own = [
        ("kubernetes.io/hostname", name),
        ("kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", "amd64"),
        ("beta.kubernetes.io/os", "linux"),
        ("beta.kubernetes.io/arch", "amd64"),
    ];
    let own = own.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned()));
    let zone = settings.index(name).and_then(|index| index.checked_rem(settings.zones)).map(|zone| {
        [
            ("topology.kubernetes.io/region".to_owned(), "region-0".to_owned()),
            ("topology.kubernetes.io/zone".to_owned(), format!("zone-{zone}")),
        ]
    });
    own.chain(zone.into_iter().flatten()).chain(settings.labels.clone()).collect()
}

/// The status that a node reports now.
pub(crate) fn report(
    settings: &Settings,
    node: &Node,
    images: &BTreeSet<String>,
    now: Timestamp,
) -> NodeStatus {
    let name = node.metadata.name.as_deref().unwrap_or_default();
    let old = node.status.clone().unwrap_or_default();
    let number = number(settings, name);
    let address = |kind: &str, address: String| NodeAddress { type_: kind.to_owned(), address };
    let capacity = old.capacity.filter(|it| !it.is_empty()).unwrap_or_else(|| settings.capacity.clone());
    let allocatable = old.allocatable.filter(|it| !it.is_empty()).unwrap_or_else(|| capacity.clone());
    let listener = settings.kubelet_address;
    let endpoint = DaemonEndpoint { port: listener.map_or(KUBELET_PORT, |address| address.port()).into() };
    // The API server prefers this address. The others must differ between nodes, and none may be a loopback
    // address: those of a pod on the host's network are endpoints of services.
    let host_name = listener.map_or_else(|| name.to_owned(), |address| address.ip().to_string());
    let images: Vec<ContainerImage> = images.iter().take(MOST_IMAGES).map(|it| container_image(it)).collect();
    NodeStatus {
        addresses: Some(vec![
            address("InternalIP", host_ip(number).to_string()),
            address("Hostname", host_name),
        ]),
        conditions: Some(conditions(old.conditions.unwrap_or_default(), now)),
        capacity: Some(capacity),
        allocatable: Some(allocatable),
        daemon_endpoints: Some(NodeDaemonEndpoints { kubelet_endpoint: Some(endpoint) }),
        images: if images.is_empty() { old.images } else { Some(images) },
        node_info: Some(node_info(name)),
        ..old
    }
}

/// Whether the report is written: if it differs in more than times, or the last one is too old.
pub(crate) fn is_report_due(node: &Node, report: &NodeStatus, now: Timestamp) -> bool {
    let without_times = |status: &NodeStatus| {
        let mut status = status.clone();
        for condition in status.conditions.iter_mut().flatten() {
            condition.last_heartbeat_time = None;
        }
        status
    };
    let old = node.status.as_ref();
    old.is_none_or(|old| without_times(old) != without_times(report)) || next_report(node) <= now
}

/// When the next report is due.
pub(crate) fn next_report(node: &Node) -> Timestamp {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let last = conditions.filter(|it| it.type_ == "Ready").filter_map(|it| it.last_heartbeat_time.as_ref());
    last.map(|time| time.0 + REPORT).next().unwrap_or(Timestamp::UNIX_EPOCH)
}

fn conditions(old: Vec<NodeCondition>, now: Timestamp) -> Vec<NodeCondition> {
    let now = Some(Time(whole_second(now)));
    let own = CONDITIONS.map(|[type_, status, reason, message]| {
        let before = old.iter().find(|it| it.type_ == type_ && it.status == status);
        NodeCondition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            last_heartbeat_time: now.clone(),
            last_transition_time: before.and_then(|it| it.last_transition_time.clone()).or(now.clone()),
        }
    });
    let is_own = |it: &NodeCondition| CONDITIONS.iter().any(|[type_, ..]| *type_ == it.type_);
    old.iter().filter(|it| !is_own(it)).cloned().chain(own).collect()
}

fn node_info(name: &str) -> NodeSystemInfo {
    let id = format!("{:016x}{:016x}", image::number(&(name, 0)), image::number(&(name, 1)));
    let uuid = [0..8, 8..12, 12..16, 16..20, 20..32].map(|range| &id[range]).join("-");
    NodeSystemInfo {
        architecture: "amd64".to_owned(),
        boot_id: uuid.clone(),
        container_runtime_version: "containerd://2.2.1".to_owned(),
        kernel_version: "6.12.0-simulated".to_owned(),
        kubelet_version: VERSION.to_owned(),
        machine_id: id,
        operating_system: "linux".to_owned(),
        os_image: "Setpoint simulated node".to_owned(),
        system_uuid: uuid,
        ..NodeSystemInfo::default()
    }
}

fn container_image(image: &str) -> ContainerImage {
    let size = i64::try_from(image::bytes(image)).ok();
    ContainerImage { names: Some(vec![image::id(image), image::full_name(image)]), size_bytes: size }
}

/// The number of a node, for its addresses.
pub(crate) fn number(settings: &Settings, name: &str) -> usize {
    let named = || FIRST_NAMED + usize::try_from(image::number(&name) % NAMED).unwrap_or_default();
    settings.index(name).unwrap_or_else(named)
}

/// The address of node number `number`.
fn host_ip(number: usize) -> Ipv4Addr {
    let [.., high, low] = u32::try_from(number / 250).unwrap_or_default().to_be_bytes();
    let last = u8::try_from(number % 250 + 2).unwrap_or(2);
    Ipv4Addr::new(172, 18 + high, low, last)
}

/// The range of its pods' addresses: that of the object, or one by its number.
pub(crate) fn pod_range(settings: &Settings, node: &Node) -> (Ipv4Addr, u32) {
    let ranges =
        node.spec.iter().flat_map(|spec| spec.pod_cidr.iter().chain(spec.pod_cidrs.iter().flatten()));
    let mut parsed = ranges.filter_map(|range| {
        let (address, bits) = range.split_once('/')?;
        let bits = bits.parse::<u32>().ok().filter(|bits| *bits <= 30)?;
        Some((address.parse::<Ipv4Addr>().ok()?, bits))
    });
    let number = number(settings, node.metadata.name.as_deref().unwrap_or_default());
    let [.., high, low] = u32::try_from(number).unwrap_or_default().to_be_bytes();
    let default = (Ipv4Addr::new(10, 244u8.wrapping_add(high), low, 0), 24);
    parsed.next().unwrap_or(default)
}

/// The address that a node reports, also for its pods.
pub(crate) fn internal_ip(settings: &Settings, node: &Node) -> String {
    let addresses = node.status.iter().flat_map(|status| status.addresses.iter().flatten());
    let reported = addresses.filter(|it| it.type_ == "InternalIP").map(|it| it.address.clone()).next();
    let name = node.metadata.name.as_deref().unwrap_or_default();
    reported.unwrap_or_else(|| host_ip(number(settings, name)).to_string())
}

/// The lease of a node, renewed now.
pub(crate) fn lease(node: &Node, last: Option<&Lease>, now: Timestamp) -> Lease {
    let name = node.metadata.name.clone().unwrap_or_default();
    let owner = OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Node".to_owned(),
        name: name.clone(),
        uid: node.metadata.uid.clone().unwrap_or_default(),
        ..OwnerReference::default()
    };
    let mut lease = last.cloned().unwrap_or_default();
    lease.metadata.name = Some(name.clone());
    lease.metadata.namespace = Some(LEASES.to_owned());
    lease.metadata.owner_references = Some(vec![owner]);
    lease.spec = Some(LeaseSpec {
        holder_identity: Some(name),
        lease_duration_seconds: Some(LEASE_SECONDS),
        renew_time: Some(MicroTime(now)),
        ..lease.spec.unwrap_or_default()
    });
    lease
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_and_their_pods_have_addresses_of_their_own() {
        let settings = Settings { count: 1000, ..Settings::default() };
        let node = |name: &str, range: Option<&str>| {
            let spec = NodeSpec { pod_cidr: range.map(str::to_owned), ..NodeSpec::default() };
            let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
            Node { metadata, spec: Some(spec), status: None }
        };
        for (name, range, host, pods) in [
            ("node-0", None, "172.18.0.2", "10.244.0.0/24"),
            ("node-999", None, "172.18.3.251", "10.247.231.0/24"),
            ("node-7", Some("10.1.2.0/25"), "172.18.0.9", "10.1.2.0/25"),
            ("node-7", Some("fd00::/64"), "172.18.0.9", "10.244.7.0/24"),
        ] {
            let node = node(name, range);
            let (address, bits) = pod_range(&settings, &node);
            assert_eq!(internal_ip(&settings, &node), host);
            assert_eq!(format!("{address}/{bits}"), pods);
        }
    }

    #[test]
    fn an_unchanged_status_is_reported_every_five_minutes() {
        let (settings, none) = (Settings::default(), BTreeSet::new());
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let node = registration(&settings, "node-0", start);
        for (seconds, is_due) in [(0, false), (299, false), (300, true)] {
            let now = start + SignedDuration::from_secs(seconds);
            assert_eq!(is_report_due(&node, &report(&settings, &node, &none, now), now), is_due, "{seconds}");
        }
        let mut sick = node;
        sick.status.as_mut().unwrap().conditions.as_mut().unwrap()[3].status = "Unknown".to_owned();
        assert!(is_report_due(&sick, &report(&settings, &sick, &none, start), start));
    }
}
