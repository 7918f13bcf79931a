//! PersistentVolumeClaim: a volume that a pod asks for.

use api::field::{BadValue, Error, ErrorList, Path};
use api::name::Format;
use api::quantity::Quantity;
use api::{go, object};
use serde_json::{Value, json};

use super::GROUP;
use crate::built_in::BuiltIn;
use crate::cells::column::{AGE, Cell, NAME, string};
use crate::cells::row::{Row, UNSET, quantity, texts};
use crate::defaults::member::{self, Members};
use crate::defaults::type_defaults::{DefaultValue, TypeDefaults};
use crate::strategy::{Circumstances, Strategy};
use crate::validate::at::{At, IMMUTABLE};
use crate::validate::validation::{UpdateChecks, Validation};
use crate::validate::{internal, metadata, resource_names, selector};

pub(crate) const ACCESS_MODES: &[&str] =
    &["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
pub(super) const VOLUME_MODES: &[&str] = &["Block", "Filesystem"];
const RESIZE_STATES: [&str; 5] = [
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
];
/// Claims and volumes said their class here before they had a field for it; it still counts first.
pub(super) const BETA_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
pub(super) const OLD_CLASS: &str = "deprecated since v1.8; use \"storageClassName\" attribute instead";

pub(crate) static PERSISTENT_VOLUME_CLAIM: BuiltIn =
    BuiltIn::new(GROUP, "PersistentVolumeClaim", "persistentvolumeclaims")
        .strategy(
            Strategy::PLAIN
                .return_deleted_object()
                .status()
                .on_create(prepare_create)
                .on_update(prepare_update),
        )
        .validation(
            Validation::new(check)
                .update(UpdateChecks::AS_NEW.compare(check_change))
                .subresources(&[("status", check_status)]),
        )
        .warnings(warn)
        .defaults(&[
            TypeDefaults::of("core.v1.PersistentVolumeClaim")
                .values(&[("status.phase", DefaultValue::Text("Pending"))]),
            TypeDefaults::of("core.v1.PersistentVolumeClaimSpec")
                .values(&[("volumeMode", DefaultValue::Text("Filesystem"))]),
        ])
        .columns(&[
            NAME,
            string("Status", Cell::Computed(|it| phase(it).into())),
            string("Volume", Cell::Text("/spec/volumeName")),
            string(
                "Capacity",
                Cell::Computed(|it| if_bound(it, |it| quantity(it.at("/status/capacity/storage")))),
            ),
            string(
                "Access Modes",
                Cell::Computed(|it| if_bound(it, |it| short_access_modes(it.at("/status/accessModes")))),
            ),
            string("StorageClass", Cell::Computed(|it| class(it).into())),
            string("VolumeAttributesClass", Cell::TextOr("/spec/volumeAttributesClassName", UNSET)),
            AGE,
            string("VolumeMode", Cell::TextOr("/spec/volumeMode", UNSET)).wide(),
        ]);

fn prepare_create(claim: &mut Members, _: &Circumstances<'_>) {
    // Kubernetes: the status is empty, and defaults when the object is read back.
    claim.insert("status".to_owned(), json!({"phase": "Pending"}));
    let spec = member::made(claim, "spec");
    drop_distant_source(spec);
    drop_other_source(spec);
    name_source_twice(spec);
}

fn prepare_update(claim: &mut Members, old: &Members, _: &Circumstances<'_>) {
    let before = member::object(old, "spec");
    let had_source =
        before.is_some_and(|spec| spec.contains_key("dataSource") || spec.contains_key("dataSourceRef"));
    let spec = member::made(claim, "spec");
    if !before.is_some_and(|spec| spec.contains_key("dataSourceRef")) {
        drop_distant_source(spec);
    }
    if !had_source {
        drop_other_source(spec);
    }
    name_source_twice(spec);
}

/// Sources in other namespaces are a feature that is off.
fn drop_distant_source(spec: &mut Members) {
    let source = member::object(spec, "dataSourceRef");
    if source.is_some_and(|source| !member::text(source, "namespace").is_empty()) {
        spec.remove("dataSourceRef");
    }
}

/// The old field knows claims and snapshots only, and forgets the rest.
fn drop_other_source(spec: &mut Members) {
    if spec.contains_key("dataSourceRef") {
        return;
    }
    let is_known = member::object(spec, "dataSource").is_none_or(|source| {
        let known = [("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot")];
        known.contains(&(member::text(source, "apiGroup"), member::text(source, "kind")))
    });
    if !is_known {
        spec.remove("dataSource");
    }
}

fn name_source_twice(spec: &mut Members) {
    let [old, new] = ["dataSource", "dataSourceRef"].map(|name| member::object(spec, name).cloned());
    match (old, new) {
        (Some(old), None) => drop(spec.insert("dataSourceRef".to_owned(), old.into())),
        (None, Some(mut new)) if member::text(&new, "namespace").is_empty() => {
            new.remove("namespace");
            spec.insert("dataSource".to_owned(), new.into());
        }
        _ => {}
    }
}

fn check(claim: &At<'_, '_>, errors: &mut ErrorList) {
    check_spec(&claim.field("spec"), errors);
}

/// The claim that a pod's volume brings along.
pub(crate) fn check_ephemeral_volume(source: &At<'_, '_>, errors: &mut ErrorList) {
    let template = source.field("volumeClaimTemplate");
    if !template.is_set() {
        template.required(errors, "");
        return;
    }
    let meta = template.field("metadata");
    metadata::annotations(&meta.field("annotations"), errors);
    metadata::labels(&meta.field("labels"), errors);
    for (key, _) in meta.entries().filter(|(key, _)| !matches!(*key, "annotations" | "labels")) {
        errors.push(Error::forbidden(&meta.path().child(key), "cannot be set"));
    }
    check_spec(&template.field("spec"), errors);
}

pub(crate) fn check_spec(spec: &At<'_, '_>, errors: &mut ErrorList) {
    let modes = spec.field("accessModes");
    if modes.is_empty() {
        modes.required(errors, "at least 1 access mode is required");
    }
    selector::check(&spec.field("selector"), errors);
    check_access_modes(&modes, errors);
    let resources = spec.field("resources");
    let storage = resources.field("requests");
    let storage = storage.field("storage");
    let path = resources.path().key("storage");
    match storage.quantity() {
        None => errors.push(Error::required(&path, "")),
        Some(size) if size.is_zero() || size.is_negative() => {
            errors.push(Error::invalid(&path, size.to_string(), "must be greater than zero"));
        }
        Some(size) => errors.extend(resource_names::check_amount(&path, "storage", &size)),
    }
    if !spec.text_of("storageClassName").is_empty() {
        spec.field("storageClassName").is_format(errors, Format::Dns1123Subdomain);
    }
    spec.field("volumeMode").optional_one_of(errors, VOLUME_MODES);
    for source in ["dataSource", "dataSourceRef"] {
        check_data_source(&spec.field(source), errors);
    }
    let (source, reference) = (spec.field("dataSource"), spec.field("dataSourceRef"));
    if !reference.text_of("namespace").is_empty() {
        if source.is_set() {
            let problem = "may not be specified when dataSourceRef.namespace is specified";
            spec.invalid_as(errors, BadValue::verbatim("{}".to_owned()), problem);
        }
    } else if source.is_set() && reference.is_set() {
        let of = |at: &At<'_, '_>, field: &str| at.text_of(field).to_owned();
        let differs = |field: &&str| of(&source, field) != of(&reference, field);
        if ["apiGroup", "kind", "name"].iter().any(differs) {
            // Kubernetes: what it shows is the path, which has no fields to show.
            spec.invalid_as(errors, BadValue::verbatim("{}".to_owned()), "must match dataSourceRef");
        }
    }
    if !spec.text_of("volumeAttributesClassName").is_empty() {
        spec.field("volumeAttributesClassName").is_format(errors, Format::Dns1123Subdomain);
    }
}

/// Kubernetes: the errors name the list.
pub(crate) fn check_access_modes(modes: &At<'_, '_>, errors: &mut ErrorList) {
    for mode in modes.items().filter(|mode| !ACCESS_MODES.contains(&mode.text())) {
        errors.push(Error::not_supported(modes.path(), mode.text(), ACCESS_MODES));
    }
    let is_once = |mode: At<'_, '_>| mode.text() == "ReadWriteOncePod";
    let is_other =
        |mode: At<'_, '_>| mode.text() != "ReadWriteOncePod" && ACCESS_MODES.contains(&mode.text());
    if modes.items().any(is_once) && modes.items().any(is_other) {
        modes.forbidden(errors, "may not use ReadWriteOncePod with other access modes");
    }
}

fn check_data_source(source: &At<'_, '_>, errors: &mut ErrorList) {
    if !source.is_set() {
        return;
    }
    for field in ["name", "kind"] {
        if source.text_of(field).is_empty() {
            source.field(field).required(errors, "");
        }
    }
    let (group, kind) = (source.field("apiGroup"), source.text_of("kind"));
    if group.text().is_empty() && kind != "PersistentVolumeClaim" {
        let problem = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
        source.invalid_as(errors, kind, problem);
    }
    if !group.text().is_empty() {
        group.is_format(errors, Format::Dns1123Subdomain);
    }
    if !source.text_of("namespace").is_empty() {
        source.field("namespace").is_format(errors, Format::Dns1123Label);
    }
}

/// After what a new claim must fulfil: bound claims may grow, and little else may change.
fn check_change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    let (class, old_class) =
        (api::object::annotation(new.value(), BETA_CLASS), api::object::annotation(old.value(), BETA_CLASS));
    if class != old_class {
        let path = Path::new("metadata");
        let path = path.child("annotations");
        errors.push(Error::invalid(&path.child(BETA_CLASS), class.unwrap_or_default(), IMMUTABLE));
    }
    let (spec, old_spec) = (new.field("spec"), old.field("spec"));
    let is_bound = new.field("status").text_of("phase") == "Bound";
    let (now, before) = munged(spec.value(), old_spec.value(), is_bound);
    if now != before {
        let change = internal::changed_core("PersistentVolumeClaimSpec", &before, &now);
        let problem = "spec is immutable after creation except resources.requests and \
            volumeAttributesClassName for bound claims";
        spec.forbidden(errors, format!("{problem}\n{change}"));
    }
    let size = |spec: &Value| {
        let text = spec.pointer("/resources/requests/storage").and_then(Value::as_str);
        text.unwrap_or("0").parse::<api::quantity::Quantity>().ok()
    };
    let capacity = old.value().pointer("/status/capacity/storage").and_then(Value::as_str);
    let capacity = capacity.unwrap_or("0").parse().ok();
    if size(spec.value()) < size(old_spec.value()) && size(spec.value()) <= capacity {
        let path = Path::new("spec.resources.requests.storage");
        errors.push(Error::forbidden(&path, "field can not be less than status.capacity"));
    }
    let mode = spec.field("volumeMode");
    At::new(mode.value(), Path::new("volumeMode")).immutable(errors, &old_spec.field("volumeMode"));
    let attributes = spec.field("volumeAttributesClassName");
    let current = old.field("status");
    if current.has("currentVolumeAttributesClassName")
        && attributes.value() != old_spec.field("volumeAttributesClassName").value()
    {
        let what = if !attributes.is_set() { "nil" } else { "empty string" };
        if attributes.text().is_empty() {
            let problem = format!(
                "update to {what} is forbidden when status.currentVolumeAttributesClassName is not nil"
            );
            attributes.forbidden(errors, problem);
        }
    }
}

