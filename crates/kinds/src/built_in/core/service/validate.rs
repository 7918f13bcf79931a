//! Services: ports, addresses, types, and what a type allows. Which addresses are free is the server's to know.

use api::field::{Error, ErrorList, Path};
use api::name::{self, Format};

use super::addresses;
use crate::built_in::core::pod::validate as pod;
use crate::validate::at::At;
use crate::validate::taken::Taken;
use crate::validate::{internal, metadata};

const TYPES: &[&str] = &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const ONLY_BALANCED: &str = "may only be used when `type` is 'LoadBalancer'";
const SOURCE_RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";

/// What addresses are allocated by.
pub(super) fn check_addresses(new: &At<'_, '_>, old: Option<&At<'_, '_>>, errors: &mut ErrorList) {
    let (spec, old_spec) = (new.field("spec"), old.map(|old| old.field("spec")));
    if spec.text_of("type") != "ExternalName" {
        addresses::check(&spec, old_spec.as_ref(), errors);
    }
}

pub(super) fn check_change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    let (spec, old_spec) = (new.field("spec"), old.field("spec"));
    addresses::change(&spec, &old_spec, errors);
    balancer_class(&spec, Some(&old_spec), errors);
    if needs_health_check(&spec)
        && needs_health_check(&old_spec)
        && spec.int_of("healthCheckNodePort") != old_spec.int_of("healthCheckNodePort")
    {
        spec.field("healthCheckNodePort").forbidden(errors, "field is immutable");
    }
    check(new, errors);
}

pub(super) fn is_headless(spec: &At<'_, '_>) -> bool {
    matches!(spec.field("clusterIPs").list(), [only] if only == "None")
}

pub(super) fn check(service: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = service.field("spec");
    let (ports, sort) = (spec.field("ports"), spec.text_of("type"));
    if ports.is_empty() && !is_headless(&spec) && sort != "ExternalName" {
        ports.required(errors, "");
    }
    match sort {
        "LoadBalancer" | "NodePort" if is_headless(&spec) => {
            let problem = format!("may not be set to 'None' for {sort} services");
            spec.field("clusterIPs").index(0).invalid_text(errors, problem);
        }
        "ExternalName" => external_name(&spec, errors),
        _ => {}
    }
    check_ports(&ports, errors);
    metadata::labels(&spec.field("selector"), errors);
    affinity(&spec, errors);
    addresses::external(&spec.field("externalIPs"), errors);
    spec.field("type").required_one_of(errors, TYPES);
    unique_ports(&spec, errors);
    source_ranges(service, &spec, errors);
    let allocate = spec.field("allocateLoadBalancerNodePorts");
    if allocate.is_set() && sort != "LoadBalancer" {
        allocate.forbidden(errors, ONLY_BALANCED);
    } else if !allocate.is_set() && sort == "LoadBalancer" {
        errors.push(Error::required(&Path::new("allocateLoadBalancerNodePorts"), ""));
    }
    balancer_class(&spec, None, errors);
    traffic(&spec, errors);
}

fn external_name(spec: &At<'_, '_>, errors: &mut ErrorList) {
    for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        if !spec.field(field).is_empty() {
            spec.field(field).forbidden(errors, "may not be set for ExternalName services");
        }
    }
    let name = spec.field("externalName");
    match name.text().strip_suffix('.').unwrap_or(name.text()) {
        "" => name.required(errors, ""),
        target => errors.extend(Format::Dns1123Subdomain.check(name.path(), target)),
    }
}

fn check_ports(ports: &At<'_, '_>, errors: &mut ErrorList) {
    let mut taken = Taken::default();
    for port in ports.items() {
        let name = port.field("name");
        if name.text().is_empty() {
            if ports.list().len() > 1 {
                name.required(errors, "");
            }
        } else {
            name.is_format(errors, Format::Dns1123Label);
            if taken.contains(&name.text()) {
                name.duplicate(errors);
            }
            taken.push(name.text());
        }
        port.field("port").port_number(errors);
        port.field("protocol").required_one_of(errors, pod::PROTOCOLS);
        port.field("targetPort").port_number_or_name(errors);
        if port.has("appProtocol") {
            port.field("appProtocol").is_format(errors, Format::QualifiedName);
        }
    }
}

fn affinity(spec: &At<'_, '_>, errors: &mut ErrorList) {
    const LONGEST: i64 = 86400;
    const WHEN: &str = "when session affinity type is ClientIP";
    spec.field("sessionAffinity").required_one_of(errors, &["ClientIP", "None"]);
    let config = spec.field("sessionAffinityConfig");
    let client = config.field("clientIP");
    let timeout = client.field("timeoutSeconds");
    match spec.text_of("sessionAffinity") {
        "ClientIP" => {
            if let Some(missing) = [&config, &client, &timeout].into_iter().find(|it| !it.is_set()) {
                missing.required(errors, WHEN);
            } else if !(1..=LONGEST).contains(&timeout.int()) {
                let problem = format!("must be greater than 0 and less than {LONGEST}");
                timeout.invalid_int(errors, problem);
            }
        }
        "None" if config.is_set() => {
            config.forbidden(errors, "must not be set when session affinity is None");
        }
        _ => {}
    }
}

