//! Addresses and node ports of services: each is claimed by a key of its own, in the same commit as the
//! service.
//!
//! Creating a key that exists fails, so two services never share an address or port. A claim is deleted in
//! the commit that deletes its service, so a crash leaves none behind.

use crate::{call::Call, refusal::Refusal};
use api::{
    field::{Error, ErrorList, Path},
    object,
};
use serde_json::Value;
use std::{collections::BTreeSet, net::Ipv4Addr};

// Kubernetes: --service-node-port-range.
const NODE_PORTS: std::ops::RangeInclusive<i64> = 30000..=32767;
/// The first node port of a dry run.
const DRY_PORT: i64 = 32769;
const FAMILIES: [&str; 1] = ["IPv4"];
const ADDRESSES: &str = "/registry/ranges/serviceips/";
const PORTS: &str = "/registry/ranges/servicenodeports/";

/// A block of addresses for services.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceRange {
    network: u32,
    /// The number of bits that all addresses share.
    prefix: u8,
}

impl Default for ServiceRange {
    fn default() -> ServiceRange {
        ServiceRange { network: u32::from(Ipv4Addr::new(10, 96, 0, 0)), prefix: 16 }
    }
}

/// `ADDRESS/BITS`, with at least a few addresses in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no IPv4 range such as 10.96.0.0/16, between /8 and /28")]
pub struct BadRange(String);

impl std::str::FromStr for ServiceRange {
    type Err = BadRange;
    fn from_str(text: &str) -> Result<ServiceRange, BadRange> {
        let bad = || BadRange(text.to_owned());
        let (address, prefix) = text.split_once('/').ok_or_else(bad)?;
        let address: Ipv4Addr = address.parse().map_err(|_| bad())?;
        let prefix: u8 = prefix.parse().ok().filter(|prefix| (8..=28).contains(prefix)).ok_or_else(bad)?;
        let size = 1_u32 << (32 - prefix);
        Ok(ServiceRange { network: u32::from(address) & !(size - 1), prefix })
    }
}

impl std::fmt::Display for ServiceRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", Ipv4Addr::from(self.network), self.prefix)
    }
}

impl ServiceRange {
    /// The number of addresses for services: all but the network address and the last one.
    fn size(self) -> u64 {
        (1_u64 << (32 - self.prefix)) - 2
    }

    /// The address of the service `kubernetes`.
    pub fn first(self) -> Ipv4Addr {
        self.nth(0)
    }

    fn nth(self, number: u64) -> Ipv4Addr {
        Ipv4Addr::from(self.network + 1 + (number % self.size()) as u32)
    }

    fn contains(self, address: Ipv4Addr) -> bool {
        let offset = u32::from(address).wrapping_sub(self.network);
        (1..=self.size()).contains(&u64::from(offset))
    }
}

/// A service with its addresses and ports filled in.
#[derive(Debug)]
pub(super) struct Filled {
    pub(super) service: Value,
    /// Claims chosen by the server: if one is taken, another will do.
    pub(super) chosen: BTreeSet<String>,
}

pub(super) fn is_service(call: &Call) -> bool {
    call.served.is("", "services")
}