/// Both specs without what may differ.
fn munged(new: &Value, old: &Value, is_bound: bool) -> (Value, Value) {
    let (mut new, mut old) = (new.clone(), old.clone());
    if let (Some(new), Some(old)) = (new.as_object_mut(), old.as_object_mut()) {
        let was_unset = |old: &serde_json::Map<String, Value>, field: &str| !old.contains_key(field);
        for field in ["volumeName", "storageClassName"] {
            if was_unset(old, field) {
                new.remove(field);
            }
        }
        if is_bound {
            let size = old.get("resources").and_then(|it| it.pointer("/requests/storage")).cloned();
            let requests = new.get_mut("resources").and_then(|it| it.get_mut("requests")?.as_object_mut());
            if let Some(requests) = requests {
                requests.insert("storage".to_owned(), size.unwrap_or_else(|| "0".into()));
            }
            for spec in [new, old] {
                spec.remove("volumeAttributesClassName");
            }
        }
    }
    (new, old)
}

fn check_status(new: &At<'_, '_>, _: &At<'_, '_>, errors: &mut ErrorList) {
    if new.field("spec").field("accessModes").is_empty() {
        errors.push(Error::required(&Path::new("Spec.accessModes"), ""));
    }
    let status = new.field("status");
    let capacity = status.field("capacity");
    for (_, amount) in capacity.entries() {
        if let Some(value) = amount.quantity().and_then(|it| it.value()).filter(|value| *value < 0) {
            amount.invalid_as(errors, value, "must be a valid resource quantity");
        }
    }
    check_resizing(&status, errors);
}

