//! What a client should hear about an object that is accepted: what is deprecated, ignored or surely not meant.

use api::go;
use api::name::{Format, cidr_warnings, ip_warning};
use serde_json::Value;

use super::at::At;
use super::custom_resource_definition::unrecognized_formats;
use super::service::is_headless;

mod key_pair;
mod pod;
mod storage;
mod volume_paths;

/// A kind that should no longer be used, whatever the object.
pub(super) fn deprecation(group: &str, version: &str, kind: &str) -> Option<&'static str> {
    match (group, version, kind) {
        ("", "v1", "Endpoints") => {
            Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice")
        }
        ("", "v1", "ComponentStatus") => Some("v1 ComponentStatus is deprecated in v1.19+"),
        _ => None,
    }
}

pub(super) fn of(group: &str, kind: &str, new: &Value, old: Option<&Value>) -> Vec<String> {
    let object = At::root(new);
    let mut warnings = Vec::new();
    match (group, kind) {
        ("", "Pod") if old.is_none() => {
            name_problems(&object, "the Pod's hostname", &mut warnings);
            pod::check(&object, &mut warnings);
        }
        ("", "Service") => service(&object, &mut warnings),
        ("", "ReplicationController") => named_template(&object, old, &mut warnings),
        ("apps", "Deployment" | "ReplicaSet") => named_template(&object, old, &mut warnings),
        ("apps", "DaemonSet") if is_new_generation(&object, old) => {
            pod::check(&template(&object), &mut warnings);
        }
        ("apps", "StatefulSet") => stateful_set(&object, old, &mut warnings),
        ("batch", "Job") => named_template(&object, old, &mut warnings),
        ("batch", "CronJob") => cron_job(&object, old, &mut warnings),
        ("", "PodTemplate") if is_new_generation(&object, old) => {
            pod::check(&object.field("template"), &mut warnings);
        }
        ("", "PersistentVolumeClaim") => storage::claim(&object, &mut warnings),
        ("", "PersistentVolume") => storage::volume(&object, &mut warnings),
        ("storage.k8s.io", "StorageClass") => storage::class(&object, &mut warnings),
        ("storage.k8s.io", "CSIDriver") => storage::driver(&object, old, &mut warnings),
        ("", "Secret") => key_pair::check(&object, &mut warnings),
        ("", "ServiceAccount") => service_account(new, old, &mut warnings),
        ("", "Node") => node(&object, &mut warnings),
        ("", "Endpoints") => endpoints(&object, &mut warnings),
        ("discovery.k8s.io", "EndpointSlice") => slice(&object, old, &mut warnings),
        ("networking.k8s.io", "NetworkPolicy") => network_policy(&object, &mut warnings),
        ("networking.k8s.io", "Ingress") => ingress(&object, old, &mut warnings),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => definition(new, old, &mut warnings),
        _ => {}
    }
    warnings
}

fn template<'v>(object: &At<'v, '_>) -> At<'v, 'static> {
    let template = object.value().pointer("/spec/template").unwrap_or(&Value::Null);
    At::new(template, api::field::Path::new("spec.template"))
}

fn is_new_generation(new: &At<'_, '_>, old: Option<&Value>) -> bool {
    old.is_none_or(|old| api::object::generation(new.value()) != api::object::generation(old))
}

fn name_problems(object: &At<'_, '_>, used_in: &str, warnings: &mut Vec<String>) {
    let problems = Format::Dns1123Label.problems(api::object::name(object.value()));
    if !problems.is_empty() {
        warnings.push(format!(
            "metadata.name: this is used in {used_in}, which can result in surprising behavior; a DNS label is \
             recommended: [{}]",
            problems.join(" ")
        ));
    }
}

fn named_template(object: &At<'_, '_>, old: Option<&Value>, warnings: &mut Vec<String>) {
    if old.is_none() {
        name_problems(object, "Pod names and hostnames", warnings);
    }
    if is_new_generation(object, old) {
        pod::check(&template(object), warnings);
    }
}

fn stateful_set(object: &At<'_, '_>, old: Option<&Value>, warnings: &mut Vec<String>) {
    if is_new_generation(object, old) {
        pod::check(&template(object), warnings);
    }
    let spec = object.field("spec");
    if spec.int_of("revisionHistoryLimit") < 0 {
        let warning = "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 \
            is recommended";
        warnings.push(warning.to_owned());
    }
}

fn cron_job(object: &At<'_, '_>, old: Option<&Value>, warnings: &mut Vec<String>) {
    let spec = object.field("spec");
    if old.is_none() {
        name_problems(object, "Pod names and hostnames", warnings);
    }
    if is_new_generation(object, old) {
        let jobs = spec.field("jobTemplate");
        let jobs = jobs.field("spec");
        pod::check(&jobs.field("template"), warnings);
    }
    if old.is_some() && spec.text_of("schedule").contains("TZ") {
        // Kubernetes: the path has one step too many.
        let warning = "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see \
            https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details";
        warnings.push(warning.to_owned());
    }
}