/// The keys that claim a service's addresses and ports.
pub(super) fn claims_of(service: &Value) -> BTreeSet<String> {
    let spec = &service["spec"];
    let addresses = spec["clusterIPs"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let addresses = addresses.filter(|address| !matches!(*address, "" | "None"));
    let ports = spec["ports"].as_array().into_iter().flatten().map(|port| &port["nodePort"]);
    let ports =
        ports.chain([&spec["healthCheckNodePort"]]).filter_map(Value::as_i64).filter(|port| *port > 0);
    let ports = ports.map(|port| format!("{PORTS}{port}"));
    addresses.map(|address| format!("{ADDRESSES}{address}")).chain(ports).collect()
}

/// Whether a service is unchanged once its default address families are set.
pub(super) fn is_same(call: &Call, draft: &Value, current: &Value) -> bool {
    if !is_service(call) {
        return false;
    }
    let mut filled = draft.clone();
    kinds::strategy::service_address::choose_families(&mut filled, Some(current), &FAMILIES);
    call.served.normalize(&mut filled);
    filled == *current
}

/// Chooses random addresses and ports for fields that are unset. `round` counts the attempts: after a few
/// conflicts the choice goes through the range in order.
pub(super) fn fill(
    call: &Call,
    mut service: Value,
    old: Option<&Value>,
    round: u64,
) -> Result<Filled, Refusal> {
    let family_count = service["spec"]["ipFamilies"].as_array().map_or(0, Vec::len);
    kinds::strategy::service_address::choose_families(&mut service, old, &FAMILIES);
    check_families(call, &service, family_count)?;
    let had = old.map(claims_of).unwrap_or_default();
    check(call, &service, &had)?;
    let mut chosen = BTreeSet::new();
    let world = &call.inner.world;
    let kind = service["spec"]["type"].as_str().unwrap_or("ClusterIP").to_owned();
    let has_address = service["spec"]["clusterIP"].as_str().is_some_and(|address| !address.is_empty());
    if kind != "ExternalName" && !has_address {
        let range = call.inner.service_range;
        let address = match call.options.is_dry_run() {
            true => Ipv4Addr::from(range.network),
            false => range.nth(world.draw().wrapping_add(round)),
        };
        let address = address.to_string();
        chosen.insert(format!("{ADDRESSES}{address}"));
        service["spec"]["clusterIP"] = address.clone().into();
        service["spec"]["clusterIPs"] = vec![address].into();
    }
    let mut ports = Ports { world, is_dry: call.options.is_dry_run(), last: 0, chosen };
    let wants_ports = kind == "NodePort"
        || (kind == "LoadBalancer" && service["spec"]["allocateLoadBalancerNodePorts"] != Value::Bool(false));
    if wants_ports && let Some(list) = service["spec"]["ports"].as_array_mut() {
        ports.fill(list, old.is_none());
    }
    let wants_health = kind == "LoadBalancer" && service["spec"]["externalTrafficPolicy"] == "Local";
    if wants_health && service["spec"]["healthCheckNodePort"].as_i64().unwrap_or(0) == 0 {
        service["spec"]["healthCheckNodePort"] = ports.next().into();
    }
    Ok(Filled { service, chosen: ports.chosen })
}

/// Chooses the node ports of one write.
struct Ports<'w> {
    world: &'w world::World,
    is_dry: bool,
    /// The last node port chosen.
    last: i64,
    chosen: BTreeSet<String>,
}

impl Ports<'_> {
    /// Sets missing node ports. In a new service, one port in several protocols shares a node port.
    fn fill(&mut self, ports: &mut [Value], is_new: bool) {
        let number = |port: &Value, name: &str| port[name].as_i64().unwrap_or(0);
        for at in 0..ports.len() {
            let (port, own) = (number(&ports[at], "port"), number(&ports[at], "nodePort"));
            let shared = |other: &&Value| number(other, "port") == port && number(other, "nodePort") != 0;
            let shared = ports.iter().find(shared).filter(|_| is_new).map(|it| number(it, "nodePort"));
            let found = match own {
                0 => shared.unwrap_or_else(|| self.next()),
                own => own,
            };
            self.last = self.last.max(found);
            ports[at]["nodePort"] = found.into();
        }
    }

    fn next(&mut self) -> i64 {
        if self.is_dry {
            // Kubernetes: a dry run answers with ports outside the range.
            self.last = if self.last == 0 { DRY_PORT } else { self.last + 1 };
            return self.last;
        }
        let count = (NODE_PORTS.end() - NODE_PORTS.start() + 1).unsigned_abs();
        loop {
            let number = NODE_PORTS.start() + self.world.pick(0..count).cast_signed();
            if self.chosen.insert(format!("{PORTS}{number}")) {
                return number;
            }
        }
    }
}

/// For a dry run: rejects addresses and ports that other services have.
pub(super) async fn check_free(call: &Call, service: &Value, old: Option<&Value>) -> Result<(), Refusal> {
    let had = old.map(claims_of).unwrap_or_default();
    for claim in claims_of(service).difference(&had).filter(|claim| claim.starts_with(PORTS)) {
        let read = call.inner.store.get(claim.clone().into(), None).await;
        if read?.entry.is_some() {
            return Err(taken(call, service, claim));
        }
    }
    Ok(())
}