/// Whether a name is that of something that claims can be resized in: storage, or a resource of a vendor.
fn resized_resource(path: &Path<'_>, name: &str) -> ErrorList {
    let errors = Format::QualifiedName.check(path, name);
    if errors.is_empty() && name != "storage" && resource_names::is_native(name) {
        return Error::not_supported(path, name, ["storage"]).into();
    }
    errors
}

/// How far a change of size has come, by the name of what is changed.
fn check_resizing(status: &At<'_, '_>, errors: &mut ErrorList) {
    let states = status.field("allocatedResourceStatuses");
    for (name, state) in states.entries() {
        errors.extend(resized_resource(states.path(), name));
        if !RESIZE_STATES.contains(&state.text()) {
            errors.push(Error::not_supported(states.path(), name, RESIZE_STATES));
        }
    }
    let allocated = status.field("allocatedResources");
    for (name, amount) in allocated.entries() {
        let unknown = resized_resource(allocated.path(), name);
        if let Some(size) = amount.quantity().filter(|_| unknown.is_empty()) {
            errors.extend(resource_names::check_amount(amount.path(), "storage", &size));
        }
        errors.extend(unknown);
    }
}

fn warn(object: &At<'_, '_>, _: Option<&Value>, warnings: &mut Vec<String>) {
    warn_of_annotation(object, BETA_CLASS, OLD_CLASS, warnings);
    warn_of_spec(&object.field("spec"), warnings);
}

