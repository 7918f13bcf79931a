//! PersistentVolumes, alone or inside an attachment.

use api::field::{BadValue, Error, ErrorList, Path};
use api::meta::Scope;
use api::name::{Format, NameRule};
use serde_json::Value;

use super::at::{At, IMMUTABLE};
use super::persistent_volume_claim::{VOLUME_MODES, access_modes};
use super::{internal, metadata, pod, volume_source};

/// Kubernetes: in the order of its own type.
pub(super) const SOURCES: [&str; 22] = [
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "hostPath",
    "glusterfs",
    "nfs",
    "rbd",
    "quobyte",
    "iscsi",
    "flexVolume",
    "cinder",
    "cephfs",
    "fc",
    "flocker",
    "azureFile",
    "vsphereVolume",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "local",
    "storageos",
    "csi",
];

/// Labels of nodes: their first names, and those of today.
const GROWN_UP: [(&str, &str); 5] = [
    ("beta.kubernetes.io/arch", "kubernetes.io/arch"),
    ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"),
    ("beta.kubernetes.io/os", "kubernetes.io/os"),
    ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
    ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
];

pub(super) fn body(volume: &At<'_, '_>, errors: &mut ErrorList) {
    content(volume, errors);
    mount_options(volume, errors);
}

fn content(volume: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = volume.field("spec");
    modes(&spec, errors);
    capacity(&spec.field("capacity"), errors);
    let policy = spec.field("persistentVolumeReclaimPolicy");
    if !policy.text().is_empty() {
        policy.one_of(errors, &["Delete", "Recycle", "Retain"]);
    }
    let affinity = spec.field("nodeAffinity");
    if affinity.is_set() {
        match affinity.field("required") {
            missing if !missing.is_set() => {
                missing.required(errors, "must specify required node constraints")
            }
            required => pod::node_selector(&required, errors),
        }
    }
    volume_source::check_with(&spec, volume_source::OF_PERSISTENT_VOLUME, errors, |source, errors| {
        if source == "local" && !affinity.is_set() {
            affinity.required(errors, "Local volume requires node affinity");
        }
    });
    let host = spec.field("hostPath");
    let is_root = host.is_set() && host.text_of("path").split('/').all(|part| part.is_empty() || part == ".");
    if is_root && policy.text() == "Recycle" {
        policy.forbidden(errors, "may not be 'recycle' for a hostPath mount of '/'");
    }
    if !spec.text_of("storageClassName").is_empty() {
        spec.field("storageClassName").is_format(errors, Format::Dns1123Subdomain);
    }
    spec.field("volumeMode").optional_one_of(errors, VOLUME_MODES);
    let attributes = spec.field("volumeAttributesClassName");
    if attributes.is_set() {
        if attributes.text().is_empty() {
            attributes.required(errors, "an empty string is disallowed");
        } else {
            attributes.is_format(errors, Format::Dns1123Subdomain);
        }
        if !spec.has("csi") {
            spec.field("csi").required(errors, "has to be specified when using volumeAttributesClassName");
        }
    }
}

fn modes(spec: &At<'_, '_>, errors: &mut ErrorList) {
    let modes = spec.field("accessModes");
    if modes.is_empty() {
        modes.required(errors, "");
    }
    access_modes(&modes, errors);
}

/// The annotation is as old as the volumes that it is good for.
fn mount_options(volume: &At<'_, '_>, errors: &mut ErrorList) {
    const ANNOTATION: &str = "volume.beta.kubernetes.io/mount-options";
    const WITHOUT: [&str; 9] =
        ["csi", "fc", "flexVolume", "flocker", "hostPath", "local", "portworxVolume", "scaleIO", "storageos"];
    let spec = volume.field("spec");
    let is_mounted_with = |source: &&str| !WITHOUT.contains(source) && spec.has(source);
    if api::object::annotation(volume.value(), ANNOTATION).is_some() && !SOURCES.iter().any(is_mounted_with) {
        let path = Path::new("metadata.annotations");
        let problem = "may not specify mount options for this volume type";
        errors.push(Error::forbidden(&path.child(ANNOTATION), problem));
    }
}

