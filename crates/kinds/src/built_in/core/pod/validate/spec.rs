//! The spec of a pod, alone or in a template.

use std::collections::HashMap;

use api::field::{Error, ErrorList};
use api::name::{self, Format};

use super::containers::{self, Surroundings};
use super::{placement, requirements, security, system, volumes};
use crate::validate::at::At;
use crate::validate::taken::Taken;
use crate::validate::{internal, metadata};

/// `pod` is the metadata of a pod; a template has none.
pub(crate) fn check(spec: &At<'_, '_>, pod: Option<&At<'_, '_>>, errors: &mut ErrorList) {
    let grace = spec.field("terminationGracePeriodSeconds");
    if !grace.is_set() {
        grace.required(errors, "");
    }
    let pod_name = pod.map_or("", |pod| pod.text_of("name"));
    let mountable = volumes::check(&spec.field("volumes"), pod_name, pod.is_some(), errors);
    let claims = spec.field("resourceClaims");
    let around = Surroundings {
        volumes: mountable,
        claims: claims.items().map(|claim| claim.text_of("name")).filter(|name| !name.is_empty()).collect(),
        grace: grace.value().as_i64(),
        restart_policy: spec.text_of("restartPolicy"),
        host_users: !spec.has("hostUsers") || spec.flag_of("hostUsers"),
        os: spec.value().get("os").and_then(|os| os.get("name")).and_then(|name| name.as_str()),
    };
    resource_claims(&claims, errors);
    containers::regular(spec, &around, errors);
    containers::init(spec, &around, errors);
    containers::ephemeral(spec, &around, errors);
    requirements::of_pod(spec, &around.claims, errors);
    host_network_ports(spec, pod.is_some(), errors);
    spec.field("restartPolicy").required_one_of(errors, &["Always", "OnFailure", "Never"]);
    spec.field("dnsPolicy")
        .required_one_of(errors, &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"]);
    metadata::labels(&spec.field("nodeSelector"), errors);
    security::of_pod(spec, errors);
    placement::affinity(&spec.field("affinity"), errors);
    dns_config(spec, errors);
    let gates = spec.field("readinessGates");
    for gate in gates.items() {
        gate.field("conditionType").is_format(errors, Format::QualifiedName);
    }
    scheduling_gates(&spec.field("schedulingGates"), errors);
    placement::spread(&spec.field("topologySpreadConstraints"), errors);
    security::host_processes(spec, errors);
    security::host_users(spec, errors);
    host_name(spec, errors);
    names(spec, errors);
    placement::tolerations(&spec.field("tolerations"), errors);
    host_aliases(&spec.field("hostAliases"), errors);
    class_names(spec, errors);
    requirements::overhead(&spec.field("overhead"), errors);
    system::check(spec, errors);
    file_variables(spec, errors);
}

/// A variable that is read from a file names a volume that a container has filled.
fn file_variables(spec: &At<'_, '_>, errors: &mut ErrorList) {
    let volumes = spec.field("volumes");
    // Of several with the same name, the first.
    let mut by_name = HashMap::new();
    for volume in volumes.items() {
        by_name.entry(volume.text_of("name")).or_insert_with(|| volume.has("emptyDir"));
    }
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        let list = spec.field(list);
        for container in list.items() {
            let variables = container.field("env");
            for variable in variables.items() {
                let source = variable.field("valueFrom");
                let file = source.field("fileKeyRef");
                let name = file.field("volumeName");
                match by_name.get(name.text()) {
                    _ if !file.is_set() => {}
                    None => name.not_found(errors),
                    Some(is_empty_dir) if !is_empty_dir => {
                        name.invalid_text(errors, "referenced volume must be of type emptyDir");
                    }
                    Some(_) => {}
                }
            }
        }
    }
}

fn resource_claims(claims: &At<'_, '_>, errors: &mut ErrorList) {
    let mut taken = Taken::default();
    for claim in claims.items() {
        let name = claim.field("name");
        if name.text().is_empty() {
            name.required(errors, "");
        } else if taken.contains(&name.text()) {
            name.duplicate(errors);
        } else {
            name.is_format(errors, Format::Dns1123Label);
            taken.push(name.text());
        }
        let (direct, template) = (claim.field("resourceClaimName"), claim.field("resourceClaimTemplateName"));
        let problem = match (direct.is_set(), template.is_set()) {
            (true, true) => {
                Some("at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified")
            }
            (false, false) => Some("must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"),
            _ => None,
        };
        if let Some(problem) = problem {
            claim.invalid_as(errors, internal::shown_core("PodResourceClaim", &claim), problem);
        }
        for reference in [direct, template].iter().filter(|reference| reference.is_set()) {
            reference.is_format(errors, Format::Dns1123Subdomain);
        }
    }
}

