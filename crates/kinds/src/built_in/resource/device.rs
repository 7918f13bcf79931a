//! One device of a slice: its attributes and capacities, its taints, what it takes from shared counters, and where it
//! can be reached.

use api::field::{BadValue, Error, ErrorList};
use api::name::{self, Format};
use serde_json::Value;

use super::resource_claim::TAINT_EFFECTS;
use super::{capacity, each, each_unique, names, resource_slice};
use crate::built_in::core::pod::validate as pod;
use crate::validate::at::At;
use crate::validate::taken::Taken;

const MAX_ATTRIBUTES: usize = 32;
const MAX_VALUE_BYTES: usize = 64;
const MAX_TAINTS: usize = 16;
const MAX_COUNTER_SETS: usize = 2;
const MAX_BINDING_CONDITIONS: usize = 4;
const VALUES: [&str; 4] = ["bool", "int", "string", "version"];

/// `before` is what the slice said of the device until now; `by_device` says that each device names its nodes.
pub(super) fn check(device: &At<'_, '_>, before: Option<&Value>, by_device: bool, errors: &mut ErrorList) {
    device.field("name").is_format(errors, Format::Dns1123Label);
    let (attributes, capacities) = (device.field("attributes"), device.field("capacity"));
    let count = attributes.entries().count() + capacities.entries().count();
    if count > MAX_ATTRIBUTES {
        let problem =
            format!("the total number of attributes and capacities must not exceed {MAX_ATTRIBUTES}");
        device.invalid_as(errors, count, problem);
    }
    for (name, value) in attributes.entries() {
        names::qualified(attributes.path(), name, errors);
        attribute(&value, errors);
    }
    for (name, value) in capacities.entries() {
        names::qualified(capacities.path(), name, errors);
        capacity::check(&value, device.flag_of("allowMultipleAllocations"), errors);
    }
    let taints = device.field("taints");
    if before.is_none_or(|before| before.get("taints").unwrap_or(&Value::Null) != taints.value()) {
        each(&taints, MAX_TAINTS, errors, taint);
    }
    each_unique(
        &device.field("consumesCounters"),
        |it| it.text_of("counterSet"),
        MAX_COUNTER_SETS,
        errors,
        |it, errors| {
            it.field("counterSet").required_format(errors, Format::Dns1123Label);
            resource_slice::check_counters(&it.field("counters"), errors);
        },
    );
    nodes(device, by_device, errors);
    binding_conditions(device, errors);
}

fn attribute(attribute: &At<'_, '_>, errors: &mut ErrorList) {
    let text = attribute.field("string");
    if text.text().len() > MAX_VALUE_BYTES {
        errors.push(Error::too_long(text.path(), MAX_VALUE_BYTES));
    }
    let version = attribute.field("version");
    if version.is_set() && !is_semantic_version(version.text()) {
        version.invalid_text(errors, "must be a string compatible with semver.org spec 2.0.0");
    }
    if version.text().len() > MAX_VALUE_BYTES {
        errors.push(Error::too_long(version.path(), MAX_VALUE_BYTES));
    }
    match VALUES.iter().filter(|value| attribute.has(value)).count() {
        0 => attribute.invalid_as(errors, "", "exactly one value must be specified"),
        1 => {}
        _ => attribute.invalid_as(errors, shown(attribute), "exactly one value must be specified"),
    }
}

/// Kubernetes: Go's names for the fields of an attribute, the values last that are lists.
fn shown(attribute: &At<'_, '_>) -> BadValue {
    const NAMES: [(&str, &str); 8] = [
        ("IntValue", "int"),
        ("BoolValue", "bool"),
        ("StringValue", "string"),
        ("VersionValue", "version"),
        ("IntValues", "ints"),
        ("BoolValues", "bools"),
        ("StringValues", "strings"),
        ("VersionValues", "versions"),
    ];
    let json = |field: &str| api::go::json(attribute.field(field).value()).unwrap_or_default();
    let fields = NAMES.map(|(go_name, field)| format!("\"{go_name}\":{}", json(field)));
    BadValue::verbatim(format!("{{{}}}", fields.join(",")))
}

