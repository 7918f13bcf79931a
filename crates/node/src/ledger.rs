//! The ledger: which pods are on which node, with their addresses and requests.
//!
//! It repeats what the statuses of the pods say, so that starting a pod does not read all others of its node,
//! and it holds what only this process remembers of them.

use crate::{
    environment,
    host_ports::{self, HostPort, Wanted},
    plan::{Memory, is_finished},
    requests::{self, Amounts},
    shell::{Change, Texts, size},
};
use k8s_openapi::api::core::v1::Pod;
use operator::Key;
use std::{
    collections::{BTreeMap, BTreeSet},
    net::Ipv4Addr,
};

/// A kubelet deletes images when its disk is full; this one forgets that it has them.
const MOST_IMAGES: usize = 1_000;
/// So many files that pods have written to folders of a node are remembered.
const MOST_FILES: usize = 1_000;
/// So many bytes of them: each container remembers those that there were when it started.
const MOST_FILE_BYTES: usize = 256 << 10;

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    nodes: BTreeMap<String, Host>,
    /// The node of each pod.
    node_of: BTreeMap<Key, String>,
    is_filled: bool,
}

/// What is on one node.
#[derive(Debug, Default)]
struct Host {
    guests: BTreeMap<Key, Guest>,
    images: BTreeSet<String>,
    /// The files that pods have written to its folders.
    files: Texts,
    /// The last address that a pod got: the next pod gets a later one, so that addresses are not reused at once.
    last_address: u32,
}

/// A pod.
#[derive(Debug, Default)]
struct Guest {
    uid: String,
    /// Its requests are those of this generation: a resize changes them.
    generation: Option<i64>,
    address: Option<Ipv4Addr>,
    /// Absent while it has not been admitted, and when it is finished.
    requests: Option<Amounts>,
    /// Empty like them.
    ports: Vec<HostPort>,
    memory: Memory,
}

impl Guest {
    fn admit(&mut self, pod: &Pod) {
        self.requests = Some(requests::of_pod(pod));
        self.ports = host_ports::of_pod(pod);
        self.generation = pod.metadata.generation;
    }
}

impl Ledger {
    pub(crate) fn is_filled(&self) -> bool {
        self.is_filled
    }

