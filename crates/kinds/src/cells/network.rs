//! Services and what lies behind them, ingresses, policies and addresses.

use std::collections::BTreeSet;
use std::net::IpAddr;

use api::object;
use serde_json::Value;

use super::Printer;
use super::row::{NONE, Row, UNSET, items, number, or, row, shortened, text, texts};
use super::selector::{label_selector_or_none, labels};

/// How many hosts, ports or addresses a cell shows.
const SHOWN: usize = 3;

pub(super) fn networking(resource: &str) -> Option<Printer> {
    Some(match resource {
        "ingresses" => ingress,
        "ingressclasses" => ingress_class,
        "networkpolicies" => network_policy,
        "servicecidrs" => service_cidr,
        "ipaddresses" => ip_address,
        _ => return None,
    })
}

pub(super) fn service(it: &Row<'_>) -> Vec<Value> {
    let ports: Vec<_> = it.items("/spec/ports").iter().map(service_port).collect();
    row![
        it.name(),
        it.text("/spec/type"),
        it.at("/spec/clusterIPs/0").as_str().unwrap_or(NONE),
        external_address(it),
        or(&ports.join(","), NONE),
        it.age(),
        labels(it.at("/spec/selector")),
    ]
}

fn service_port(port: &Value) -> String {
    let (number_of, protocol) = (number(&port["port"]), text(&port["protocol"]));
    match number(&port["nodePort"]) {
        node_port @ 1.. => format!("{number_of}:{node_port}/{protocol}"),
        _ => format!("{number_of}/{protocol}"),
    }
}

fn external_address(it: &Row<'_>) -> String {
    let fixed = texts(it.at("/spec/externalIPs"));
    match it.text("/spec/type") {
        "ClusterIP" | "NodePort" => or(&fixed.join(","), NONE).to_owned(),
        "LoadBalancer" => {
            let balancer = balancer_addresses(it);
            let all: Vec<_> = balancer.into_iter().chain(fixed).collect();
            or(&all.join(","), "<pending>").to_owned()
        }
        "ExternalName" => it.text("/spec/externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

fn balancer_addresses<'a>(it: &Row<'a>) -> BTreeSet<&'a str> {
    let ingress = it.items("/status/loadBalancer/ingress").iter();
    let addresses = ingress.map(|point| or(text(&point["ip"]), text(&point["hostname"])));
    addresses.filter(|address| !address.is_empty()).collect()
}

pub(super) fn endpoints(it: &Row<'_>) -> Vec<Value> {
    let mut list = Vec::new();
    for subset in it.items("/subsets") {
        let addresses = || items(&subset["addresses"]).iter().map(|address| text(&address["ip"]));
        match items(&subset["ports"]) {
            [] => list.extend(addresses().map(str::to_owned)),
            ports => {
                for port in ports {
                    list.extend(addresses().map(|address| host_port(address, number(&port["port"]))));
                }
            }
        }
    }
    let cell = match it.items("/subsets") {
        [] => NONE.to_owned(),
        _ => shortened(&list, SHOWN, list.len()),
    };
    row![it.name(), cell, it.age()]
}

fn host_port(address: &str, port: i64) -> String {
    match address.parse::<IpAddr>() {
        Ok(IpAddr::V6(_)) => format!("[{address}]:{port}"),
        _ => format!("{address}:{port}"),
    }
}

pub(super) fn endpoint_slice(it: &Row<'_>) -> Vec<Value> {
    let port = |port: &Value| match port["port"].as_i64() {
        Some(number) => number.to_string(),
        None => port["name"].as_str().unwrap_or("*").to_owned(),
    };
    let ports: Vec<_> = it.items("/ports").iter().map(port).collect();
    let addresses: Vec<_> = it
        .items("/endpoints")
        .iter()
        .flat_map(|endpoint| texts(&endpoint["addresses"]))
        .map(str::to_owned)
        .collect();
    row![
        it.name(),
        it.text("/addressType"),
        or(&shortened(&ports, SHOWN, ports.len()), UNSET),
        or(&shortened(&addresses, SHOWN, addresses.len()), UNSET),
        it.age(),
    ]
}

fn ingress(it: &Row<'_>) -> Vec<Value> {
    row![
        it.name(),
        it.at("/spec/ingressClassName").as_str().unwrap_or(NONE),
        hosts(it.items("/spec/rules")),
        Vec::from_iter(balancer_addresses(it)).join(","),
        if it.items("/spec/tls").is_empty() { "80" } else { "80, 443" },
        it.age(),
    ]
}

/// Kubernetes: rules are counted, whether they name a host or not.
fn hosts(rules: &[Value]) -> String {
    let mut shown = Vec::new();
    let mut is_cut = false;
    for rule in rules {
        is_cut |= shown.len() == SHOWN;
        match text(&rule["host"]) {
            host if !is_cut && !host.is_empty() => shown.push(host),
            _ => {}
        }
    }
    match shown.join(",") {
        hosts if is_cut => format!("{hosts} + {} more...", rules.len() - SHOWN),
        hosts => or(&hosts, "*").to_owned(),
    }
}

fn ingress_class(it: &Row<'_>) -> Vec<Value> {
    let is_default =
        object::annotation(it.object, "ingressclass.kubernetes.io/is-default-class") == Some("true");
    let parameters = match it.at("/spec/parameters") {
        Value::Null => NONE.to_owned(),
        reference => {
            let (kind, name) = (text(&reference["kind"]), text(&reference["name"]));
            match reference["apiGroup"].as_str() {
                Some(group) => format!("{kind}.{group}/{name}"),
                None => format!("{kind}/{name}"),
            }
        }
    };
    let name = format!("{}{}", it.name(), if is_default { " (default)" } else { "" });
    row![name, it.text("/spec/controller"), parameters, it.age()]
}

fn network_policy(it: &Row<'_>) -> Vec<Value> {
    row![it.name(), label_selector_or_none(it.at("/spec/podSelector")), it.age()]
}

fn service_cidr(it: &Row<'_>) -> Vec<Value> {
    row![it.name(), texts(it.at("/spec/cidrs")).join(","), it.age()]
}

/// Kubernetes: the age is there although no column is announced for it.
fn ip_address(it: &Row<'_>) -> Vec<Value> {
    let parent = match it.at("/spec/parentRef") {
        Value::Null => NONE.to_owned(),
        parent => {
            let resource = match (text(&parent["resource"]), text(&parent["group"])) {
                (resource, "") => resource.to_lowercase(),
                (resource, group) => format!("{resource}.{group}").to_lowercase(),
            };
            match (text(&parent["namespace"]), text(&parent["name"])) {
                ("", name) => format!("{resource}/{name}"),
                (namespace, name) => format!("{resource}/{namespace}/{name}"),
            }
        }
    };
    row![it.name(), parent, it.age()]
}
