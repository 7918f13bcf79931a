//! NetworkPolicies, and the addresses and ranges of services.

use std::net::IpAddr;

use api::field::ErrorList;
use api::name::{self, Format};

use super::at::{At, IMMUTABLE};
use super::selector;

pub(super) fn body(policy: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = policy.field("spec");
    selector::check(&spec.field("podSelector"), errors);
    for (direction, side) in [("ingress", "from"), ("egress", "to")] {
        let rules = spec.field(direction);
        for rule in rules.items() {
            let ports = rule.field("ports");
            for it in ports.items() {
                port(&it, errors);
            }
            let peers = rule.field(side);
            for it in peers.items() {
                peer(&it, errors);
            }
        }
    }
    let types = spec.field("policyTypes");
    if types.list().len() > 2 {
        types.invalid(errors, "may not specify more than two policyTypes");
        return;
    }
    for sort in types.items() {
        sort.one_of(errors, &["Ingress", "Egress"]);
    }
}

fn port(at: &At<'_, '_>, errors: &mut ErrorList) {
    at.field("protocol").optional_one_of(errors, &["TCP", "UDP", "SCTP"]);
    let (port, end) = (at.field("port"), at.field("endPort"));
    if port.is_set() && !port.value().is_string() {
        port.port_number(errors);
        if end.is_set() {
            if end.int() < port.int() {
                end.invalid_as(errors, port.int(), "must be greater than or equal to `port`");
            }
            end.port_number(errors);
        }
        return;
    }
    if end.is_set() {
        let what = if port.is_set() { "non-numeric" } else { "not specified" };
        end.invalid_int(errors, format!("may not be specified when `port` is {what}"));
    }
    if port.is_set() {
        port.is_format(errors, Format::PortName);
    }
}

fn peer(peer: &At<'_, '_>, errors: &mut ErrorList) {
    let block = peer.field("ipBlock");
    let selectors = ["podSelector", "namespaceSelector"].map(|field| peer.field(field));
    for wanted in &selectors {
        selector::check(wanted, errors);
    }
    if block.is_set() {
        ip_block(&block, errors);
    }
    let selects = selectors.iter().any(At::is_set);
    match (block.is_set(), selects) {
        (false, false) => peer.required(errors, "must specify a peer"),
        (true, true) => peer.forbidden(errors, "may not specify both ipBlock and another peer"),
        _ => {}
    }
}

fn ip_block(block: &At<'_, '_>, errors: &mut ErrorList) {
    let range = block.field("cidr");
    if range.text().is_empty() {
        range.required(errors, "");
        return;
    }
    errors.extend(name::legacy_cidr(range.path(), range.text()));
    let Some(outer) = parse(range.text()) else { return };
    let exceptions = block.field("except");
    for exception in exceptions.items() {
        errors.extend(name::legacy_cidr(exception.path(), exception.text()));
        if parse(exception.text()).is_some_and(|inner| !contains(outer, inner)) {
            exception.invalid_text(errors, "must be a strict subset of `cidr`");
        }
    }
}

fn parse(cidr: &str) -> Option<(IpAddr, u32)> {
    let (ip, prefix) = cidr.split_once('/')?;
    Some((ip.parse().ok()?, prefix.parse().ok()?))
}

fn contains((outer, outer_bits): (IpAddr, u32), (inner, inner_bits): (IpAddr, u32)) -> bool {
    let (outer, inner, width) = match (outer, inner) {
        (IpAddr::V4(outer), IpAddr::V4(inner)) => {
            (u128::from(outer.to_bits()), u128::from(inner.to_bits()), 32)
        }
        (IpAddr::V6(outer), IpAddr::V6(inner)) => (outer.to_bits(), inner.to_bits(), 128),
        _ => return false,
    };
    let shift = u32::saturating_sub(width, outer_bits);
    let network = |ip: u128| ip.checked_shr(shift).unwrap_or(0);
    inner_bits > outer_bits && network(outer) == network(inner)
}

/// The object that stands for an address in use.
pub(super) fn ip_address(address: &At<'_, '_>, errors: &mut ErrorList) {
    let metadata = address.field("metadata");
    let name = metadata.field("name");
    if !name.text().is_empty() {
        errors.extend(name::ip(name.path(), name.text()));
    }
    let spec = address.field("spec");
    let parent = spec.field("parentRef");
    if !parent.is_set() {
        parent.required(errors, "");
        return;
    }
    if !parent.text_of("group").is_empty() {
        parent.field("group").is_format(errors, Format::Dns1123Subdomain);
    }
    parent.field("resource").required_format(errors, Format::PathSegment);
    parent.field("name").required_format(errors, Format::PathSegment);
    if !parent.text_of("namespace").is_empty() {
        parent.field("namespace").is_format(errors, Format::PathSegment);
    }
}

pub(super) fn ip_address_change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    let (spec, old_spec) = (new.field("spec"), old.field("spec"));
    let parent = spec.field("parentRef");
    if parent.value() != old_spec.field("parentRef").value() {
        let shown = super::internal::shown("io.k8s.api.networking.v1.ParentReference", parent.value());
        parent.invalid_as(errors, shown, IMMUTABLE);
    }
}

pub(super) fn service_cidr(object: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = object.field("spec");
    let ranges = spec.field("cidrs");
    if ranges.is_empty() {
        ranges.required(errors, "at least one CIDR required");
        return;
    }
    if ranges.list().len() > 2 {
        let shown = super::internal::shown("io.k8s.api.networking.v1.ServiceCIDRSpec", spec.value());
        ranges.invalid_as(errors, shown, "may only hold up to 2 values");
        return;
    }
    for range in ranges.items() {
        errors.extend(name::cidr(range.path(), range.text()));
    }
    let families: Vec<_> =
        ranges.items().filter_map(|range| parse(range.text())).map(|(ip, _)| ip.is_ipv4()).collect();
    if matches!(families.as_slice(), [first, second] if first == second) {
        let problem =
            "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
        ranges.invalid(errors, problem);
    }
}

pub(super) fn service_cidr_change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    let (spec, old_spec) = (new.field("spec"), old.field("spec"));
    let (ranges, old_ranges) = (spec.field("cidrs"), old_spec.field("cidrs"));
    for (range, old) in ranges.items().zip(old_ranges.items()) {
        range.immutable(errors, &old);
    }
    if ranges.list().len() < old_ranges.list().len() {
        ranges.invalid(errors, IMMUTABLE);
    }
}
