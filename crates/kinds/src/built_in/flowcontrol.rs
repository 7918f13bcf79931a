//! The kinds of `flowcontrol.apiserver.k8s.io`, and what they share.

pub(super) mod flow_schema;
pub(super) mod priority_level_configuration;

use api::field::ErrorList;
use serde_json::Value;

use crate::validate::at::At;
use crate::validate::taken::Taken;

const GROUP: &str = "flowcontrol.apiserver.k8s.io";

/// What an object that every cluster has must say, of which nothing may be changed.
fn fixed_spec(kind: &str, name: &str) -> Option<Value> {
    const FIXED: [&str; 2] = ["catch-all", "exempt"];
    FIXED.contains(&name).then_some(())?;
    let objects = crate::bootstrap().filter(|(path, _)| path.contains(GROUP));
    let mut objects = objects.filter_map(|(_, object)| serde_json::from_str::<Value>(object).ok());
    let mut found = objects.find(|object| object["kind"] == kind && api::object::name(object) == name)?;
    crate::defaults::default(GROUP, "v1", kind, &mut found);
    found.get_mut("spec").map(Value::take)
}

fn check_status(new: &At<'_, '_>, _: &At<'_, '_>, errors: &mut ErrorList) {
    check_conditions(new, errors);
}

fn check_conditions(object: &At<'_, '_>, errors: &mut ErrorList) {
    let status = object.field("status");
    let conditions = status.field("conditions");
    let mut taken = Taken::default();
    for condition in conditions.items() {
        let sort = condition.field("type");
        if taken.contains(&sort.text()) {
            sort.duplicate(errors);
        }
        taken.push(sort.text());
        if sort.text().is_empty() {
            sort.required(errors, "");
        }
    }
}
