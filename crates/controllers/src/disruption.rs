//! PodDisruptionBudgets: count how many of their pods may be evicted now.

mod expected;
mod plan;

use crate::status;
use k8s_openapi::{
    api::{
        apps::v1::{Deployment, ReplicaSet, StatefulSet},
        core::v1::{Pod, ReplicationController},
        policy::v1::PodDisruptionBudget,
    },
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use kube::{
    ResourceExt,
    api::PostParams,
    core::{Selector, SelectorExt},
};
use operator::{Context, Controller, Failure, Key, Next, all, cache::View};
use plan::{Counted, Expected};
use std::sync::Arc;

/// Kubernetes: the source of their events.
const EVENT_COMPONENT: &str = "controllermanager";

/// Reconciles the status of budgets.
pub(crate) fn budgets() -> Controller {
    Controller::new("disruption-controller", all::<PodDisruptionBudget>())
        .watches_through(all::<Pod>(), |budgets, pod| {
            of_pod(budgets, pod).iter().map(|it| Key::of(&**it)).collect()
        })
        // Kubernetes: a change of their replicas counts when the next pod changes.
        .reads(all::<Deployment>())
        .reads(all::<ReplicaSet>())
        .reads(all::<ReplicationController>())
        .reads(all::<StatefulSet>())
        .reconcile((), reconcile)
        .event_component(EVENT_COMPONENT)
}

/// Takes back the condition DisruptionTarget of pods that were not deleted after all.
pub(crate) fn pods() -> Controller {
    Controller::new("disruption-controller-pods", all::<Pod>())
        .reads(all::<PodDisruptionBudget>())
        .reconcile((), reconcile_pod)
        .event_component(EVENT_COMPONENT)
}

/// The budgets that select a pod.
fn of_pod(budgets: &View<PodDisruptionBudget>, pod: &Pod) -> Vec<Arc<PodDisruptionBudget>> {
    let mut budgets = budgets.in_namespace(&pod.namespace().unwrap_or_default()).unwrap_or_default();
    budgets.retain(|budget| selector(budget).is_some_and(|selector| selector.matches(pod.labels())));
    budgets
}

/// `None` if it selects nothing. An empty selector selects all pods of the namespace.
fn selector(budget: &PodDisruptionBudget) -> Option<Selector> {
    budget.spec.as_ref()?.selector.clone()?.try_into().ok()
}

async fn reconcile(context: Context<()>, key: Key) -> Result<Next, Failure> {
    let Some(budget) = context.get::<PodDisruptionBudget>(&key)? else { return Ok(Next::Settled) };
    let pods = match selector(&budget) {
        Some(selector) => {
            context.view::<Pod>()?.labelled_in(key.namespace().unwrap_or_default(), &selector)?
        }
        None => Vec::new(),
    };
    if pods.is_empty() {
        context.events().normal(&*budget, "NoPods", "Count", "No matching pods found");
    }
    let expected = match expect(&context, &budget, &pods).await {
        Ok(expected) => expected,
        Err(problem) => return fail_safe(&context, &key, &budget, &problem).await,
    };
    let Counted { status, overdue, check_after } = plan::count(&budget, &pods, expected, context.wall());
    for pod in overdue {
        let namespace = key.namespace().unwrap_or_default();
        // Kubernetes: it says the namespace twice.
        let note = format!("Pod was expected by PDB {namespace}/{namespace} to be deleted but it wasn't");
        context.events().warning(&*pod, "NotDeleted", "Delete", note);
    }
    status::replace(&context.namespaced(&key), &*budget, &status).await?;
    Ok(check_after.map_or(Next::Settled, Next::CheckAfter))
}

/// How many pods there should be, and how many of them healthy.
async fn expect(
    context: &Context<()>,
    budget: &PodDisruptionBudget,
    pods: &[Arc<Pod>],
) -> Result<Expected, expected::Problem> {
    let Some(spec) = &budget.spec else { return Ok(Expected::default()) };
    if !plan::needs_scale(spec) {
        return Ok(plan::expected(spec, pods.len(), 0)?);
    }
    let (scale, unmanaged) = expected::scale(context, pods).await?;
    if unmanaged {
        let selector = shown(spec.selector.as_ref());
        let note = format!(
            "Pods selected by this PodDisruptionBudget (selector: {selector}) were found to be unmanaged. As a \
             result, the status of the PDB cannot be calculated correctly, which may result in undefined \
             behavior. To account for these pods please set \".spec.minAvailable\" field of the PDB to an \
             integer value."
        );
        context.events().warning(budget, "UnmanagedPods", "Count", note);
    }
    Ok(plan::expected(spec, pods.len(), scale)?)
}

/// Allows no disruption while the number of pods is unknown.
async fn fail_safe(
    context: &Context<()>,
    key: &Key,
    budget: &PodDisruptionBudget,
    problem: &expected::Problem,
) -> Result<Next, Failure> {
    let note = format!("Failed to calculate the number of expected pods: {problem}");
    context.events().warning(budget, "CalculateExpectedPodCountFailed", "Count", note);
    let status = plan::failed(budget, &problem.to_string(), context.wall());
    status::replace(&context.namespaced(key), budget, &status).await?;
    // Kubernetes: it is tried again when something changes.
    Ok(Next::Settled)
}

/// Kubernetes: how Go prints a selector.
fn shown(selector: Option<&LabelSelector>) -> String {
    let Some(selector) = selector else { return "nil".to_owned() };
    let labels = selector.match_labels.iter().flatten();
    let labels: String = labels.map(|(name, value)| format!("{name}: {value},")).collect();
    let requirements = selector.match_expressions.iter().flatten().map(|requirement| {
        let values = requirement.values.as_deref().unwrap_or_default().join(" ");
        let (key, operator) = (&requirement.key, &requirement.operator);
        format!("LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{values}],}},")
    });
    let requirements: String = requirements.collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},MatchExpressions:[]LabelSelectorRequirement{{{requirements}}},}}"
    )
}

