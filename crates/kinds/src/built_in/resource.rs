//! The kinds of `resource.k8s.io`: devices that drivers offer and pods claim, and what these kinds share.

mod capacity;
mod device;
pub(super) mod device_class;
mod device_selector;
mod names;
pub(super) mod resource_claim;
pub(super) mod resource_claim_template;
pub(super) mod resource_slice;

use api::field::{Error, ErrorList};
use serde_json::Value;

use crate::validate::at::At;
use crate::validate::taken::Taken;
use crate::validate::volume_source::csi_driver_name;

const GROUP: &str = "resource.k8s.io";
const MAX_CONFIGURATIONS: usize = 32;
const MAX_PARAMETERS_BYTES: usize = 10 << 10;

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
        Value::Null => at.required(errors, ""),
        value if value.to_string().len() > MAX_PARAMETERS_BYTES => {
            errors.push(Error::too_long(at.path(), MAX_PARAMETERS_BYTES));
        }
        Value::Object(_) => {}
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

/// The same, and no key twice.
fn each_unique<'v>(
    list: &At<'v, '_>,
    key: impl Fn(&At<'v, '_>) -> &'v str,
    most: usize,
    errors: &mut ErrorList,
    check: impl FnMut(&At<'_, '_>, &mut ErrorList),
) {
    if each(list, most, errors, check) {
        let mut taken = Taken::default();
        for item in list.items() {
            let key = key(&item);
            if !taken.add(key) {
                errors.push(Error::duplicate(item.path(), key));
            }
        }
    }
}
