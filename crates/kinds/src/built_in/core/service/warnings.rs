//! What to tell of a service: addresses in an old form, and fields that have no effect.

use api::name::{cidr_warnings, ip_warning};
use serde_json::Value;

use super::validate::is_headless;
use crate::validate::at::At;

pub(super) fn warn(object: &At<'_, '_>, _: Option<&Value>, warnings: &mut Vec<String>) {
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
