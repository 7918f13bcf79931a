//! What a container mounts, and the block devices that it opens.

use api::field::ErrorList;

use super::volumes::Mountable;
use crate::validate::at::At;
use crate::validate::file_path;
use crate::validate::taken::Taken;

pub(super) fn mounts(container: &At<'_, '_>, volumes: &Mountable<'_>, errors: &mut ErrorList) {
    let (mounts, devices) = (container.field("volumeMounts"), container.field("volumeDevices"));
    let mut taken = Taken::default();
    let (device_names, device_paths) = (texts(&devices, "name"), texts(&devices, "devicePath"));
    for mount in mounts.items() {
        let (name, path) = (mount.field("name"), mount.field("mountPath"));
        if name.text().is_empty() {
            name.required(errors, "");
        }
        if !volumes.has(name.text()) {
            name.not_found(errors);
        }
        if path.text().is_empty() {
            path.required(errors, "");
        }
        if taken.contains(&path.text()) {
            path.invalid_text(errors, "must be unique");
        }
        taken.push(path.text());
        if device_names.contains(name.text()) {
            name.invalid_text(errors, "must not already exist in volumeDevices");
        }
        if device_paths.contains(path.text()) {
            path.invalid_text(errors, "must not already exist as a path in volumeDevices");
        }
        sub_paths(&mounts, &mount, errors);
        propagation(container, &mounts, &mount, errors);
    }
}

/// What the items of a list have in a field.
fn texts<'v>(list: &At<'v, '_>, field: &str) -> Taken<&'v str> {
    list.items().map(|item| item.text_of(field)).collect()
}

/// Kubernetes: the errors name the list.
fn sub_paths(mounts: &At<'_, '_>, mount: &At<'_, '_>, errors: &mut ErrorList) {
    for field in ["subPath", "subPathExpr"] {
        if mount.text_of(field).is_empty() {
            continue;
        }
        let value = mount.field(field);
        if field == "subPathExpr" && !mount.text_of("subPath").is_empty() {
            value.invalid_text(errors, "subPathExpr and subPath are mutually exclusive");
        }
        file_path::descending(&At::new(value.value(), mounts.path().child(field)), errors);
    }
}

fn propagation(container: &At<'_, '_>, mounts: &At<'_, '_>, mount: &At<'_, '_>, errors: &mut ErrorList) {
    let mode = mount.text_of("mountPropagation");
    if mount.has("mountPropagation") {
        let at = mount.field("mountPropagation");
        let at = At::new(at.value(), mounts.path().child("mountPropagation"));
        at.one_of(errors, &["Bidirectional", "HostToContainer", "None"]);
        if mode == "Bidirectional" && !container.field("securityContext").flag_of("privileged") {
            let problem = "Bidirectional mount propagation is available only to privileged containers";
            at.forbidden(errors, problem);
        }
    }
    let recursive = mount.field("recursiveReadOnly");
    let recursive = At::new(recursive.value(), mounts.path().child("recursiveReadOnly"));
    match recursive.text() {
        _ if !recursive.is_set() => {}
        "Disabled" => {}
        "Enabled" | "IfPossible" => {
            if !mount.flag_of("readOnly") {
                recursive.forbidden(errors, "may only be specified when readOnly is true");
            }
            if mount.has("mountPropagation") && mode != "None" {
                let problem = "may only be specified when mountPropagation is None or not specified";
                recursive.forbidden(errors, problem);
            }
        }
        _ => recursive.unsupported(errors, &["Disabled", "Enabled", "IfPossible"]),
    }
}

pub(super) fn devices(container: &At<'_, '_>, volumes: &Mountable<'_>, errors: &mut ErrorList) {
    let (mounts, devices) = (container.field("volumeMounts"), container.field("volumeDevices"));
    let (mut names, mut paths) = (Taken::default(), Taken::default());
    let (mounted_names, mounted_paths) = (texts(&mounts, "name"), texts(&mounts, "mountPath"));
    for device in devices.items() {
        let (name, path) = (device.field("name"), device.field("devicePath"));
        if name.text().is_empty() {
            name.required(errors, "");
        }
        if names.contains(&name.text()) {
            name.invalid_text(errors, "must be unique");
        }
        if !volumes.has(name.text()) {
            name.not_found(errors);
        } else if !volumes.is_claim(name.text()) {
            let problem =
                "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
            name.invalid_text(errors, problem);
        }
        if path.text().is_empty() {
            path.required(errors, "");
        }
        if paths.contains(&path.text()) {
            path.invalid_text(errors, "must be unique");
        }
        if path.text().split('/').any(|part| part == "..") {
            path.invalid_text(errors, "can not contain backsteps ('..')");
        } else {
            paths.push(path.text());
        }
        if mounted_names.contains(name.text()) {
            name.invalid_text(errors, "must not already exist in volumeMounts");
        }
        if mounted_paths.contains(path.text()) {
            path.invalid_text(errors, "must not already exist as a path in volumeMounts");
        }
        if !name.text().is_empty() {
            names.push(name.text());
        }
    }
}
