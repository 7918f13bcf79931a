//! PersistentVolume: a piece of storage.

use api::field::{BadValue, Error, ErrorList, Path};
use api::meta::Scope;
use api::name::{Format, NameRule};
use serde_json::{Value, json};

use super::GROUP;
use super::persistent_volume_claim::{
    BETA_CLASS, OLD_CLASS, VOLUME_MODES, check_access_modes, class, phase, short_access_modes,
    warn_of_annotation,
};
use super::pod::validate as pod;
use super::pod::warnings::deprecated_label;
use crate::built_in::BuiltIn;
use crate::cells::column::{AGE, Cell, NAME, string};
use crate::cells::row::{Row, UNSET, quantity, text};
use crate::defaults::member::{self, Members};
use crate::defaults::type_defaults::{DefaultValue, TypeDefaults};
use crate::strategy::{Circumstances, Strategy};
use crate::validate::at::{At, IMMUTABLE};
use crate::validate::validation::{UpdateChecks, Validation};
use crate::validate::{internal, metadata, volume_source};

/// When the volume came into its phase.
const SINCE: &str = "lastPhaseTransitionTime";

pub(crate) static PERSISTENT_VOLUME: BuiltIn = BuiltIn::new(GROUP, "PersistentVolume", "persistentvolumes")
    .strategy(
        Strategy::PLAIN.return_deleted_object().status().on_create(prepare_create).on_status(prepare_status),
    )
    .validation(Validation::new(check).update(UpdateChecks::ONLY_AS_NEW.compare(check_change)))
    .warnings(warn)
    .defaults(&[TypeDefaults::of("core.v1.PersistentVolume").values(&[
        ("status.phase", DefaultValue::Text("Pending")),
        ("spec.persistentVolumeReclaimPolicy", DefaultValue::Text("Retain")),
        ("spec.volumeMode", DefaultValue::Text("Filesystem")),
    ])])
    .columns(&[
        NAME,
        string("Capacity", Cell::Computed(|it| quantity(it.at("/spec/capacity/storage")).into())),
        string("Access Modes", Cell::Computed(|it| short_access_modes(it.at("/spec/accessModes")).into())),
        string("Reclaim Policy", Cell::Text("/spec/persistentVolumeReclaimPolicy")),
        string("Status", Cell::Computed(|it| phase(it).into())),
        string("Claim", Cell::Computed(|it| claim(it).into())),
        string("StorageClass", Cell::Computed(|it| class(it).into())),
        string("VolumeAttributesClass", Cell::TextOr("/spec/volumeAttributesClassName", UNSET)),
        string("Reason", Cell::Text("/status/reason")),
        AGE,
        string("VolumeMode", Cell::TextOr("/spec/volumeMode", UNSET)).wide(),
    ]);

fn prepare_create(volume: &mut Members, with: &Circumstances<'_>) {
    volume.insert("status".to_owned(), json!({"phase": "Pending", SINCE: with.now.to_string()}));
}

fn prepare_status(volume: &mut Members, old: &Members, with: &Circumstances<'_>) {
    let nothing = Members::new();
    let before = member::object(old, "status").unwrap_or(&nothing);
    let status = member::made(volume, "status");
    let given = status.get(SINCE).filter(|since| !since.is_null()).cloned();
    let since = if member::text(before, "phase") == member::text(status, "phase") {
        given.or_else(|| before.get(SINCE).cloned())
    } else {
        given.filter(|given| Some(given) != before.get(SINCE)).or_else(|| Some(with.now.to_string().into()))
    };
    match since {
        Some(since) => drop(status.insert(SINCE.to_owned(), since)),
        None => drop(status.remove(SINCE)),
    }
}