fn host_network_ports(spec: &At<'_, '_>, is_pod: bool, errors: &mut ErrorList) {
    let containers = spec.field("containers");
    for container in containers.items().filter(|_| spec.flag_of("hostNetwork")) {
        let ports = container.field("ports");
        for port in ports.items() {
            let host = port.field("hostPort");
            if (is_pod || host.int() != 0) && host.int() != port.int_of("containerPort") {
                host.invalid_int(errors, "must match `containerPort` when `hostNetwork` is true");
            }
        }
    }
}

fn dns_config(spec: &At<'_, '_>, errors: &mut ErrorList) {
    const MAX_NAMESERVERS: usize = 3;
    const MAX_SEARCHES: usize = 32;
    const MAX_SEARCH_BYTES: usize = 2048;
    let config = spec.field("dnsConfig");
    let (servers, searches) = (config.field("nameservers"), config.field("searches"));
    if spec.text_of("dnsPolicy") == "None" {
        if !config.is_set() {
            return config.required(errors, "must provide `dnsConfig` when `dnsPolicy` is None");
        }
        if servers.is_empty() {
            let problem = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            return servers.required(errors, problem);
        }
    }
    if servers.list().len() > MAX_NAMESERVERS {
        servers.invalid(errors, format!("must not have more than {MAX_NAMESERVERS} nameservers"));
    }
    for server in servers.items() {
        errors.extend(name::legacy_ip(server.path(), server.text()));
    }
    if searches.list().len() > MAX_SEARCHES {
        searches.invalid(errors, format!("must not have more than {MAX_SEARCHES} search paths"));
    }
    let bytes = searches.items().map(|search| search.text().len() + 1).sum::<usize>();
    if bytes > MAX_SEARCH_BYTES + 1 {
        let problem = format!(
            "must not have more than {MAX_SEARCH_BYTES} characters (including spaces) in the search list"
        );
        searches.invalid(errors, problem);
    }
    for search in searches.items().filter(|search| search.text() != ".") {
        let text = search.text().strip_suffix('.').unwrap_or(search.text());
        errors.extend(Format::Dns1123SubdomainWithUnderscore.check(search.path(), text));
    }
    let options = config.field("options");
    for option in options.items().filter(|option| option.text_of("name").is_empty()) {
        option.required(errors, "must not be empty");
    }
}

fn scheduling_gates(gates: &At<'_, '_>, errors: &mut ErrorList) {
    let mut taken = Taken::default();
    for gate in gates.items() {
        let name = gate.text_of("name");
        errors.extend(Format::QualifiedName.check(gate.path(), name));
        if taken.contains(&name) {
            errors.push(Error::duplicate(gate.path(), name));
        }
        taken.push(name);
    }
}

fn host_name(spec: &At<'_, '_>, errors: &mut ErrorList) {
    const LONGEST: usize = 64;
    let name = spec.field("hostnameOverride");
    if !name.is_set() {
        return;
    }
    for (field, problem) in [
        ("setHostnameAsFQDN", "may not be specified when setHostnameAsFQDN is true"),
        ("hostNetwork", "may not be specified when hostNetwork is true"),
    ] {
        if spec.flag_of(field) {
            name.forbidden(errors, problem);
        }
    }
    if name.text().len() > LONGEST {
        errors.push(Error::too_long(name.path(), LONGEST));
    }
    name.is_format(errors, Format::Dns1123Subdomain);
}

fn names(spec: &At<'_, '_>, errors: &mut ErrorList) {
    for field in ["serviceAccountName", "nodeName"] {
        if !spec.text_of(field).is_empty() {
            spec.field(field).is_format(errors, Format::Dns1123Subdomain);
        }
    }
    let deadline = spec.field("activeDeadlineSeconds");
    if deadline.is_set() {
        for problem in name::range_problems(deadline.int(), 1, i64::from(i32::MAX)) {
            deadline.invalid_int(errors, problem);
        }
    }
    for field in ["hostname", "subdomain"] {
        if !spec.text_of(field).is_empty() {
            spec.field(field).is_format(errors, Format::Dns1123Label);
        }
    }
}

fn host_aliases(aliases: &At<'_, '_>, errors: &mut ErrorList) {
    for alias in aliases.items() {
        let ip = alias.field("ip");
        errors.extend(name::legacy_ip(ip.path(), ip.text()));
        let names = alias.field("hostnames");
        for name in names.items() {
            name.is_format(errors, Format::Dns1123Subdomain);
        }
    }
}

fn class_names(spec: &At<'_, '_>, errors: &mut ErrorList) {
    if !spec.text_of("priorityClassName").is_empty() {
        spec.field("priorityClassName").is_format(errors, Format::Dns1123Subdomain);
    }
    if spec.has("runtimeClassName") {
        spec.field("runtimeClassName").is_format(errors, Format::Dns1123Subdomain);
    }
    if spec.has("preemptionPolicy") {
        spec.field("preemptionPolicy").required_one_of(errors, &["PreemptLowerPriority", "Never"]);
    }
}
