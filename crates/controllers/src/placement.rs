//! What pods say about nodes: tolerations of taints, and terms about labels and names.

use k8s_openapi::api::core::v1::{NodeSelectorRequirement, NodeSelectorTerm, Taint, Toleration};
use std::collections::BTreeMap;

/// Whether one of the tolerations is for this taint.
pub(crate) fn is_tolerated(taint: &Taint, tolerations: &[Toleration]) -> bool {
    tolerations.iter().any(|toleration| tolerates(toleration, taint))
}

pub(crate) fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let any_or =
        |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|it| it.is_empty() || it == found);
    if !any_or(&toleration.effect, &taint.effect) || !any_or(&toleration.key, &taint.key) {
        return false;
    }
    match toleration.operator.as_deref() {
        Some("Exists") => true,
        None | Some("" | "Equal") => {
            toleration.value.as_deref().unwrap_or_default() == taint.value.as_deref().unwrap_or_default()
        }
        Some(_) => false,
    }
}

/// Whether a term matches a node with this name and these labels.
pub(crate) fn matches_term(term: &NodeSelectorTerm, name: &str, labels: &BTreeMap<String, String>) -> bool {
    let expressions = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    // Kubernetes: an empty term matches no node.
    if expressions.is_empty() && fields.is_empty() {
        return false;
    }
    let label = |key: &str| labels.get(key).map(String::as_str);
    let field = |key: &str| (key == "metadata.name").then_some(name);
    expressions.iter().all(|it| holds(it, label(&it.key)))
        && fields.iter().all(|it| holds(it, field(&it.key)))
}

fn holds(requirement: &NodeSelectorRequirement, value: Option<&str>) -> bool {
    let listed = |value: &str| requirement.values.iter().flatten().any(|it| it == value);
    let bound = || requirement.values.as_ref()?.first()?.parse::<i64>().ok();
    let number = || value?.parse::<i64>().ok();
    match requirement.operator.as_str() {
        "In" => value.is_some_and(listed),
        "NotIn" => !value.is_some_and(listed),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => number().zip(bound()).is_some_and(|(number, bound)| number > bound),
        "Lt" => number().zip(bound()).is_some_and(|(number, bound)| number < bound),
        _ => false,
    }
}
