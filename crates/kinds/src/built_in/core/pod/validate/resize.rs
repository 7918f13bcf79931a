//! What may change through a pod's `resize`: CPU and memory, in place.

use api::field::{Error, ErrorList, Path};
use serde_json::{Map, Value};

use super::annotations::MIRROR;
use super::change::{as_any_time, restore};
use super::qos;
use crate::validate::at::At;

const ONLY: &str = "only cpu and memory resources are mutable";

pub(crate) fn resize(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    let (spec, old_spec) = (new.field("spec"), old.field("spec"));
    let refusal = if api::object::annotation(old.value(), MIRROR).is_some() {
        Some("static pods cannot be resized")
    } else if old_spec.field("os").text_of("name") == "windows" {
        Some("windows pods cannot be resized")
    } else {
        None
    };
    if let Some(refusal) = refusal {
        *errors = Error::forbidden(&Path::new(""), refusal).into();
        return;
    }
    as_any_time(new, errors);
    if qos::of(old) != qos::computed(new) {
        let shown = new.field("status").text_of("qosClass");
        spec.invalid_as(errors, shown, "Pod QOS Class may not change as a result of resizing");
    }
    if !ordering(&spec, &old_spec, errors) {
        return;
    }
    for list in ["initContainers", "containers"] {
        let (list, old_list) = (spec.field(list), old_spec.field(list));
        for (container, old) in list.items().zip(old_list.items()) {
            removed(&container.field("resources"), &old.field("resources"), errors);
        }
    }
    compare_containers(&spec, &old_spec, errors);
    let (now, before) = (spec.value(), old_spec.value());
    if errors.is_empty() && without_compute(now, before) != without_compute(before, before) {
        spec.forbidden(errors, ONLY);
    }
}

fn ordering(spec: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) -> bool {
    let before = errors.len();
    for field in ["containers", "initContainers"] {
        let (list, old_list) = (spec.field(field), old.field(field));
        if list.list().len() != old_list.list().len() {
            list.forbidden(errors, format!("{field} may not be added or removed on resize"));
            continue;
        }
        for (container, old) in list.items().zip(old_list.items()) {
            if container.text_of("name") != old.text_of("name") {
                let problem = format!("{field} may not be renamed or reordered on resize");
                container.field("name").forbidden(errors, problem);
            }
        }
    }
    errors.len() == before
}

fn removed(resources: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    for field in ["requests", "limits"] {
        let (now, before) = (resources.field(field), old.field(field));
        if before.entries().any(|(name, _)| !now.has(name)) {
            now.forbidden(errors, format!("resource {field} cannot be removed"));
        }
    }
}

fn compare_containers(spec: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    let is_same = |now: &At<'_, '_>, old: &At<'_, '_>| {
        let (now, old) = (now.value(), old.value());
        container_without_compute(now, old) == container_without_compute(old, old)
    };
    let (list, old_list) = (spec.field("containers"), old.field("containers"));
    for (now, old) in list.items().zip(old_list.items()) {
        if !is_same(&now, &old) {
            spec.forbidden(errors, ONLY);
        }
    }
    let (list, old_list) = (spec.field("initContainers"), old.field("initContainers"));
    for (now, old) in list.items().zip(old_list.items()) {
        if !is_same(&now, &old) {
            let problem = "only cpu and memory resources for init or sidecar containers are mutable";
            now.forbidden(errors, problem);
        }
    }
}

/// A spec whose CPU and memory are taken back to what they were.
fn without_compute(spec: &Value, old: &Value) -> Value {
    let mut spec = spec.clone();
    for list in ["containers", "initContainers"] {
        let old = old.get(list).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let items = spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        for (item, old) in items.zip(old) {
            *item = container_without_compute(item, old);
        }
    }
    container_without_compute(&spec, old)
}

fn container_without_compute(container: &Value, old: &Value) -> Value {
    let mut container = container.clone();
    let old_resources = old.get("resources").cloned().unwrap_or_default();
    let mut resources = container.get("resources").and_then(Value::as_object).cloned().unwrap_or_default();
    for field in ["requests", "limits"] {
        let old_amounts = old_resources.get(field).cloned().unwrap_or_default();
        let mut amounts = resources.get(field).and_then(Value::as_object).cloned().unwrap_or_default();
        for name in ["cpu", "memory"] {
            restore(&mut amounts, &old_amounts, name);
        }
        set(&mut resources, field, amounts);
    }
    if let Some(fields) = container.as_object_mut() {
        set(fields, "resources", resources);
    }
    container
}

fn set(fields: &mut Map<String, Value>, field: &str, value: Map<String, Value>) {
    if value.is_empty() {
        fields.remove(field);
    } else {
        fields.insert(field.to_owned(), value.into());
    }
}
