//! ConfigMap: keys and values, of text or of bytes.

use api::field::{Error, ErrorList, Path};
use api::name::Format;

use super::GROUP;
use crate::built_in::BuiltIn;
use crate::cells::column::{AGE, Cell, NAME, string};
use crate::validate::at::At;
use crate::validate::validation::{UpdateChecks, Validation};

/// Kubernetes: what etcd takes, and a little less.
pub(super) const MAX_DATA_BYTES: usize = 1 << 20;
const FROZEN: &str = "field is immutable when `immutable` is set";

pub(crate) static CONFIG_MAP: BuiltIn = BuiltIn::new(GROUP, "ConfigMap", "configmaps")
    .validation(Validation::new(check).update(UpdateChecks::AS_NEW.compare_first(check_change)))
    .columns(&[
        NAME,
        string("Data", Cell::Computed(|it| (it.count("/data") + it.count("/binaryData")).into())),
        AGE,
    ]);

fn check(map: &At<'_, '_>, errors: &mut ErrorList) {
    let (data, binary) = (map.field("data"), map.field("binaryData"));
    let mut size = 0;
    for (key, value) in data.entries() {
        errors.extend(Format::ConfigMapKey.check(value.path(), key));
        if binary.has(key) {
            errors.push(Error::invalid(value.path(), key, "duplicate of key present in binaryData"));
        }
        size += value.text().len();
    }
    for (key, value) in binary.entries() {
        errors.extend(Format::ConfigMapKey.check(value.path(), key));
        size += decoded_len(value.text());
    }
    if size > MAX_DATA_BYTES {
        errors.push(Error::too_long(&Path::new(""), MAX_DATA_BYTES));
    }
}

fn check_change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    check_frozen(new, old, &["data", "binaryData"], errors);
}

/// What an object that calls itself immutable may not change, that claim included.
pub(super) fn check_frozen(new: &At<'_, '_>, old: &At<'_, '_>, fields: &[&str], errors: &mut ErrorList) {
    if !old.flag_of("immutable") {
        return;
    }
    if !new.flag_of("immutable") {
        new.field("immutable").forbidden(errors, FROZEN);
    }
    for field in fields {
        let (new, old) = (new.field(field), old.field(field));
        if new.value() != old.value() {
            new.forbidden(errors, FROZEN);
        }
    }
}

/// Of base64, with or without its padding.
pub(crate) fn decoded_len(text: &str) -> usize {
    text.trim_end_matches('=').len() * 3 / 4
}
