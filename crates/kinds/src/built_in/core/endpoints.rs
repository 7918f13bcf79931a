//! Endpoints: addresses and ports behind a service.

use std::net::IpAddr;

use api::field::ErrorList;
use api::name::{self, Format, ip_warning};
use serde_json::Value;

use super::GROUP;
use super::pod::validate as pod;
use super::service::addresses::endpoint_ip;
use crate::built_in::BuiltIn;
use crate::cells::column::{AGE, Cell, NAME, string};
use crate::cells::row::{NONE, items, number, shortened, text};
use crate::defaults::type_defaults::{DefaultValue, TypeDefaults};
use crate::strategy::Strategy;
use crate::validate::at::At;
use crate::validate::validation::{UpdateChecks, Validation};

/// How many addresses a cell shows.
const SHOWN: usize = 3;

pub(crate) static ENDPOINTS: BuiltIn = BuiltIn::new(GROUP, "Endpoints", "endpoints")
    .strategy(Strategy::PLAIN.allow_create_on_update())
    .validation(Validation::new(check).update(UpdateChecks::METADATA.compare(check_change)))
    .warnings(warn)
    .deprecated("v1", "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice")
    .defaults(&[TypeDefaults::of("core.v1.EndpointPort").values(&[("protocol", DefaultValue::Text("TCP"))])])
    .columns(&[NAME, string("Endpoints", Cell::Computed(|it| addresses(it.items("/subsets")).into())), AGE]);

fn check(endpoints: &At<'_, '_>, errors: &mut ErrorList) {
    let subsets = endpoints.field("subsets");
    for subset in subsets.items() {
        let (ready, not_ready) = (subset.field("addresses"), subset.field("notReadyAddresses"));
        if ready.is_empty() && not_ready.is_empty() {
            subset.required(errors, "must specify `addresses` or `notReadyAddresses`");
        }
        for address in ready.items().chain(not_ready.items()) {
            let ip = address.field("ip");
            errors.extend(name::legacy_ip(ip.path(), ip.text()));
            if !address.text_of("hostname").is_empty() {
                address.field("hostname").is_format(errors, Format::Dns1123Label);
            }
            if address.has("nodeName") {
                address.field("nodeName").is_format(errors, Format::Dns1123Subdomain);
            }
            endpoint_ip(&ip, errors);
        }
        let ports = subset.field("ports");
        for port in ports.items() {
            let name = port.field("name");
            if !name.text().is_empty() {
                name.is_format(errors, Format::Dns1123Label);
            } else if ports.list().len() > 1 {
                name.required(errors, "");
            }
            port.field("port").port_number(errors);
            check_protocol(&port, errors);
        }
    }
}

/// Addresses that do not change may stay as bad as they were.
fn check_change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    if new.field("subsets").value() != old.field("subsets").value() {
        check(new, errors);
    }
}

pub(crate) fn check_protocol(port: &At<'_, '_>, errors: &mut ErrorList) {
    port.field("protocol").required_one_of(errors, pod::PROTOCOLS);
    check_app_protocol(port, errors);
}

pub(crate) fn check_app_protocol(port: &At<'_, '_>, errors: &mut ErrorList) {
    if port.has("appProtocol") {
        port.field("appProtocol").is_format(errors, Format::QualifiedName);
    }
}

/// Kubernetes: the server's own controllers write addresses as they should be.
fn warn(object: &At<'_, '_>, _: Option<&Value>, warnings: &mut Vec<String>) {
    let managed = api::object::label(object.value(), "endpoints.kubernetes.io/managed-by");
    if managed == Some("endpoint-controller") {
        return;
    }
    for subset in object.field("subsets").items() {
        for list in ["addresses", "notReadyAddresses"] {
            for address in subset.field(list).items() {
                let ip = address.field("ip");
                warnings.extend(ip_warning(ip.path(), ip.text()));
            }
        }
    }
}

fn addresses(subsets: &[Value]) -> String {
    let mut list = Vec::new();
    for subset in subsets {
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
    if subsets.is_empty() { NONE.to_owned() } else { shortened(&list, SHOWN, list.len()) }
}

fn host_port(address: &str, port: i64) -> String {
    match address.parse::<IpAddr>() {
        Ok(IpAddr::V6(_)) => format!("[{address}]:{port}"),
        _ => format!("{address}:{port}"),
    }
}
