//! VolumeAttributesClass: attributes of volumes that a driver can change.

use api::field::ErrorList;

use super::GROUP;
use super::storage_class::{check_parameters, check_provisioner};
use crate::built_in::BuiltIn;
use crate::cells::column::{AGE, Cell, NAME, string};
use crate::strategy::Strategy;
use crate::validate::at::At;
use crate::validate::validation::{UpdateChecks, Validation};

pub(crate) static VOLUME_ATTRIBUTES_CLASS: BuiltIn =
    BuiltIn::new(GROUP, "VolumeAttributesClass", "volumeattributesclasses")
        .older_versions(&["v1alpha1", "v1beta1"])
        .strategy(Strategy::PLAIN.return_deleted_object())
        .validation(Validation::new(check).update(UpdateChecks::AS_NEW.compare_first(check_change)))
        .columns(&[NAME, string("DriverName", Cell::Text("/driverName")), AGE]);

fn check(class: &At<'_, '_>, errors: &mut ErrorList) {
    check_provisioner(&class.field("driverName"), errors);
    check_parameters(&class.field("parameters"), errors);
    if class.field("parameters").is_empty() {
        class.field("parameters").required(errors, "must contain at least one key/value pair");
    }
}

fn check_change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    for field in ["driverName", "parameters"] {
        if !new.field(field).is_same(&old.field(field)) {
            new.field(field).forbidden(errors, format!("updates to {field} are forbidden."));
        }
    }
}