    /// Takes up all pods that there are, before the first one is started.
    pub(crate) fn fill<'a>(&mut self, pods: impl IntoIterator<Item = &'a Pod>) {
        for pod in pods {
            let Some(node) = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()) else { continue };
            self.note(&Key::of(pod), pod, &node);
        }
        self.is_filled = true;
    }

    /// Takes up a pod, or what has changed of it.
    pub(crate) fn note(&mut self, key: &Key, pod: &Pod, node: &str) {
        if self.node_of.get(key).is_some_and(|known| known != node) {
            self.forget(key);
        }
        self.node_of.insert(key.clone(), node.to_owned());
        let host = self.nodes.entry(node.to_owned()).or_default();
        let guest = host.guests.entry(key.clone()).or_default();
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        if guest.uid != uid {
            *guest = Guest { uid: uid.to_owned(), ..Guest::default() };
        }
        let Some(status) = &pod.status else { return };
        if is_finished(status) {
            (guest.requests, guest.address) = (None, None);
            guest.ports.clear();
            return;
        }
        if let (None, Some(ip)) = (guest.address, status.pod_ip.as_deref()) {
            guest.address = ip.parse().ok();
        }
        if status.start_time.is_some() && guest.requests.is_none() {
            guest.admit(pod);
        }
    }

    pub(crate) fn forget(&mut self, key: &Key) {
        let Some(node) = self.node_of.remove(key) else { return };
        if let Some(host) = self.nodes.get_mut(&node) {
            host.guests.remove(key);
        }
    }

    pub(crate) fn pods_on(&self, node: &str) -> Vec<Key> {
        self.nodes.get(node).map(|host| host.guests.keys().cloned().collect()).unwrap_or_default()
    }

    /// What the admitted pods of a node use, but for this one; with their number as `pods`.
    pub(crate) fn used(&self, node: &str, except: &Key) -> Amounts {
        let mut used = Amounts::new();
        let guests = self.nodes.get(node).into_iter().flat_map(|host| &host.guests);
        let mut count = 0;
        for requests in
            guests.filter(|(key, _)| *key != except).filter_map(|(_, guest)| guest.requests.as_ref())
        {
            requests::add(&mut used, requests);
            count += 1;
        }
        used.insert("pods".to_owned(), count);
        used
    }

    /// Whether no other pod of the node has one of this pod's host ports.
    pub(crate) fn has_free_ports(&self, node: &str, key: &Key, pod: &Pod) -> bool {
        let wanted = Wanted::by(pod);
        let guests = self.nodes.get(node).into_iter().flat_map(|host| &host.guests);
        wanted.is_empty()
            || guests.filter(|(other, _)| *other != key).all(|(_, it)| wanted.are_free(&it.ports))
    }

    /// Admits a pod: from now on its requests and host ports count.
    pub(crate) fn admit(&mut self, key: &Key, pod: &Pod) {
        if let Some(guest) = self.guest(key) {
            guest.admit(pod);
        }
    }

    /// Whether the spec of an admitted pod has changed since its requests were counted.
    pub(crate) fn is_changed(&mut self, key: &Key, pod: &Pod) -> bool {
        self.guest(key).is_some_and(|it| it.requests.is_some() && it.generation != pod.metadata.generation)
    }

    /// The address of a pod in this range; an empty text if all are in use.
    pub(crate) fn address(&mut self, key: &Key, range: (Ipv4Addr, u32)) -> String {
        let Some(host) = self.node_of.get(key).and_then(|node| self.nodes.get_mut(node)) else {
            return String::new();
        };
        if let Some(address) = host.guests.get(key).and_then(|guest| guest.address) {
            return address.to_string();
        }
        let taken: BTreeSet<Ipv4Addr> = host.guests.values().filter_map(|guest| guest.address).collect();
        let (network, bits) = range;
        let size = 1u32.checked_shl(32u32.saturating_sub(bits)).unwrap_or(u32::MAX);
        // The first two are the network and its gateway, the last one is for broadcasts.
        let usable = size.saturating_sub(3).max(1);
        let address = |offset: u32| Ipv4Addr::from(u32::from(network).saturating_add(2 + offset));
        let mut offsets = (0..usable).map(|step| (host.last_address + step) % usable);
        let Some(offset) = offsets.find(|offset| !taken.contains(&address(*offset))) else {
            return String::new();
        };
        host.last_address = offset + 1;
        if let Some(guest) = host.guests.get_mut(key) {
            guest.address = Some(address(offset));
        }
        address(offset).to_string()
    }

    pub(crate) fn memory(&mut self, key: &Key) -> Memory {
        self.guest(key).map(|guest| guest.memory.clone()).unwrap_or_default()
    }

    pub(crate) fn remember(&mut self, key: &Key, memory: Memory) {
        if let Some(guest) = self.guest(key) {
            guest.memory = memory;
        }
    }

    pub(crate) fn images(&self, node: &str) -> BTreeSet<String> {
        self.nodes.get(node).map(|host| host.images.clone()).unwrap_or_default()
    }

    pub(crate) fn has_image(&self, node: &str, image: &str) -> bool {
        self.nodes.get(node).is_some_and(|host| host.images.contains(image))
    }

    pub(crate) fn pulled(&mut self, node: &str, images: Vec<String>) {
        let host = self.nodes.entry(node.to_owned()).or_default();
        host.images.extend(images);
        while host.images.len() > MOST_IMAGES {
            host.images.pop_first();
        }
    }

    /// The files in these folders of a node.
    pub(crate) fn files(&self, node: &str, folders: &[String]) -> Texts {
        let is_inside = |path: &str| {
            folders.iter().any(|it| path.strip_prefix(it.as_str()).is_some_and(|it| it.starts_with('/')))
        };
        let files = self.nodes.get(node).into_iter().flat_map(|host| &host.files);
        files.filter(|(path, _)| is_inside(path)).map(|(path, text)| (path.clone(), text.clone())).collect()
    }

    pub(crate) fn change_files(&mut self, node: &str, changes: Vec<Change>) {
        let host = self.nodes.entry(node.to_owned()).or_default();
        environment::apply(&mut host.files, changes);
        let mut bytes = size(&host.files);
        while host.files.len() > MOST_FILES || bytes > MOST_FILE_BYTES {
            let Some((path, text)) = host.files.pop_first() else { break };
            bytes -= path.len() + text.len();
        }
    }

    fn guest(&mut self, key: &Key) -> Option<&mut Guest> {
        self.nodes.get_mut(self.node_of.get(key)?)?.guests.get_mut(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(name: &str, ip: Option<&str>) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": "a", "uid": name},
            "spec": {"nodeName": "n", "containers": []},
            "status": ip.map(|ip| json!({"podIP": ip, "startTime": "2026-01-01T00:00:00Z"}))}))
        .unwrap()
    }

    #[test]
    fn a_node_remembers_few_files() {
        let mut ledger = Ledger::default();
        for at in 0..200 {
            let change = (std::time::Duration::ZERO, format!("/data/{at:03}"), Some("x".repeat(4096)));
            ledger.change_files("n", vec![change]);
        }
        let files = ledger.files("n", &["/data".to_owned()]);
        assert!(size(&files) <= MOST_FILE_BYTES && files.len() > 60, "{}", files.len());
        assert!(files.contains_key("/data/199"));
    }

    #[test]
    fn addresses_are_unique_within_a_node_and_not_reused_at_once() {
        let mut ledger = Ledger::default();
        let old = pod("old", Some("10.0.0.3"));
        ledger.fill([&old]);
        let range = (Ipv4Addr::new(10, 0, 0, 0), 29);
        let mut given = Vec::new();
        for name in ["a", "b", "c", "d", "e"] {
            let pod = pod(name, None);
            ledger.note(&Key::of(&pod), &pod, "n");
            given.push(ledger.address(&Key::of(&pod), range));
        }
        assert_eq!(given, ["10.0.0.2", "10.0.0.4", "10.0.0.5", "10.0.0.6", ""]);
        assert_eq!(ledger.address(&Key::parse("a/a"), range), "10.0.0.2", "it keeps its address");
        ledger.forget(&Key::parse("a/old"));
        assert_eq!(ledger.address(&Key::parse("a/e"), range), "10.0.0.3");
        assert_eq!(ledger.pods_on("n").len(), 5);
    }
}
