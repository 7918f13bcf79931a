//! VolumeAttachment: a volume that is to be attached to a node.

use api::field::ErrorList;
use api::name::Format;

use super::GROUP;
use crate::built_in::BuiltIn;
use crate::built_in::core::persistent_volume;
use crate::cells::column::{AGE, Cell, NAME, boolean, string};
use crate::strategy::{StatusMetadata, Strategy};
use crate::validate::at::{At, IMMUTABLE};
use crate::validate::validation::{UpdateChecks, Validation};
use crate::validate::{internal, volume_source};

pub(crate) static VOLUME_ATTACHMENT: BuiltIn = BuiltIn::new(GROUP, "VolumeAttachment", "volumeattachments")
    .older_versions(&["v1alpha1", "v1beta1"])
    .strategy(
        Strategy::PLAIN
            .return_deleted_object()
            .requires_resource_version()
            .status()
            .status_metadata(StatusMetadata::Little),
    )
    .validation(Validation::new(check).update(UpdateChecks::ONLY_AS_NEW.compare(check_change)))
    .columns(&[
        NAME,
        string("Attacher", Cell::Text("/spec/attacher")).with_format("name"),
        string("PV", Cell::Text("/spec/source/persistentVolumeName")),
        string("Node", Cell::Text("/spec/nodeName")),
        boolean("Attached", Cell::Flag("/status/attached")),
        AGE,
    ]);

fn check(attachment: &At<'_, '_>, errors: &mut ErrorList) {
    const ONE: &str = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    let spec = attachment.field("spec");
    volume_source::csi_driver_name(&spec.field("attacher"), errors);
    let source = spec.field("source");
    let (inline, volume) = (source.field("inlineVolumeSpec"), source.field("persistentVolumeName"));
    match (inline.is_set(), volume.is_set()) {
        (false, false) => source.required(errors, ONE),
        (true, true) => source.forbidden(errors, ONE),
        (false, true) if volume.text().is_empty() => {
            volume.required(errors, "must specify non empty persistentVolumeName");
        }
        (false, true) => {}
        (true, false) => persistent_volume::check_inline(&inline, errors),
    }
    spec.field("nodeName").is_format(errors, Format::Dns1123Subdomain);
    if volume.is_set() {
        volume.is_format(errors, Format::Dns1123Subdomain);
    }
}

fn check_change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = new.field("spec");
    if !spec.is_same(&old.field("spec")) {
        let shown = internal::shown("io.k8s.api.storage.v1.VolumeAttachmentSpec", spec.value());
        spec.invalid_as(errors, shown, IMMUTABLE);
    }
}
