//! ConfigMaps: keys that can be file names, no key twice, a limit on size, and no change once immutable.

use api::field::{Error, ErrorList, Path};
use api::name::Format;

use super::at::At;

/// Together, of all values: what fits into etcd with room to spare.
pub(super) const MAX_DATA_BYTES: usize = 1 << 20;
const FROZEN: &str = "field is immutable when `immutable` is set";

pub(super) fn body(map: &At<'_, '_>, errors: &mut ErrorList) {
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

pub(super) fn change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    frozen(new, old, &["data", "binaryData"], errors);
}

/// What an object that calls itself immutable may not change, that claim included.
pub(super) fn frozen(new: &At<'_, '_>, old: &At<'_, '_>, fields: &[&str], errors: &mut ErrorList) {
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
pub(super) fn decoded_len(text: &str) -> usize {
    text.trim_end_matches('=').len() * 3 / 4
}
