//! The name in the path of a proxy → the address of the pod that answers.

use crate::{
    call::Call, convert::in_request_version, kubelet::PodAddress, lookup, refusal::Refusal, stored::Stored,
};
use api::{go, kind::GroupResource};
use schema::scan;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
};

const ENDPOINTS: (&str, &str, &str) = ("", "v1", "endpoints");
const PODS: (&str, &str, &str) = ("", "v1", "pods");
/// Pods that are looked up for one request: the controller writes endpoints of pods that are there.
const MAX_LOOKUPS: usize = 100;

/// Who answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Backend {
    pub(super) address: PodAddress,
    /// As in its URL.
    pub(super) host: String,
}

/// `NAME`, `NAME:PORT` or `SCHEME:NAME:PORT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Id<'a> {
    is_tls: bool,
    name: &'a str,
    /// Empty if there is none.
    port: &'a str,
}

impl<'a> Id<'a> {
    fn parse(text: &'a str) -> Option<Id<'a>> {
        let (scheme, name, port) = match text.split(':').collect::<Vec<_>>()[..] {
            [name] => ("", name, ""),
            [name, port] => ("", name, port),
            [scheme, name, port] => (scheme, name, port),
            _ => return None,
        };
        let is_known = matches!(scheme, "" | "http" | "https");
        (is_known && !name.is_empty()).then_some(Id { is_tls: scheme == "https", name, port })
    }
}

/// The pod itself; without a port, the first that its containers name.
pub(super) async fn of_pod(call: &Call) -> Result<Backend, Refusal> {
    let id = &call.target.name;
    let parsed = Id::parse(id);
    let id = parsed.ok_or_else(|| Refusal::bad_request(format!("invalid pod request {}", go::quote(id))))?;
    let pod = in_request_version(call, &lookup::find(call, id.name).await?).await?;
    let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
    let mut named = containers.filter_map(|container| container["ports"][0]["containerPort"].as_u64());
    let port = match id.port {
        "" => named.next().map(|port| port.to_string()).unwrap_or_default(),
        port => port.to_owned(),
    };
    let ip = ips_of(&pod).next().unwrap_or_default();
    backend(ip, &port, id.is_tls)
}

/// One of the pods behind a service.
pub(super) async fn of_service(call: &Call) -> Result<Backend, Refusal> {
    let whole = &call.target.name;
    let parsed = Id::parse(whole);
    let id = parsed
        .ok_or_else(|| Refusal::bad_request(format!("invalid service request {}", go::quote(whole))))?;
    let port = port_name(call, id).await?;
    let namespace = &call.target.namespace;
    let endpoints = lookup::object(&call.inner, ENDPOINTS, namespace, id.name).await?;
    let endpoints =
        endpoints.ok_or_else(|| Refusal::not_found(&GroupResource::new("", "endpoints"), id.name))?;
    let subsets = list(&endpoints["subsets"]);
    let unavailable = |name: &str| {
        Refusal::service_unavailable(format!("no endpoints available for service {}", go::quote(name)))
    };
    if subsets.is_empty() {
        return Err(unavailable(id.name));
    }
    let mut pods = LookedUpPods { call, addresses: BTreeMap::new() };
    for subset in from_anywhere(call, subsets) {
        let named = list(&subset["ports"]).iter().find(|it| text(&it["name"]) == port);
        let Some(number) = named.and_then(|it| it["port"].as_u64()) else { continue };
        for address in from_anywhere(call, list(&subset["addresses"])) {
            if pods.has(address).await? {
                return backend(text(&address["ip"]), &number.to_string(), id.is_tls);
            }
        }
    }
    // Kubernetes: this text has the port, the one above has not.
    Err(unavailable(whole))
}

/// The name of the service's port that a request names by number or name.
async fn port_name(call: &Call, id: Id<'_>) -> Result<String, Refusal> {
    let Ok(number) = id.port.parse::<i64>() else { return Ok(id.port.to_owned()) };
    let service = in_request_version(call, &lookup::find(call, id.name).await?).await?;
    let port = list(&service["spec"]["ports"]).iter().find(|port| port["port"].as_i64() == Some(number));
    let name = go::quote(id.name);
    let missing =
        || Refusal::service_unavailable(format!("no service port {number} found for service {name}"));
    port.map(|port| text(&port["name"]).to_owned()).ok_or_else(missing)
}

/// The addresses of pods that endpoints name, each pod read once.
struct LookedUpPods<'a> {
    call: &'a Call,
    /// By the names of the pods; `null` for one that does not exist.
    addresses: BTreeMap<&'a str, Value>,
}

impl<'a> LookedUpPods<'a> {
    /// Kubernetes: a user who may write endpoints must not reach what is no pod of their namespace.
    async fn has(&mut self, address: &'a Value) -> Result<bool, Refusal> {
        let (target, namespace) = (&address["targetRef"], &self.call.target.namespace);
        let name = text(&target["name"]);
        if text(&target["namespace"]) != namespace {
            return Ok(false);
        }
        if !self.addresses.contains_key(name) {
            if self.addresses.len() >= MAX_LOOKUPS {
                return Ok(false);
            }
            let pod = lookup::stored(&self.call.inner, PODS, namespace, name).await?;
            self.addresses.insert(name, pod.map_or(Ok(Value::Null), |pod| addresses_of(&pod))?);
        }
        Ok(list(&self.addresses[name]).iter().any(|it| it["ip"] == address["ip"]))
    }
}

