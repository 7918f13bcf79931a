//! EndpointSlice: addresses and ports behind a service, in pieces.

use api::field::{Error, ErrorList};
use api::name::{self, Format, ip_warning};
use serde_json::Value;

use super::GROUP;
use crate::built_in::BuiltIn;
use crate::built_in::core::endpoints::check_app_protocol;
use crate::built_in::core::pod::validate as pod;
use crate::built_in::core::service::addresses::endpoint_ip;
use crate::cells::column::{AGE, Cell, NAME, string};
use crate::cells::row::{Row, UNSET, or, shortened, texts};
use crate::defaults::type_defaults::{DefaultValue, TypeDefaults};
use crate::strategy::Strategy;
use crate::strategy::disabled::EACH;
use crate::validate::at::At;
use crate::validate::taken::Taken;
use crate::validate::validation::{UpdateChecks, Validation};

const MAX_ENDPOINTS: usize = 1000;
const MAX_ADDRESSES: usize = 100;
const MAX_PORTS: usize = 20_000;
const MAX_HINTS: usize = 8;
/// How many ports or addresses a cell shows.
const SHOWN: usize = 3;

pub(crate) static ENDPOINT_SLICE: BuiltIn = BuiltIn::new(GROUP, "EndpointSlice", "endpointslices")
    .older_versions(&["v1beta1"])
    .strategy(
        Strategy::PLAIN
            .counts_generation_of(&[&["metadata", "labels"], &["addressType"], &["endpoints"], &["ports"]])
            // Of `v1beta1`; `v1` only reads it.
            .disabled_fields(&[&["endpoints", EACH, "deprecatedTopology"]]),
    )
    .validation(Validation::new(check).update(UpdateChecks::ONLY_AS_NEW.compare(check_change)))
    .warnings(warn)
    .defaults(&[TypeDefaults::of("discovery.v1.EndpointPort")
        .values(&[("name", DefaultValue::Text("")), ("protocol", DefaultValue::Text("TCP"))])])
    .columns(&[
        NAME,
        string("AddressType", Cell::Text("/addressType")),
        string("Ports", Cell::Computed(|it| ports(it).into())),
        string("Endpoints", Cell::Computed(|it| endpoints(it).into())),
        AGE,
    ]);

fn check(slice: &At<'_, '_>, errors: &mut ErrorList) {
    let family = slice.field("addressType");
    family.required_one_of(errors, &["FQDN", "IPv4", "IPv6"]);
    check_ports(&slice.field("ports"), errors);
    let endpoints = slice.field("endpoints");
    if endpoints.list().len() > MAX_ENDPOINTS {
        errors.push(Error::too_many(endpoints.path(), endpoints.list().len(), MAX_ENDPOINTS));
        return;
    }
    for endpoint in endpoints.items() {
        check_addresses(&endpoint.field("addresses"), family.text(), errors);
        if endpoint.has("nodeName") {
            endpoint.field("nodeName").is_format(errors, Format::Dns1123Subdomain);
        }
        if endpoint.has("hostname") {
            endpoint.field("hostname").is_format(errors, Format::Dns1123Label);
        }
        let hints = endpoint.field("hints");
        check_hint(&hints.field("forZones"), Format::LabelValue, errors);
        check_hint(&hints.field("forNodes"), Format::Dns1123Subdomain, errors);
    }
}

fn check_ports(ports: &At<'_, '_>, errors: &mut ErrorList) {
    if ports.list().len() > MAX_PORTS {
        errors.push(Error::too_many(ports.path(), ports.list().len(), MAX_PORTS));
        return;
    }
    let mut taken = Taken::default();
    for port in ports.items() {
        let name = port.field("name");
        if !name.text().is_empty() {
            name.is_format(errors, Format::Dns1123Label);
        }
        if taken.contains(&name.text()) {
            errors.push(Error::duplicate(name.path(), name.text()));
        }
        taken.push(name.text());
        port.field("protocol").one_of(errors, pod::PROTOCOLS);
        check_app_protocol(&port, errors);
    }
}

fn check_addresses(addresses: &At<'_, '_>, family: &str, errors: &mut ErrorList) {
    let count = addresses.list().len();
    if count == 0 {
        addresses.required(errors, "must contain at least 1 address");
    } else if count > MAX_ADDRESSES {
        errors.push(Error::too_many(addresses.path(), count, MAX_ADDRESSES));
    }
    for address in addresses.items() {
        let text = address.text();
        let problems = match family {
            "IPv4" => name::legacy_ip(address.path(), text),
            "IPv6" => name::ip(address.path(), text),
            "FQDN" => name::fully_qualified_domain_name(address.path(), text),
            _ => continue,
        };
        let is_ip = family != "FQDN" && problems.is_empty();
        errors.extend(problems);
        if is_ip {
            if text.contains(':') != (family == "IPv6") {
                addresses.invalid_as(errors, text, format!("must be an {family} address"));
            }
            endpoint_ip(&address, errors);
        }
    }
}

fn check_hint(hints: &At<'_, '_>, format: Format, errors: &mut ErrorList) {
    if hints.list().len() > MAX_HINTS {
        errors.push(Error::too_many(hints.path(), hints.list().len(), MAX_HINTS));
        return;
    }
    let mut taken = Taken::default();
    for hint in hints.items() {
        let name = hint.field("name");
        if taken.contains(&name.text()) {
            name.duplicate(errors);
        }
        taken.push(name.text());
        name.is_format(errors, format);
    }
}

/// Endpoints that do not change may stay as bad as they were.
fn check_change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    if new.field("endpoints").value() == old.field("endpoints").value() {
        let found = std::mem::take(errors);
        errors.extend(found.into_iter().filter(|it| !it.field.starts_with("endpoints[")));
    }
    new.field("addressType").immutable(errors, &old.field("addressType"));
}

fn warn(object: &At<'_, '_>, old: Option<&Value>, warnings: &mut Vec<String>) {
    if old.is_none() && object.text_of("addressType") == "FQDN" {
        warnings.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
    }
    let managed = api::object::label(object.value(), "endpointslice.kubernetes.io/managed-by");
    if managed.is_some_and(|by| by.starts_with("endpointslice") && by.ends_with("controller.k8s.io")) {
        return;
    }
    for endpoint in object.field("endpoints").items() {
        let addresses = endpoint.field("addresses");
        warnings.extend(addresses.items().filter_map(|ip| ip_warning(ip.path(), ip.text())));
    }
}

fn ports(slice: &Row<'_>) -> String {
    let port = |port: &Value| match port["port"].as_i64() {
        Some(number) => number.to_string(),
        None => port["name"].as_str().unwrap_or("*").to_owned(),
    };
    let ports: Vec<_> = slice.items("/ports").iter().map(port).collect();
    or(&shortened(&ports, SHOWN, ports.len()), UNSET).to_owned()
}

fn endpoints(slice: &Row<'_>) -> String {
    let endpoints = slice.items("/endpoints").iter();
    let addresses: Vec<_> =
        endpoints.flat_map(|endpoint| texts(&endpoint["addresses"])).map(str::to_owned).collect();
    or(&shortened(&addresses, SHOWN, addresses.len()), UNSET).to_owned()
}
