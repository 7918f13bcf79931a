//! Namespaces: finalizers of the spec, and a phase that says what the metadata says.

use api::field::ErrorList;
use api::meta::check_kube_finalizers;
use api::name::Format;

use super::at::At;

pub(super) fn body(namespace: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = namespace.field("spec");
    let finalizers = spec.field("finalizers");
    for finalizer in finalizers.items() {
        errors.extend(Format::QualifiedName.check(finalizers.path(), finalizer.text()));
        let is_bare = !check_kube_finalizers(finalizers.path(), &[finalizer.text().to_owned()]).is_empty();
        if is_bare {
            finalizers.invalid_as(errors, finalizer.text(), NEITHER);
        }
    }
}

const NEITHER: &str = "name is neither a standard finalizer name nor is it fully qualified";

pub(super) fn finalize(new: &At<'_, '_>, _: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = new.field("spec");
    let finalizers = spec.field("finalizers");
    for finalizer in finalizers.items() {
        finalizer.is_format(errors, Format::QualifiedName);
        let bare = check_kube_finalizers(finalizers.path(), &[finalizer.text().to_owned()]);
        if !bare.is_empty() {
            finalizer.invalid_text(errors, NEITHER);
        }
    }
}

pub(super) fn status(new: &At<'_, '_>, _: &At<'_, '_>, errors: &mut ErrorList) {
    let is_deleting = new.field("metadata").has("deletionTimestamp");
    let (expected, problem) = if is_deleting {
        ("Terminating", "may only be 'Terminating' if `deletionTimestamp` is not empty")
    } else {
        ("Active", "may only be 'Active' if `deletionTimestamp` is empty")
    };
    let status = new.field("status");
    if status.text_of("phase") != expected {
        status.field("Phase").invalid_as(errors, status.text_of("phase"), problem);
    }
}
