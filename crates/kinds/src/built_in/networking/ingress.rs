//! Ingress: which HTTP requests reach which services.

use std::net::IpAddr;

use api::field::{Error, ErrorList, Path};
use api::go;
use api::name::Format;
use serde_json::Value;

use super::GROUP;
use crate::built_in::BuiltIn;
use crate::built_in::core::service::{addresses, balancer_addresses};
use crate::cells::column::{AGE, Cell, NAME, string};
use crate::cells::row::{NONE, Row, or, text};
use crate::strategy::Strategy;
use crate::strategy::builder::SPEC;
use crate::validate::at::At;
use crate::validate::validation::{UpdateChecks, Validation};

const CLASS: &str = "kubernetes.io/ingress.class";
/// How many hosts a cell shows.
const SHOWN_HOSTS: usize = 3;

pub(crate) static INGRESS: BuiltIn = BuiltIn::new(GROUP, "Ingress", "ingresses")
    .older_versions(&["v1beta1"])
    .strategy(Strategy::PLAIN.counts_generation_of(SPEC).status())
    .validation(
        Validation::new(check)
            .update(UpdateChecks::CHANGE.compare(check_change))
            .subresources(&[("status", check_status)]),
    )
    .warnings(warn)
    .columns(&[
        NAME,
        string("Class", Cell::TextOr("/spec/ingressClassName", NONE)),
        string("Hosts", Cell::Computed(|it| hosts(it.items("/spec/rules")).into())),
        string("Address", Cell::Computed(|it| Vec::from_iter(balancer_addresses(it)).join(",").into())),
        string("Ports", Cell::Computed(|it| ports(it).into())),
        AGE,
    ]);

fn check(ingress: &At<'_, '_>, errors: &mut ErrorList) {
    check_spec(ingress, errors);
    let spec = ingress.field("spec");
    if let Some(class) = api::object::annotation(ingress.value(), CLASS)
        && spec.has("ingressClassName")
        && spec.text_of("ingressClassName") != class
    {
        let path = Path::new("annotations");
        let problem = "must match `ingressClassName` when both are specified";
        errors.push(Error::invalid(&path.child(CLASS), class, problem));
    }
}

fn check_change(new: &At<'_, '_>, _: &At<'_, '_>, errors: &mut ErrorList) {
    check_spec(new, errors);
}

fn check_spec(ingress: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = ingress.field("spec");
    let (rules, fallback) = (spec.field("rules"), spec.field("defaultBackend"));
    if rules.is_empty() && !fallback.is_set() {
        let problem = "either `defaultBackend` or `rules` must be specified";
        spec.invalid_as(errors, rules.value(), problem);
    }
    if fallback.is_set() {
        check_backend(&fallback, errors);
    }
    for rule in rules.items() {
        check_host(&rule.field("host"), errors);
        let http = rule.field("http");
        if !http.is_set() {
            continue;
        }
        let paths = http.field("paths");
        if paths.is_empty() {
            paths.required(errors, "");
        }
        for it in paths.items() {
            check_path(&it, errors);
        }
    }
    let tls = spec.field("tls");
    for entry in tls.items() {
        let hosts = entry.field("hosts");
        for host in hosts.items() {
            host.is_format(errors, host_format(host.text()));
        }
        if !entry.text_of("secretName").is_empty() {
            entry.field("secretName").is_format(errors, Format::Dns1123Subdomain);
        }
    }
    if spec.has("ingressClassName") {
        spec.field("ingressClassName").is_format(errors, Format::Dns1123Subdomain);
    }
}

fn host_format(host: &str) -> Format {
    if host.contains('*') { Format::WildcardDns1123Subdomain } else { Format::Dns1123Subdomain }
}

fn check_host(host: &At<'_, '_>, errors: &mut ErrorList) {
    if host.text().is_empty() {
        return;
    }
    if host.text().parse::<IpAddr>().is_ok() {
        host.invalid_text(errors, "must be a DNS name, not an IP address");
    }
    host.is_format(errors, host_format(host.text()));
}