fn unique_ports(spec: &At<'_, '_>, errors: &mut ErrorList) {
    let ports = spec.field("ports");
    let has_node_port = |port: &At<'_, '_>| port.int_of("nodePort") != 0;
    for port in ports.items().filter(|port| spec.text_of("type") == "ClusterIP" && has_node_port(port)) {
        port.field("nodePort").forbidden(errors, "may not be used when `type` is 'ClusterIP'");
    }
    let mut taken = Taken::default();
    for port in ports.items().filter(has_node_port) {
        if !taken.add((port.text_of("protocol"), port.int_of("nodePort"))) {
            port.field("nodePort").duplicate(errors);
        }
    }
    let mut taken = Taken::default();
    for port in ports.items() {
        if !taken.add((port.text_of("protocol"), port.int_of("port"))) {
            let key = serde_json::json!({"protocol": port.text_of("protocol"), "port": port.int_of("port")});
            errors.push(Error::duplicate(port.path(), internal::shown_core("ServicePort", &At::root(&key))));
        }
    }
}

/// Kubernetes: the field's name is in capitals here.
fn source_ranges(service: &At<'_, '_>, spec: &At<'_, '_>, errors: &mut ErrorList) {
    let is_balanced = spec.text_of("type") == "LoadBalancer";
    let ranges = spec.field("loadBalancerSourceRanges");
    let ranges = At::new(ranges.value(), spec.path().child("LoadBalancerSourceRanges"));
    if !ranges.is_empty() {
        if !is_balanced {
            ranges.forbidden(errors, ONLY_BALANCED);
        }
        for range in ranges.items() {
            errors.extend(name::legacy_cidr(range.path(), range.text().trim()));
        }
        return;
    }
    if let Some(listed) = api::object::annotation(service.value(), SOURCE_RANGES) {
        let path = Path::new("metadata.annotations");
        let path = path.key(SOURCE_RANGES);
        if !is_balanced {
            errors.push(Error::forbidden(&path, ONLY_BALANCED));
        }
        for range in listed.split(',').map(str::trim).filter(|range| !range.is_empty()) {
            errors.extend(name::legacy_cidr(&path, range));
        }
    }
}

fn balancer_class(spec: &At<'_, '_>, old: Option<&At<'_, '_>>, errors: &mut ErrorList) {
    let class = spec.field("loadBalancerClass");
    let is_balanced = |spec: &At<'_, '_>| spec.text_of("type") == "LoadBalancer";
    if let Some(old) = old.filter(|old| is_balanced(old) && is_balanced(spec))
        && class.value() != old.field("loadBalancerClass").value()
    {
        class.invalid(errors, "may not change once set");
    }
    if class.is_set() && is_balanced(spec) {
        class.is_format(errors, Format::QualifiedName);
    } else if class.is_set() {
        class.forbidden(errors, ONLY_BALANCED);
    }
}

fn needs_health_check(spec: &At<'_, '_>) -> bool {
    spec.text_of("type") == "LoadBalancer" && spec.text_of("externalTrafficPolicy") == "Local"
}

fn traffic(spec: &At<'_, '_>, errors: &mut ErrorList) {
    let (external, sort) = (spec.field("externalTrafficPolicy"), spec.text_of("type"));
    let is_reachable = matches!(sort, "LoadBalancer" | "NodePort")
        || (sort == "ClusterIP" && !spec.field("externalIPs").is_empty());
    if is_reachable {
        external.required_one_of(errors, &["Cluster", "Local"]);
    } else if !external.text().is_empty() {
        external.invalid_text(errors, "may only be set for externally-accessible services");
    }
    let health = spec.field("healthCheckNodePort");
    if needs_health_check(spec) {
        // The server gives it a port before it stores the service.
        if health.int() != 0 {
            health.port_number(errors);
        }
    } else if health.int() != 0 {
        let problem = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        health.invalid_int(errors, problem);
    }
    let internal = spec.field("internalTrafficPolicy");
    if internal.is_set() {
        internal.one_of(errors, &["Cluster", "Local"]);
    } else if matches!(sort, "NodePort" | "LoadBalancer" | "ClusterIP") {
        internal.required(errors, "");
    }
    let known = ["PreferClose", "PreferSameZone", "PreferSameNode"];
    spec.field("trafficDistribution").optional_one_of(errors, &known);
}

pub(super) fn check_status(new: &At<'_, '_>, _: &At<'_, '_>, errors: &mut ErrorList) {
    let status = new.field("status");
    let balancer = status.field("loadBalancer");
    let ingresses = balancer.field("ingress");
    if new.field("spec").text_of("type") != "LoadBalancer" && !ingresses.is_empty() {
        ingresses.forbidden(errors, "may only be used when `spec.type` is 'LoadBalancer'");
        return;
    }
    addresses::ingress(&ingresses, true, errors);
}
