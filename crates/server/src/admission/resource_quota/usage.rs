//! The usage of one object: its count, and the resources that pods, services and claims request.

use super::{
    super::pod_resources::{self, Amounts},
    running,
};
use api::{
    object,
    quantity::{Quantity, QuantityFormat},
};
use serde_json::Value;
use std::collections::BTreeMap;
use world::Timestamp;

const CLASS_SUFFIX: &str = ".storageclass.storage.k8s.io/";
const DEVICE_CLASS_PREFIX: &str = "requests.deviceclass.resource.kubernetes.io/";
const DEVICES_SUFFIX: &str = ".deviceclass.resource.k8s.io/devices";
const HUGE_PAGES: &str = "hugepages-";
const REQUESTS: &str = "requests.";

/// Kubernetes: the number charged for `allocationMode: All`.
const ALL_DEVICES: i64 = 32;

/// Quota names of pod resources, beside those with prefixes.
const OF_PODS: [&str; 10] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
];

// Kubernetes: once these are limited, every container must set them.
const REQUIRED: [&str; 6] =
    ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];

/// A resource by group and name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CountedResource<'a> {
    pub(super) group: &'a str,
    pub(super) resource: &'a str,
}

impl<'a> CountedResource<'a> {
    /// The resource that a name in spec.hard counts.
    pub(super) fn behind(name: &'a str) -> Option<CountedResource<'a>> {
        let core = |resource| Some(CountedResource { group: "", resource });
        if let Some(counted) = name.strip_prefix("count/") {
            let (resource, group) = counted.split_once('.').unwrap_or((counted, ""));
            return Some(CountedResource { group, resource });
        }
        match name {
            "services" | "services.nodeports" | "services.loadbalancers" => core("services"),
            "persistentvolumeclaims" | "requests.storage" => core("persistentvolumeclaims"),
            "configmaps" | "resourcequotas" | "replicationcontrollers" | "secrets" => core(name),
            _ if name.ends_with(DEVICES_SUFFIX) => {
                Some(CountedResource { group: "resource.k8s.io", resource: "resourceclaims" })
            }
            _ if is_of_class(name) => core("persistentvolumeclaims"),
            _ if is_of_pods(name) => core("pods"),
            _ => None,
        }
    }

    pub(super) fn is(self, resource: &str) -> bool {
        self.group.is_empty() && self.resource == resource
    }

    /// The usage of one object.
    pub(super) fn usage(self, object: &Value, now: Timestamp) -> Amounts {
        let count = match self.group {
            "" => format!("count/{}", self.resource),
            group => format!("count/{}.{group}", self.resource),
        };
        let mut usage = Amounts::from([(count, one())]);
        match self.resource {
            "resourceclaims" if self.group == "resource.k8s.io" => usage.extend(of_devices(object)),
            _ if !self.group.is_empty() => {}
            "pods" if is_charged(object, now) => usage.extend(of_pod(object)),
            "services" => usage.extend(of_service(object)),
            "persistentvolumeclaims" => usage.extend(of_claim(object)),
            alias @ ("configmaps" | "resourcequotas" | "replicationcontrollers" | "secrets") => {
                usage.insert(alias.to_owned(), one());
            }
            _ => {}
        }
        usage
    }
}

fn is_of_pods(name: &str) -> bool {
    let is_native = !name.contains('/') || name.contains("kubernetes.io/");
    let is_extended = name.starts_with(REQUESTS) && (!is_native || name.starts_with(DEVICE_CLASS_PREFIX));
    let is_huge = name.strip_prefix(REQUESTS).unwrap_or(name).starts_with(HUGE_PAGES);
    OF_PODS.contains(&name) || is_huge || is_extended
}

fn is_of_class(name: &str) -> bool {
    let what = name.split_once(CLASS_SUFFIX).map(|(_, what)| what);
    matches!(what, Some("persistentvolumeclaims" | "requests.storage"))
}

fn one() -> Quantity {
    number(1)
}

fn number(count: usize) -> Quantity {
    Quantity::new(i64::try_from(count).unwrap_or(i64::MAX), QuantityFormat::DecimalSi)
}

/// Finished pods count as objects only.
fn is_charged(pod: &Value, now: Timestamp) -> bool {
    !matches!(pod["status"]["phase"].as_str(), Some("Failed" | "Succeeded")) && !has_lapsed(pod, now)
}

/// Whether a pod has been in deletion for longer than its grace period.
// Kubernetes: a pod stuck in deletion, perhaps on a lost node, should not block others.
pub(super) fn has_lapsed(pod: &Value, now: Timestamp) -> bool {
    let (deleted, grace) = (object::deletion_timestamp(pod), object::deletion_grace_period_seconds(pod));
    let (Some(deleted), Some(grace)) = (deleted, grace) else { return false };
    now.as_second() > deleted.timestamp().as_second() + grace
}

fn of_pod(pod: &Value) -> Amounts {
    let pod = &*running::counted(pod);
    let (mut requests, mut limits) =
        (pod_resources::of_pod(pod, "requests"), pod_resources::of_pod(pod, "limits"));
    let overhead = pod_resources::amounts(&pod["spec"], "overhead");
    pod_resources::add(&mut requests, &overhead);
    // Kubernetes: overhead is added to limits that are set only.
    let limited = overhead.into_iter().filter(|(name, _)| limits.get(name).is_some_and(|it| !it.is_zero()));
    let limited = limited.collect();
    pod_resources::add(&mut limits, &limited);
    by_quota_name(&requests, &limits)
}

/// Amounts of a pod or container by their quota names.
fn by_quota_name(requests: &Amounts, limits: &Amounts) -> Amounts {
    let mut usage = Amounts::from([("pods".to_owned(), one())]);
    for (name, amount) in requests {
        let is_plain = matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage");
        let is_extended =
            name.contains('/') && !name.contains("kubernetes.io/") && !name.starts_with(REQUESTS)
                || format!("{REQUESTS}{name}").starts_with(DEVICE_CLASS_PREFIX);
        if is_plain || name.starts_with(HUGE_PAGES) {
            usage.insert(name.clone(), amount.clone());
        }
        if is_plain || is_extended || name.starts_with(HUGE_PAGES) {
            usage.insert(format!("{REQUESTS}{name}"), amount.clone());
        }
    }
    for name in ["cpu", "memory", "ephemeral-storage"] {
        if let Some(amount) = limits.get(name) {
            usage.insert(format!("limits.{name}"), amount.clone());
        }
    }
    usage
}

fn of_service(service: &Value) -> Amounts {
    let spec = &service["spec"];
    let ports = spec["ports"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_balanced = spec["type"] == "LoadBalancer";
    let node_ports = match spec["type"].as_str() {
        // Allocation happens in the commit: count the ports that are requested.
        Some("NodePort") => ports.len(),
        Some("LoadBalancer") if spec["allocateLoadBalancerNodePorts"] == false => {
            ports.iter().filter(|port| port["nodePort"].as_i64().unwrap_or(0) != 0).count()
        }
        Some("LoadBalancer") => ports.len(),
        _ => 0,
    };
    Amounts::from([
        ("services".to_owned(), one()),
        ("services.loadbalancers".to_owned(), number(usize::from(is_balanced))),
        ("services.nodeports".to_owned(), number(node_ports)),
    ])
}

fn of_claim(claim: &Value) -> Amounts {
    let mut usage = Amounts::from([("persistentvolumeclaims".to_owned(), one())]);
    let amount = |value: &Value| value.as_str()?.parse::<Quantity>().ok();
    if let Some(requested) = amount(&claim["spec"]["resources"]["requests"]["storage"]) {
        let allocated = amount(&claim["status"]["allocatedResources"]["storage"]);
        let most = allocated.filter(|allocated| *allocated > requested).unwrap_or(requested);
        usage.insert("requests.storage".to_owned(), most.round_up(0));
    }
    let older = claim["metadata"]["annotations"]["volume.beta.kubernetes.io/storage-class"].as_str();
    let class = older.or_else(|| claim["spec"]["storageClassName"].as_str()).unwrap_or_default();
    if !class.is_empty() {
        let by_class =
            usage.iter().map(|(name, amount)| (format!("{class}{CLASS_SUFFIX}{name}"), amount.clone()));
        let by_class: Amounts = by_class.collect();
        usage.extend(by_class);
    }
    usage
}

/// The devices that a claim may get, by class; the maximum over alternatives.
fn of_devices(claim: &Value) -> Amounts {
    let count = |request: &Value| match request["allocationMode"].as_str() {
        Some("All") => ALL_DEVICES,
        Some("ExactCount") => request["count"].as_i64().unwrap_or(0),
        _ => 0,
    };
    let mut usage = Amounts::new();
    for request in claim["spec"]["devices"]["requests"].as_array().into_iter().flatten() {
        let choices = request["firstAvailable"].as_array().map(Vec::as_slice).unwrap_or_default();
        let choices = if choices.is_empty() { std::slice::from_ref(&request["exactly"]) } else { choices };
        let mut most = BTreeMap::new();
        for choice in choices {
            if let Some(class) = choice["deviceClassName"].as_str() {
                let so_far = most.entry(format!("{class}{DEVICES_SUFFIX}")).or_insert(0);
                *so_far = count(choice).max(*so_far);
            }
        }
        for (name, count) in most {
            *usage.entry(name).or_default() += &Quantity::new(count, QuantityFormat::DecimalSi);
        }
    }
    usage
}

/// The containers that lack a resource which a quota requires; `None` if all set it.
pub(super) fn missing_resources<'a>(pod: &Value, hard: impl Iterator<Item = &'a str>) -> Option<String> {
    let spec = &pod["spec"];
    if ["requests", "limits"].iter().any(|which| has_pod_level(&spec["resources"], which)) {
        return None;
    }
    let mut required: Vec<_> = hard.filter(|name| REQUIRED.contains(name)).collect();
    required.sort_unstable();
    let containers = ["containers", "initContainers"].into_iter().flat_map(|field| spec[field].as_array());
    let containers: Vec<_> = containers.flatten().collect();
    let mut open = Vec::new();
    for name in required {
        let says = |container: &Value| {
            let amounts = |which| pod_resources::amounts(&container["resources"], which);
            by_quota_name(&amounts("requests"), &amounts("limits")).contains_key(name)
        };
        let mut silent: Vec<_> = containers.iter().filter(|container| !says(container)).collect();
        silent.sort_by_key(|container| container["name"].as_str());
        let silent: Vec<_> = silent.iter().filter_map(|container| container["name"].as_str()).collect();
        if !silent.is_empty() {
            open.push(format!("{name} for: {}", silent.join(",")));
        }
    }
    (!open.is_empty()).then(|| format!("must specify {}", open.join("; ")))
}

/// Whether pod-level resources set a supported resource.
fn has_pod_level(resources: &Value, which: &str) -> bool {
    let listed = resources[which].as_object().into_iter().flatten();
    let mut names = listed.map(|(name, _)| name.as_str());
    names.any(|name| matches!(name, "cpu" | "memory") || name.starts_with(HUGE_PAGES))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(resource: &str, object: &Value, expected: &str) {
        let now = "2026-01-01T00:00:00Z".parse().expect("a moment");
        let usage = CountedResource { group: "", resource }.usage(object, now);
        let shown: Vec<_> = usage.iter().map(|(name, amount)| format!("{name}={amount}")).collect();
        assert_eq!(shown.join(" "), expected, "{object}");
    }

    #[test]
    fn usage_of_each_kind() {
        let pod = |status: Value| {
            json!({"status": status, "spec": {
                "overhead": {"cpu": "250m", "memory": "1Mi"},
                "containers": [{"resources": {
                    "requests": {"cpu": "1", "hugepages-2Mi": "4Mi", "example.com/gpu": "2"},
                    "limits": {"cpu": "2"},
                }}],
            }})
        };
        let all = "count/pods=1 cpu=1250m hugepages-2Mi=4Mi limits.cpu=2250m memory=1Mi pods=1 requests.cpu=1250m \
                   requests.example.com/gpu=2 requests.hugepages-2Mi=4Mi requests.memory=1Mi";
        check("pods", &pod(json!({})), all);
        check("pods", &pod(json!({"phase": "Succeeded"})), "count/pods=1");
        let mut stuck = pod(json!({}));
        stuck["metadata"] =
            json!({"deletionTimestamp": "2025-12-31T23:59:00Z", "deletionGracePeriodSeconds": 30});
        check("pods", &stuck, "count/pods=1");
        let service = |spec: Value| json!({ "spec": spec });
        let ports = json!([{"port": 1, "nodePort": 30001}, {"port": 2}]);
        for (spec, balancers, node_ports) in [
            (json!({"type": "ClusterIP", "ports": ports}), 0, 0),
            (json!({"type": "NodePort", "ports": ports}), 0, 2),
            (json!({"type": "LoadBalancer", "ports": ports}), 1, 2),
            (json!({"type": "LoadBalancer", "ports": ports, "allocateLoadBalancerNodePorts": false}), 1, 1),
        ] {
            let expected = format!(
                "count/services=1 services=1 services.loadbalancers={balancers} services.nodeports={node_ports}"
            );
            check("services", &service(spec), &expected);
        }
        let claim =
            json!({"spec": {"storageClassName": "gold", "resources": {"requests": {"storage": "1500m"}}}});
        check(
            "persistentvolumeclaims",
            &claim,
            "count/persistentvolumeclaims=1 gold.storageclass.storage.k8s.io/persistentvolumeclaims=1 \
             gold.storageclass.storage.k8s.io/requests.storage=2 persistentvolumeclaims=1 requests.storage=2",
        );
        let device = |mode: &str, count: u32| json!({"deviceClassName": "gpu", "allocationMode": mode, "count": count});
        let claim = json!({"spec": {"devices": {"requests": [
            {"exactly": device("ExactCount", 2)},
            {"firstAvailable": [device("ExactCount", 1), device("ExactCount", 4)]},
        ]}}});
        assert_eq!(of_devices(&claim)["gpu.deviceclass.resource.k8s.io/devices"].to_string(), "6");
        check("secrets", &json!({}), "count/secrets=1 secrets=1");
        check("endpoints", &json!({}), "count/endpoints=1");
    }

    #[test]
    fn a_quota_name_counts_one_resource() {
        for (name, group, resource) in [
            ("pods", "", "pods"),
            ("requests.example.com/gpu", "", "pods"),
            ("requests.hugepages-1Gi", "", "pods"),
            ("requests.storage", "", "persistentvolumeclaims"),
            ("gold.storageclass.storage.k8s.io/requests.storage", "", "persistentvolumeclaims"),
            ("services.nodeports", "", "services"),
            ("gpu.deviceclass.resource.k8s.io/devices", "resource.k8s.io", "resourceclaims"),
            ("count/deployments.apps", "apps", "deployments"),
            ("count/widgets.a.example.com", "a.example.com", "widgets"),
            ("secrets", "", "secrets"),
        ] {
            assert_eq!(CountedResource::behind(name), Some(CountedResource { group, resource }), "{name}");
        }
        assert_eq!(CountedResource::behind("example.com/gpu"), None);
    }
}
