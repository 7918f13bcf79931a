//! PriorityClass: which pods are scheduled first.

use api::field::ErrorList;

use super::GROUP;
use crate::built_in::BuiltIn;
use crate::cells::column::{AGE, Cell, NAME, boolean, integer, string};
use crate::defaults::type_defaults::{DefaultValue, TypeDefaults};
use crate::strategy::Strategy;
use crate::validate::at::At;
use crate::validate::validation::{UpdateChecks, Validation};

pub(crate) static PRIORITY_CLASS: BuiltIn = BuiltIn::new(GROUP, "PriorityClass", "priorityclasses")
    .older_versions(&["v1beta1"])
    // Kubernetes: the fields that may change are not counted.
    .strategy(Strategy::PLAIN.first_generation(1))
    .validation(Validation::new(check).update(UpdateChecks::CHANGE.compare(check_change)))
    .defaults(&[TypeDefaults::of("scheduling.v1.PriorityClass")
        .values(&[("preemptionPolicy", DefaultValue::Text("PreemptLowerPriority"))])])
    .columns(&[
        NAME,
        integer("Value", Cell::Number("/value")),
        boolean("Global-Default", Cell::Flag("/globalDefault")),
        AGE,
        string("PreemptionPolicy", Cell::Text("/preemptionPolicy")),
    ]);

const HIGHEST_OF_USERS: i64 = 1_000_000_000;
const SYSTEM: [(&str, i64); 2] =
    [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];

fn check(class: &At<'_, '_>, errors: &mut ErrorList) {
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

fn check_change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    if new.int_of("value") != old.int_of("value") {
        new.field("value").forbidden(errors, "may not be changed in an update.");
    }
    new.field("preemptionPolicy").immutable(errors, &old.field("preemptionPolicy"));
}
