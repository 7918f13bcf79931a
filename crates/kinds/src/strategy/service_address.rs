//! The addresses of a service as far as they follow from what is said: allocation itself lies with the server.

use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};

use crate::built_in::core::service::strategy as service;
use crate::defaults::member::{self, Members};

const NONE: &str = "None";
const SINGLE: &str = "SingleStack";
const DUAL: &str = "RequireDualStack";

/// `clusterIP` and `clusterIPs` say the same: where a client writes only one of them, the other follows.
pub(crate) fn agree(service: &mut Members, old: Option<&Members>) {
    let before = old.map(|old| member::object(old, "spec").cloned().unwrap_or_default());
    let spec = member::made(service, "spec");
    let address = member::text(spec, "clusterIP").to_owned();
    let Some(before) = before else {
        if !address.is_empty() {
            member::default_to(spec, "clusterIPs", vec![address]);
        }
        return;
    };
    let address_before = member::text(&before, "clusterIP");
    if address == address_before {
        if let Some(list) = before.get("clusterIPs").filter(|_| !member::is_set(spec, "clusterIPs")) {
            spec.insert("clusterIPs".to_owned(), list.clone());
        }
    } else if service::same(spec, &before, "clusterIPs") {
        match address.is_empty() {
            true => drop(spec.remove("clusterIPs")),
            false => drop(spec.insert("clusterIPs".to_owned(), json!([address]))),
        }
    }
}

/// An update that leaves out what was allocated keeps it.
pub(crate) fn keep_allocated(spec: &mut Members, before: &Members) {
    let both = |needs: fn(&Members) -> bool, spec: &Members| needs(before) && needs(spec);
    if both(service::has_cluster_ip, spec) {
        for name in ["clusterIP", "clusterIPs"] {
            if let Some(kept) = before.get(name).filter(|_| !member::is_set(spec, name)) {
                spec.insert(name.to_owned(), kept.clone());
            }
        }
    }
    if both(service::is_given_node_ports, spec) {
        keep_node_ports(spec, before);
    }
    if both(service::has_health_check_port, spec) && member::integer(spec, "healthCheckNodePort") == 0 {
        let kept = member::integer(before, "healthCheckNodePort");
        if kept != 0 {
            spec.insert("healthCheckNodePort".to_owned(), kept.into());
        }
    }
}

/// By the name of the port, unless another port has taken the number.
fn keep_node_ports(spec: &mut Members, before: &Members) {
    let known: HashSet<i64> = service::node_ports(before).collect();
    let taken: HashSet<i64> = service::node_ports(spec).filter(|port| known.contains(port)).collect();
    // Of ports with the same name, the last counts.
    let by_name: HashMap<&str, i64> = member::items(before, "ports")
        .map(|port| (member::text(port, "name"), member::integer(port, "nodePort")))
        .collect();
    for port in member::items_mut(spec, "ports").filter(|port| member::integer(port, "nodePort") == 0) {
        let number = by_name.get(member::text(port, "name")).copied().unwrap_or(0);
        if number != 0 && !taken.contains(&number) {
            port.insert("nodePort".to_owned(), number.into());
        }
    }
}

/// Fills in `ipFamilyPolicy` and `ipFamilies` for a cluster with these families, the first of which is its own.
/// The server calls it when the object is valid, before it allocates addresses.
pub fn choose_families(service: &mut Value, old: Option<&Value>, families: &[&str]) {
    let before = old.and_then(|old| old.get("spec")).and_then(Value::as_object);
    let Some(spec) = service.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if !service::has_cluster_ip(spec) {
        return;
    }
    if before.is_some_and(|before| is_settled(spec, before)) {
        return;
    }
    let is_bare = member::text(spec, "clusterIP") == NONE && !member::is_set(spec, "selector");
    if !spec.contains_key("ipFamilyPolicy") {
        let kept = before.and_then(|before| before.get("ipFamilyPolicy")).cloned();
        let policy = kept.unwrap_or_else(|| if is_bare { DUAL.into() } else { SINGLE.into() });
        spec.insert("ipFamilyPolicy".to_owned(), policy);
    }
    let is_single = member::text(spec, "ipFamilyPolicy") == SINGLE;
    if let Some(before) = before.filter(|_| is_single) {
        shorten(spec, before);
    }
    infer_from_addresses(spec);
    let own = families.first().copied().unwrap_or("IPv4");
    member::default_to(spec, "ipFamilies", vec![own]);
    if !is_single && (is_bare || families.len() > 1) {
        add_other_family(spec);
    }
}

/// A service that takes what it can get keeps what it got, even if the cluster has more families by now.
fn is_settled(spec: &Members, before: &Members) -> bool {
    member::text(spec, "ipFamilyPolicy") == "PreferDualStack"
        && ["type", "ipFamilyPolicy", "clusterIPs", "ipFamilies"]
            .iter()
            .all(|name| service::same(spec, before, name))
}

/// Who asks for one family and changes nothing else means the first.
fn shorten(spec: &mut Members, before: &Members) {
    for name in ["clusterIPs", "ipFamilies"] {
        if service::same(spec, before, name)
            && let Some(list) = spec.get_mut(name).and_then(Value::as_array_mut)
        {
            list.truncate(1);
        }
    }
}

fn infer_from_addresses(spec: &mut Members) {
    let addresses = spec.get("clusterIPs").and_then(Value::as_array).into_iter().flatten();
    let addresses = addresses.filter_map(Value::as_str).take_while(|address| *address != NONE);
    let inferred: Vec<&str> =
        addresses.map(|address| if address.contains(':') { "IPv6" } else { "IPv4" }).collect();
    let known = spec.get("ipFamilies").and_then(Value::as_array).map_or(0, Vec::len);
    if inferred.len() > known {
        let added: Vec<Value> = inferred[known..].iter().map(|family| json!(family)).collect();
        member::list(spec, "ipFamilies").extend(added);
    }
}

fn add_other_family(spec: &mut Members) {
    let Some(list) = spec.get_mut("ipFamilies").and_then(Value::as_array_mut) else { return };
    if let [only] = list.as_slice() {
        let other = if only == "IPv4" { "IPv6" } else { "IPv4" };
        list.push(other.into());
    }
}