/// Kubernetes: in the order of its own type.
pub(crate) const SOURCES: [&str; 22] = [
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

fn check(volume: &At<'_, '_>, errors: &mut ErrorList) {
    check_content(volume, errors);
    check_mount_options(volume, errors);
}

fn check_content(volume: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = volume.field("spec");
    check_modes(&spec, errors);
    check_capacity(&spec.field("capacity"), errors);
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

fn check_modes(spec: &At<'_, '_>, errors: &mut ErrorList) {
    let modes = spec.field("accessModes");
    if modes.is_empty() {
        modes.required(errors, "");
    }
    check_access_modes(&modes, errors);
}

/// The annotation is as old as the volumes that it is good for.
fn check_mount_options(volume: &At<'_, '_>, errors: &mut ErrorList) {
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

fn check_capacity(capacity: &At<'_, '_>, errors: &mut ErrorList) {
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
pub(crate) fn check_inline(spec: &At<'_, '_>, errors: &mut ErrorList) {
    for field in ["claimRef", "capacity", "nodeAffinity", "storageClassName"] {
        if !spec.field(field).is_empty() {
            spec.field(field).forbidden(errors, "may not be specified in the context of inline volumes");
        }
    }
    if !spec.has("csi") {
        spec.field("csi").required(errors, "has to be specified in the context of inline volumes");
    }
    check_modes(spec, errors);
    let policy = spec.field("persistentVolumeReclaimPolicy");
    if !matches!(policy.text(), "" | "Retain") {
        policy.forbidden(errors, "may only be Retain in the context of inline volumes");
    }
    volume_source::check(spec, volume_source::OF_PERSISTENT_VOLUME, errors);
}

/// After what a new volume must fulfil: the source and the mode stay.
fn check_change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    // Kubernetes: it asks twice.
    metadata::create(new.value(), Scope::Cluster, NameRule::DnsSubdomain, errors);
    check_content(new, errors);
    let (spec, old_spec) = (new.field("spec"), old.field("spec"));
    let (mut now, before) = (spec.value().clone(), old_spec.value());
    // Kubernetes: a volume that has no such secret may get one.
    let secret = "controllerExpandSecretRef";
    if old_spec.has("csi")
        && !old_spec.field("csi").has(secret)
        && let Some(csi) = now.get_mut("csi").and_then(Value::as_object_mut)
    {
        csi.remove(secret);
    }
    if SOURCES.iter().any(|source| now.get(source) != before.get(source)) {
        let change = internal::changed_fields("PersistentVolumeSpec", SOURCES.into_iter(), before, &now);
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

/// Of a persistent volume.
const OLD_ANNOTATIONS: [(&str, &str); 2] = [
    (BETA_CLASS, OLD_CLASS),
    (
        "volume.beta.kubernetes.io/mount-options",
        "deprecated since v1.31; use \"mountOptions\" attribute instead",
    ),
];

/// Sources whose drivers are gone.
const GONE_SOURCES: [(&str, &str); 6] = [
    ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("storageos", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

fn warn(object: &At<'_, '_>, _: Option<&Value>, warnings: &mut Vec<String>) {
    for (key, problem) in OLD_ANNOTATIONS {
        warn_of_annotation(object, key, problem, warnings);
    }
    let spec = object.field("spec");
    if spec.text_of("persistentVolumeReclaimPolicy") == "Recycle" {
        warnings.push(
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the \
             recommended approach is to use dynamic provisioning."
                .to_owned(),
        );
    }
    let affinity = spec.field("nodeAffinity");
    let required = affinity.field("required");
    for term in required.field("nodeSelectorTerms").items() {
        warn_of_node_term(&term, warnings);
    }
    for (source, problem) in GONE_SOURCES.iter().filter(|(source, _)| spec.has(source)) {
        let shown = if *source == "storageos" { "storageOS" } else { source };
        warnings.push(format!("{}: {problem}", spec.field(shown).path()));
    }
}

/// Old labels that a term wants nodes to have.
pub(crate) fn warn_of_node_term(term: &At<'_, '_>, warnings: &mut Vec<String>) {
    for expression in term.field("matchExpressions").items() {
        let key = expression.field("key");
        if let Some(problem) = deprecated_label(key.text()) {
            warnings.push(format!("{}: {} is {problem}", key.path(), key.text()));
        }
    }
}

fn claim(volume: &Row<'_>) -> String {
    let claim = volume.at("/spec/claimRef");
    if claim.is_null() {
        return String::new();
    }
    format!("{}/{}", text(&claim["namespace"]), text(&claim["name"]))
}
