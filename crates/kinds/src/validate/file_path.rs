//! Paths and modes of files inside volumes.

use api::field::ErrorList;

use super::at::At;

const MODE: &str = "must be a number between 0 and 0777 (octal), both inclusive";

pub(crate) fn mode(mode: &At<'_, '_>, errors: &mut ErrorList) {
    if !(0..=0o777).contains(&mode.int()) {
        mode.invalid_int(errors, MODE);
    }
}

/// Keys of a ConfigMap or Secret, and the files that they become.
pub(crate) fn items(items: &At<'_, '_>, errors: &mut ErrorList) {
    for item in items.items() {
        key_to_path(&item, errors);
    }
}

pub(crate) fn key_to_path(item: &At<'_, '_>, errors: &mut ErrorList) {
    for field in ["key", "path"] {
        if item.text_of(field).is_empty() {
            item.field(field).required(errors, "");
        }
    }
    not_reserved(&item.field("path"), errors);
    mode(&item.field("mode"), errors);
}

pub(crate) fn no_backsteps(at: &At<'_, '_>, path: &str, errors: &mut ErrorList) {
    if path.split('/').any(|part| part == "..") {
        at.invalid_as(errors, path, "must not contain '..'");
    }
}

/// Relative, and never upwards.
pub(crate) fn descending(path: &At<'_, '_>, errors: &mut ErrorList) {
    if path.text().starts_with('/') {
        path.invalid_text(errors, "must be a relative path");
    }
    no_backsteps(path, path.text(), errors);
}

/// The same, and no name that the kubelet keeps for itself.
pub(crate) fn not_reserved(path: &At<'_, '_>, errors: &mut ErrorList) {
    descending(path, errors);
    if path.text().starts_with("..") && !path.text().starts_with("../") {
        path.invalid_text(errors, "must not start with '..'");
    }
}
