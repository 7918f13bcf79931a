//! Scopes of a quota: which objects of its namespace it counts.

use super::{super::pod_resources, usage::CountedResource};
use serde_json::Value;

/// Whether an object matches all scopes of a quota.
pub(super) fn covers(quota: &Value, sort: CountedResource<'_>, object: &Value) -> bool {
    let spec = &quota["spec"];
    let mut plain = spec["scopes"].as_array().into_iter().flatten();
    let mut selectors = spec["scopeSelector"]["matchExpressions"].as_array().into_iter().flatten();
    plain.all(|scope| fits(sort, object, text(scope), "Exists", &Value::Null))
        && selectors.all(|selector| {
            fits(sort, object, text(&selector["scopeName"]), text(&selector["operator"]), &selector["values"])
        })
}

fn fits(sort: CountedResource<'_>, object: &Value, scope: &str, operator: &str, values: &Value) -> bool {
    let spec = &object["spec"];
    match scope {
        "VolumeAttributesClass" if sort.is("persistentvolumeclaims") => {
            let status = &object["status"];
            let names = [
                &spec["volumeAttributesClassName"],
                &status["currentVolumeAttributesClassName"],
                &status["modifyVolumeStatus"]["targetVolumeAttributesClassName"],
            ];
            let names: Vec<_> = names.into_iter().map(text).filter(|name| !name.is_empty()).collect();
            match names.is_empty() {
                true => selects(None, operator, values),
                false => names.into_iter().any(|name| selects(Some(name), operator, values)),
            }
        }
        _ if !sort.is("pods") => false,
        "Terminating" => has_deadline(object),
        "NotTerminating" => !has_deadline(object),
        "BestEffort" => is_best_effort(object),
        "NotBestEffort" => !is_best_effort(object),
        "PriorityClass" => {
            let class = Some(text(&spec["priorityClassName"])).filter(|class| !class.is_empty());
            selects(class, operator, values)
        }
        "CrossNamespacePodAffinity" => crosses_namespaces(&spec["affinity"]),
        _ => false,
    }
}

/// Evaluates a selector operator on a value that may be missing.
fn selects(found: Option<&str>, operator: &str, values: &Value) -> bool {
    let is_listed = || {
        let mut values = values.as_array().into_iter().flatten();
        found.is_some_and(|found| values.any(|value| value == found))
    };
    match operator {
        "In" => is_listed(),
        "NotIn" => !is_listed(),
        "Exists" => found.is_some(),
        "DoesNotExist" => found.is_none(),
        _ => false,
    }
}

/// Whether a pod has the scope Terminating.
pub(super) fn has_deadline(pod: &Value) -> bool {
    pod["spec"]["activeDeadlineSeconds"].as_i64().is_some_and(|seconds| seconds >= 0)
}

fn is_best_effort(pod: &Value) -> bool {
    let class = text(&pod["status"]["qosClass"]);
    if !class.is_empty() {
        return class == "BestEffort";
    }
    let asks = |resources: &Value| {
        ["requests", "limits"].iter().any(|which| {
            let amounts = pod_resources::amounts(resources, which);
            ["cpu", "memory"].iter().any(|name| amounts.get(*name).is_some_and(|amount| !amount.is_zero()))
        })
    };
    let spec = &pod["spec"];
    let mut containers =
        ["containers", "initContainers"].into_iter().flat_map(|field| spec[field].as_array());
    !asks(&spec["resources"])
        && !containers.any(|list| list.iter().any(|container| asks(&container["resources"])))
}

/// Whether pod affinity refers to pods of other namespaces.
fn crosses_namespaces(affinity: &Value) -> bool {
    let crosses = |term: &Value| {
        term["namespaces"].as_array().is_some_and(|names| !names.is_empty())
            || term["namespaceSelector"].is_object()
    };
    ["podAffinity", "podAntiAffinity"].iter().any(|sort| {
        let terms = |field: &str| affinity[sort][field].as_array().map(Vec::as_slice).unwrap_or_default();
        terms("requiredDuringSchedulingIgnoredDuringExecution").iter().any(crosses)
            || terms("preferredDuringSchedulingIgnoredDuringExecution")
                .iter()
                .any(|weighted| crosses(&weighted["podAffinityTerm"]))
    })
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_scope_matches_its_objects() {
        let pods = CountedResource { group: "", resource: "pods" };
        let claims = CountedResource { group: "", resource: "persistentvolumeclaims" };
        let select = |scope: &str, operator: &str, values: Value| {
            json!({"spec": {"scopeSelector": {"matchExpressions": [
                {"scopeName": scope, "operator": operator, "values": values},
            ]}}})
        };
        let plain = |scope: &str| json!({"spec": {"scopes": [scope]}});
        let idle = json!({"spec": {"containers": [{"name": "c"}]}});
        let busy = json!({"spec": {"containers": [{"resources": {"requests": {"cpu": "1"}}}]}});
        let short = json!({"spec": {"activeDeadlineSeconds": 5}});
        let classed = json!({"spec": {"priorityClassName": "high"}});
        let term = json!({"topologyKey": "k", "namespaces": ["other"]});
        let curious = json!({"spec": {"affinity": {"podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}],
        }}}});
        let claim = json!({"spec": {"volumeAttributesClassName": "gold"}});
        for (quota, sort, object, expected) in [
            (json!({"spec": {}}), pods, &idle, true),
            (plain("BestEffort"), pods, &idle, true),
            (plain("BestEffort"), pods, &busy, false),
            (plain("NotBestEffort"), pods, &busy, true),
            (plain("Terminating"), pods, &short, true),
            (plain("NotTerminating"), pods, &short, false),
            (plain("NotTerminating"), claims, &claim, false),
            (plain("PriorityClass"), pods, &classed, true),
            (plain("PriorityClass"), pods, &idle, false),
            (select("PriorityClass", "In", json!(["high"])), pods, &classed, true),
            (select("PriorityClass", "In", json!(["low"])), pods, &classed, false),
            (select("PriorityClass", "NotIn", json!(["low"])), pods, &idle, true),
            (select("PriorityClass", "DoesNotExist", json!([])), pods, &classed, false),
            (plain("CrossNamespacePodAffinity"), pods, &curious, true),
            (plain("CrossNamespacePodAffinity"), pods, &idle, false),
            (select("VolumeAttributesClass", "In", json!(["gold"])), claims, &claim, true),
            (select("VolumeAttributesClass", "NotIn", json!(["gold"])), claims, &claim, false),
        ] {
            assert_eq!(covers(&quota, sort, object), expected, "{quota} {object}");
        }
    }
}
