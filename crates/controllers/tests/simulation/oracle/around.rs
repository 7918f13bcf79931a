//! Services and budgets: endpoints are the ready pods, and a budget allows what the pods leave over.

use super::{Problems, State, app, is_active, is_ready, phase};
use k8s_openapi::{
    api::{
        core::v1::{Pod, Service},
        policy::v1::PodDisruptionBudget,
    },
    apimachinery::pkg::util::intstr::IntOrString,
};
use kube::ResourceExt;
use std::collections::BTreeSet;
use twin::workload::APP;

pub(super) fn check(state: &State<'_>, problems: &mut Problems) {
    state.services.iter().for_each(|service| check_service(state, service, problems));
    state.budgets.iter().for_each(|budget| check_budget(state, budget, problems));
}

fn ip(pod: &Pod) -> Option<String> {
    pod.status.as_ref()?.pod_ip.clone()
}

fn check_service(state: &State<'_>, service: &Service, problems: &mut Problems) {
    let name = service.name_any();
    let selected = service.spec.as_ref().and_then(|it| it.selector.as_ref()?.get(APP).cloned());
    let pods = state.selected_pods(&selected.unwrap_or_default());
    let alive = || pods.iter().filter(|pod| !matches!(phase(pod), "Succeeded" | "Failed"));
    let publishes_all =
        service.spec.as_ref().and_then(|it| it.publish_not_ready_addresses).unwrap_or_default();
    let counts_as_ready = |pod: &Pod| publishes_all || is_ready(pod);
    let ready: BTreeSet<String> =
        alive().filter(|pod| counts_as_ready(pod)).filter_map(|pod| ip(pod)).collect();
    let waiting: BTreeSet<String> =
        alive().filter(|pod| !counts_as_ready(pod)).filter_map(|pod| ip(pod)).collect();
    let slices = state.slices.iter().filter(|slice| {
        let labels = slice.labels();
        labels.get("kubernetes.io/service-name") == Some(&name)
            && labels.get("endpointslice.kubernetes.io/managed-by").map(String::as_str)
                == Some("endpointslice-controller.k8s.io")
    });
    let endpoints: Vec<_> = slices.flat_map(|slice| slice.endpoints.iter().flatten()).collect();
    let addresses = |wanted: bool| -> BTreeSet<String> {
        let of = endpoints
            .iter()
            .filter(|it| it.conditions.as_ref().and_then(|it| it.ready).unwrap_or(true) == wanted);
        of.flat_map(|it| it.addresses.clone()).collect()
    };
    problems.equal(service, "ready addresses in slices", addresses(true), ready.clone());
    problems.equal(service, "other addresses in slices", addresses(false), waiting.clone());
    let Some(found) = state.endpoints.iter().find(|it| it.name_any() == name) else {
        return problems.add(service, "has no Endpoints");
    };
    let subsets = || found.subsets.iter().flatten();
    let found: BTreeSet<String> =
        subsets().flat_map(|it| it.addresses.iter().flatten()).map(|it| it.ip.clone()).collect();
    problems.equal(service, "ready addresses in Endpoints", found, ready);
    let found: BTreeSet<String> =
        subsets().flat_map(|it| it.not_ready_addresses.iter().flatten()).map(|it| it.ip.clone()).collect();
    problems.equal(service, "other addresses in Endpoints", found, waiting);
}

fn number(value: impl Into<Option<i32>>) -> i32 {
    value.into().unwrap_or(0)
}

fn check_budget(state: &State<'_>, budget: &PodDisruptionBudget, problems: &mut Problems) {
    let (spec, status) = (budget.spec.clone().unwrap_or_default(), budget.status.clone().unwrap_or_default());
    let pods = state.selected_pods(&app(spec.selector.as_ref()));
    let has_condition = |reason: &str| {
        status.conditions.iter().flatten().any(|it| it.type_ == "DisruptionAllowed" && it.reason == reason)
    };
    // Kubernetes: the size of a DaemonSet is unknown to budgets.
    if has_condition("SyncFailed") {
        if pods.iter().all(|pod| pod.owner_references().iter().all(|it| it.kind != "DaemonSet")) {
            problems.add(budget, "cannot be computed");
        }
        return;
    }
    problems.equal(budget, "observedGeneration", status.observed_generation, budget.metadata.generation);
    let healthy = pods.iter().filter(|pod| is_active(pod) && is_ready(pod)).count() as i32;
    let (current, desired) = (number(status.current_healthy), number(status.desired_healthy));
    let expected = number(status.expected_pods);
    problems.equal(budget, "currentHealthy", current, healthy);
    if let Some(IntOrString::Int(wanted)) = spec.min_available {
        problems.equal(budget, "desiredHealthy", desired, wanted);
        problems.equal(budget, "expectedPods", expected, pods.len() as i32);
    }
    if let Some(IntOrString::Int(most)) = spec.max_unavailable {
        problems.equal(budget, "desiredHealthy", desired, (expected - most).max(0));
    }
    let allowed = if expected == 0 { 0 } else { (healthy - desired).max(0) };
    problems.equal(budget, "disruptionsAllowed", number(status.disruptions_allowed), allowed);
    let reason = if allowed > 0 { "SufficientPods" } else { "InsufficientPods" };
    if !has_condition(reason) {
        problems.add(budget, format!("its condition is not {reason}: {:?}", status.conditions));
    }
}
