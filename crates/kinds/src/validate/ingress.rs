//! Ingresses and their classes.

use std::net::IpAddr;

use api::field::{Error, ErrorList, Path};
use api::name::{self, Format};

use super::at::At;

const CLASS: &str = "kubernetes.io/ingress.class";
const MAX_CONTROLLER_BYTES: usize = 250;

pub(super) fn body(ingress: &At<'_, '_>, errors: &mut ErrorList) {
    content(ingress, errors);
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

pub(super) fn change(new: &At<'_, '_>, _: &At<'_, '_>, errors: &mut ErrorList) {
    content(new, errors);
}

fn content(ingress: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = ingress.field("spec");
    let (rules, fallback) = (spec.field("rules"), spec.field("defaultBackend"));
    if rules.is_empty() && !fallback.is_set() {
        let problem = "either `defaultBackend` or `rules` must be specified";
        spec.invalid_as(errors, rules.value(), problem);
    }
    if fallback.is_set() {
        backend(&fallback, errors);
    }
    for rule in rules.items() {
        host(&rule.field("host"), errors);
        let http = rule.field("http");
        if !http.is_set() {
            continue;
        }
        let paths = http.field("paths");
        if paths.is_empty() {
            paths.required(errors, "");
        }
        for it in paths.items() {
            path(&it, errors);
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

fn host(host: &At<'_, '_>, errors: &mut ErrorList) {
    if host.text().is_empty() {
        return;
    }
    if host.text().parse::<IpAddr>().is_ok() {
        host.invalid_text(errors, "must be a DNS name, not an IP address");
    }
    host.is_format(errors, host_format(host.text()));
}

fn path(at: &At<'_, '_>, errors: &mut ErrorList) {
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
    backend(&at.field("backend"), errors);
}

fn backend(at: &At<'_, '_>, errors: &mut ErrorList) {
    let (resource, service) = (at.field("resource"), at.field("service"));
    match (resource.is_set(), service.is_set()) {
        (true, true) => at.invalid_as(errors, "", "cannot set both resource and service backends"),
        (true, false) => typed_reference(&resource, errors),
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

fn typed_reference(at: &At<'_, '_>, errors: &mut ErrorList) {
    if at.has("apiGroup") {
        at.field("apiGroup").is_format(errors, Format::Dns1123Subdomain);
    }
    at.field("kind").required_format(errors, Format::PathSegment);
    at.field("name").required_format(errors, Format::PathSegment);
}

pub(super) fn class(class: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = class.field("spec");
    let controller = spec.field("controller");
    if controller.text().len() > MAX_CONTROLLER_BYTES {
        errors.push(Error::too_long(controller.path(), MAX_CONTROLLER_BYTES));
    }
    errors.extend(name::domain_prefixed_path(controller.path(), controller.text()));
    let parameters = spec.field("parameters");
    if !parameters.is_set() {
        return;
    }
    typed_reference(&parameters, errors);
    let (scope, namespace) = (parameters.field("scope"), parameters.field("namespace"));
    match scope.text() {
        "" if !scope.is_set() => scope.required(errors, ""),
        "Namespace" if !namespace.is_set() => {
            namespace.required(errors, "`parameters.scope` is set to 'Namespace'");
        }
        "Namespace" => namespace.is_format(errors, Format::Dns1123Label),
        "Cluster" if namespace.is_set() => {
            namespace.forbidden(errors, "`parameters.scope` is set to 'Cluster'");
        }
        "Cluster" => {}
        _ => scope.unsupported(errors, &["Cluster", "Namespace"]),
    }
}

pub(super) fn class_change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    new.field("spec").field("controller").immutable(errors, &old.field("spec").field("controller"));
}
