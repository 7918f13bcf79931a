//! What a pod requests of its node: the sum over its containers, as the scheduler counts it.

use crate::plan::{Role, roles};
use api::quantity::Quantity;
use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::api::resource};
use std::collections::BTreeMap;

/// Amounts by resource: thousandths of CPUs, and whole units of everything else.
pub(crate) type Amounts = BTreeMap<String, i64>;

pub(crate) const CPU: &str = "cpu";

/// The requests of a pod.
pub(crate) fn of_pod(pod: &Pod) -> Amounts {
    let (mut sidecars, mut regular, mut initial) = (Amounts::new(), Amounts::new(), Amounts::new());
    for (container, role) in roles(pod) {
        let requests = container.resources.as_ref().and_then(|it| it.requests.as_ref());
        let requests = requests.map(amounts).unwrap_or_default();
        // What it does not request is in `initial` already.
        let beside = |sidecars: &Amounts, name: &String| sidecars.get(name).copied().unwrap_or_default();
        match role {
            // Kubernetes: an init container runs beside the sidecars that were started before it.
            Role::Init => {
                let together = requests
                    .iter()
                    .map(|(name, amount)| (name.clone(), amount.saturating_add(beside(&sidecars, name))));
                raise(&mut initial, &together.collect());
            }
            Role::Sidecar => {
                add(&mut sidecars, &requests);
                let together = requests.keys().map(|name| (name.clone(), beside(&sidecars, name)));
                raise(&mut initial, &together.collect());
            }
            Role::Regular => add(&mut regular, &requests),
            Role::Ephemeral => {}
        }
    }
    add(&mut regular, &sidecars);
    raise(&mut regular, &initial);
    let Some(spec) = &pod.spec else { return regular };
    // Kubernetes: requests of the pod itself replace the sum.
    let own = spec.resources.as_ref().and_then(|it| it.requests.as_ref());
    regular.extend(own.map(amounts).unwrap_or_default());
    add(&mut regular, &spec.overhead.as_ref().map(amounts).unwrap_or_default());
    regular
}

/// Quantities that cannot be read count as nothing: the server refuses them.
pub(crate) fn amounts(quantities: &BTreeMap<String, resource::Quantity>) -> Amounts {
    let amount = |(name, quantity): (&String, &resource::Quantity)| {
        let quantity: Quantity = quantity.0.parse().ok()?;
        let value = if name == CPU { quantity.milli_value() } else { quantity.value() };
        Some((name.clone(), value?))
    };
    quantities.iter().filter_map(amount).collect()
}

pub(crate) fn add(sum: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let entry = sum.entry(name.clone()).or_default();
        *entry = entry.saturating_add(*amount);
    }
}

fn raise(highest: &mut Amounts, other: &Amounts) {
    for (name, amount) in other {
        let entry = highest.entry(name.clone()).or_default();
        *entry = (*entry).max(*amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_largest_moment_of_a_pod_counts() {
        let container = |cpu: &str| json!({"name": "c", "resources": {"requests": {"cpu": cpu}}});
        let sidecar = |cpu: &str| json!({"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": cpu}}});
        for (inits, regular, overhead, expected) in [
            (vec![], vec![container("1"), container("500m")], "0", 1500),
            (vec![container("3")], vec![container("1")], "0", 3000),
            (vec![sidecar("1"), container("3")], vec![container("1")], "0", 4000),
            (vec![sidecar("1")], vec![container("1")], "250m", 2250),
        ] {
            let pod: Pod = serde_json::from_value(json!({"spec": {
                "initContainers": inits, "containers": regular, "overhead": {"cpu": overhead}}}))
            .unwrap();
            assert_eq!(of_pod(&pod)[CPU], expected);
        }
    }
}