fn check_path(at: &At<'_, '_>, errors: &mut ErrorList) {
    let (sort, path) = (at.field("pathType"), at.field("path"));
    if !sort.is_set() {
        sort.required(errors, "pathType must be specified");
        return;
    }
    match sort.text() {
        "Exact" | "Prefix" => {
            if !path.text().starts_with('/') {
                path.invalid_text(errors, "must be an absolute path");
            }
            for sequence in ["//", "/./", "/../", "%2f", "%2F"] {
                if path.text().contains(sequence) {
                    path.invalid_text(errors, format!("must not contain '{sequence}'"));
                }
            }
            for suffix in ["/..", "/."] {
                if path.text().ends_with(suffix) {
                    path.invalid_text(errors, format!("cannot end with '{suffix}'"));
                }
            }
        }
        "ImplementationSpecific" => {
            if !path.text().is_empty() && !path.text().starts_with('/') {
                path.invalid_text(errors, "must be an absolute path");
            }
        }
        _ => sort.unsupported(errors, &["Exact", "ImplementationSpecific", "Prefix"]),
    }
    check_backend(&at.field("backend"), errors);
}

fn check_backend(at: &At<'_, '_>, errors: &mut ErrorList) {
    let (resource, service) = (at.field("resource"), at.field("service"));
    match (resource.is_set(), service.is_set()) {
        (true, true) => at.invalid_as(errors, "", "cannot set both resource and service backends"),
        (true, false) => check_typed_reference(&resource, errors),
        (false, false) => at.invalid_as(errors, "", "resource or service backend is required"),
        (false, true) => {
            service.field("name").required_format(errors, Format::Dns1123Label);
            let port = service.field("port");
            match (port.text_of("name").is_empty(), port.int_of("number") == 0) {
                (false, false) => at.invalid_as(errors, "", "cannot set both port name & port number"),
                (false, true) => port.field("name").is_format(errors, Format::PortName),
                (true, false) => port.field("number").port_number(errors),
                (true, true) => at.required(errors, "port name or number is required"),
            }
        }
    }
}

pub(crate) fn check_typed_reference(at: &At<'_, '_>, errors: &mut ErrorList) {
    if at.has("apiGroup") {
        at.field("apiGroup").is_format(errors, Format::Dns1123Subdomain);
    }
    at.field("kind").required_format(errors, Format::PathSegment);
    at.field("name").required_format(errors, Format::PathSegment);
}

/// The addresses under which an Ingress can be reached.
fn check_status(new: &At<'_, '_>, _: &At<'_, '_>, errors: &mut ErrorList) {
    let status = new.field("status");
    let balancer = status.field("loadBalancer");
    addresses::ingress(&balancer.field("ingress"), false, errors);
}

fn warn(object: &At<'_, '_>, old: Option<&Value>, warnings: &mut Vec<String>) {
    let is_old = api::object::annotation(object.value(), CLASS).is_some();
    if old.is_none() && is_old && !object.field("spec").has("ingressClassName") {
        let warning = format!(
            "annotation {} is deprecated, please use 'spec.ingressClassName' instead",
            go::quote(CLASS)
        );
        warnings.push(warning);
    }
}

/// Kubernetes: rules are counted, whether they name a host or not.
fn hosts(rules: &[Value]) -> String {
    let mut shown = Vec::new();
    let mut is_cut = false;
    for rule in rules {
        is_cut |= shown.len() == SHOWN_HOSTS;
        match text(&rule["host"]) {
            host if !is_cut && !host.is_empty() => shown.push(host),
            _ => {}
        }
    }
    match shown.join(",") {
        hosts if is_cut => format!("{hosts} + {} more...", rules.len() - SHOWN_HOSTS),
        hosts => or(&hosts, "*").to_owned(),
    }
}

fn ports(ingress: &Row<'_>) -> &'static str {
    if ingress.items("/spec/tls").is_empty() { "80" } else { "80, 443" }
}