async fn reconcile_pod(context: Context<()>, key: Key) -> Result<Next, Failure> {
    let Some(pod) = context.get::<Pod>(&key)? else { return Ok(Next::Settled) };
    if let [first, _, ..] = &of_pod(&context.view()?, &pod)[..] {
        let (namespace, name) = (pod.namespace().unwrap_or_default(), pod.name_any());
        let note = format!(
            "Pod {namespace:?}/{name:?} matches multiple PodDisruptionBudgets.  Chose {:?} arbitrarily.",
            first.name_any()
        );
        context.events().warning(&*pod, "MultiplePodDisruptionBudgets", "Count", note);
    }
    match plan::stale_after(&pod, context.wall()) {
        None => Ok(Next::Settled),
        Some(left) if !left.is_zero() => Ok(Next::CheckAfter(left)),
        Some(_) => {
            let undisturbed = plan::without_target(&pod, context.wall());
            let api = context.namespaced::<Pod>(&key);
            match api.replace_status(key.name(), &PostParams::default(), &undisturbed).await {
                Err(kube::Error::Api(status)) if status.code != 404 => Err(kube::Error::Api(status).into()),
                Err(error) if !matches!(error, kube::Error::Api(_)) => Err(error.into()),
                _ => Ok(Next::Settled),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn selectors_are_shown_as_go_prints_them() {
        let selector = json!({"matchLabels": {"app": "web", "tier": "a"}, "matchExpressions":
            [{"key": "x", "operator": "In", "values": ["1", "2"]}]});
        let expected = "&LabelSelector{MatchLabels:map[string]string{app: web,tier: a,},MatchExpressions:\
            []LabelSelectorRequirement{LabelSelectorRequirement{Key:x,Operator:In,Values:[1 2],},},}";
        assert_eq!(shown(Some(&serde_json::from_value(selector).unwrap())), expected);
        assert_eq!(shown(None), "nil");
    }
}