fn capacity(capacity: &At<'_, '_>, errors: &mut ErrorList) {
    if capacity.is_empty() {
        capacity.required(errors, "");
    }
    if !capacity.has("storage") || capacity.entries().count() > 1 {
        errors.push(Error::not_supported(capacity.path(), capacity.value(), ["storage"]));
    }
    for (_, amount) in capacity.entries() {
        let Some(quantity) = amount.quantity() else { continue };
        if let Some(value) = quantity.value().filter(|value| *value < 0) {
            amount.invalid_as(errors, value, "must be a valid resource quantity");
        }
        if quantity.is_zero() || quantity.is_negative() {
            amount.invalid_text(errors, "must be greater than zero");
        }
    }
}

/// Whether nodes are asked for as before, but for labels whose names have grown up.
fn is_renamed(new: &Value, old: &Value) -> bool {
    match (new, old) {
        (Value::Object(new), Value::Object(old)) => {
            let same = |(name, old): (&String, &Value)| match (name.as_str(), new.get(name), old) {
                (_, None, _) => false,
                ("key", Some(Value::String(new)), Value::String(old)) => {
                    new == old || GROWN_UP.contains(&(old.as_str(), new.as_str()))
                }
                (_, Some(new), old) => is_renamed(new, old),
            };
            new.len() == old.len() && old.iter().all(same)
        }
        (Value::Array(new), Value::Array(old)) => {
            new.len() == old.len() && new.iter().zip(old).all(|(new, old)| is_renamed(new, old))
        }
        _ => new == old,
    }
}

/// The spec that an attachment brings along instead of a volume's name.
pub(super) fn inline(spec: &At<'_, '_>, errors: &mut ErrorList) {
    for field in ["claimRef", "capacity", "nodeAffinity", "storageClassName"] {
        if !spec.field(field).is_empty() {
            spec.field(field).forbidden(errors, "may not be specified in the context of inline volumes");
        }
    }
    if !spec.has("csi") {
        spec.field("csi").required(errors, "has to be specified in the context of inline volumes");
    }
    modes(spec, errors);
    let policy = spec.field("persistentVolumeReclaimPolicy");
    if !matches!(policy.text(), "" | "Retain") {
        policy.forbidden(errors, "may only be Retain in the context of inline volumes");
    }
    volume_source::check(spec, volume_source::OF_PERSISTENT_VOLUME, errors);
}

/// After what a new volume must fulfil: the source and the mode stay.
pub(super) fn change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    // Kubernetes: it asks twice.
    metadata::create(new.value(), Scope::Cluster, NameRule::DnsSubdomain, errors);
    content(new, errors);
    let (spec, old_spec) = (new.field("spec"), old.field("spec"));
    let source = |spec: &At<'_, '_>| {
        let fields = volume_source::OF_PERSISTENT_VOLUME.iter();
        fields.map(|source| spec.field(source.field).value().clone()).collect::<Vec<_>>()
    };
    let (mut now, before) = (source(&spec), source(&old_spec));
    let secret = "controllerExpandSecretRef";
    if old_spec.has("csi") && !old_spec.field("csi").has(secret) {
        for csi in now.iter_mut().filter_map(Value::as_object_mut) {
            csi.remove(secret);
        }
    }
    if now != before {
        let (old, new) = (old_spec.value(), spec.value());
        let change = internal::changed_fields("PersistentVolumeSpec", SOURCES.into_iter(), old, new);
        let problem = format!("spec.persistentvolumesource is immutable after creation\n{change}");
        spec.field("persistentvolumesource").forbidden(errors, problem);
    }
    let mode = spec.field("volumeMode");
    if !mode.is_same(&old_spec.field("volumeMode")) {
        let shown = BadValue::from(mode.value()).with_named_string_type();
        errors.push(Error::invalid(&Path::new("volumeMode"), shown, IMMUTABLE));
    }
    let (affinity, old_affinity) = (spec.field("nodeAffinity"), old_spec.field("nodeAffinity"));
    if old_affinity.is_set() && !is_renamed(affinity.value(), old_affinity.value()) {
        let shown = internal::shown_core("VolumeNodeAffinity", &affinity);
        let problem = "field is immutable, except for updating from beta label to GA";
        errors.push(Error::invalid(&Path::new("nodeAffinity"), shown, problem));
    }
    let attributes = spec.field("volumeAttributesClassName");
    if old_spec.has("volumeAttributesClassName") && !attributes.is_set() {
        attributes.forbidden(errors, "update from non-nil value to nil is forbidden");
    }
}