fn service_account(new: &Value, old: Option<&Value>, warnings: &mut Vec<String>) {
    const ENFORCE: &str = "kubernetes.io/enforce-mountable-secrets";
    let has = |object: &Value| api::object::annotation(object, ENFORCE).is_some();
    if has(new) && !old.is_some_and(has) {
        warnings.push(format!(
            "metadata.annotations[{ENFORCE}]: deprecated in v1.32+; prefer separate namespaces to isolate access to \
             mounted secrets"
        ));
    }
}

fn node(object: &At<'_, '_>, warnings: &mut Vec<String>) {
    let spec = object.field("spec");
    if spec.has("configSource") {
        warnings.push("spec.configSource: the feature is removed".to_owned());
    }
    if !spec.text_of("externalID").is_empty() {
        let warning = "spec.externalID: this field is deprecated, and is unused by Kubernetes";
        warnings.push(warning.to_owned());
    }
    let ranges = spec.field("podCIDRs");
    warnings.extend(ranges.items().flat_map(|range| cidr_warnings(range.path(), range.text())));
}

/// Kubernetes: the server's own controllers write addresses as they should be.
fn endpoints(object: &At<'_, '_>, warnings: &mut Vec<String>) {
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

fn slice(object: &At<'_, '_>, old: Option<&Value>, warnings: &mut Vec<String>) {
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

fn network_policy(object: &At<'_, '_>, warnings: &mut Vec<String>) {
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

fn ingress(object: &At<'_, '_>, old: Option<&Value>, warnings: &mut Vec<String>) {
    const CLASS: &str = "kubernetes.io/ingress.class";
    let is_old = api::object::annotation(object.value(), CLASS).is_some();
    if old.is_none() && is_old && !object.field("spec").has("ingressClassName") {
        let warning = format!(
            "annotation {} is deprecated, please use 'spec.ingressClassName' instead",
            go::quote(CLASS)
        );
        warnings.push(warning);
    }
}

/// Formats that nothing checks, but for those that were there before.
fn definition(new: &Value, old: Option<&Value>, warnings: &mut Vec<String>) {
    let known = old.map(|old| unrecognized_formats(&old["spec"])).unwrap_or_default();
    let formats = unrecognized_formats(&new["spec"]).into_iter().filter(|format| !known.contains(format));
    warnings.extend(formats.map(|format| format!("unrecognized format {}", go::quote(&format))));
}

fn service(object: &At<'_, '_>, warnings: &mut Vec<String>) {
    const HINTS: &str = "service.kubernetes.io/topology-aware-hints";
    let spec = object.field("spec");
    let headless = spec.text_of("type") == "ClusterIP" && is_headless(&spec);
    let is_external = spec.text_of("type") == "ExternalName";
    if api::object::annotation(object.value(), HINTS).is_some() {
        let warning = format!(
            "annotation {HINTS} is deprecated, please use service.kubernetes.io/topology-mode instead"
        );
        warnings.push(warning);
    }
    let (cluster, external) = (spec.field("clusterIPs"), spec.field("externalIPs"));
    if !matches!(spec.text_of("clusterIP"), "" | "None") {
        warnings.extend(cluster.items().filter_map(|ip| ip_warning(ip.path(), ip.text())));
    }
    let mut say = |is_so: bool, warning: &str| {
        if is_so {
            warnings.push(warning.to_owned());
        }
    };
    let has_balancer = !spec.text_of("loadBalancerIP").is_empty();
    say(headless && has_balancer, "spec.loadBalancerIP is ignored for headless services");
    say(headless && !external.is_empty(), "spec.externalIPs is ignored for headless services");
    let is_sticky = spec.text_of("sessionAffinity") != "None";
    say(headless && is_sticky, "spec.SessionAffinity is ignored for headless services");
    warnings.extend(external.items().filter_map(|ip| ip_warning(ip.path(), ip.text())));
    if !external.is_empty() && !headless && !is_external {
        let warning = "spec.externalIPs is deprecated and may no longer be implemented in some clusters";
        warnings.push(warning.to_owned());
    }
    let balancer = spec.field("loadBalancerIP");
    warnings.extend(ip_warning(balancer.path(), balancer.text()));
    let ranges = spec.field("loadBalancerSourceRanges");
    warnings.extend(ranges.items().flat_map(|range| cidr_warnings(range.path(), range.text())));
    let mut say = |is_so: bool, warning: &str| {
        if is_so {
            warnings.push(warning.to_owned());
        }
    };
    let has_name = !spec.text_of("externalName").is_empty();
    let ignored = "spec.externalIPs is ignored when spec.type is \"ExternalName\"";
    say(is_external && !external.is_empty(), ignored);
    say(!is_external && has_name, "spec.externalName is ignored when spec.type is not \"ExternalName\"");
    let close = "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"";
    say(spec.text_of("trafficDistribution") == "PreferClose", close);
}
