//! The quality of service that a pod's requests and limits buy it.

use std::collections::BTreeMap;

use api::quantity::Quantity;

use crate::validate::at::At;

/// What the status says, or what the spec amounts to.
pub(super) fn of(pod: &At<'_, '_>) -> String {
    match pod.field("status").text_of("qosClass") {
        "" => computed(pod).to_owned(),
        known => known.to_owned(),
    }
}

pub(super) fn computed(pod: &At<'_, '_>) -> &'static str {
    let spec = pod.field("spec");
    let pod_resources = spec.field("resources");
    let lists = [spec.field("containers"), spec.field("initContainers")];
    let containers = lists.iter().flat_map(|list| list.list().iter().filter_map(|it| it.get("resources")));
    // Kubernetes: a pod that says nothing in resources of its own asks for nothing, whatever its containers say.
    let counted: Vec<_> = if pod_resources.is_set() {
        vec![pod_resources.value().clone()]
    } else {
        let count = lists.iter().map(|list| list.list().len()).sum::<usize>();
        let mut given: Vec<_> = containers.cloned().collect();
        given.resize(count, serde_json::Value::Null);
        given
    };
    let (mut requests, mut limits) = (BTreeMap::new(), BTreeMap::new());
    let mut all_limited = true;
    for resources in &counted {
        let resources = At::root(resources);
        add(&mut requests, &resources.field("requests"));
        let limited = add(&mut limits, &resources.field("limits"));
        all_limited &= limited == 2;
    }
    if requests.is_empty() && limits.is_empty() {
        "BestEffort"
    } else if all_limited && requests.len() == limits.len() && requests == limits {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

/// How many of CPU and memory there are.
fn add<'v>(sums: &mut BTreeMap<&'v str, Quantity>, amounts: &At<'v, '_>) -> usize {
    let mut count = 0;
    for name in ["cpu", "memory"] {
        let Some(amount) = amounts.field(name).quantity().filter(|amount| !amount.is_zero()) else {
            continue;
        };
        count += 1;
        match sums.get_mut(name) {
            Some(sum) => *sum += &amount,
            None => {
                sums.insert(name, amount);
            }
        }
    }
    count
}
