//! PriorityClasses and PodDisruptionBudgets: which pods go first, and how many at once.

use api::field::{Error, ErrorList};

use super::at::At;
use super::{condition, internal, rollout, selector};

const HIGHEST_OF_USERS: i64 = 1_000_000_000;
const SYSTEM: [(&str, i64); 2] =
    [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];

pub(super) fn body(class: &At<'_, '_>, errors: &mut ErrorList) {
    let metadata = class.field("metadata");
    let (name, value) = (metadata.field("name"), class.field("value"));
    if name.text().starts_with("system-") {
        if let Some(problem) = system_problem(class, name.text()) {
            let lead = "priority class names with 'system-' prefix are reserved for system use only. error: ";
            name.forbidden(errors, format!("{lead}{problem}"));
        }
    } else if value.int() > HIGHEST_OF_USERS {
        let problem = format!("maximum allowed value of a user defined priority is {HIGHEST_OF_USERS}");
        value.forbidden(errors, problem);
    }
    if class.has("preemptionPolicy") {
        class.field("preemptionPolicy").required_one_of(errors, &["PreemptLowerPriority", "Never"]);
    }
}

fn system_problem(class: &At<'_, '_>, name: &str) -> Option<String> {
    let Some((_, value)) = SYSTEM.iter().find(|(known, _)| *known == name) else {
        return Some(format!("{name} is not a known system priority class"));
    };
    if class.int_of("value") != *value {
        return Some(format!("value of {name} PriorityClass must be {value}"));
    }
    class.flag_of("globalDefault").then(|| format!("globalDefault of {name} PriorityClass must be false"))
}

pub(super) fn change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    if new.int_of("value") != old.int_of("value") {
        new.field("value").forbidden(errors, "may not be changed in an update.");
    }
    new.field("preemptionPolicy").immutable(errors, &old.field("preemptionPolicy"));
}

pub(super) fn disruption_budget(budget: &At<'_, '_>, errors: &mut ErrorList) {
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

pub(super) fn disruption_status(new: &At<'_, '_>, _: &At<'_, '_>, errors: &mut ErrorList) {
    let status = new.field("status");
    for field in ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"] {
        status.field(field).not_negative(errors);
    }
    condition::check(&status.field("conditions"), errors);
}