/// Rejects IP families that the cluster does not have. `family_count` is how many the client named.
fn check_families(call: &Call, service: &Value, family_count: usize) -> Result<(), Refusal> {
    let spec = &service["spec"];
    let list = |name: &str| spec[name].as_array().into_iter().flatten().filter_map(Value::as_str);
    if spec["type"] == "ExternalName" {
        return Ok(());
    }
    let mut errors = ErrorList::new();
    let path = Path::new("spec");
    let policy = spec["ipFamilyPolicy"].as_str().unwrap_or_default();
    for (name, what) in [("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families")] {
        if policy == "SingleStack" && list(name).count() == 2 {
            let detail =
                format!("must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified");
            errors.push(Error::invalid(&path.child("ipFamilyPolicy"), policy, detail));
        }
    }
    for (at, _) in list("clusterIPs").enumerate().skip(family_count).filter(|(_, it)| it.contains(':')) {
        let detail = "IPv6 is not configured on this cluster";
        errors.push(Error::invalid(&path.child("clusterIPs").index(at), &spec["clusterIPs"], detail));
    }
    refuse(call, service, errors)?;
    if spec["clusterIP"] == "None" && spec["selector"].as_object().is_none_or(serde_json::Map::is_empty) {
        return Ok(());
    }
    let mut errors = ErrorList::new();
    if policy == "RequireDualStack" {
        let detail = "this cluster is not configured for dual-stack services";
        errors.push(Error::invalid(&path.child("ipFamilyPolicy"), policy, detail));
    }
    for (at, family) in list("ipFamilies").enumerate().filter(|(_, it)| !FAMILIES.contains(it)) {
        let detail = "not configured on this cluster";
        errors.push(Error::invalid(&path.child("ipFamilies").index(at), family, detail));
    }
    refuse(call, service, errors)
}

/// Rejects addresses and ports outside the ranges.
fn check(call: &Call, service: &Value, had: &BTreeSet<String>) -> Result<(), Refusal> {
    let mut errors = ErrorList::new();
    let spec = Path::new("spec");
    let is_dry = call.options.is_dry_run();
    let addresses = &service["spec"]["clusterIPs"];
    for text in addresses.as_array().into_iter().flatten().filter_map(Value::as_str) {
        let outside = text.parse().is_ok_and(|address| !call.inner.service_range.contains(address));
        if outside && !had.contains(&format!("{ADDRESSES}{text}")) {
            // Kubernetes: a dry run and a write have different texts.
            let problem = match is_dry {
                true => format!(
                    "the provided IP ({text}) is not in the valid range. The range of valid IPs is {}",
                    call.inner.service_range
                ),
                false => "the provided network does not match the current range".to_owned(),
            };
            let detail = format!("failed to allocate IP {text}: {problem}");
            errors.push(Error::invalid(&spec.child("clusterIPs"), addresses, detail));
        }
    }
    for (at, port) in service["spec"]["ports"].as_array().into_iter().flatten().enumerate() {
        let number = port["nodePort"].as_i64().unwrap_or(0);
        if number != 0 && !NODE_PORTS.contains(&number) && !is_dry {
            let detail = "provided port is not in the valid range. The range of valid ports is 30000-32767";
            errors.push(Error::invalid(&spec.child("ports").index(at).child("nodePort"), number, detail));
        }
    }
    refuse(call, service, errors)
}

/// The error for an address or port that another service has.
pub(super) fn taken(call: &Call, service: &Value, key: &str) -> Refusal {
    let mut errors = ErrorList::new();
    let spec = Path::new("spec");
    if let Some(address) = key.strip_prefix(ADDRESSES) {
        let detail = format!("failed to allocate IP {address}: provided IP is already allocated");
        errors.push(Error::invalid(&spec.child("clusterIPs"), &service["spec"]["clusterIPs"], detail));
    } else if let Some(number) = key.strip_prefix(PORTS).and_then(|number| number.parse::<i64>().ok()) {
        let ports = service["spec"]["ports"].as_array();
        let at =
            ports.and_then(|ports| ports.iter().position(|port| port["nodePort"] == number)).unwrap_or(0);
        let detail = "provided port is already allocated";
        errors.push(Error::invalid(&spec.child("ports").index(at).child("nodePort"), number, detail));
    }
    refuse(call, service, errors).err().unwrap_or_else(|| Refusal::internal_error("the range is full"))
}

fn refuse(call: &Call, service: &Value, errors: ErrorList) -> Result<(), Refusal> {
    let name = object::name(service);
    errors.into_result().map_err(|errors| Refusal::invalid(&call.served.group_kind(), name, &errors))
}
