//! What a service says without being told: protocol and target of its ports, affinity and traffic policies.

use serde_json::{Value, json};

use super::member::{self, Members};

const AFFINITY_SECONDS: i64 = 3 * 60 * 60;

pub(super) fn service(service: &mut Members) {
    let spec = member::made(service, "spec");
    affinity(spec);
    member::default_to(spec, "type", "ClusterIP");
    member::items_mut(spec, "ports").for_each(port);
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
            member::items_mut(balancer, "ingress").for_each(ingress);
        }
    }
}

fn affinity(spec: &mut Members) {
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

fn port(port: &mut Members) {
    member::default_to(port, "protocol", "TCP");
    let unset = match port.get("targetPort") {
        None | Some(Value::Null) => true,
        Some(target) => target.as_i64() == Some(0) || target.as_str() == Some(""),
    };
    if unset && let Some(number) = port.get("port").cloned() {
        port.insert("targetPort".to_owned(), number);
    }
}

fn ingress(ingress: &mut Members) {
    if member::is_set(ingress, "ip") && !ingress.contains_key("ipMode") {
        ingress.insert("ipMode".to_owned(), "VIP".into());
    }
}
