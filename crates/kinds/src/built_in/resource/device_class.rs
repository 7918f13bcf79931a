//! DeviceClass: devices with something in common.

use api::field::ErrorList;

use super::{GROUP, MAX_CONFIGURATIONS, configuration, device_selector, each};
use crate::built_in::BuiltIn;
use crate::cells::column::{AGE, NAME};
use crate::strategy::Strategy;
use crate::strategy::builder::SPEC;
use crate::validate::at::At;
use crate::validate::resource_names;
use crate::validate::validation::Validation;

pub(crate) static DEVICE_CLASS: BuiltIn = BuiltIn::new(GROUP, "DeviceClass", "deviceclasses")
    .older_versions(&["v1beta1", "v1beta2"])
    .strategy(Strategy::PLAIN.return_deleted_object().counts_generation_of(SPEC))
    .validation(Validation::new(check))
    .columns(&[NAME, AGE]);

fn check(class: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = class.field("spec");
    device_selector::check_all(&spec.field("selectors"), errors);
    each(&spec.field("config"), MAX_CONFIGURATIONS, errors, configuration);
    let name = spec.field("extendedResourceName");
    if name.is_set() && !resource_names::is_extended(name.text()) {
        name.invalid_text(errors, "must be a valid extended resource name");
    }
}
