//! Requests and limits of a pod: the sum over its containers, or its init containers where they need more.

use api::quantity::Quantity;
use serde_json::Value;
use std::collections::BTreeMap;

/// Amounts by resource name.
pub(super) type Amounts = BTreeMap<String, Quantity>;

/// `requests` or `limits` of a `resources` field.
pub(super) fn amounts(resources: &Value, which: &str) -> Amounts {
    let listed = resources[which].as_object().into_iter().flatten();
    let parsed = listed.filter_map(|(name, amount)| Some((name.clone(), amount.as_str()?.parse().ok()?)));
    parsed.collect()
}

/// `requests` or `limits` of a pod.
pub(super) fn of_pod(pod: &Value, which: &str) -> Amounts {
    let spec = &pod["spec"];
    let mut total = Amounts::new();
    for container in spec["containers"].as_array().into_iter().flatten() {
        add(&mut total, &amounts(&container["resources"], which));
    }
    let (mut beside, mut first) = (Amounts::new(), Amounts::new());
    for container in spec["initContainers"].as_array().into_iter().flatten() {
        let own = amounts(&container["resources"], which);
        if container["restartPolicy"] == "Always" {
            add(&mut total, &own);
            add(&mut beside, &own);
            raise(&mut first, &beside);
        } else {
            let mut both = own;
            add(&mut both, &beside);
            raise(&mut first, &both);
        }
    }
    raise(&mut total, &first);
    // Kubernetes: pod-level resources replace the sum for these.
    let is_of_pod = |name: &str| matches!(name, "cpu" | "memory") || name.starts_with("hugepages-");
    let own = amounts(&spec["resources"], which);
    total.extend(own.into_iter().filter(|(name, _)| is_of_pod(name)));
    total
}

pub(super) fn add(to: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        *to.entry(name.clone()).or_default() += amount;
    }
}

fn raise(to: &mut Amounts, other: &Amounts) {
    for (name, amount) in other {
        let own = to.entry(name.clone()).or_insert_with(|| amount.clone());
        if *own < *amount {
            *own = amount.clone();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_pod_requests_the_maximum_of_init_containers_and_containers() {
        let container = |cpu: &str| json!({"resources": {"requests": {"cpu": cpu}}});
        let beside = |cpu: &str| json!({"restartPolicy": "Always", "resources": {"requests": {"cpu": cpu}}});
        for (spec, expected) in [
            (json!({"containers": [container("1"), container("500m")]}), "1500m"),
            (json!({"containers": [container("1")], "initContainers": [container("3")]}), "3"),
            (json!({"containers": [container("1")], "initContainers": [beside("1"), container("3")]}), "4"),
            (json!({"containers": [container("1")], "resources": {"requests": {"cpu": "9"}}}), "9"),
        ] {
            let total = of_pod(&json!({ "spec": spec }), "requests");
            assert_eq!(total["cpu"], expected.parse().unwrap(), "{spec}");
        }
    }
}
