//! The variables of a container: its `env`, with `$(NAME)` expanded.

use crate::{
    budget::{Budget, OverBudget, READ, STEP},
    shell::Variables,
};
use k8s_openapi::api::core::v1::{Container, EnvVar, ObjectFieldSelector, Pod};
use std::collections::BTreeMap;

/// The environment of a container; a variable without a value has an unknown one.
pub(super) fn variables(pod: &Pod, container: &Container, budget: &Budget) -> Result<Variables, OverBudget> {
    let spec = pod.spec.as_ref();
    let host = spec.and_then(|spec| spec.hostname.clone()).or_else(|| pod.metadata.name.clone());
    let mut variables = BTreeMap::from([("HOSTNAME".to_owned(), host)]);
    for EnvVar { name, value, value_from } in container.env.iter().flatten() {
        budget.charge(STEP + READ * name.len())?;
        let value = match (value, value_from) {
            (_, Some(source)) => {
                let value = source.field_ref.as_ref().and_then(|it| field(pod, it));
                budget.charge(READ * value.map_or(0, str::len))?;
                value.map(str::to_owned)
            }
            (Some(value), None) => expand(value, &variables, budget)?,
            (None, None) => Some(String::new()),
        };
        variables.insert(name.clone(), value);
    }
    Ok(variables)
}

/// Kubernetes: `$(NAME)` is the value of a variable, `$$` is a dollar; unknown names stay as they are.
///
/// `None` if the value is not known.
pub(super) fn expand(
    text: &str,
    variables: &Variables,
    budget: &Budget,
) -> Result<Option<String>, OverBudget> {
    budget.charge(STEP + READ * text.len())?;
    let (mut done, mut rest) = (String::new(), text);
    let mut is_closed_later = true;
    while let Some(at) = rest.find('$') {
        done.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            done.push('$');
            rest = after;
            continue;
        }
        let name = rest.strip_prefix('(').filter(|_| is_closed_later);
        let Some(after_name) = name.and_then(|name| name.find(')')) else {
            // It is not looked for again.
            is_closed_later &= name.is_none();
            done.push('$');
            continue;
        };
        let name = &rest[1..=after_name];
        rest = &rest[after_name + 2..];
        match variables.get(name) {
            Some(value) => {
                let Some(value) = value.as_deref() else { return Ok(None) };
                budget.charge(STEP + READ * value.len())?;
                done.push_str(value);
            }
            None => {
                budget.charge(STEP)?;
                done.push_str("$(");
                done.push_str(name);
                done.push(')');
            }
        }
    }
    done.push_str(rest);
    Ok(Some(done))
}

/// The field of a pod that a variable takes; addresses are not known before the pod runs.
fn field<'a>(pod: &'a Pod, selector: &ObjectFieldSelector) -> Option<&'a str> {
    let (meta, spec) = (&pod.metadata, pod.spec.as_ref());
    let entry = |path: &str, map: &'a Option<BTreeMap<String, String>>| {
        let key = selector.field_path.strip_prefix(path)?.strip_prefix("['")?.strip_suffix("']")?;
        // Kubernetes: a missing label or annotation is an empty text.
        Some(map.as_ref().and_then(|it| it.get(key)).map_or("", String::as_str))
    };
    match selector.field_path.as_str() {
        "metadata.name" => meta.name.as_deref(),
        "metadata.namespace" => meta.namespace.as_deref(),
        "metadata.uid" => meta.uid.as_deref(),
        "spec.nodeName" => spec?.node_name.as_deref(),
        "spec.serviceAccountName" => spec?.service_account_name.as_deref(),
        _ => entry("metadata.labels", &meta.labels)
            .or_else(|| entry("metadata.annotations", &meta.annotations)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::FULL;
    use serde_json::json;

    fn of(pod: &serde_json::Value, budget: &Budget) -> Result<Variables, OverBudget> {
        let pod: Pod = serde_json::from_value(pod.clone()).unwrap();
        variables(&pod, &pod.spec.as_ref().unwrap().containers[0], budget)
    }

    #[test]
    fn variables_come_from_values_and_fields() {
        let from = |path: &str| json!({"fieldRef": {"fieldPath": path}});
        let pod = json!({
            "metadata": {"name": "p-0", "namespace": "a", "uid": "u", "labels": {"app": "web"},
                "annotations": {"batch.kubernetes.io/job-completion-index": "3"}},
            "spec": {"nodeName": "n", "containers": [{"name": "c", "env": [
                {"name": "A", "value": "1"}, {"name": "B", "value": "$(A)-$(UNSET)"},
                {"name": "NAME", "valueFrom": from("metadata.name")},
                {"name": "NODE", "valueFrom": from("spec.nodeName")},
                {"name": "APP", "valueFrom": from("metadata.labels['app']")},
                {"name": "NONE", "valueFrom": from("metadata.labels['none']")},
                {"name": "INDEX", "valueFrom": from("metadata.annotations['batch.kubernetes.io/job-completion-index']")},
                {"name": "IP", "valueFrom": from("status.podIP")},
                {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
                {"name": "AFTER", "value": "x$(SECRET)"}]}]}});
        let found = of(&pod, &Budget::new(FULL)).unwrap();
        for (name, value) in [
            ("A", Some("1")),
            ("B", Some("1-$(UNSET)")),
            ("NAME", Some("p-0")),
            ("HOSTNAME", Some("p-0")),
            ("NODE", Some("n")),
            ("APP", Some("web")),
            ("NONE", Some("")),
            ("INDEX", Some("3")),
            ("IP", None),
            ("SECRET", None),
            ("AFTER", None),
        ] {
            assert_eq!(found[name].as_deref(), value, "{name}");
        }
        for (text, expected) in [
            ("$(A)", Some("1")),
            ("$$(A)", Some("$(A)")),
            ("$(UNSET)", Some("$(UNSET)")),
            ("$A$", Some("$A$")),
            ("$(", Some("$(")),
            ("$(A)$(A", Some("1$(A")),
            ("$(A$$", Some("$(A$")),
            // Kubernetes: a name goes up to the next parenthesis.
            ("$($(A))", Some("$($(A))")),
            ("()$(A)", Some("()1")),
            ("$(SECRET)", None),
        ] {
            let expanded = expand(text, &found, &Budget::new(FULL)).unwrap();
            assert_eq!(expanded.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn variables_that_double_each_other_use_up_the_budget() {
        let doubled = (1..40).map(|at| {
            let half = format!("$(A{})", at - 1);
            json!({"name": format!("A{at}"), "value": format!("{half}{half}")})
        });
        let first = json!({"name": "A0", "value": "x".repeat(16)});
        let env: Vec<_> = std::iter::once(first).chain(doubled).collect();
        let pod = json!({"metadata": {}, "spec": {"containers": [{"name": "c", "env": env}]}});
        assert_eq!(of(&pod, &Budget::new(FULL)), Err(OverBudget));
        // A large annotation in many variables.
        let field = json!({"fieldRef": {"fieldPath": "metadata.annotations['a']"}});
        let env: Vec<_> = (0..1000).map(|at| json!({"name": format!("A{at}"), "valueFrom": field})).collect();
        let annotations = json!({"a": "x".repeat(200_000)});
        let pod = json!({"metadata": {"annotations": annotations}, "spec": {"containers": [{"name": "c", "env": env}]}});
        assert_eq!(of(&pod, &Budget::new(FULL)), Err(OverBudget));
        // What is open is looked for once.
        let open = "$(".repeat(500_000);
        assert_eq!(expand(&open, &Variables::new(), &Budget::new(FULL)), Ok(Some(open)));
    }
}
