//! Endpoints and EndpointSlices: addresses of a family, and the ports that they answer on.

use api::field::{Error, ErrorList};
use api::name::{self, Format};

use super::at::At;
use super::pod;
use super::service::endpoint_ip;
use super::taken::Taken;

const MAX_ENDPOINTS: usize = 1000;
const MAX_ADDRESSES: usize = 100;
const MAX_PORTS: usize = 20_000;
const MAX_HINTS: usize = 8;

pub(super) fn body(endpoints: &At<'_, '_>, errors: &mut ErrorList) {
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
            protocol(&port, errors);
        }
    }
}

fn protocol(port: &At<'_, '_>, errors: &mut ErrorList) {
    port.field("protocol").required_one_of(errors, pod::PROTOCOLS);
    app_protocol(port, errors);
}

fn app_protocol(port: &At<'_, '_>, errors: &mut ErrorList) {
    if port.has("appProtocol") {
        port.field("appProtocol").is_format(errors, Format::QualifiedName);
    }
}

pub(super) fn slice(slice: &At<'_, '_>, errors: &mut ErrorList) {
    let family = slice.field("addressType");
    family.required_one_of(errors, &["FQDN", "IPv4", "IPv6"]);
    slice_ports(&slice.field("ports"), errors);
    let endpoints = slice.field("endpoints");
    if endpoints.list().len() > MAX_ENDPOINTS {
        errors.push(Error::too_many(endpoints.path(), endpoints.list().len(), MAX_ENDPOINTS));
        return;
    }
    for endpoint in endpoints.items() {
        addresses(&endpoint.field("addresses"), family.text(), errors);
        if endpoint.has("nodeName") {
            endpoint.field("nodeName").is_format(errors, Format::Dns1123Subdomain);
        }
        if endpoint.has("hostname") {
            endpoint.field("hostname").is_format(errors, Format::Dns1123Label);
        }
        let hints = endpoint.field("hints");
        hint(&hints.field("forZones"), Format::LabelValue, errors);
        hint(&hints.field("forNodes"), Format::Dns1123Subdomain, errors);
    }
}

fn slice_ports(ports: &At<'_, '_>, errors: &mut ErrorList) {
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
        app_protocol(&port, errors);
    }
}

fn addresses(addresses: &At<'_, '_>, family: &str, errors: &mut ErrorList) {
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

fn hint(hints: &At<'_, '_>, format: Format, errors: &mut ErrorList) {
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

/// Addresses that do not change may stay as bad as they were.
pub(super) fn change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    if new.field("subsets").value() != old.field("subsets").value() {
        body(new, errors);
    }
}

/// Endpoints that do not change may stay as bad as they were.
pub(super) fn slice_change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    if new.field("endpoints").value() == old.field("endpoints").value() {
        let found = std::mem::take(errors);
        errors.extend(found.into_iter().filter(|it| !it.field.starts_with("endpoints[")));
    }
    new.field("addressType").immutable(errors, &old.field("addressType"));
}
