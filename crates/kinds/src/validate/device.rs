//! Devices: what is claimed, by which classes, and what drivers publish.

mod capacity;
mod claim;
mod listed;
mod names;
mod selector;
mod slice;
mod status;

use api::field::{Error, ErrorList};

use super::at::At;
use super::resource_names;
use super::taken::Taken;
use super::volume_source::csi_driver_name;

pub(super) use claim::{claim, claim_change, template, template_change};
pub(super) use slice::{slice, slice_change};
pub(super) use status::claim_status;

const MAX_CONFIGURATIONS: usize = 32;
const MAX_PARAMETERS_BYTES: usize = 10 << 10;

pub(super) fn class(class: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = class.field("spec");
    selector::check_all(&spec.field("selectors"), errors);
    each(&spec.field("config"), MAX_CONFIGURATIONS, errors, configuration);
    let name = spec.field("extendedResourceName");
    if name.is_set() && !resource_names::is_extended(name.text()) {
        name.invalid_text(errors, "must be a valid extended resource name");
    }
}

fn configuration(configuration: &At<'_, '_>, errors: &mut ErrorList) {
    let opaque = configuration.field("opaque");
    if opaque.is_set() {
        csi_driver_name(&opaque.field("driver"), errors);
        raw_object(&opaque.field("parameters"), errors);
    } else {
        opaque.required(errors, "");
    }
}

/// Any JSON object, but not an endless one.
fn raw_object(at: &At<'_, '_>, errors: &mut ErrorList) {
    match at.value() {
        serde_json::Value::Null => at.required(errors, ""),
        value if value.to_string().len() > MAX_PARAMETERS_BYTES => {
            errors.push(Error::too_long(at.path(), MAX_PARAMETERS_BYTES));
        }
        serde_json::Value::Object(_) => {}
        _ => at.invalid_as(errors, "<value omitted>", "must be a valid JSON object"),
    }
}

/// Checks each item, unless there are too many.
fn each(
    list: &At<'_, '_>,
    most: usize,
    errors: &mut ErrorList,
    mut check: impl FnMut(&At<'_, '_>, &mut ErrorList),
) -> bool {
    let count = list.list().len();
    if count > most {
        errors.push(Error::too_many(list.path(), count, most));
        return false;
    }
    list.items().for_each(|item| check(&item, errors));
    true
}

/// The same, and each name once.
fn each_named(
    list: &At<'_, '_>,
    name: &str,
    most: usize,
    errors: &mut ErrorList,
    check: impl FnMut(&At<'_, '_>, &mut ErrorList),
) {
    if each(list, most, errors, check) {
        let mut taken = Taken::default();
        for item in list.items() {
            let text = item.text_of(name);
            if !taken.add(text) {
                errors.push(Error::duplicate(item.path(), text));
            }
        }
    }
}

/// The same for plain strings.
fn each_once(
    list: &At<'_, '_>,
    most: usize,
    errors: &mut ErrorList,
    check: impl FnMut(&At<'_, '_>, &mut ErrorList),
) {
    if each(list, most, errors, check) {
        let mut taken = Taken::default();
        for item in list.items() {
            if !taken.add(item.text()) {
                item.duplicate(errors);
            }
        }
    }
}
