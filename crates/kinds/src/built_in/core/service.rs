//! Service: one address for many pods.

pub(crate) mod addresses;
pub(crate) mod strategy;
mod validate;
mod warnings;

use std::collections::BTreeSet;

use api::name::NameRule;
use serde_json::{Value, json};

use super::GROUP;
use crate::built_in::BuiltIn;
use crate::cells::column::{AGE, Cell, NAME, string};
use crate::cells::row::{NONE, Row, number, or, text, texts};
use crate::cells::selector::labels;
use crate::defaults::member::{self, Members};
use crate::defaults::type_defaults::TypeDefaults;
use crate::selectable::{Selectable, SelectableField};
use crate::strategy::Strategy;
use crate::validate::validation::{UpdateChecks, Validation};

const AFFINITY_SECONDS: i64 = 3 * 60 * 60;

pub(crate) static SERVICE: BuiltIn = BuiltIn::new(GROUP, "Service", "services")
    .strategy(
        Strategy::PLAIN
            .return_deleted_object()
            .named(NameRule::DnsLabel)
            .allow_create_on_update()
            .status()
            .on_create(strategy::prepare_create)
            .on_update(strategy::prepare_update),
    )
    .validation(
        Validation::new(validate::check)
            .update(UpdateChecks::CHANGE.compare(validate::check_change))
            .check_before_allocation(validate::check_addresses)
            .named(NameRule::DnsLabel)
            .subresources(&[("status", validate::check_status)]),
    )
    .warnings(warnings::warn)
    .defaults(&[TypeDefaults::of("core.v1.Service").rule(default_spec)])
    .columns(&[
        NAME,
        string("Type", Cell::Text("/spec/type")),
        string("Cluster-IP", Cell::TextOr("/spec/clusterIPs/0", NONE)),
        string("External-IP", Cell::Computed(|it| external_address(it).into())),
        string("Port(s)", Cell::Computed(|it| ports(it).into())),
        AGE,
        string("Selector", Cell::Computed(|it| labels(it.at("/spec/selector")).into())).wide(),
    ])
    .selectable(Selectable::new(&[
        SelectableField::NAME,
        SelectableField::NAMESPACE,
        SelectableField::text("spec.clusterIP"),
        SelectableField::text("spec.type"),
    ]));

fn default_spec(service: &mut Members) {
    let spec = member::made(service, "spec");
    default_affinity(spec);
    member::default_to(spec, "type", "ClusterIP");
    member::items_mut(spec, "ports").for_each(default_port);
    let of_type = member::text(spec, "type").to_owned();
    let exposed = matches!(&*of_type, "NodePort" | "LoadBalancer");
    if exposed || of_type == "ClusterIP" && member::is_set(spec, "externalIPs") {
        member::default_to(spec, "externalTrafficPolicy", "Cluster");
    }
    if (exposed || of_type == "ClusterIP") && !spec.contains_key("internalTrafficPolicy") {
        spec.insert("internalTrafficPolicy".to_owned(), "Cluster".into());
    }
    if of_type == "LoadBalancer" {
        member::default_to(spec, "allocateLoadBalancerNodePorts", true);
        let status = member::present(service, "status");
        if let Some(balancer) = status.and_then(|status| member::present(status, "loadBalancer")) {
            member::items_mut(balancer, "ingress").for_each(default_ingress);
        }
    }
}

fn default_affinity(spec: &mut Members) {
    member::default_to(spec, "sessionAffinity", "None");
    match member::text(spec, "sessionAffinity") {
        "None" => {
            spec.remove("sessionAffinityConfig");
        }
        "ClientIP" => {
            let says = spec
                .get("sessionAffinityConfig")
                .and_then(|config| config.pointer("/clientIP/timeoutSeconds"));
            if says.is_none() {
                let config = json!({"clientIP": {"timeoutSeconds": AFFINITY_SECONDS}});
                spec.insert("sessionAffinityConfig".to_owned(), config);
            }
        }
        _ => {}
    }
}

fn default_port(port: &mut Members) {
    member::default_to(port, "protocol", "TCP");
    let unset = match port.get("targetPort") {
        None | Some(Value::Null) => true,
        Some(target) => target.as_i64() == Some(0) || target.as_str() == Some(""),
    };
    if unset && let Some(number) = port.get("port").cloned() {
        port.insert("targetPort".to_owned(), number);
    }
}

fn default_ingress(ingress: &mut Members) {
    if member::is_set(ingress, "ip") && !ingress.contains_key("ipMode") {
        ingress.insert("ipMode".to_owned(), "VIP".into());
    }
}

fn ports(service: &Row<'_>) -> String {
    let ports: Vec<_> = service.items("/spec/ports").iter().map(port).collect();
    or(&ports.join(","), NONE).to_owned()
}

fn port(port: &Value) -> String {
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

pub(crate) fn balancer_addresses<'a>(it: &Row<'a>) -> BTreeSet<&'a str> {
    let ingress = it.items("/status/loadBalancer/ingress").iter();
    let addresses = ingress.map(|point| or(text(&point["ip"]), text(&point["hostname"])));
    addresses.filter(|address| !address.is_empty()).collect()
}