/// `1.2.3-alpha.1+build.7`.
fn is_semantic_version(text: &str) -> bool {
    let (text, build) = text.split_once('+').map_or((text, None), |(text, build)| (text, Some(build)));
    let (core, pre) = text.split_once('-').map_or((text, None), |(core, pre)| (core, Some(pre)));
    let is_word = |word: &str| {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let is_number = |word: &str| {
        !word.is_empty()
            && word.bytes().all(|byte| byte.is_ascii_digit())
            && (word == "0" || !word.starts_with('0'))
    };
    let is_pre =
        |word: &str| is_word(word) && (is_number(word) || word.bytes().any(|byte| !byte.is_ascii_digit()));
    core.split('.').count() == 3
        && core.split('.').all(is_number)
        && pre.is_none_or(|pre| pre.split('.').all(is_pre))
        && build.is_none_or(|build| build.split('.').all(is_word))
}

fn taint(taint: &At<'_, '_>, errors: &mut ErrorList) {
    let (key, value) = (taint.field("key"), taint.field("value"));
    errors.extend(name::label_key(key.path(), key.text()));
    if !value.text().is_empty() {
        value.is_format(errors, Format::LabelValue);
    }
    taint.field("effect").required_one_of(errors, &TAINT_EFFECTS);
}

fn nodes(device: &At<'_, '_>, by_device: bool, errors: &mut ErrorList) {
    let (name, selector, all) =
        (device.field("nodeName"), device.field("nodeSelector"), device.field("allNodes"));
    if !by_device {
        if name.is_set() || selector.is_set() || all.is_set() {
            let problem = "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is \
                set to true in the ResourceSlice spec";
            device.invalid_as(errors, BadValue::verbatim("null"), problem);
        }
        return;
    }
    let mut said = Vec::new();
    if name.is_set() && name.text().is_empty() {
        name.invalid_text(errors, "must not be empty");
    } else if name.is_set() {
        said.push("`nodeName`");
        name.is_format(errors, Format::Dns1123Subdomain);
    }
    if selector.is_set() {
        said.push("`nodeSelector`");
        pod::node_selector(&selector, errors);
    }
    if device.flag_of("allNodes") {
        said.push("`allNodes`");
    } else if all.is_set() {
        all.invalid(errors, "must be either unset or set to true");
    }
    let needed = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when \
        `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
    match said.len() {
        0 => device.required(errors, needed),
        1 => {}
        _ => device.invalid_as(errors, format!("{{{}}}", said.join(", ")), needed),
    }
}

/// What must come true before a pod is bound, and what makes that impossible: both or none.
pub(super) fn binding_conditions(at: &At<'_, '_>, errors: &mut ErrorList) {
    let (wanted, failures) = (at.field("bindingConditions"), at.field("bindingFailureConditions"));
    for list in [&wanted, &failures] {
        each(list, MAX_BINDING_CONDITIONS, errors, |it, errors| {
            errors.extend(name::label_key(it.path(), it.text()));
        });
    }
    let wanted_names: Taken<&str> = wanted.items().map(|it| it.text()).collect();
    for list in [&wanted, &failures] {
        let mut taken = Taken::default();
        for condition in list.items() {
            if !taken.add(condition.text()) {
                condition.duplicate(errors);
            }
            if std::ptr::eq(list, &failures) && wanted_names.contains(condition.text()) {
                let problem = "bindingFailureConditions must not overlap with bindingConditions";
                condition.invalid_text(errors, problem);
            }
        }
    }
    if wanted.is_empty() && !failures.is_empty() {
        wanted.invalid(errors, "bindingConditions are required to use bindingFailureConditions");
    }
    if failures.is_empty() && !wanted.is_empty() {
        failures.invalid(errors, "bindingFailureConditions are required to use bindingConditions");
    }
}