/// The addresses in the status of a pod; of all its bytes, only those are decoded.
fn addresses_of(pod: &Stored) -> Result<Value, Refusal> {
    let Some(addresses) = scan::find(&pod.json, &["status", "podIPs"]) else { return Ok(Value::Null) };
    match serde_json::from_slice(addresses) {
        Ok(addresses) => Ok(addresses),
        Err(_) => pod.value().map(|mut pod| pod["status"]["podIPs"].take()),
    }
}

/// All of them, beginning with any.
fn from_anywhere<'a>(call: &Call, all: &'a [Value]) -> impl Iterator<Item = &'a Value> + use<'a> {
    let start = match all.len() {
        0 => 0,
        count => call.inner.world.pick(0..count as u64) as usize,
    };
    all.iter().cycle().skip(start).take(all.len())
}

fn ips_of(pod: &Value) -> impl Iterator<Item = &str> {
    list(&pod["status"]["podIPs"]).iter().map(|it| text(&it["ip"]))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The address, if a pod may have it.
fn backend(ip: &str, port: &str, is_tls: bool) -> Result<Backend, Refusal> {
    let ip = ip.parse::<IpAddr>().ok().filter(|ip| is_allowed(*ip));
    let ip = ip.ok_or_else(|| Refusal::bad_request("address not allowed"))?;
    let bare = if ip.is_ipv6() { format!("[{ip}]") } else { ip.to_string() };
    let (number, host) = match port {
        "" => (if is_tls { 443 } else { 80 }, bare),
        port => {
            let number = port.parse::<u16>().map_err(|_| {
                Refusal::service_unavailable(format!(
                    "error trying to reach service: dial tcp: lookup tcp/{port}: unknown port"
                ))
            })?;
            (number, format!("{bare}:{number}"))
        }
    };
    Ok(Backend { address: PodAddress { socket: SocketAddr::new(ip, number), is_tls }, host })
}

/// A user who may write the status of a pod must not reach this machine, nor its cloud's metadata.
// Kubernetes: only global unicast addresses, private ones included.
fn is_allowed(ip: IpAddr) -> bool {
    // An IPv4 address within an IPv6 address is that address.
    match ip.to_canonical() {
        IpAddr::V4(ip) => {
            !(ip.is_loopback()
                || ip.is_link_local()
                || ip.is_multicast()
                || ip.is_broadcast()
                || ip.is_unspecified())
        }
        IpAddr::V6(ip) => {
            !(ip.is_loopback() || ip.is_unicast_link_local() || ip.is_multicast() || ip.is_unspecified())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_a_scheme_and_a_port() {
        let id = |is_tls, name, port| Some(Id { is_tls, name, port });
        for (text, expected) in [
            ("web", id(false, "web", "")),
            ("web:80", id(false, "web", "80")),
            ("http:web:http", id(false, "web", "http")),
            ("https:web:", id(true, "web", "")),
            (":web:80", id(false, "web", "80")),
            ("ftp:web:80", None),
            (":80", None),
            ("a:b:c:d", None),
        ] {
            assert_eq!(Id::parse(text), expected, "{text}");
        }
    }

    #[test]
    fn only_addresses_that_pods_may_have_are_reached() {
        for (ip, port, expected) in [
            ("10.0.0.1", "80", Ok("10.0.0.1:80")),
            ("10.0.0.1", "", Ok("10.0.0.1:80")),
            ("fd00::1", "8080", Ok("[fd00::1]:8080")),
            ("100.64.0.1", "80", Ok("100.64.0.1:80")),
            ("10.0.0.1", "http", Err(503)),
            ("10.0.0.1", "65536", Err(503)),
            ("10.0.0.1", "80@127.0.0.1", Err(503)),
            ("", "80", Err(400)),
            ("example.com", "80", Err(400)),
            ("127.0.0.1", "80", Err(400)),
            ("127.9.9.9", "80", Err(400)),
            ("169.254.169.254", "80", Err(400)),
            ("0.0.0.0", "80", Err(400)),
            ("255.255.255.255", "80", Err(400)),
            ("224.0.0.1", "80", Err(400)),
            ("::1", "80", Err(400)),
            ("::", "80", Err(400)),
            ("fe80::1", "80", Err(400)),
            ("fe80::1%eth0", "80", Err(400)),
            ("ff02::1", "80", Err(400)),
            ("::ffff:127.0.0.1", "80", Err(400)),
            ("::ffff:169.254.169.254", "80", Err(400)),
        ] {
            let found = backend(ip, port, false).map(|backend| backend.address.socket.to_string());
            let found = found.map_err(|refusal| refusal.into_status().code);
            assert_eq!(found.as_deref().map_err(|code| *code), expected, "{ip} {port}");
        }
    }
}
