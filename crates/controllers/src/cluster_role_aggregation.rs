//! ClusterRoles with an `aggregationRule`: their rules are those of all roles that the selectors match.

use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use kube::{
    ResourceExt,
    api::{Patch, PatchParams},
    core::{Selector, SelectorExt},
};
use operator::{Context, Controller, Failure, Key, Next, all};
use serde_json::json;
use std::sync::Arc;

const NAME: &str = "clusterrole-aggregation-controller";
/// Kubernetes: so many.
const WORKERS: usize = 5;

/// The index of roles that have an aggregation rule.
const AGGREGATED: &str = "aggregated";

pub(crate) fn controller() -> Controller {
    Controller::new(NAME, all::<ClusterRole>())
        .index(
            AGGREGATED,
            |role| {
                if role.aggregation_rule.is_some() { vec![String::new()] } else { Vec::new() }
            },
        )
        // Any role may have been part of any aggregated one.
        .watches_through(all::<ClusterRole>(), |roles, _| {
            let aggregated = roles.indexed(AGGREGATED, "").unwrap_or_default();
            aggregated.iter().map(|role| Key::of(&**role)).collect()
        })
        .workers(WORKERS)
        .reconcile((), reconcile)
}

async fn reconcile(context: Context<()>, key: Key) -> Result<Next, Failure> {
    let roles = context.view::<ClusterRole>()?;
    let Some(role) = roles.get(&key)?.filter(|role| role.aggregation_rule.is_some()) else {
        return Ok(Next::Settled);
    };
    let rules = rules(&role, &roles.list()?);
    if rules == role.rules.clone().unwrap_or_default() {
        return Ok(Next::Settled);
    }
    let apply = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": key.name()}, "rules": rules});
    let parameters = PatchParams::apply(NAME).force();
    context.cluster::<ClusterRole>().patch(key.name(), &parameters, &Patch::Apply(apply)).await?;
    Ok(Next::Settled)
}

/// The rules of the roles that each selector matches, in the order of names, each rule once.
fn rules(role: &ClusterRole, all: &[Arc<ClusterRole>]) -> Vec<PolicyRule> {
    let selectors =
        role.aggregation_rule.iter().flat_map(|rule| rule.cluster_role_selectors.iter().flatten());
    let mut rules: Vec<PolicyRule> = Vec::new();
    for selector in selectors {
        // The server does not store a selector that cannot be read.
        let Ok(selector) = Selector::try_from(selector.clone()) else { continue };
        let others = all.iter().filter(|other| other.name_any() != role.name_any());
        for rule in
            others.filter(|other| selector.matches(other.labels())).flat_map(|it| it.rules.iter().flatten())
        {
            if !rules.contains(rule) {
                rules.push(rule.clone());
            }
        }
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(name: &str, label: &str, verbs: &[&str]) -> Arc<ClusterRole> {
        let rules: Vec<_> = verbs.iter().map(|verb| json!({"verbs": [verb]})).collect();
        let role = json!({"metadata": {"name": name, "labels": {"to": label}}, "rules": rules});
        Arc::new(serde_json::from_value(role).unwrap())
    }

    #[test]
    fn each_rule_of_the_selected_roles_is_there_once() {
        let aggregated = json!({"metadata": {"name": "b", "labels": {"to": "x"}}, "rules": [{"verbs": ["own"]}],
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"to": "y"}}, {"matchLabels": {"to": "x"}}]}});
        let aggregated: ClusterRole = serde_json::from_value(aggregated).unwrap();
        let all = [
            role("a", "x", &["get", "list"]),
            Arc::new(aggregated.clone()),
            role("c", "x", &["list", "watch"]),
            role("d", "y", &["delete"]),
            role("e", "z", &["create"]),
        ];
        let verbs: Vec<String> = rules(&aggregated, &all).iter().map(|rule| rule.verbs.join(",")).collect();
        assert_eq!(verbs, ["delete", "get", "list", "watch"]);
    }
}
