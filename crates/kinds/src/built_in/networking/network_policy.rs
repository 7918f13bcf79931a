//! NetworkPolicy: which traffic reaches and leaves pods.

use std::net::IpAddr;

use api::field::ErrorList;
use api::name::{self, Format, cidr_warnings};
use serde_json::Value;

use super::GROUP;
use crate::built_in::BuiltIn;
use crate::cells::column::{AGE, Cell, NAME, string};
use crate::cells::selector::label_selector_or_none;
use crate::defaults::member::{self, Members};
use crate::defaults::type_defaults::{DefaultValue, TypeDefaults};
use crate::strategy::Strategy;
use crate::strategy::builder::SPEC;
use crate::validate::at::At;
use crate::validate::selector;
use crate::validate::validation::{UpdateChecks, Validation};

pub(crate) static NETWORK_POLICY: BuiltIn = BuiltIn::new(GROUP, "NetworkPolicy", "networkpolicies")
    .strategy(Strategy::PLAIN.counts_generation_of(SPEC))
    .validation(Validation::new(check).update(UpdateChecks::BODY))
    .warnings(warn)
    .defaults(&[
        TypeDefaults::of("networking.v1.NetworkPolicyPort")
            .values(&[("protocol", DefaultValue::Text("TCP"))]),
        TypeDefaults::of("networking.v1.NetworkPolicySpec").rule(default_policy_types),
    ])
    .columns(&[
        NAME,
        string(
            "Pod-Selector",
            Cell::Computed(|it| label_selector_or_none(it.at("/spec/podSelector")).into()),
        ),
        AGE,
    ]);

fn check(policy: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = policy.field("spec");
    selector::check(&spec.field("podSelector"), errors);
    for (direction, side) in [("ingress", "from"), ("egress", "to")] {
        let rules = spec.field(direction);
        for rule in rules.items() {
            let ports = rule.field("ports");
            for it in ports.items() {
                check_port(&it, errors);
            }
            let peers = rule.field(side);
            for it in peers.items() {
                check_peer(&it, errors);
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

fn check_port(at: &At<'_, '_>, errors: &mut ErrorList) {
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

fn check_peer(peer: &At<'_, '_>, errors: &mut ErrorList) {
    let block = peer.field("ipBlock");
    let selectors = ["podSelector", "namespaceSelector"].map(|field| peer.field(field));
    for wanted in &selectors {
        selector::check(wanted, errors);
    }
    if block.is_set() {
        check_ip_block(&block, errors);
    }
    let selects = selectors.iter().any(At::is_set);
    match (block.is_set(), selects) {
        (false, false) => peer.required(errors, "must specify a peer"),
        (true, true) => peer.forbidden(errors, "may not specify both ipBlock and another peer"),
        _ => {}
    }
}

fn check_ip_block(block: &At<'_, '_>, errors: &mut ErrorList) {
    let range = block.field("cidr");
    if range.text().is_empty() {
        range.required(errors, "");
        return;
    }
    errors.extend(name::legacy_cidr(range.path(), range.text()));
    let Some(outer) = parse_cidr(range.text()) else { return };
    let exceptions = block.field("except");
    for exception in exceptions.items() {
        errors.extend(name::legacy_cidr(exception.path(), exception.text()));
        if parse_cidr(exception.text()).is_some_and(|inner| !contains(outer, inner)) {
            exception.invalid_text(errors, "must be a strict subset of `cidr`");
        }
    }
}

pub(crate) fn parse_cidr(cidr: &str) -> Option<(IpAddr, u32)> {
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

fn default_policy_types(spec: &mut Members) {
    if !member::is_set(spec, "policyTypes") {
        let egress = member::is_set(spec, "egress").then_some("Egress");
        let types: Vec<Value> = std::iter::once("Ingress").chain(egress).map(Value::from).collect();
        spec.insert("policyTypes".to_owned(), types.into());
    }
}

fn warn(object: &At<'_, '_>, _: Option<&Value>, warnings: &mut Vec<String>) {
    let spec = object.field("spec");
    for (rules, peers) in [("ingress", "from"), ("egress", "to")] {
        for rule in spec.field(rules).items() {
            for peer in rule.field(peers).items() {
                let block = peer.field("ipBlock");
                if block.is_set() {
                    let range = block.field("cidr");
                    warnings.extend(cidr_warnings(range.path(), range.text()));
                    let except = block.field("except");
                    warnings.extend(except.items().flat_map(|one| cidr_warnings(one.path(), one.text())));
                }
            }
        }
    }
}
