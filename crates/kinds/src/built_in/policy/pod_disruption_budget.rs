//! PodDisruptionBudget: how many pods may be evicted at once.

use api::field::{Error, ErrorList};
use api::name::NameRule;
use serde_json::Value;

use super::GROUP;
use crate::built_in::BuiltIn;
use crate::cells::column::{AGE, Cell, NAME, integer, string};
use crate::cells::row::Row;
use crate::strategy::Strategy;
use crate::strategy::builder::SPEC;
use crate::validate::at::At;
use crate::validate::validation::{Metadata, Validation};
use crate::validate::{condition, internal, rollout, selector};

pub(crate) static POD_DISRUPTION_BUDGET: BuiltIn =
    BuiltIn::new(GROUP, "PodDisruptionBudget", "poddisruptionbudgets")
        .older_versions(&["v1beta1"])
        .strategy(
            Strategy::PLAIN
                .named(NameRule::PathSegment)
                .requires_resource_version()
                .counts_generation_of(SPEC)
                .status(),
        )
        .validation(
            Validation::new(check).metadata(Metadata::Unchecked).subresources(&[("status", check_status)]),
        )
        .columns(&[
            NAME,
            string("Min Available", Cell::Computed(|it| bound(it, "/spec/minAvailable"))),
            string("Max Unavailable", Cell::Computed(|it| bound(it, "/spec/maxUnavailable"))),
            integer("Allowed Disruptions", Cell::Number("/status/disruptionsAllowed")),
            AGE,
        ]);

fn check(budget: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = budget.field("spec");
    if spec.has("minAvailable") && spec.has("maxUnavailable") {
        let shown = internal::shown("io.k8s.api.policy.v1.PodDisruptionBudgetSpec", spec.value());
        let problem = "minAvailable and maxUnavailable cannot be both set";
        errors.push(Error::invalid(spec.path(), shown, problem));
    }
    for field in ["minAvailable", "maxUnavailable"] {
        let count = spec.field(field);
        if count.is_set() {
            rollout::count_or_percent(&count, errors);
            rollout::at_most_all(&count, errors);
        }
    }
    selector::check(&spec.field("selector"), errors);
    spec.field("unhealthyPodEvictionPolicy").optional_one_of(errors, &["AlwaysAllow", "IfHealthyBudget"]);
}

fn check_status(new: &At<'_, '_>, _: &At<'_, '_>, errors: &mut ErrorList) {
    let status = new.field("status");
    for field in ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"] {
        status.field(field).not_negative(errors);
    }
    condition::check(&status.field("conditions"), errors);
}

/// A count of pods or a percentage.
fn bound(budget: &Row<'_>, pointer: &str) -> Value {
    match budget.at(pointer) {
        Value::Number(number) => number.to_string().into(),
        Value::String(percent) => percent.as_str().into(),
        _ => "N/A".into(),
    }
}