pub(crate) fn warn_of_annotation(object: &At<'_, '_>, key: &str, problem: &str, warnings: &mut Vec<String>) {
    if api::object::annotation(object.value(), key).is_some() {
        warnings.push(format!("metadata.annotations[{key}]: {problem}"));
    }
}

pub(crate) fn warn_of_spec(spec: &At<'_, '_>, warnings: &mut Vec<String>) {
    let resources = spec.field("resources");
    for sort in ["requests", "limits"] {
        let amounts = resources.field(sort);
        let size = amounts.value().get("storage").and_then(Value::as_str);
        let size = size.and_then(|size| size.parse::<Quantity>().ok());
        if let Some(size) = size.filter(|size| !size.is_integer()) {
            warnings.push(format!(
                "{}: fractional byte value {} is invalid, must be an integer",
                amounts.path().key("storage"),
                go::quote(&size.to_string())
            ));
        }
    }
}

/// A claim has a capacity and modes once it has a volume.
fn if_bound(claim: &Row<'_>, cell: fn(&Row<'_>) -> String) -> Value {
    if claim.text("/spec/volumeName").is_empty() { "".into() } else { cell(claim).into() }
}

pub(crate) fn phase<'a>(it: &Row<'a>) -> &'a str {
    if it.is_deleting() { "Terminating" } else { it.text("/status/phase") }
}

pub(crate) fn class<'a>(it: &Row<'a>) -> &'a str {
    object::annotation(it.object, BETA_CLASS).unwrap_or(it.text("/spec/storageClassName"))
}

pub(crate) fn short_access_modes(of: &Value) -> String {
    let given = texts(of);
    let short = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let shown: Vec<_> = short.iter().filter(|(mode, _)| given.contains(mode)).map(|(_, it)| *it).collect();
    shown.join(",")
}
